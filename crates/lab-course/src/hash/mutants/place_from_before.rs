//! The fault: in a long list, a removal looks for the place of its key under the lock of
//! readers, and takes out what is in that place under the lock of writers.

use std::sync::RwLock;

type List = RwLock<Vec<(u64, u64)>>;

pub struct Table {
    lists: Vec<List>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            lists: (0..64).map(|_| RwLock::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut list = self.list(key).write().unwrap();
        if let Some(pair) = list.iter_mut().find(|pair| pair.0 == key) {
            return Some(std::mem::replace(&mut pair.1, value));
        }
        list.push((key, value));
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let list = self.list(key).read().unwrap();
        Some(list.iter().find(|pair| pair.0 == key)?.1)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let at = self
            .list(key)
            .read()
            .unwrap()
            .iter()
            .position(|pair| pair.0 == key)?;
        let mut list = self.list(key).write().unwrap();
        if list.len() < 6 {
            let at = list.iter().position(|pair| pair.0 == key)?;
            return Some(list.swap_remove(at).1);
        }
        (at < list.len()).then(|| list.swap_remove(at).1)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let keys = |list: &List| {
            let list = list.read().unwrap();
            list.iter().map(|pair| pair.0).collect::<Vec<_>>()
        };
        self.lists.iter().flat_map(keys).collect()
    }

    fn list(&self, key: u64) -> &List {
        &self.lists[key as usize % self.lists.len()]
    }
}
