//! The fault: a key that is put into the old lists while the table grows is lost with them.

use std::collections::HashMap;
use std::sync::{Mutex, RwLock};

/// Stripes of maps; their number grows with the number of keys.
pub struct Table {
    stripes: RwLock<Vec<Mutex<HashMap<u64, u64>>>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            stripes: RwLock::new(vec![Mutex::default()]),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let is_full = {
            let stripes = self.stripes.read().unwrap();
            let mut map = stripes[key as usize % stripes.len()].lock().unwrap();
            if let Some(old) = map.insert(key, value) {
                return Some(old);
            }
            map.len() > 8 && stripes.len() < 1 << 10
        };
        if is_full {
            self.grow();
        }
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let stripes = self.stripes.read().unwrap();
        let map = stripes[key as usize % stripes.len()].lock().unwrap();
        map.get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let stripes = self.stripes.read().unwrap();
        let mut map = stripes[key as usize % stripes.len()].lock().unwrap();
        map.remove(&key)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for map in &*self.stripes.read().unwrap() {
            all.extend(map.lock().unwrap().keys());
        }
        all
    }

    fn grow(&self) {
        // Other threads go on meanwhile, which its author thought clever.
        let more: Vec<Mutex<HashMap<u64, u64>>> = {
            let old = self.stripes.read().unwrap();
            let more: Vec<_> = (0..2 * old.len()).map(|_| Mutex::default()).collect();
            for map in &*old {
                for (&key, &value) in &*map.lock().unwrap() {
                    let new: &Mutex<HashMap<u64, u64>> = &more[key as usize % more.len()];
                    new.lock().unwrap().insert(key, value);
                }
            }
            more
        };
        *self.stripes.write().unwrap() = more;
    }
}
