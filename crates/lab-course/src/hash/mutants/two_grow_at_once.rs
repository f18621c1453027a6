//! The fault: two threads may both find the table full. The second copies what it saw before
//! the first put the new lists in place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

type Maps = Vec<Mutex<HashMap<u64, u64>>>;

pub struct Table {
    maps: RwLock<Arc<Maps>>,
    /// The lock of growing: only one thread grows at a time.
    growing: Mutex<()>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            maps: RwLock::new(Arc::new((0..4).map(|_| Mutex::default()).collect())),
            growing: Mutex::new(()),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let maps = self.maps.read().unwrap();
        let old = maps[place(key, &maps)].lock().unwrap().insert(key, value);
        let is_full = maps[place(key, &maps)].lock().unwrap().len() > 12 && maps.len() < 1 << 14;
        let seen = Arc::clone(&maps);
        drop(maps);
        if is_full {
            let _growing = self.growing.lock().unwrap();
            self.grow(&seen);
        }
        old
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let maps = self.maps.read().unwrap();
        let map = maps[place(key, &maps)].lock().unwrap();
        map.get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let maps = self.maps.read().unwrap();
        let mut map = maps[place(key, &maps)].lock().unwrap();
        map.remove(&key)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for map in &**self.maps.read().unwrap() {
            all.extend(map.lock().unwrap().keys());
        }
        all
    }

    fn grow(&self, seen: &Maps) {
        let mut maps = self.maps.write().unwrap();
        let more: Maps = (0..2 * seen.len()).map(|_| Mutex::default()).collect();
        for map in seen {
            for (&key, &value) in &*map.lock().unwrap() {
                more[place(key, &more)].lock().unwrap().insert(key, value);
            }
        }
        *maps = Arc::new(more);
    }
}

fn place(key: u64, maps: &Maps) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % maps.len()
}
