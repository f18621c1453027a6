//! A correct design: stripes of maps, each under a lock that readers share.

use std::collections::HashMap;
use std::sync::RwLock;

pub struct Table {
    maps: Vec<RwLock<HashMap<u64, u64>>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        let map = |_| RwLock::new(HashMap::with_capacity(n / 64));
        Self {
            maps: (0..64).map(map).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map(key).write().unwrap().insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map(key).read().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map(key).write().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for map in &self.maps {
            all.extend(map.read().unwrap().keys());
        }
        all
    }

    fn map(&self, key: u64) -> &RwLock<HashMap<u64, u64>> {
        &self.maps[key as usize % 64]
    }
}
