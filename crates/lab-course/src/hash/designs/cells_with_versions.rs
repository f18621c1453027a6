//! A correct design: a value is two halves that are read without a lock, and read again if the
//! version has changed meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

const GONE: u64 = 1 << 63;

/// A value; its version is odd while it is written, and has the top bit when the key is gone.
#[derive(Default)]
struct Cell {
    version: AtomicU64,
    upper: AtomicU64,
    lower: AtomicU64,
}

pub struct Table {
    writing: Mutex<()>,
    cells: RwLock<HashMap<u64, Arc<Cell>>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            writing: Mutex::new(()),
            cells: RwLock::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let _writing = self.writing.lock().unwrap();
        let found = self.cells.read().unwrap().get(&key).cloned();
        if let Some(cell) = found {
            let old = cell.value();
            cell.set(value);
            return old;
        }
        let cell = Cell::default();
        cell.set(value);
        self.cells.write().unwrap().insert(key, Arc::new(cell));
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let cell = Arc::clone(self.cells.read().unwrap().get(&key)?);
        cell.value()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let _writing = self.writing.lock().unwrap();
        let cell = self.cells.write().unwrap().remove(&key)?;
        let old = cell.value();
        cell.version.fetch_or(GONE, Ordering::SeqCst);
        old
    }

    pub fn len(&self) -> usize {
        self.cells.read().unwrap().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.cells.read().unwrap().keys().copied().collect()
    }
}

impl Cell {
    fn set(&self, value: u64) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.upper.store(value >> 32, Ordering::SeqCst);
        self.lower.store(value & 0xFFFF_FFFF, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    fn value(&self) -> Option<u64> {
        loop {
            let version = self.version.load(Ordering::SeqCst);
            let upper = self.upper.load(Ordering::SeqCst);
            let lower = self.lower.load(Ordering::SeqCst);
            if version >= GONE {
                return None;
            }
            if version % 2 == 0 && version == self.version.load(Ordering::SeqCst) {
                return Some(upper << 32 | lower);
            }
            std::hint::spin_loop();
        }
    }
}
