//! What a pool has done so far.

#![forbid(unsafe_code)]

use corelay_sync::facade::atomic::{AtomicU64, Ordering, load_own};

/// Counts of a [`Pool`](super::Pool), of all its heaps, by [`Pool::stats`](super::Pool::stats).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Heaps made: as many as there were sessions at one time, at most.
    pub heaps: u64,
    /// Sessions that took over the heap of one that had ended.
    pub adopted: u64,
    /// Chunks made.
    pub chunks: u64,
    /// Slots in them.
    pub slots: u64,
    /// How often a session took what others had given back.
    pub collected: u64,
    /// How often a session gave back nodes of another heap, several at once.
    pub batches: u64,
    /// Nodes in those batches.
    pub batched: u64,
}

/// Counts of one heap. Only its holder writes them, and only where it does something longer.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) chunks: Count,
    pub(super) collected: Count,
    pub(super) batches: Count,
    pub(super) batched: Count,
}

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// For the holder of the heap.
    pub(super) fn add(&self, more: u64) {
        // Relaxed: a count, which orders nothing.
        self.0.store(load_own(&self.0) + more, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}
