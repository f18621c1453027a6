//! Indexes, in which the records of a table are found by their keys.
//!
//! An index holds pointers to records, which carry their keys; it does not own the records. A
//! transaction that has looked and found nothing keeps the [`Gap`] that it looked at, and finds out
//! at its commit whether somebody has put something there meanwhile (a *phantom*).
//!
//! # A committer's checks
//! A committer inserts its records first, then calls [`order_checks`], then asks each of its gaps
//! whether it [`is_unchanged`](Gap::is_unchanged). Take two committers, of which each has missed the
//! record that the other one inserts. The fences of `order_checks` are in one total order. What was
//! inserted before the first fence is seen by the checks after the second. So at least one of the
//! two finds its gap changed.
//!
//! A committer's own insert is no change for it. [`Changed`] says how to follow it.
//!
//! | module | idea |
//! |---|---|
//! | `hash` | segments of open addressing; readers take no lock |
//! | `ordered` | a B-link tree (Lehman and Yao, 1981) whose nodes' contents are replaced, never changed |

pub(crate) mod hash;
pub(crate) mod ordered;

use corelay_sync::facade::atomic::{Ordering, fence};

/// A record, as an index sees it: something with a key that never changes.
pub(crate) trait Keyed: Sync + 'static {
    type Key: Eq;

    fn key(&self) -> &Self::Key;

    /// The key's hash, by the table's hasher. Only the hash index asks for it.
    fn hash(&self) -> u64;
}

/// A place in an index, as a transaction saw it when it found nothing (more) there.
///
/// Untyped, so that a transaction keeps the gaps of all its tables in one list. Whether it is
/// unchanged may be asked while the guard lives under which it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// The node or segment.
    pub(crate) place: *const (),
    /// The content that was seen there: a version number, or the address of the contents.
    pub(crate) seen: usize,
    /// The hash that was looked for, or the key's prefix if the index is ordered; 0 for a range.
    pub(crate) hash: u64,
    /// Whether nothing was added at `place` since, except records for which `is_own` is true; it is
    /// given a record's address. Deletions may count as changes.
    pub(crate) is_unchanged: unsafe fn(gap: &Gap, is_own: &dyn Fn(*const ()) -> bool) -> bool,
}

/// A change that an insert has made at a [`Gap::place`]: the inserting transaction's own gaps follow
/// it, so that their owner does not take its own insert for another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) place: *const (),
    /// The content before the insert.
    pub(crate) from: usize,
    /// The content after the insert.
    pub(crate) to: usize,
}

impl Gap {
    /// Takes `changed`, an insert of the gap's own transaction, for no change. The gap stays changed
    /// if another transaction has inserted before it.
    #[inline]
    pub(crate) fn follow(&mut self, changed: &Changed) {
        if self.place == changed.place && self.seen == changed.from {
            self.seen = changed.to;
        }
    }
}

/// Orders a committer's inserts before its checks of gaps.
#[inline]
pub(crate) fn order_checks() {
    // SeqCst: pairs with the same fence of every other committer. The one that comes later in the
    // order of fences sees in its checks what the earlier one has inserted.
    fence(Ordering::SeqCst);
}
