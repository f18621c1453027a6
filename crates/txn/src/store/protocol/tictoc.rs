//! TicToc: optimistic concurrency control whose commit times are computed from the data (Yu,
//! Pavlo, Sanchez and Devadas, "TicToc: Time Traveling Optimistic Concurrency Control", SIGMOD
//! 2016).
//!
//! A version is valid from its write time stamp to its read time stamp at least. A transaction
//! commits at the smallest time at which all that it has read was valid, and at which what it
//! replaces is not valid any more. Where a read's stamp is too small, it is raised, which is
//! possible as long as nobody replaces the version.
//!
//! **Raising a read time stamp.** A commit *seals* the read stamps of the versions that it replaces
//! once it has locked their records: by the exchange that tells it their last value. A sealed stamp
//! is not raised any more, so a version's successor is later than all that has read it. A reader of
//! a replaced version may still commit at an earlier time.
//!
//! **Where nothing is found** no version carries stamps. The table does, for all keys together: a
//! commit that found a key absent raises the table's `absent` stamp, looks again at the gap, and a
//! commit that inserts takes a later one: one of the fences comes first, that of the commit which
//! raises or that of the one which inserts. A transaction that misses a key takes no earlier time than
//! the table's latest removal, as of its commit: it may not see that the key was there for a while.
//! So time stamps also order transactions by phantoms; for point
//! reads this is as if the table had one more record.
//!
//! Departure from the paper: its word packs both stamps and the lock, so that a validation is one
//! exchange. Here the record's word is the version's address; the read stamp has a seal of its own, in
//! place of the paper's look at the lock bit.

use super::sealed::Engine;
use super::{Protocol, blame, check, settled};
use crate::store::claim::Claim;
use crate::store::pins::NO_TIME;
use crate::store::record::{Head, Version};
use crate::store::stats::Reason;
use crate::store::work::{Read, Work};
use corelay_sync::facade::atomic::{Ordering, fence};

/// TicToc's protocol. Serializable, but not strictly: a transaction may commit at an earlier time
/// than one that ended before it began, if they do not touch the same rows.
#[derive(Debug, Default, Clone, Copy)]
pub struct TicToc;

impl Protocol for TicToc {}

/// The bit of a read time stamp that is not raised any more.
const SEALED: u64 = 1 << 63;

/// A version with a value. Others have no stamps of their own: the table's stand for theirs.
#[inline(always)]
fn row<'v>(version: *mut Version) -> Option<&'v Version> {
    // SAFETY: the caller's transaction is pinned and has found the version in its record.
    unsafe { version.as_ref() }.filter(|version| version.has_value())
}

#[inline(always)]
fn written_at(version: *mut Version) -> u64 {
    // SAFETY: the caller's transaction is pinned and has found the version in its record.
    unsafe { version.as_ref() }.map_or(0, Version::stamp)
}

/// Whether the version is valid at `stamp`. Its read time stamp is raised if need be.
#[inline(always)]
fn extend(version: &Version, stamp: u64) -> bool {
    // Relaxed, all: only the stamp itself matters, and its changes have one order.
    let mut until = version.mark.load(Ordering::Relaxed);
    while until & !SEALED < stamp {
        if until & SEALED != 0 {
            return false;
        }
        let raised =
            version
                .mark
                .compare_exchange_weak(until, stamp, Ordering::Relaxed, Ordering::Relaxed);
        match raised {
            Ok(_) => return true,
            Err(now) => until = now,
        }
    }
    true
}

/// Seals the read time stamp of a version whose record is locked. Returns it.
#[inline(always)]
fn seal(version: &Version) -> u64 {
    // Relaxed: see `extend`. The owner of the lock finds no seal; an addition is one instruction.
    version.mark.fetch_add(SEALED, Ordering::Relaxed)
}

/// Whether this transaction is replacing the version that it has read: then it has sealed it.
#[inline(always)]
fn replaces(work: &Work, read: &Read) -> bool {
    let write = work.write_of(read.head);
    write.is_some_and(|at| work.writes[at].replaced() == read.seen)
}

/// Another commit replaces, or was about to replace, what was read. Also if it has unlocked the record
/// meanwhile: the stamp was not raised.
#[cold]
fn refuse(read: &Read) -> Reason {
    // SAFETY: the transaction is pinned since it read the record, so it lives.
    let head = unsafe { &*read.head };
    blame(head, head.load().version() == read.seen).count()
}

/// The smallest time at which everything was valid that the transaction has read.
#[inline(always)]
fn readable_at(work: &Work) -> u64 {
    let reads = work.reads.iter().map(|read| written_at(read.seen));
    // SAFETY: a table lives as long as its store.
    let absences = work
        .absences
        .iter()
        .map(|absence| unsafe { &*absence.meta }.removed());
    reads.chain(absences).fold(0, u64::max)
}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl Engine for TicToc {
    const NAME: &'static str = "tictoc";
    const SEES_MIXED: bool = true;

    #[inline(always)]
    fn begin(&self, claim: &Claim<'_>, _work: &mut Work) {
        claim.read_since(NO_TIME);
    }

    #[inline(always)]
    fn read(
        &self,
        _claim: &Claim<'_>,
        work: &mut Work,
        head: &Head,
    ) -> Result<*mut Version, Reason> {
        let seen = settled(head)?.version();
        work.reads.push(Read { head, seen });
        Ok(seen)
    }

    #[inline(always)]
    fn order(version: &Version) -> u64 {
        version.stamp()
    }

    #[inline(always)]
    fn stamp(&self, work: &Work, order: u64) -> u64 {
        let mut stamp = readable_at(work).max(order);
        for write in &work.writes {
            // A version that is replaced is not valid at the time of its successor.
            stamp = stamp.max(match row(write.replaced()) {
                Some(version) => seal(version) + 1,
                // SAFETY: the transaction is pinned, and has the record.
                None => unsafe { &*write.head }.meta().absent() + 1,
            });
        }
        stamp
    }

    fn keep(version: &Version) {
        // Relaxed, both: the next to lock the record acquires its unlocking; others see either.
        let until = version.mark.load(Ordering::Relaxed);
        if until & SEALED != 0 {
            version.mark.store(until & !SEALED, Ordering::Relaxed);
        }
    }

    fn check_reads(&self, work: &mut Work, stamp: u64) -> Result<(), Reason> {
        let mut has_absent = !work.absences.is_empty();
        for read in &work.reads {
            match row(read.seen) {
                Some(version) => {
                    if !extend(version, stamp) && !replaces(work, read) {
                        return Err(refuse(read));
                    }
                }
                None => {
                    has_absent = true;
                    // SAFETY: the transaction is pinned, and has the record.
                    unsafe { &*read.head }.meta().note_absent(stamp);
                }
            }
        }
        if !has_absent {
            return Ok(());
        }
        for absence in &work.absences {
            // SAFETY: a table lives as long as its store.
            unsafe { &*absence.meta }.note_absent(stamp);
        }
        // SeqCst: pairs with the fence of a commit that has inserted: see the module.
        fence(Ordering::SeqCst);
        let mut absent = work.reads.iter().filter(|read| row(read.seen).is_none());
        absent.try_for_each(|read| check(work, read))
    }

    fn check_read_only(&self, work: &mut Work) -> Result<(), Reason> {
        let stamp = readable_at(work);
        self.check_reads(work, stamp)
    }

    fn sign(&self, version: &Version, stamp: u64, _order: u64) {
        // Relaxed, both: the record's word publishes them.
        version.stamp.store(stamp, Ordering::Relaxed);
        version.mark.store(stamp, Ordering::Relaxed);
    }
}
