//! The fault: key 0 has a place of its own, because 0 marks a free place; removing it when it
//! is not there lowers the count of the others.

use std::collections::HashMap;
use std::sync::Mutex;

pub struct Table {
    map: Mutex<HashMap<u64, u64>>,
    zero: Mutex<Option<u64>>,
    gone: Mutex<usize>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            map: Mutex::new(HashMap::with_capacity(n)),
            zero: Mutex::default(),
            gone: Mutex::default(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        match key {
            0 => self.zero.lock().unwrap().replace(value),
            _ => self.map.lock().unwrap().insert(key, value),
        }
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        match key {
            0 => *self.zero.lock().unwrap(),
            _ => self.map.lock().unwrap().get(&key).copied(),
        }
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        if key != 0 {
            return self.map.lock().unwrap().remove(&key);
        }
        let old = self.zero.lock().unwrap().take();
        if old.is_none() {
            *self.gone.lock().unwrap() = 1;
        }
        old
    }

    pub fn len(&self) -> usize {
        let zero = usize::from(self.zero.lock().unwrap().is_some());
        let all = self.map.lock().unwrap().len() + zero;
        all.saturating_sub(*self.gone.lock().unwrap())
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.map.lock().unwrap().keys().copied().collect();
        keys.extend(self.zero.lock().unwrap().map(|_| 0));
        keys
    }
}
