//! How often transactions were aborted, and why.

use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};

/// Why an attempt was given up, or waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Locked,
    Version,
    Uncertain,
    Validation,
    Retry,
    Yielded,
    Fallback,
    Resampled,
    ResampledUncertain,
}

const REASONS: usize = 9;

/// Counts of a domain, since it was made. All but those of new times drawn
/// ([`resampled`](Self::resampled)) are of attempts that were not the last of their transaction, or
/// took longer for it; those that committed at once are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Aborted: a variable stayed locked by another's commit.
    pub locked: u64,
    /// Aborted while it ran: a variable was certainly written after the transaction's time, and
    /// something that it had read before had changed too.
    pub version: u64,
    /// The same where the clock could not say which was first.
    pub uncertain: u64,
    /// Aborted at its commit: something that it had read had changed.
    pub validation: u64,
    /// Ended by `retry`, and run again when something read had changed.
    pub retry: u64,
    /// Gave way to a transaction that had fallen back.
    pub yielded: u64,
    /// Fell back: ran alone, after too many aborts.
    pub fallback: u64,
    /// Drew a new time while it ran, and found nothing changed: no abort.
    pub resampled: u64,
    /// Of those, because the clock could not say whether a variable was written after the time that
    /// there was.
    pub resampled_uncertain: u64,
    /// Versions met that were certainly later than a time drawn afterwards: the clock's boundary does
    /// not hold. The domain then goes on with [a counter of its own](crate::tl2#a-clock-that-is-wrong).
    pub beyond: u64,
}

impl Stats {
    /// Attempts that were in vain.
    pub fn aborts(&self) -> u64 {
        self.locked + self.version + self.uncertain + self.validation + self.yielded
    }

    /// Comparisons that the clock left open: each has aborted its attempt, or had it draw a new time.
    pub fn uncertain_comparisons(&self) -> u64 {
        self.uncertain + self.resampled_uncertain
    }
}

/// The counters, in stripes: threads that abort each other do not also meet there.
#[derive(Debug, Default)]
pub(super) struct Counters {
    stripes: [CachePadded<[AtomicU64; REASONS]>; 4],
}

impl Counters {
    /// `who` decides the stripe.
    pub(super) fn count(&self, who: usize, reason: Reason) {
        // Loom takes two relaxed read-modify-writes for one, and anything stronger would order what
        // is not ordered.
        if cfg!(corelay_loom) {
            return;
        }
        let stripe = (who as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62;
        // Relaxed: a count, that orders nothing.
        self.stripes[stripe as usize][reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sum(&self) -> Stats {
        let sum = |reason: Reason| {
            self.stripes
                .iter()
                // Relaxed: as above.
                .map(|stripe| stripe[reason as usize].load(Ordering::Relaxed))
                .sum()
        };
        Stats {
            locked: sum(Reason::Locked),
            version: sum(Reason::Version),
            uncertain: sum(Reason::Uncertain),
            validation: sum(Reason::Validation),
            retry: sum(Reason::Retry),
            yielded: sum(Reason::Yielded),
            fallback: sum(Reason::Fallback),
            resampled: sum(Reason::Resampled) + sum(Reason::ResampledUncertain),
            resampled_uncertain: sum(Reason::ResampledUncertain),
            beyond: 0,
        }
    }
}
