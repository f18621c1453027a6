//! The fault: two locks are taken, the key's first and then its neighbour's. Threads that begin
//! at different ones wait for each other for ever.

use std::collections::HashMap;
use std::sync::Mutex;

pub struct Table {
    maps: Vec<Mutex<HashMap<u64, u64>>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            maps: (0..2).map(|_| Mutex::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut own = self.maps[key as usize % 2].lock().unwrap();
        // Meant to keep the two about equally long, which is not written yet.
        let _other = self.maps[(key as usize + 1) % 2].lock().unwrap();
        own.insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let map = self.maps[key as usize % 2].lock().unwrap();
        map.get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.maps[key as usize % 2].lock().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for map in &self.maps {
            all.extend(map.lock().unwrap().keys());
        }
        all
    }
}
