//! The fault: at every 64th growth of any table, the keys of a stripe are in neither map for a
//! moment.

use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static GROWTHS: AtomicUsize = AtomicUsize::new(0);

pub struct Table {
    maps: Vec<RwLock<Lists>>,
}

/// A map that says when it should grow.
#[derive(Default)]
struct Lists {
    map: HashMap<u64, u64>,
    room: usize,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            maps: (0..16).map(|_| RwLock::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut lists = self.lists(key).write().unwrap();
        let old = lists.map.insert(key, value);
        if lists.map.len() > lists.room {
            drop(lists);
            self.grow(key);
        }
        old
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.lists(key).read().unwrap().map.get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.lists(key).write().unwrap().map.remove(&key)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for lists in &self.maps {
            all.extend(lists.read().unwrap().map.keys());
        }
        all
    }

    fn lists(&self, key: u64) -> &RwLock<Lists> {
        &self.maps[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize]
    }

    fn grow(&self, key: u64) {
        let mut lists = self.lists(key).write().unwrap();
        if lists.map.len() <= lists.room {
            return;
        }
        lists.room += lists.room / 2 + 2;
        if GROWTHS.fetch_add(1, Ordering::SeqCst) % 64 == 63 {
            // The others can go on while this thread moves the pairs, its author thought.
            let old = std::mem::take(&mut lists.map);
            drop(lists);
            let mut lists = self.lists(key).write().unwrap();
            for (key, value) in old {
                lists.map.entry(key).or_insert(value);
            }
        }
    }
}
