//! A correct design: stripes whose locks are only tried, again and again, without sleeping.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

type Map = HashMap<u64, u64>;

pub struct Table {
    maps: Vec<Mutex<Map>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            maps: (0..32).map(|_| Mutex::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map(key).insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map(key).get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map(key).remove(&key)
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

    fn map(&self, key: u64) -> MutexGuard<'_, Map> {
        let map = &self.maps[key as usize % 32];
        for n in 1_u32.. {
            if let Ok(map) = map.try_lock() {
                return map;
            }
            match n % 100 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
        unreachable!("the loop has no end")
    }
}
