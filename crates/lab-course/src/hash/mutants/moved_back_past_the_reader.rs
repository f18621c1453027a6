//! The fault: a lookup asks the old map and then the new one, as pairs move; but when the maps
//! change places, pairs move the other way.

use std::collections::HashMap;
use std::sync::RwLock;

type Map = HashMap<u64, u64>;

pub struct Table {
    stripes: Vec<Stripe>,
}

/// A map that moves to a new one when it is full, some pairs with each insertion.
#[derive(Default)]
struct Stripe {
    old: RwLock<Map>,
    new: RwLock<Map>,
}

impl Table {
    pub fn with_capacity(_: usize) -> Self {
        Self {
            stripes: (0..8).map(|_| Stripe::default()).collect(),
        }
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.stripe(key).insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        self.stripe(key).get(key)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        self.stripe(key).remove(key)
    }

    pub fn len(&self) -> usize {
        self.keys().len()
    }

    pub fn keys(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for stripe in &self.stripes {
            let old = stripe.old.read().unwrap();
            all.extend(old.keys());
            all.extend(stripe.new.read().unwrap().keys());
        }
        all
    }

    fn stripe(&self, key: u64) -> &Stripe {
        &self.stripes[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as usize]
    }
}

impl Stripe {
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        let mut old = self.old.write().unwrap();
        let mut new = self.new.write().unwrap();
        let before = old.remove(&key);
        let before = new.insert(key, value).or(before);
        Self::advance(&mut old, &mut new);
        before
    }

    fn get(&self, key: u64) -> Option<u64> {
        let found = self.old.read().unwrap().get(&key).copied();
        found.or_else(|| self.new.read().unwrap().get(&key).copied())
    }

    fn remove(&self, key: u64) -> Option<u64> {
        let mut old = self.old.write().unwrap();
        let mut new = self.new.write().unwrap();
        old.remove(&key).or_else(|| new.remove(&key))
    }

    /// Moves some pairs. When the old map is empty and the new one is large, they change places.
    fn advance(old: &mut Map, new: &mut Map) {
        if old.is_empty() && new.len().is_power_of_two() && new.len() > 7 {
            std::mem::swap(old, new);
        }
        let some: Vec<u64> = old.keys().copied().take(2).collect();
        for key in some {
            new.extend(old.remove_entry(&key));
        }
    }
}
