//! The fault: while the last of the stripes grows, an insertion there goes into the map that is
//! about to be thrown away. The other stripes are right.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

type Map = Mutex<HashMap<u64, u64>>;

pub struct Table {
    maps: Vec<RwLock<Arc<Map>>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            maps: (0..16).map(|_| RwLock::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let at = place(key);
        let map = self.maps[at].read().unwrap();
        let seen = Arc::clone(&map);
        // Meant to keep the others from waiting while this one inserts.
        let kept = (at != 15).then_some(map);
        let old = seen.lock().unwrap().insert(key, value);
        let is_full = old.is_none() && seen.lock().unwrap().len() % 4 == 0;
        drop(kept);
        if is_full {
            let mut map = self.maps[at].write().unwrap();
            let copy = map.lock().unwrap().clone();
            *map = Arc::new(Mutex::new(copy));
        }
        old
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let map = self.maps[place(key)].read().unwrap();
        map.lock().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let map = self.maps[place(key)].read().unwrap();
        map.lock().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for map in &self.maps {
            all.extend(map.read().unwrap().lock().unwrap().keys());
        }
        all
    }
}

fn place(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize
}
