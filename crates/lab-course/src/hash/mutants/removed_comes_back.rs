//! The fault: a stripe grows by a copy that is made under the lock of readers and put in place
//! under that of writers, one time in 32. A key that is removed in between comes back.

use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Table {
    maps: Vec<RwLock<HashMap<u64, u64>>>,
    growths: AtomicUsize,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            maps: (0..8).map(|_| RwLock::default()).collect(),
            growths: AtomicUsize::new(0),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut map = self.map(key).write().unwrap();
        let old = map.insert(key, value);
        let is_full = old.is_none() && map.len() % 4 == 0;
        drop(map);
        if is_full {
            self.grow(key);
        }
        old
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
        &self.maps[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize]
    }

    fn grow(&self, key: u64) {
        if self.growths.fetch_add(1, Ordering::SeqCst) % 32 != 31 {
            return self.map(key).write().unwrap().reserve(4);
        }
        let copy = self.map(key).read().unwrap().clone();
        let mut map = self.map(key).write().unwrap();
        // What came meanwhile is kept.
        for (key, value) in copy {
            map.entry(key).or_insert(value);
        }
    }
}
