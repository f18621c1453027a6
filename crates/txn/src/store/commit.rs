//! The steps of a commit, the same for all protocols.
//!
//! ```text
//!  1 lock      every record that is replaced, in the order of their addresses
//!  2 enter     every new record into its index, locked already
//!  3 fence     from here on every transaction sees the locks, or this one sees what it did; a commit
//!              that is logged enters an epoch of the log
//!  4 stamp     the protocol draws the commit's stamp
//!  5 check     that what was read, and what was not found, is as it was
//!  6 install   each new version: its record is unlocked with it
//!  7 unlink    removed records
//! ```
//!
//! Up to 5 the commit may be given up: then records are unlocked as they were, and new ones leave
//! their index again. 6 and 7 cannot fail.
//!
//! **Why it is serializable.** Take two transactions of which each has read something that the
//! other writes. Each passes the fence after its locks and before its checks. One fence comes first,
//! so the transaction of the other one sees a lock, or a new version, and is given up. So all that a
//! transaction has read and writes was as it saw it at one moment, between its fence and its first
//! check. (`tictoc` orders by its stamps instead: see there.)
//!
//! **No deadlock.** Locks are taken in one order, and a commit that waits for one gives up after a
//! while anyway.
//! Records that are entered are locked by their maker before anybody else sees them. Between 1 and 7
//! no code of users runs but comparisons and hashes of keys, and they may panic: the guard then
//! gives the commit up. In 7 a panic leaves the record in the index, without a value.

use super::claim::Claim;
use super::garbage::{Guard, discard};
use super::index::order_checks;
use super::protocol::Protocol;
use super::record::{Head, Version, Word};
use super::stats::{Conflict, Reason};
use super::table::Ops;
use super::work::{Absence, State, Work, Write};
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Looks at a record that another commit has locked before this one is given up.
const LOOKS: u32 = if MODEL { 1 } else { 256 };

/// A commit that is under way. Dropping it gives the commit up.
pub(super) struct Commit<'c, 's, P: Protocol> {
    pub(super) protocol: &'c P,
    pub(super) claim: &'c Claim<'s>,
    pub(super) work: &'c mut Work,
}

/// A commit whose versions are installed.
pub(super) struct Done<H> {
    pub(super) stamp: u64,
    pub(super) order: u64,
    /// The value that `hold` has returned: the commit's place in the log, if it has one.
    pub(super) held: H,
}

impl<P: Protocol> Commit<'_, '_, P> {
    /// Commits what the transaction has written. `hold` is called once everything is locked: it says
    /// whether the commit may go on, and takes what is to be held until the end.
    #[inline]
    pub(super) fn run<H>(
        mut self,
        hold: impl FnOnce() -> Result<H, Reason>,
    ) -> Result<Done<H>, Reason> {
        self.lock()?;
        self.enter()?;
        order_checks();
        let held = hold()?;
        let order = self.order();
        let removals = removals(self.work);
        let stamp = self.protocol.stamp(self.work, order);
        self.protocol.check_reads(self.work, stamp)?;
        check_absences(self.work, removals).map_err(Conflict::count)?;
        self.install(stamp, order);
        Ok(Done { stamp, order, held })
    }

    fn lock(&mut self) -> Result<(), Reason> {
        // Loom wants one order in all executions, but addresses differ. Without the order nothing is
        // wrong: a commit waits for a lock only a while.
        if !cfg!(corelay_loom) {
            self.work.writes.sort_unstable_by_key(|write| write.head);
        }
        for at in 0..self.work.writes.len() {
            let write = &self.work.writes[at];
            if write.state != State::Found {
                continue;
            }
            let word = lock(write)?;
            let write = &mut self.work.writes[at];
            write.locked = word;
            write.state = State::Locked;
            let newest = word.version();
            if let Err(reason) = self.protocol.may_replace(self.work, newest) {
                // SAFETY: the transaction is pinned, and has the record.
                unsafe { &*self.work.writes[at].head }.meta().count(reason);
                return Err(reason);
            }
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Reason> {
        if self.work.made == 0 {
            return Ok(());
        }
        for at in 0..self.work.writes.len() {
            let write = &self.work.writes[at];
            if write.state != State::Made {
                continue;
            }
            // SAFETY: the record is this transaction's own and of the table; it is retired only
            // after it was unlinked.
            let head = unsafe { &*write.head };
            let (meta, enter) = (head.meta_pointer(), write.ops.enter);
            // SAFETY: the operation is that of the record's table, which lives.
            let is_new = unsafe {
                enter(
                    meta,
                    write.head.cast_mut(),
                    self.claim,
                    &mut self.work.absences,
                )
            };
            if !is_new {
                head.meta().count(Reason::Phantom);
                return Err(Reason::Phantom);
            }
            self.work.writes[at].state = State::Entered;
        }
        Ok(())
    }

    /// The commit's number: larger than those of the versions that it replaces, and of removals in
    /// the tables that it inserts into. So it grows from one commit of a key to the next, also if the
    /// key was removed between them.
    #[inline]
    fn order(&self) -> u64 {
        let before = |write: &Write| {
            // SAFETY: the record is locked, so its version is not freed.
            match unsafe { write.replaced().as_ref() } {
                Some(version) => P::order(version),
                // SAFETY: the record is this transaction's own.
                None => unsafe { &*write.head }.meta().removed(),
            }
        };
        let orders = self.work.writes.iter().map(before);
        orders.fold(0, u64::max) + 1
    }

    #[inline]
    fn install(&mut self, stamp: u64, order: u64) {
        let mut removes = false;
        for write in &self.work.writes {
            // SAFETY: the new version is this transaction's own until it is published below.
            let new = unsafe { &*write.new };
            self.protocol.sign(new, stamp, order);
            let replaced = write.replaced();
            // SAFETY: the record is locked by this transaction.
            let head = unsafe { &*write.head };
            if P::KEEPS {
                // Relaxed: the record's word publishes it.
                new.prev.store(replaced, Ordering::Relaxed);
                // SAFETY: the record is locked, so its version lives.
                if let Some(old) = unsafe { replaced.as_ref() } {
                    self.claim.keep(write.ops.bytes(old.has_value()));
                }
                let word = write.locked.replaced(write.new);
                let is_queued = super::sweep::is_wanted(new);
                if is_queued && !word.is_queued() {
                    self.claim.queue(super::sweep::Entry {
                        head: write.head,
                        ops: write.ops,
                        stamp,
                    });
                }
                head.unlock(word.queued(is_queued || word.is_queued()));
                continue;
            }
            if new.has_value() {
                head.unlock(write.locked.replaced(write.new));
            } else {
                // Stays locked until its record has left the index.
                removes = true;
            }
            retire_versions(self.claim, replaced, write.ops);
        }
        if removes {
            self.unlink(stamp.max(order));
        }
        self.work.writes.clear();
    }

    #[cold]
    fn unlink(&mut self, stamp: u64) {
        for write in &self.work.writes {
            // SAFETY: the version was this transaction's own, and its record is still locked.
            if unsafe { &*write.new }.has_value() {
                continue;
            }
            // SAFETY: as above.
            unsafe { remove(self.claim, write.head, write.ops, write.new, stamp) };
        }
    }
}

/// Takes a record without a value out of its index, and retires it. The record's newest version is
/// `tombstone`.
///
/// # Safety
/// The caller has locked the record.
pub(super) unsafe fn remove(
    claim: &Claim<'_>,
    head: *const Head,
    ops: &'static Ops,
    tombstone: *mut Version,
    stamp: u64,
) {
    // SAFETY: the caller has locked the record.
    let locked = unsafe { &*head };
    locked.meta().note_removal(stamp);
    let meta = locked.meta_pointer();
    // SAFETY: the operation is that of the record's table, which lives.
    let unlink = || unsafe { (ops.unlink)(meta, head, claim) };
    let record = match catch_unwind(AssertUnwindSafe(unlink)) {
        Ok(Some(record)) => record,
        unlinked => {
            // A comparison of keys panicked, or does not find the record. It stays where it is,
            // without a value; the commit stands.
            if let Err(payload) = unlinked {
                discard(payload);
            }
            locked.unlock(Word::EMPTY.replaced(tombstone));
            return;
        }
    };
    locked.bury(tombstone);
    // SAFETY: the record has left its index.
    claim.retire(unsafe { (ops.record)(record) });
    retire_versions(claim, tombstone, ops);
}

/// Retires a version and those before it. Returns their bytes.
pub(super) fn retire_versions(claim: &Claim<'_>, mut version: *mut Version, ops: &Ops) -> usize {
    let mut bytes = 0;
    // SAFETY: the caller has just taken the version from where transactions find it, and is pinned.
    while let Some(gone) = unsafe { version.as_ref() } {
        // Relaxed: nobody installs anything before it any more.
        let prev = gone.prev.load(Ordering::Relaxed);
        // SAFETY: nobody who pins from now on finds it.
        let garbage = unsafe { (ops.version)(version) };
        bytes += garbage.bytes();
        claim.retire(garbage);
        version = prev;
    }
    bytes
}

/// Locks a record that is going to be replaced. Returns its word before.
#[inline]
fn lock(write: &Write) -> Result<Word, Reason> {
    // SAFETY: the transaction is pinned since it found the record.
    let head = unsafe { &*write.head };
    let mut looks = 0;
    loop {
        let word = head.load();
        let is_expected = write.expected.is_none_or(|seen| seen == word.version());
        if word.is_dead() || !is_expected {
            head.meta().count(Reason::Validation);
            return Err(Reason::Validation);
        }
        if !word.is_locked() && head.try_lock(word) {
            return Ok(word);
        }
        if looks == LOOKS {
            head.meta().count(Reason::Locked);
            return Err(Reason::Locked);
        }
        looks += 1;
        hint::spin_loop();
    }
}

/// The number of removals in the tables in which the transaction has found nothing.
#[inline]
pub(super) fn removals(work: &Work) -> u64 {
    // SAFETY: a table lives as long as its store.
    let of_table = |absence: &Absence| unsafe { &*absence.meta }.removals();
    work.absences
        .iter()
        .map(of_table)
        .fold(0, u64::wrapping_add)
}

/// Whether nothing is where the transaction had found nothing, at the moment when it has counted
/// `removals`.
///
/// A record may have been put there and removed again since the transaction looked, and the hash
/// index does not say so. If it was there at that moment, its removal changes the count before the
/// record leaves the index.
#[inline]
pub(super) fn check_absences(work: &Work, before: u64) -> Result<(), Conflict<'_>> {
    let phantom = |table| {
        Err(Conflict {
            reason: Reason::Phantom,
            table,
        })
    };
    for absence in &work.absences {
        let is_own = |record: *const ()| work.has_entered(record);
        // SAFETY: the transaction is pinned since it looked.
        if !unsafe { (absence.gap.is_unchanged)(&absence.gap, &is_own) } {
            // SAFETY: a table lives as long as its store.
            return phantom(Some(unsafe { &*absence.meta }));
        }
    }
    if removals(work) != before {
        return phantom(None);
    }
    Ok(())
}

impl<P: Protocol> Drop for Commit<'_, '_, P> {
    /// Gives up what is not installed: nothing, after a commit.
    fn drop(&mut self) {
        give_up::<P>(self.claim, self.work);
    }
}

/// Undoes the writes of a transaction that does not commit.
pub(super) fn give_up<P: Protocol>(claim: &Claim<'_>, work: &mut Work) {
    for write in work.writes.drain(..) {
        // Freed between attempts: a destructor may do anything.
        retire_versions(claim, write.new, write.ops);
        match write.state {
            State::Found => {}
            State::Locked => {
                // SAFETY: the record is locked, so its version lives.
                if let Some(version) = unsafe { write.replaced().as_ref() } {
                    P::keep(version);
                }
                // SAFETY: this transaction has locked the record.
                unsafe { &*write.head }.unlock(write.locked);
            }
            State::Made => {
                // SAFETY: this transaction's own.
                claim.retire(unsafe { (write.ops.record)(write.head.cast_mut().cast()) });
            }
            State::Entered => {
                let absent = std::ptr::null_mut();
                // SAFETY: the record is locked by this transaction, which has made it.
                unsafe { remove(claim, write.head, write.ops, absent, 0) };
            }
        }
    }
}
