//! Mutex: one thread at a time; a thread that waits long sleeps.

use super::Counter;
use corelay_sync::CachePadded;
use std::sync::{Mutex, PoisonError};

/// The number lies inside its lock, so that no caller can forget to take it.
#[derive(Default)]
pub(super) struct Locked(CachePadded<Mutex<u64>>);

impl Counter for Locked {
    fn count(&self, updates: u64) {
        for _ in 0..updates {
            // The lock is released when the guard goes out of scope, at the end of the line.
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
    }

    fn total(&self) -> u64 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
