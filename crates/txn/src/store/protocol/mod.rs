//! The protocols: how a transaction finds out whether it may commit.
//!
//! All share the records, the sets and the steps of a commit; see [`commit`](super::commit). A
//! protocol says which version a transaction sees, which stamp a commit draws once everything that
//! it writes is locked, and what has to be true of what it has read.
//!
//! | file | protocol | a commit is ordered by |
//! |---|---|---|
//! | `occ` | optimistic, with times (Kung and Robinson, 1981) | the clock |
//! | `silo` | optimistic, with identifiers (Tu and others, 2013) | its moment; identifiers per record |
//! | `tictoc` | optimistic, with computed times (Yu and others, 2016) | times of the data |
//! | `mvcc` | several versions (Larson and others, 2011) | the clock |

mod mvcc;
mod occ;
mod silo;
mod tictoc;

pub use mvcc::{Isolation, Mvcc};
pub use occ::Occ;
pub use silo::Silo;
pub use tictoc::TicToc;

use super::claim::Claim;
use super::record::{Head, Version, Word};
use super::stats::{Conflict, Reason};
use super::work::{Read, Work};
use corelay_sync::Backoff;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::hint;

/// A protocol of concurrency control: how transactions of a [`Store`](super::Store) are kept apart.
pub trait Protocol: sealed::Engine {}

/// Looks at a locked record before an attempt is given up. A commit takes about 1 µs; a look is a
/// pause of 10 to 20 ns.
const LOOKS: u32 = if MODEL { 1 } else { 256 };

pub(crate) mod sealed {
    use super::{Claim, Head, Reason, Version, Work};
    use corelay_sync::facade::atomic::Ordering;

    /// See [`Protocol`](super::Protocol).
    #[expect(private_interfaces, reason = "the trait is sealed")]
    pub trait Engine: Send + Sync + Sized + 'static {
        /// The protocol's name.
        const NAME: &'static str;

        /// Whether old versions are kept for readers of an earlier time.
        const KEEPS: bool = false;

        /// Begins an attempt, whose slot is pinned.
        fn begin(&self, claim: &Claim<'_>, work: &mut Work);

        /// Finds the version of the record that the transaction sees, and notes the read.
        fn read(
            &self,
            claim: &Claim<'_>,
            work: &mut Work,
            head: &Head,
        ) -> Result<*mut Version, Reason>;

        /// Whether a transaction that has locked the record may replace its newest version.
        fn may_replace(&self, _work: &Work, _newest: *mut Version) -> Result<(), Reason> {
            Ok(())
        }

        /// The number of a commit among those that wrote the same key: grows with each.
        fn order(version: &Version) -> u64 {
            // Relaxed: written before the version was published, and never changed.
            version.mark.load(Ordering::Relaxed)
        }

        /// Draws the stamp of a commit that has locked what it writes and passed a fence; `order`
        /// is its number.
        fn stamp(&self, work: &Work, order: u64) -> u64;

        /// Whether the transaction may commit with `stamp`, by what it has read.
        fn check_reads(&self, work: &mut Work, stamp: u64) -> Result<(), Reason>;

        /// Whether a transaction that writes nothing may commit.
        fn check_read_only(&self, work: &mut Work) -> Result<(), Reason>;

        /// Undoes what [`stamp`](Self::stamp) may have done to a version that is not replaced after
        /// all. Its record is still locked.
        fn keep(_version: &Version) {}

        /// Looks whether the transaction may go on after it has noted an absence.
        fn missed(&self, _work: &mut Work) -> Result<(), Reason> {
            Ok(())
        }

        /// Whether a transaction may see what never existed at one moment, before it is given up.
        const SEES_MIXED: bool = false;

        /// Whether a commit looks again at where the transaction found nothing.
        fn checks_absences(&self, _is_read_only: bool) -> bool {
            true
        }

        /// Writes the words of a version that is about to be published.
        fn sign(&self, version: &Version, stamp: u64, order: u64) {
            // Relaxed, both: the record's word publishes them.
            version.stamp.store(stamp, Ordering::Relaxed);
            version.mark.store(order, Ordering::Relaxed);
        }

        /// The time before which no transaction reads any more. Only asked where old versions are
        /// kept.
        fn oldest(&self, _claim: &Claim<'_>) -> u64 {
            0
        }

        /// Waits, after a commit of this stamp, or after a transaction that has read at this time,
        /// until its answer may be given.
        fn settle(&self, _stamp: u64) {}
    }
}

/// The word of a record once it is not locked, or an error if it stays so.
#[inline(always)]
fn settled(head: &Head) -> Result<Word, Reason> {
    let word = head.load();
    if word.is_locked() {
        return settled_slowly(head);
    }
    Ok(word)
}

#[cold]
#[inline(never)]
fn settled_slowly(head: &Head) -> Result<Word, Reason> {
    for _ in 0..LOOKS {
        let word = head.load();
        if !word.is_locked() {
            return Ok(word);
        }
        hint::spin_loop();
    }
    Err(Reason::Locked)
}

/// The word of a record once it is not locked. The commit that has locked it waits for nothing.
#[inline(always)]
fn awaited(head: &Head) -> Word {
    let mut word = head.load();
    if word.is_locked() {
        let mut backoff = Backoff::new();
        while word.is_locked() {
            backoff.wait();
            word = head.load();
        }
    }
    word
}

/// Whether a record still is as it was read, unless this transaction has locked it.
#[inline(always)]
fn check(work: &Work, read: &Read) -> Result<(), Reason> {
    // SAFETY: the transaction is pinned since it read the record, so it lives.
    let head = unsafe { &*read.head };
    let word = head.load();
    let is_same = word.version() == read.seen && !word.is_dead();
    if is_same && (!word.is_locked() || work.write_of(read.head).is_some()) {
        return Ok(());
    }
    Err(blame(head, is_same).count())
}

#[cold]
fn blame(head: &Head, is_same: bool) -> Conflict<'_> {
    let reason = if is_same {
        Reason::Locked
    } else {
        Reason::Validation
    };
    let table = Some(head.meta());
    Conflict { reason, table }
}

/// Whether all records still are as they were read.
#[inline]
fn check_all(work: &Work) -> Result<(), Reason> {
    work.reads.iter().try_for_each(|read| check(work, read))
}

/// Whether all that the transaction has seen of records is there now, and no commit is about to
/// change it: for a transaction that has locked nothing. What it writes over is in its writes, and not in
/// its reads.
pub(super) fn check_view(work: &Work) -> Result<(), Conflict<'_>> {
    let reads = work.reads.iter().map(|read| (read.head, read.seen));
    let writes = work.writes.iter();
    let replaced = writes.filter_map(|write| Some((write.head, write.expected?)));
    for (head, seen) in reads.chain(replaced) {
        // SAFETY: the transaction is pinned since it found the record, so it lives.
        let head = unsafe { &*head };
        let word = head.load();
        let is_same = word.version() == seen && !word.is_dead();
        if !is_same || word.is_locked() {
            return Err(blame(head, is_same));
        }
    }
    Ok(())
}
