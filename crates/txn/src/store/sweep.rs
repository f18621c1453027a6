//! Cutting old versions off, and taking removed records out of their index, where several versions
//! are kept.
//!
//! A commit that leaves something to be cut off puts its record into the queue of its slot, once:
//! the record's word says that it is queued. When every transaction reads later than the commit, the
//! slot sweeps the record: it locks it, cuts off all versions behind the newest that everybody
//! sees, and if that is an absence and nothing newer is there, takes the record out of its index.
//! So a record is in one queue at most, and nobody but the slot that has it there may retire it.

use super::claim::Claim;
use super::commit;
use super::record::{Head, Version};
use super::table::Ops;
use corelay_sync::facade::atomic::Ordering;

/// A record that is to be swept.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) head: *const Head,
    pub(crate) ops: &'static Ops,
    /// The stamp of the newest commit that left something to cut off.
    pub(crate) stamp: u64,
}

// SAFETY: the record lives as long as it is queued; only the slot's owner follows the pointer.
unsafe impl Send for Entry {}

/// Whether a record whose newest version is `newest` is to be swept once that is seen by all.
pub(super) fn is_wanted(newest: &Version) -> bool {
    // Relaxed: the caller has locked the record.
    !newest.has_value() || !newest.prev.load(Ordering::Relaxed).is_null()
}

/// Sweeps a record. Returns the entry if it must wait for more.
///
/// Every transaction reads at `oldest` or later.
pub(super) fn sweep(claim: &Claim<'_>, entry: Entry, oldest: u64) -> Option<Entry> {
    // SAFETY: the record is queued here, so nobody else has retired it.
    let head = unsafe { &*entry.head };
    let word = head.load();
    if word.is_locked() || !head.try_lock(word) {
        return Some(entry);
    }
    let newest = word.version();
    cut(claim, newest, entry.ops, oldest);
    // SAFETY: the record is locked, so its newest version lives.
    let Some(version) = (unsafe { newest.as_ref() }) else {
        head.unlock(word.queued(false));
        return None;
    };
    if !is_wanted(version) {
        head.unlock(word.queued(false));
        return None;
    }
    let stamp = version.stamp();
    // Relaxed: the record is locked.
    let is_alone = version.prev.load(Ordering::Relaxed).is_null();
    if !version.has_value() && is_alone && stamp < oldest {
        let order = version.mark.load(Ordering::Relaxed);
        // SAFETY: the record is locked.
        unsafe { commit::remove(claim, entry.head, entry.ops, newest, stamp.max(order)) };
        return None;
    }
    head.unlock(word);
    Some(Entry { stamp, ..entry })
}

/// Retires all versions behind the newest that is older than `oldest`. The record is locked.
fn cut(claim: &Claim<'_>, newest: *mut Version, ops: &'static Ops, oldest: u64) {
    let mut version = newest;
    // SAFETY: the record is locked, so nobody else cuts its versions off.
    while let Some(kept) = unsafe { version.as_ref() } {
        if kept.stamp() >= oldest {
            // Relaxed: only the owner of the lock changes it.
            version = kept.prev.load(Ordering::Relaxed);
            continue;
        }
        // Relaxed: nobody reads at a time at which this would be followed; the versions are freed
        // when nobody can be on them.
        let old = kept.prev.load(Ordering::Relaxed);
        kept.prev.store(std::ptr::null_mut(), Ordering::Relaxed);
        claim.cut(commit::retire_versions(claim, old, ops));
        return;
    }
}
