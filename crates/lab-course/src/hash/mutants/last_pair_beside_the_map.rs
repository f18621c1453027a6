//! The fault: the pair that was inserted last is kept beside the map, to be found quickly. It
//! is written after the lock of the map was released, so of two insertions the first may write
//! it last.

use std::collections::HashMap;
use std::sync::Mutex;

pub struct Table {
    map: Mutex<HashMap<u64, u64>>,
    last: Mutex<Option<(u64, u64)>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: Mutex::new(HashMap::with_capacity(n)),
            last: Mutex::default(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        *self.last.lock().unwrap() = None;
        let old = self.map.lock().unwrap().insert(key, value);
        *self.last.lock().unwrap() = Some((key, value));
        old
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let last = *self.last.lock().unwrap();
        if let Some((is, value)) = last
            && is == key
        {
            return Some(value);
        }
        self.map.lock().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        *self.last.lock().unwrap() = None;
        self.map.lock().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.lock().unwrap().keys().copied().collect()
    }
}
