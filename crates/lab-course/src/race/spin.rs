//! Spin: one thread at a time; who has to wait looks again and again.
//!
//! The update is the very one of `lost`. Only now nobody else is in the window.

use super::Counter;
use super::lost::increment;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use corelay_sync::{Backoff, CachePadded};

/// The lock's word and the number travel together, on one line.
#[derive(Default)]
pub(super) struct Spin(CachePadded<(AtomicBool, AtomicU64)>);

impl Counter for Spin {
    fn count(&self, updates: u64) {
        let (taken, counter) = &*self.0;
        for _ in 0..updates {
            let mut backoff = Backoff::new();
            // Acquire: pairs with the Release below; sees all that the last holder has stored.
            while taken.swap(true, Ordering::Acquire) {
                backoff.wait(); // pauses, ever longer, then lets other threads run
            }
            increment(counter);
            // Release: pairs with the Acquire above; hands the new number on.
            taken.store(false, Ordering::Release);
        }
    }

    fn total(&self) -> u64 {
        // Relaxed: the threads have been joined.
        self.0.1.load(Ordering::Relaxed)
    }
}
