//! Counts that one thread writes and all read.

use corelay_sync::facade::atomic::{AtomicU64, Ordering, load_own};

#[derive(Default)]
pub(crate) struct SingleWriterCounter(AtomicU64);

impl SingleWriterCounter {
    /// By its writer.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        load_own(&self.0)
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        // Relaxed: a count, which carries nothing.
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn add(&self, n: u64) {
        self.set(self.get() + n);
    }

    /// By others.
    #[inline(always)]
    pub(crate) fn read(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// What a cluster's processors have done since it started, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Times a fibre was resumed.
    pub switches: u64,
    /// Batches taken from another processor by one that had nothing to do.
    pub steals: u64,
    /// Batches taken from another processor, which was stuck or had far more, by a busy one.
    pub helps: u64,
    /// Times a processor went to sleep.
    pub sleeps: u64,
    /// Times a fibre went on on another processor than before.
    pub migrations: u64,
}
