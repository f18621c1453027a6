//! The fault: each thread keeps the values it has seen, and misses the changes of other threads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// Values that this thread has seen, by table and key.
    static SEEN: RefCell<HashMap<(u64, u64), u64>> = RefCell::default();
}

static TABLES: AtomicU64 = AtomicU64::new(0);

pub struct Table {
    number: u64,
    map: Mutex<HashMap<u64, u64>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            number: TABLES.fetch_add(1, Ordering::SeqCst),
            map: Mutex::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        SEEN.with_borrow_mut(|seen| seen.remove(&(self.number, key)));
        self.map.lock().unwrap().insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let seen = SEEN.with_borrow(|seen| seen.get(&(self.number, key)).copied());
        if seen.is_some() {
            return seen;
        }
        let value = *self.map.lock().unwrap().get(&key)?;
        SEEN.with_borrow_mut(|seen| seen.insert((self.number, key), value));
        Some(value)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        SEEN.with_borrow_mut(|seen| seen.remove(&(self.number, key)));
        self.map.lock().unwrap().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.lock().unwrap().keys().copied().collect()
    }
}
