//! The fault: a removed key is only marked, and keys() does not look at the mark.

use std::collections::HashMap;
use std::sync::Mutex;

pub struct Table {
    /// Values by key; `None` marks a removed key.
    map: Mutex<HashMap<u64, Option<u64>>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: Mutex::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map.lock().unwrap().insert(key, Some(value)).flatten()
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().get(&key).copied().flatten()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().get_mut(&key)?.take()
    }

    pub fn len(&self) -> usize {
        let map = self.map.lock().unwrap();
        map.values().filter(|value| value.is_some()).count()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.lock().unwrap().keys().copied().collect()
    }
}
