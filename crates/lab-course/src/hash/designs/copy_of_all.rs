//! A correct design: each change copies the map of a stripe, one writer at a time; readers take
//! the newest copy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

type Map = HashMap<u64, u64>;

#[derive(Default)]
struct Stripe {
    writing: Mutex<()>,
    now: RwLock<Arc<Map>>,
}

pub struct Table {
    stripes: Vec<Stripe>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            stripes: (0..256).map(|_| Stripe::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.change(key, |map| map.insert(key, value))
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let now = Arc::clone(&self.stripe(key).now.read().unwrap());
        now.get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.change(key, |map| map.remove(&key))
    }

    pub fn len(&self) -> usize {
        let len = |stripe: &Stripe| stripe.now.read().unwrap().len();
        self.stripes.iter().map(len).sum()
    }

    pub fn keys(&self) -> Vec<u64> {
        let keys = |stripe: &Stripe| {
            stripe
                .now
                .read()
                .unwrap()
                .keys()
                .copied()
                .collect::<Vec<_>>()
        };
        self.stripes.iter().flat_map(keys).collect()
    }

    fn stripe(&self, key: u64) -> &Stripe {
        &self.stripes[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize]
    }

    fn change(&self, key: u64, change: impl FnOnce(&mut Map) -> Option<u64>) -> Option<u64> {
        let stripe = self.stripe(key);
        let _writing = stripe.writing.lock().unwrap();
        let mut copy = Map::clone(&stripe.now.read().unwrap());
        let old = change(&mut copy);
        *stripe.now.write().unwrap() = Arc::new(copy);
        old
    }
}
