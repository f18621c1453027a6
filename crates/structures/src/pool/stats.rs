//! Counts of what a pool has done.

#![forbid(unsafe_code)]

use corelay_sync::facade::atomic::{AtomicU64, Ordering, load_own};

/// The counts of a [`Pool`](super::Pool), over all its heaps, from
/// [`Pool::stats`](super::Pool::stats).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Heaps made: at most as many as there were sessions at one time.
    pub heaps: u64,
    /// Sessions that took over the heap of one that had ended.
    pub adopted: u64,
    /// Chunks made.
    pub chunks: u64,
    /// Slots in these chunks.
    pub slots: u64,
    /// Times a session took the slots that other threads had given back.
    pub collected: u64,
    /// Times a session gave back nodes of another heap, several at once.
    pub batches: u64,
    /// Nodes in those batches.
    pub batched: u64,
}

/// The counts of one heap. Only its holder writes them, and only when it does something that takes
/// longer.
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
    /// Adds to the count. Called by the heap's holder.
    pub(super) fn add(&self, more: u64) {
        // Relaxed: a count orders nothing.
        self.0.store(load_own(&self.0) + more, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        // Relaxed: a count orders nothing.
        self.0.load(Ordering::Relaxed)
    }
}
