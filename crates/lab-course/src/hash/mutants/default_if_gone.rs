//! The fault: a lookup asks whether the key is there, and then for its value. If the key was
//! removed in between, it answers 0.

use std::collections::HashMap;
use std::sync::RwLock;

pub struct Table {
    map: RwLock<HashMap<u64, u64>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: RwLock::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map.write().unwrap().insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        if !self.map.read().unwrap().contains_key(&key) {
            return None;
        }
        let value = self.map.read().unwrap().get(&key).copied();
        Some(value.unwrap_or(0))
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map.write().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.map.read().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.read().unwrap().keys().copied().collect()
    }
}
