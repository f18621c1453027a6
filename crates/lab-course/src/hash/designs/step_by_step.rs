//! A correct design: a stripe that is full moves its pairs to a larger one, some with each
//! change, under one lock.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

type Map = HashMap<u64, u64>;

#[derive(Default)]
struct Stripe {
    old: Map,
    new: Map,
}

pub struct Table {
    stripes: Vec<Mutex<Stripe>>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            stripes: (0..16).map(|_| Mutex::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut stripe = self.stripe(key);
        stripe.advance();
        let old = stripe.old.remove(&key);
        stripe.new.insert(key, value).or(old)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let stripe = self.stripe(key);
        stripe
            .new
            .get(&key)
            .or_else(|| stripe.old.get(&key))
            .copied()
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let mut stripe = self.stripe(key);
        stripe.advance();
        stripe.new.remove(&key).or_else(|| stripe.old.remove(&key))
    }

    pub fn len(&self) -> usize {
        let len = |stripe: &Mutex<Stripe>| {
            let stripe = stripe.lock().unwrap();
            stripe.old.len() + stripe.new.len()
        };
        self.stripes.iter().map(len).sum()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        for stripe in &self.stripes {
            let stripe = stripe.lock().unwrap();
            keys.extend(stripe.old.keys().chain(stripe.new.keys()));
        }
        keys
    }

    fn stripe(&self, key: u64) -> MutexGuard<'_, Stripe> {
        let at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize;
        self.stripes[at].lock().unwrap()
    }
}

impl Stripe {
    fn advance(&mut self) {
        if self.old.is_empty() && self.new.len() == self.new.capacity() {
            let room = 2 * self.new.len() + 4;
            self.old = std::mem::replace(&mut self.new, Map::with_capacity(room));
        }
        let some: Vec<u64> = self.old.keys().copied().take(2).collect();
        for key in some {
            self.new.extend(self.old.remove_entry(&key));
        }
    }
}
