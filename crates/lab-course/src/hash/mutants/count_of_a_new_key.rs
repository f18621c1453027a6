//! The fault: an insertion finds out whether its key is new before it takes the lock to write.
//! Two threads with the same new key both count it.

use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Table {
    map: RwLock<HashMap<u64, u64>>,
    len: AtomicUsize,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: RwLock::new(HashMap::with_capacity(n)),
            len: AtomicUsize::new(0),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let is_new = !self.map.read().unwrap().contains_key(&key);
        let mut map = self.map.write().unwrap();
        if is_new {
            self.len.fetch_add(1, Ordering::SeqCst);
        }
        map.insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map.read().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let old = self.map.write().unwrap().remove(&key)?;
        self.len.fetch_sub(1, Ordering::SeqCst);
        Some(old)
    }

    pub fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.read().unwrap().keys().copied().collect()
    }
}
