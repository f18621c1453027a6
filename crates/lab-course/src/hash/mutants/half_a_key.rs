//! The fault: only the lower half of a key is kept, so keys with equal lower halves replace each
//! other.

use std::collections::HashMap;
use std::sync::Mutex;

pub struct Table {
    map: Mutex<HashMap<u32, u64>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: Mutex::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map.lock().unwrap().insert(key as u32, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().get(&(key as u32)).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().remove(&(key as u32))
    }

    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map
            .lock()
            .unwrap()
            .keys()
            .map(|&key| u64::from(key))
            .collect()
    }
}
