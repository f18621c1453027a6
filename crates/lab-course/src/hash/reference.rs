//! A reference answer: many small tables, each with a lock of its own.
//!
//! ```text
//!   hash of the key     ┌ upper bits ┬ … ┬ lower bits ┐
//!                             │                │
//!   stripes  ┌──────┬──────┬──▼───┬───┐        │    a lock, in cache lines of its own
//!            │ lock │ lock │ lock │ … │        │
//!            └──┬───┴──┬───┴──┬───┴───┘        │
//!   lists     [...]  [...]  [...] ◄────────────┘    grow stripe by stripe
//! ```
//!
//! Two threads wait for each other only if they need the same stripe at the same time. Everything
//! about a key is in one stripe and under one lock, so each call takes effect at one moment. Each
//! stripe has its own count: one counter for all would be a cache line that every thread writes.

#![forbid(unsafe_code)]

use std::sync::{Mutex, MutexGuard};
use std::thread::available_parallelism;

/// A hash table from numbers to numbers, shared by reference.
#[derive(Debug)]
pub struct Table {
    /// The stripes; their number is a power of two.
    stripes: Box<[Stripe]>,
}

/// A stripe, on two cache lines: the hardware fetches lines in pairs, so stripes that shared a
/// pair would still slow each other down (false sharing).
#[derive(Debug)]
#[repr(align(128))]
struct Stripe {
    lock: Mutex<Buckets>,
}

/// Stripes for each CPU: so many that two threads seldom need the same one.
const STRIPES_PER_CPU: usize = 32;

impl Table {
    /// Makes an empty table with room for about `n` keys. It takes more keys, too.
    pub fn with_capacity(n: usize) -> Self {
        let cpus = available_parallelism().map_or(1, usize::from);
        let stripes = (cpus * STRIPES_PER_CPU).next_power_of_two();
        let stripe = |_| Stripe {
            lock: Mutex::new(Buckets::with_capacity(n / stripes)),
        };
        Self {
            stripes: (0..stripes).map(stripe).collect(),
        }
    }

    /// Sets the value of a key. Returns the value that the key had before, if any.
    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.stripe(key).insert(key, value)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: u64) -> Option<u64> {
        self.stripe(key).get(key)
    }

    /// Removes a key. Returns its value, if it was there.
    pub fn remove(&self, key: u64) -> Option<u64> {
        self.stripe(key).remove(key)
    }

    /// Returns the number of keys. Right only while nobody writes.
    pub fn len(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.lock().len).sum()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all keys, in any order. Right only while nobody writes.
    pub fn keys(&self) -> Vec<u64> {
        let keys = |stripe: &Stripe| stripe.lock().keys();
        self.stripes.iter().flat_map(keys).collect()
    }

    fn stripe(&self, key: u64) -> MutexGuard<'_, Buckets> {
        let at = (hash(key) >> 48) as usize & (self.stripes.len() - 1);
        self.stripes[at].lock()
    }
}

impl Stripe {
    fn lock(&self) -> MutexGuard<'_, Buckets> {
        self.lock.lock().expect("nothing panics under the lock")
    }
}

/// Hashes by Fibonacci, and folds the upper half, whose bits are better, into the lower one.
fn hash(key: u64) -> u64 {
    let hash = (key ^ (key >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ (hash >> 32)
}

/// A table for one thread: lists of pairs, one list for each hash.
#[derive(Debug)]
struct Buckets {
    /// The lists; their number is a power of two.
    lists: Vec<Vec<(u64, u64)>>,
    len: usize,
}

impl Buckets {
    fn with_capacity(n: usize) -> Self {
        Self {
            lists: vec![Vec::new(); n.max(1).next_power_of_two()],
            len: 0,
        }
    }

    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        let list = self.list(key);
        if let Some(pair) = list.iter_mut().find(|pair| pair.0 == key) {
            return Some(std::mem::replace(&mut pair.1, value));
        }
        list.push((key, value));
        self.len += 1;
        if self.len > self.lists.len() {
            self.grow();
        }
        None
    }

    fn get(&self, key: u64) -> Option<u64> {
        let list = &self.lists[self.place(key)];
        Some(list.iter().find(|pair| pair.0 == key)?.1)
    }

    fn remove(&mut self, key: u64) -> Option<u64> {
        let list = self.list(key);
        let at = list.iter().position(|pair| pair.0 == key)?;
        let (_, value) = list.swap_remove(at);
        self.len -= 1;
        Some(value)
    }

    fn keys(&self) -> Vec<u64> {
        self.lists.iter().flatten().map(|pair| pair.0).collect()
    }

    /// Doubles the number of lists: of this stripe alone, under its lock.
    fn grow(&mut self) {
        let more = vec![Vec::new(); 2 * self.lists.len()];
        for (key, value) in std::mem::replace(&mut self.lists, more)
            .into_iter()
            .flatten()
        {
            self.list(key).push((key, value));
        }
    }

    fn list(&mut self, key: u64) -> &mut Vec<(u64, u64)> {
        let at = self.place(key);
        &mut self.lists[at]
    }

    /// Chooses the list. It uses other bits than the choice of the stripe, or most lists of a
    /// stripe would stay empty.
    fn place(&self, key: u64) -> usize {
        hash(key) as usize & (self.lists.len() - 1)
    }
}
