//! The fault: a lookup that finds its key far behind moves the pair to the front, in two steps:
//! the pair is taken out under one lock and put back under the next.

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
        let at = {
            let list = self.list(key).read().unwrap();
            let at = list.iter().position(|pair| pair.0 == key)?;
            if at < 7 {
                return Some(list[at].1);
            }
            at
        };
        let pair = {
            let mut list = self.list(key).write().unwrap();
            if list.get(at).is_none_or(|pair| pair.0 != key) {
                return Some(list.iter().find(|pair| pair.0 == key)?.1);
            }
            list.remove(at)
        };
        let mut list = self.list(key).write().unwrap();
        if list.iter().all(|other| other.0 != key) {
            list.insert(0, pair);
        }
        Some(pair.1)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let mut list = self.list(key).write().unwrap();
        let at = list.iter().position(|pair| pair.0 == key)?;
        Some(list.swap_remove(at).1)
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
