//! What merges have counted.

#![forbid(unsafe_code)]

use corelay_sync::facade::atomic::{AtomicU64, Ordering};

/// Counts of an [`OpLog`](super::OpLog), since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Neighbours in the order of a merge whose times the clock could not tell apart: of two sessions
    /// that updated at the same time, so that either order is right, and the one of the bare numbers
    /// is taken. (Of one session only where it went from one CPU to another in between: it waits until
    /// its time has passed, by the clock of the CPU on which it waits.)
    ///
    /// Nothing is counted by clocks that are [exact](corelay_clock::is_exact), nor where merges need
    /// no order: of operations that [commute](super::Commutes), those that one log alone has of a key,
    /// or all.
    pub uncertain: u64,
    /// Merges whose newest operation was certainly later than a time drawn when it had been logged: the
    /// clock's boundary does not hold, and operations of two sessions that came one after the other may
    /// have been applied in the wrong order. The [clock is told](corelay_clock::Clock::met_beyond).
    pub beyond: u64,
}

/// Written by merges, one at a time.
#[derive(Debug, Default)]
pub(super) struct Counters {
    uncertain: AtomicU64,
    beyond: AtomicU64,
}

impl Counters {
    pub(super) fn uncertain(&self, more: u64) {
        add(&self.uncertain, more);
    }

    pub(super) fn beyond(&self) {
        add(&self.beyond, 1);
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            // Relaxed: as above.
            uncertain: self.uncertain.load(Ordering::Relaxed),
            // Relaxed: as above.
            beyond: self.beyond.load(Ordering::Relaxed),
        }
    }
}

fn add(count: &AtomicU64, more: u64) {
    // The model checkers look for what is ordered, and this orders nothing.
    if more > 0 && !cfg!(any(corelay_loom, corelay_shuttle)) {
        // Relaxed: a count, that orders nothing.
        count.fetch_add(more, Ordering::Relaxed);
    }
}
