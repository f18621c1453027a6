//! The fault: a stripe that grows counts its keys anew, and writes the count after it has
//! released the lock. What was counted in between is lost.

use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Stripe {
    map: RwLock<HashMap<u64, u64>>,
    len: AtomicUsize,
}

pub struct Table {
    stripes: Vec<Stripe>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            stripes: (0..8).map(|_| Stripe::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let stripe = self.stripe(key);
        let mut map = stripe.map.write().unwrap();
        let old = map.insert(key, value);
        if old.is_some() {
            return old;
        }
        if map.len().is_power_of_two() && map.len() > 2 {
            let room = map.len();
            map.reserve(room);
            let len = map.len();
            drop(map);
            stripe.len.store(len, Ordering::SeqCst);
        } else {
            stripe.len.fetch_add(1, Ordering::SeqCst);
        }
        None
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.stripe(key).map.read().unwrap().get(&key).copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let stripe = self.stripe(key);
        let mut map = stripe.map.write().unwrap();
        let old = map.remove(&key)?;
        stripe.len.fetch_sub(1, Ordering::SeqCst);
        Some(old)
    }

    pub fn len(&self) -> usize {
        let len = |stripe: &Stripe| stripe.len.load(Ordering::SeqCst);
        self.stripes.iter().map(len).sum()
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
        &self.stripes[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize]
    }
}
