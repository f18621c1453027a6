//! Transactions that sleep until a word changes, in a table beside the words.
//!
//! A word has a bit that says that a transaction sleeps on it, so changing a word without sleepers
//! needs no look into a table. The sleeper enters the table *before* it sets the bit, by an
//! exchange with the word as it has last seen it. The thread that changes the word sees the bit in
//! the value that it exchanged, and looks into the table *after* the change. So a sleeper that set
//! the bit is found, and one that could not set it has seen the change.

use corelay_sync::CachePadded;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::sync::{Arc, Mutex};
use corelay_sync::wait::Token;

#[derive(Debug)]
pub(crate) struct Sleepers {
    buckets: Box<[CachePadded<Mutex<Vec<Sleeper>>>]>,
}

#[derive(Debug)]
struct Sleeper {
    /// The address of the word that the transaction sleeps on.
    key: usize,
    token: Arc<Token>,
}

const BUCKETS: usize = if MODEL { 1 } else { 16 };

impl Sleepers {
    pub(crate) fn new() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| CachePadded::default()).collect(),
        }
    }

    fn bucket(&self, key: usize) -> &Mutex<Vec<Sleeper>> {
        &self.buckets[(key >> 5) % BUCKETS]
    }

    pub(crate) fn enter(&self, key: usize, token: &Arc<Token>) {
        let token = Arc::clone(token);
        self.bucket(key)
            .lock()
            .unwrap()
            .push(Sleeper { key, token });
    }

    pub(crate) fn leave(&self, key: usize, token: &Arc<Token>) {
        self.bucket(key)
            .lock()
            .unwrap()
            .retain(|sleeper| sleeper.key != key || !Arc::ptr_eq(&sleeper.token, token));
    }

    /// Leaves all words at once: for a sleeper that has entered many.
    pub(crate) fn leave_all(&self, token: &Arc<Token>) {
        for bucket in &self.buckets {
            bucket
                .lock()
                .unwrap()
                .retain(|sleeper| !Arc::ptr_eq(&sleeper.token, token));
        }
    }

    /// Wakes all sleepers of the word at `key`. They leave the table by themselves.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake(&self, key: usize) {
        let woken: Vec<_> = self
            .bucket(key)
            .lock()
            .unwrap()
            .iter()
            .filter(|sleeper| sleeper.key == key)
            .map(|sleeper| Arc::clone(&sleeper.token))
            .collect();
        for token in woken {
            token.notify();
        }
    }

    /// The number of entries in the table.
    pub(crate) fn count(&self) -> usize {
        self.buckets.iter().map(|b| b.lock().unwrap().len()).sum()
    }
}
