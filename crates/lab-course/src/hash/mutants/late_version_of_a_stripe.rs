//! The fault: each stripe keeps its last lookups beside its lock, by a version that a removal
//! raises after it has released the lock. Insertions raise it in time.

use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

type Kept = HashMap<(ThreadId, u64), (u64, u64)>;

#[derive(Default)]
struct Stripe {
    version: AtomicU64,
    map: RwLock<HashMap<u64, u64>>,
    /// The version and the value that each thread has seen of each key.
    kept: RwLock<Kept>,
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
        stripe.version.fetch_add(1, Ordering::SeqCst);
        map.insert(key, value)
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let stripe = self.stripe(key);
        let me = (std::thread::current().id(), key);
        let version = stripe.version.load(Ordering::SeqCst);
        let kept = stripe.kept.read().unwrap().get(&me).copied();
        if let Some((of, value)) = kept
            && of == version
        {
            return Some(value);
        }
        let map = stripe.map.read().unwrap();
        let value = *map.get(&key)?;
        let version = stripe.version.load(Ordering::SeqCst);
        drop(map);
        stripe.kept.write().unwrap().insert(me, (version, value));
        Some(value)
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        let stripe = self.stripe(key);
        let old = stripe.map.write().unwrap().remove(&key);
        stripe.version.fetch_add(1, Ordering::SeqCst);
        old
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
        &self.stripes[key as usize % 8]
    }
}
