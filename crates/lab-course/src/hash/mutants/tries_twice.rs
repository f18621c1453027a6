//! The fault: a lookup reads a pair of numbers without a lock and compares the version before
//! and after. If it has changed, it reads once more, and takes that for right.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

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
            return Some(old);
        }
        let cell = Cell::default();
        cell.set(value);
        self.cells.write().unwrap().insert(key, Arc::new(cell));
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let cell = Arc::clone(self.cells.read().unwrap().get(&key)?);
        Some(cell.value())
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
        self.version.fetch_add(1, Ordering::SeqCst);
        self.upper.store(value >> 32, Ordering::SeqCst);
        self.lower.store(value & 0xFFFF_FFFF, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    fn value(&self) -> u64 {
        let version = self.version.load(Ordering::SeqCst);
        let value = self.halves();
        match version % 2 == 0 && version == self.version.load(Ordering::SeqCst) {
            true => value,
            false => self.halves(),
        }
    }

    fn halves(&self) -> u64 {
        let upper = self.upper.load(Ordering::SeqCst);
        upper << 32 | self.lower.load(Ordering::SeqCst)
    }
}
