//! The fault: insert looks up the key under the lock, releases it, and inserts under the lock
//! without looking again.

use std::sync::Mutex;

pub struct Table {
    pairs: Vec<Mutex<Vec<(u64, u64)>>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            pairs: (0..64).map(|_| Mutex::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        {
            let mut pairs = self.list(key).lock().unwrap();
            if let Some(pair) = pairs.iter_mut().find(|pair| pair.0 == key) {
                return Some(std::mem::replace(&mut pair.1, value));
            }
        }
        self.list(key).lock().unwrap().push((key, value));
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let pairs = self.list(key).lock().unwrap();
        Some(pairs.iter().find(|pair| pair.0 == key)?.1)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let mut pairs = self.list(key).lock().unwrap();
        let at = pairs.iter().position(|pair| pair.0 == key)?;
        Some(pairs.swap_remove(at).1)
    }

    pub fn len(&self) -> usize {
        self.pairs
            .iter()
            .map(|pairs| pairs.lock().unwrap().len())
            .sum()
    }

    pub fn keys(&self) -> Vec<u64> {
        let keys = |pairs: &Mutex<Vec<(u64, u64)>>| {
            let pairs = pairs.lock().unwrap();
            pairs.iter().map(|pair| pair.0).collect::<Vec<_>>()
        };
        self.pairs.iter().flat_map(keys).collect()
    }

    fn list(&self, key: u64) -> &Mutex<Vec<(u64, u64)>> {
        &self.pairs[(key % 64) as usize]
    }
}
