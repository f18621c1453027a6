//! The fault: a place of a fixed first part gets its key before its value, and a lookup needs
//! no lock there: it finds the key with the value 0, or with the value of the key before.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys below this number have places of their own.
const PLACES: u64 = 64;

#[derive(Default)]
struct Place {
    /// Whether the key is there.
    full: AtomicU64,
    value: AtomicU64,
}

pub struct Table {
    places: Vec<Place>,
    /// The keys that have no place; the lock is also that of all writers.
    others: Mutex<HashMap<u64, u64>>,
}

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            others: Mutex::new(HashMap::with_capacity(n)),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut others = self.others.lock().unwrap();
        let Some(place) = self.places.get(key as usize) else {
            return others.insert(key, value);
        };
        let was = place.full.swap(1, Ordering::SeqCst);
        let old = place.value.swap(value, Ordering::SeqCst);
        (was == 1).then_some(old)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let Some(place) = self.places.get(key as usize) else {
            return self.others.lock().unwrap().get(&key).copied();
        };
        let is_full = place.full.load(Ordering::SeqCst) == 1;
        is_full.then(|| place.value.load(Ordering::SeqCst))
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let mut others = self.others.lock().unwrap();
        let Some(place) = self.places.get(key as usize) else {
            return others.remove(&key);
        };
        let was = place.full.swap(0, Ordering::SeqCst);
        (was == 1).then(|| place.value.load(Ordering::SeqCst))
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let is_full = |key: &u64| self.places[*key as usize].full.load(Ordering::SeqCst) == 1;
        let mut keys: Vec<u64> = (0..PLACES).filter(is_full).collect();
        keys.extend(self.others.lock().unwrap().keys());
        keys
    }
}
