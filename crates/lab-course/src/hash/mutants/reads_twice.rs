//! The fault: a lookup of a thread that finds the stripe's lock taken reads a copy of the
//! stripe instead, which the writer renews after its change and after it has released the lock.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

type Map = HashMap<u64, u64>;

#[derive(Default)]
struct Stripe {
    map: RwLock<Map>,
    copy: RwLock<Arc<Map>>,
}

pub struct Table {
    stripes: Vec<Stripe>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            stripes: (0..512).map(|_| Stripe::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.change(key, |map| map.insert(key, value))
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let stripe = self.stripe(key);
        match stripe.map.try_read() {
            Ok(map) => map.get(&key).copied(),
            Err(_) => stripe.copy.read().unwrap().get(&key).copied(),
        }
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.change(key, |map| map.remove(&key))
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let keys = |stripe: &Stripe| {
            stripe
                .map
                .read()
                .unwrap()
                .keys()
                .copied()
                .collect::<Vec<_>>()
        };
        self.stripes.iter().flat_map(keys).collect()
    }

    fn stripe(&self, key: u64) -> &Stripe {
        &self.stripes[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize]
    }

    fn change(&self, key: u64, change: impl FnOnce(&mut Map) -> Option<u64>) -> Option<u64> {
        let stripe = self.stripe(key);
        let mut map = stripe.map.write().unwrap();
        let old = change(&mut map);
        let copy = Arc::new(map.clone());
        drop(map);
        *stripe.copy.write().unwrap() = copy;
        old
    }
}
