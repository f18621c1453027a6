//! The fault: every 256th lookup of a table reads a copy of the map that every 64th change
//! renews.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub struct Table {
    map: Mutex<HashMap<u64, u64>>,
    copy: Mutex<Arc<HashMap<u64, u64>>>,
    changes: AtomicUsize,
    lookups: AtomicUsize,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: Mutex::new(HashMap::with_capacity(n)),
            copy: Mutex::default(),
            changes: AtomicUsize::new(0),
            lookups: AtomicUsize::new(0),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut map = self.map.lock().unwrap();
        let old = map.insert(key, value);
        self.changed(&map);
        old
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        if self.lookups.fetch_add(1, Ordering::SeqCst) % 256 == 255 {
            let copy = Arc::clone(&self.copy.lock().unwrap());
            return copy.get(&key).copied();
        }
        self.map.lock().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let mut map = self.map.lock().unwrap();
        let old = map.remove(&key);
        self.changed(&map);
        old
    }

    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.lock().unwrap().keys().copied().collect()
    }

    fn changed(&self, map: &HashMap<u64, u64>) {
        if self.changes.fetch_add(1, Ordering::SeqCst) % 64 == 63 {
            *self.copy.lock().unwrap() = Arc::new(map.clone());
        }
    }
}
