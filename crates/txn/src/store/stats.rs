//! Why attempts were given up, counted for a store and for each table.

use super::table::Meta;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use std::fmt;

/// Why an attempt of a transaction was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A record stayed locked by another commit.
    Locked,
    /// Another transaction has committed a newer version of a record that this one writes (the
    /// first committer wins), or of one that it reads at its time.
    Version,
    /// A record that was read has changed.
    Validation,
    /// A record was inserted where this transaction had looked and found none.
    Phantom,
    /// A transaction that was aborted too often ran alone.
    Yielded,
    /// The transaction slept so long that the memory of old versions reached its limit.
    Refused,
    /// The closure called [`Tx::abort`](super::Tx::abort), or returned an error of its own.
    Explicit,
    /// The closure panicked.
    Panicked,
    /// A key, a row or the whole transaction has more bytes than the log takes.
    TooLarge,
    /// A key or a row refused to be written to the log: its own serialization failed, or what it has
    /// written cannot be read back.
    Encoding,
    /// The disk has failed: see [`Store::disk_failure`](super::Store::disk_failure).
    Disk,
}

pub(crate) const REASONS: usize = 11;

impl Reason {
    /// All reasons.
    pub const ALL: [Self; REASONS] = [
        Self::Locked,
        Self::Version,
        Self::Validation,
        Self::Phantom,
        Self::Yielded,
        Self::Refused,
        Self::Explicit,
        Self::Panicked,
        Self::TooLarge,
        Self::Encoding,
        Self::Disk,
    ];

    /// Whether the transaction is run again by itself.
    pub fn is_retried(self) -> bool {
        matches!(
            self,
            Self::Locked | Self::Version | Self::Validation | Self::Phantom | Self::Yielded
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Locked => "locked",
            Self::Version => "version",
            Self::Validation => "validation",
            Self::Phantom => "phantom",
            Self::Yielded => "yielded",
            Self::Refused => "refused",
            Self::Explicit => "explicit",
            Self::Panicked => "panicked",
            Self::TooLarge => "too large",
            Self::Encoding => "encoding",
            Self::Disk => "disk",
        })
    }
}

/// Why what a transaction has seen is not what is there now. Not counted yet.
pub(crate) struct Conflict<'w> {
    pub(crate) reason: Reason,
    /// The table of the row, if it is known.
    pub(crate) table: Option<&'w Meta>,
}

impl Conflict<'_> {
    /// Counts the reason, for an attempt that is given up for it.
    pub(crate) fn count(self) -> Reason {
        if let Some(table) = self.table {
            table.count(self.reason);
        }
        self.reason
    }
}

/// Counters by reason.
#[derive(Debug, Default)]
pub(crate) struct Counts([AtomicU64; REASONS]);

impl Counts {
    #[cold]
    pub(crate) fn count(&self, reason: Reason) {
        // Loom counts two relaxed read-modify-writes as one, and anything stronger would order what
        // is not ordered.
        if !cfg!(corelay_loom) {
            // Relaxed: a count that orders nothing.
            self.0[reason as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self, reason: Reason) -> u64 {
        // Relaxed: a count.
        self.0[reason as usize].load(Ordering::Relaxed)
    }
}
