//! The fault: a removal that finds its key under the lock of readers returns the value that it
//! saw there, although another removal may come first.

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
        self.map.read().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let old = self.get(key)?;
        self.map.write().unwrap().remove(&key);
        Some(old)
    }

    pub fn len(&self) -> usize {
        self.map.read().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.read().unwrap().keys().copied().collect()
    }
}
