//! A correct design: stripes that are made when they are first needed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

type Map = BTreeMap<u64, u64>;

#[derive(Debug, Default)]
pub struct Table {
    maps: Arc<[OnceLock<Box<Mutex<Map>>>; 32]>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self::default()
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.map(key).insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.map(key).get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.map(key).remove(&key)
    }

    pub fn len(&self) -> usize {
        self.all().map(|map| map.len()).sum()
    }

    pub fn keys(&self) -> Vec<u64> {
        self.all()
            .flat_map(|map| map.keys().copied().collect::<Vec<_>>())
            .collect()
    }

    fn all(&self) -> impl Iterator<Item = MutexGuard<'_, Map>> {
        let maps = self.maps.iter().filter_map(|map| map.get());
        maps.map(|map| map.lock().unwrap())
    }

    fn map(&self, key: u64) -> MutexGuard<'_, Map> {
        self.maps[key as usize % 32]
            .get_or_init(Box::default)
            .lock()
            .unwrap()
    }
}
