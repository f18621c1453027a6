//! The fault: there is no lock, so threads cannot share the table.

use std::cell::RefCell;
use std::collections::HashMap;

pub struct Table {
    map: RefCell<HashMap<u64, u64>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: RefCell::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map.borrow_mut().insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map.borrow().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map.borrow_mut().remove(&key)
    }

    pub fn len(&self) -> usize {
        self.map.borrow().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.map.borrow().keys().copied().collect()
    }
}
