//! The fault: an insertion that brings the map to a multiple of 1,000 keys counts the keys with
//! `len`, which takes the lock that the insertion has.

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
        let mut map = self.map.lock().unwrap();
        let old = map.insert(key, value);
        if old.is_none() && map.len() % 1_000 == 0 {
            map.reserve(self.len());
        }
        old
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map.lock().unwrap().get(&key).copied()
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
