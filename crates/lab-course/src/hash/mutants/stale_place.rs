//! The fault: a call computes the stripe of its key from the number of stripes, and takes the
//! lock after that. If the table grows in between, the key goes into a stripe in which nobody
//! looks for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

type Map = Mutex<HashMap<u64, u64>>;

pub struct Table {
    stripes: AtomicUsize,
    maps: RwLock<Vec<Map>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            stripes: AtomicUsize::new(2),
            maps: RwLock::new((0..2).map(|_| Mutex::default()).collect()),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let at = self.place(key);
        let maps = self.maps.read().unwrap();
        let mut map = maps[at].lock().unwrap();
        let old = map.insert(key, value);
        let is_full = map.len() > 16 && maps.len() < 1 << 14;
        drop(map);
        drop(maps);
        if is_full {
            self.grow();
        }
        old
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let maps = self.maps.read().unwrap();
        let map = maps[self.place(key)].lock().unwrap();
        map.get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let maps = self.maps.read().unwrap();
        let mut map = maps[self.place(key)].lock().unwrap();
        map.remove(&key)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for map in &*self.maps.read().unwrap() {
            all.extend(map.lock().unwrap().keys());
        }
        all
    }

    fn place(&self, key: u64) -> usize {
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        hash as usize & (self.stripes.load(Ordering::SeqCst) - 1)
    }

    fn grow(&self) {
        let mut maps = self.maps.write().unwrap();
        if maps.iter().all(|map| map.lock().unwrap().len() <= 16) {
            return;
        }
        let more: Vec<Map> = (0..2 * maps.len()).map(|_| Mutex::default()).collect();
        self.stripes.store(more.len(), Ordering::SeqCst);
        for map in std::mem::replace(&mut *maps, more) {
            for (key, value) in map.into_inner().unwrap() {
                maps[self.place(key)].lock().unwrap().insert(key, value);
            }
        }
    }
}
