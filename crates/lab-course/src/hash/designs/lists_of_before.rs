//! A correct design: a lookup may look into lists that a growth has replaced since it began.
//! They keep what was there when they were replaced, so its answer was right at that moment.

use std::sync::{Arc, Mutex, RwLock};

type Lists = Vec<Mutex<Vec<(u64, u64)>>>;

pub struct Table {
    lists: RwLock<Arc<Lists>>,
}

fn lists(n: usize) -> Lists {
    (0..n).map(|_| Mutex::default()).collect()
}

fn place(key: u64, lists: &Lists) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % lists.len()
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            lists: RwLock::new(Arc::new(lists(4))),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let now = self.lists.read().unwrap();
        let mut list = now[place(key, &now)].lock().unwrap();
        if let Some(pair) = list.iter_mut().find(|pair| pair.0 == key) {
            return Some(std::mem::replace(&mut pair.1, value));
        }
        list.push((key, value));
        let is_full = list.len() > 4;
        drop(list);
        drop(now);
        if is_full {
            self.grow();
        }
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let now = Arc::clone(&self.lists.read().unwrap());
        let list = now[place(key, &now)].lock().unwrap();
        Some(list.iter().find(|pair| pair.0 == key)?.1)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let now = self.lists.read().unwrap();
        let mut list = now[place(key, &now)].lock().unwrap();
        let at = list.iter().position(|pair| pair.0 == key)?;
        Some(list.swap_remove(at).1)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let now = self.lists.read().unwrap();
        let keys = |list: &Mutex<Vec<(u64, u64)>>| {
            let list = list.lock().unwrap();
            list.iter().map(|pair| pair.0).collect::<Vec<_>>()
        };
        now.iter().flat_map(keys).collect()
    }

    fn grow(&self) {
        let mut now = self.lists.write().unwrap();
        if now.len() >= 1 << 16 {
            return;
        }
        let more = lists(2 * now.len());
        for list in &**now {
            for &(key, value) in &*list.lock().unwrap() {
                more[place(key, &more)].lock().unwrap().push((key, value));
            }
        }
        *now = Arc::new(more);
    }
}
