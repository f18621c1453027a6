//! The fault: a value is two halves, which a lookup reads without a lock. It reads again if the
//! version has changed; but the version has two bits, and is the same after four changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};

#[derive(Default)]
struct Cell {
    version: AtomicU8,
    upper: AtomicU32,
    lower: AtomicU32,
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
            return Some(old);
        }
        let cell = Cell::default();
        cell.set(value);
        self.cells.write().unwrap().insert(key, Arc::new(cell));
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let cells = self.cells.read().unwrap();
        Some(cells.get(&key)?.value())
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let _writing = self.writing.lock().unwrap();
        Some(self.cells.write().unwrap().remove(&key)?.value())
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
        self.version.fetch_xor(4, Ordering::SeqCst);
        self.upper.store((value >> 32) as u32, Ordering::SeqCst);
        self.lower.store(value as u32, Ordering::SeqCst);
        let version = self.version.load(Ordering::SeqCst);
        self.version.store((version + 1) & 3, Ordering::SeqCst);
    }

    fn value(&self) -> u64 {
        loop {
            let version = self.version.load(Ordering::SeqCst);
            let upper = self.upper.load(Ordering::SeqCst);
            let lower = self.lower.load(Ordering::SeqCst);
            if version < 4 && version == self.version.load(Ordering::SeqCst) {
                return u64::from(upper) << 32 | u64::from(lower);
            }
            std::hint::spin_loop();
        }
    }
}
