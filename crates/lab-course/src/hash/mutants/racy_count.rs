//! The fault: the count is kept beside the lock, read and written in two steps.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Table {
    maps: Vec<Mutex<HashMap<u64, u64>>>,
    len: AtomicUsize,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            maps: (0..64).map(|_| Mutex::default()).collect(),
            len: AtomicUsize::new(0),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let old = self.map(key).lock().unwrap().insert(key, value);
        if old.is_none() {
            let len = self.len.load(Ordering::SeqCst);
            self.len.store(len + 1, Ordering::SeqCst);
        }
        old
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map(key).lock().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let old = self.map(key).lock().unwrap().remove(&key);
        if old.is_some() {
            let len = self.len.load(Ordering::SeqCst);
            self.len.store(len.wrapping_sub(1), Ordering::SeqCst);
        }
        old
    }

    pub fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for map in &self.maps {
            all.extend(map.lock().unwrap().keys());
        }
        all
    }

    fn map(&self, key: u64) -> &Mutex<HashMap<u64, u64>> {
        &self.maps[key as usize % 64]
    }
}
