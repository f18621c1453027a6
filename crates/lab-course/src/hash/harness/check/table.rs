//! The table that is checked.
//!
//! The check is built once, for any table, and reaches this one through pointers.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The calls of a table.
pub trait Map: Send + Sync {
    /// Sets the value of a key, and returns the one before.
    fn insert(&self, key: u64, value: u64) -> Option<u64>;
    /// Returns the value of a key.
    fn get(&self, key: u64) -> Option<u64>;
    /// Removes a key, and returns its value.
    fn remove(&self, key: u64) -> Option<u64>;
    /// Returns the number of keys.
    fn len(&self) -> usize;
    /// Returns all keys.
    fn keys(&self) -> Vec<u64>;
}

/// Makes a table with room for about so many keys.
pub type Make = fn(usize) -> Box<dyn Map>;

static MAKE: OnceLock<Make> = OnceLock::new();

/// Names the table to check.
pub fn is_made_by(make: Make) {
    MAKE.set(make).expect("one table is checked");
}

/// A counter in a cache line of its own.
#[repr(align(128))]
struct Counter(AtomicU64);

/// Calls that have returned. Threads share few of the counters, so counting seldom orders them.
static RETURNED: [Counter; 32] = [const { Counter(AtomicU64::new(0)) }; 32];

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Returns how many calls have returned.
pub fn returned() -> u64 {
    let count = |counter: &Counter| counter.0.load(Ordering::Relaxed);
    RETURNED.iter().map(count).sum()
}

fn count<R>(result: R) -> R {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let mut mine = MINE.get();
    if mine == usize::MAX {
        mine = THREADS.fetch_add(1, Ordering::Relaxed) % RETURNED.len();
        MINE.set(mine);
    }
    RETURNED[mine].0.fetch_add(1, Ordering::Relaxed);
    result
}

/// A table of the answer.
pub struct Table(Box<dyn Map>);

impl Table {
    pub fn with_capacity(n: usize) -> Self {
        Self(MAKE.get().expect("the table was named")(n))
    }

    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        count(self.0.insert(key, value))
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        count(self.0.get(key))
    }

    pub fn remove(&self, key: u64) -> Option<u64> {
        count(self.0.remove(key))
    }

    pub fn len(&self) -> usize {
        count(self.0.len())
    }

    pub fn keys(&self) -> Vec<u64> {
        count(self.0.keys())
    }
}
