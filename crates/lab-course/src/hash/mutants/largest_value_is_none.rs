//! The fault: the largest number means that a key has no value, also if it was put in as one.

use std::collections::HashMap;
use std::sync::Mutex;

pub struct Table {
    map: Mutex<HashMap<u64, u64>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: Mutex::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map.lock().unwrap().insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let value = self.map.lock().unwrap().get(&key).copied();
        value.filter(|value| *value != u64::MAX)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.lock().unwrap().keys().copied().collect()
    }
}
