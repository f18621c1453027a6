//! The fault: an insertion that would bring the map to 4,097 keys only makes room, and forgets
//! to insert.

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
        if map.len() == 4_096 && !map.contains_key(&key) {
            map.reserve(8_192);
            map.insert(key, value);
            return map.remove(&key).and(None);
        }
        map.insert(key, value)
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
