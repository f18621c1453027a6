//! The fault: two threads that change the table at the same time begin with the same copy, and
//! one change is lost.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

type Map = HashMap<u64, u64>;

pub struct Table {
    /// Maps by the lower bits of the key, which keeps each copy short.
    maps: Vec<RwLock<Arc<Map>>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            maps: (0..512).map(|_| RwLock::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.change(key, |map| map.insert(key, value))
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.now(key).get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.change(key, |map| map.remove(&key))
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let keys = |map: &RwLock<Arc<Map>>| map.read().unwrap().keys().copied().collect::<Vec<_>>();
        self.maps.iter().flat_map(keys).collect()
    }

    fn now(&self, key: u64) -> Arc<Map> {
        Arc::clone(&self.maps[key as usize % 512].read().unwrap())
    }

    fn change(&self, key: u64, change: impl FnOnce(&mut Map) -> Option<u64>) -> Option<u64> {
        let mut copy = Map::clone(&self.now(key));
        let old = change(&mut copy);
        *self.maps[key as usize % 512].write().unwrap() = Arc::new(copy);
        old
    }
}
