//! A correct design: a lookup keeps what it has seen for as long as a version stays, and a
//! writer raises the version while it has the lock, before its change.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

static TABLES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The last lookup of this thread: table, version, key, and the answer.
    static LAST: RefCell<(u64, u64, u64, Option<u64>)> = const { RefCell::new((0, 0, 0, None)) };
}

pub struct Table {
    number: u64,
    version: AtomicU64,
    map: Mutex<HashMap<u64, u64>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            number: TABLES.fetch_add(1, Ordering::SeqCst) + 1,
            version: AtomicU64::new(0),
            map: Mutex::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut map = self.map.lock().unwrap();
        self.version.fetch_add(1, Ordering::SeqCst);
        map.insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let version = self.version.load(Ordering::SeqCst);
        let last = LAST.with_borrow(|last| *last);
        if (last.0, last.1, last.2) == (self.number, version, key) {
            return last.3;
        }
        let map = self.map.lock().unwrap();
        let answer = map.get(&key).copied();
        // No writer is at work, so the answer belongs to this version.
        let version = self.version.load(Ordering::SeqCst);
        LAST.set((self.number, version, key, answer));
        answer
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let mut map = self.map.lock().unwrap();
        self.version.fetch_add(1, Ordering::SeqCst);
        map.remove(&key)
    }

    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.lock().unwrap().keys().copied().collect()
    }
}
