//! Optimistic concurrency control with times (Kung and Robinson, "On Optimistic Methods for
//! Concurrency Control", TODS 1981), drawn from a [`Clock`].
//!
//! A transaction reads at a time that it draws when it begins, and a commit stamps what it writes
//! with a time that it draws once that is locked. A version that is not certainly older than the
//! reader's time makes the reader draw a new one and look again at all that it has read: so it
//! always sees one moment, also in an attempt that is going to be given up (*opacity*). The paper,
//! and the engines that are measured with it, abort there.
//!
//! A version that was seen before the draw needs no comparison, so an uncertain clock never has to
//! be waited out. Commits are checked by what they have read, not by times, so a clock that is
//! wrong harms no committed transaction that writes.

use super::sealed::Engine;
use super::{Protocol, check_all, check_view, settled};
use crate::store::claim::Claim;
use crate::store::commit::{check_absences, removals};
use crate::store::pins::NO_TIME;
use crate::store::record::{Head, Version};
use crate::store::stats::{Conflict, Reason};
use crate::store::work::{Read, Work};
use corelay_clock::{Clock, Logical, Order, Time};

/// Optimistic concurrency control with times. Serializable, strictly.
#[derive(Debug, Default, Clone, Copy)]
pub struct Occ<C: Clock = Logical> {
    clock: C,
}

impl<C: Clock> Occ<C> {
    /// The protocol, with times of `clock`.
    pub fn new(clock: C) -> Self {
        Self { clock }
    }

    #[inline(always)]
    fn draw(&self, work: &mut Work) {
        let time = self.clock.read_time();
        work.time = time.raw();
        work.horizon = self.clock.horizon(time).raw();
    }

    /// Draws a new time for a transaction. Everything that it has seen must still be so.
    fn redraw(&self, work: &mut Work) -> Result<(), Reason> {
        let removals = removals(work);
        self.draw(work);
        check_view(work)
            .and_then(|()| check_absences(work, removals))
            .map_err(Conflict::count)
    }

    /// Draws a new time for a transaction that has met a version which may be newer than its own.
    #[cold]
    #[inline(never)]
    fn renew(
        &self,
        work: &mut Work,
        head: &Head,
        seen: *mut Version,
    ) -> Result<*mut Version, Reason> {
        // SAFETY: the transaction is pinned, and has just found the version in its record.
        let is_open = unsafe { seen.as_ref() }.is_some_and(|version| {
            let (version, time) = (Time::from_raw(version.stamp()), Time::from_raw(work.time));
            self.clock.cmp(version, time) == Order::Uncertain
        });
        work.uncertain += u64::from(is_open);
        let mut seen = seen;
        loop {
            self.redraw(work)?;
            // What was seen before the draw, and still is there, was there at the draw.
            let now = settled(head)?.version();
            if now == seen {
                return Ok(seen);
            }
            seen = now;
        }
    }
}

impl<C: Clock + 'static> Protocol for Occ<C> {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl<C: Clock + 'static> Engine for Occ<C> {
    const NAME: &'static str = "occ";

    #[inline(always)]
    fn begin(&self, claim: &Claim<'_>, work: &mut Work) {
        claim.read_since(NO_TIME);
        self.draw(work);
    }

    #[inline(always)]
    fn read(
        &self,
        _claim: &Claim<'_>,
        work: &mut Work,
        head: &Head,
    ) -> Result<*mut Version, Reason> {
        let mut seen = settled(head)?.version();
        // SAFETY: the transaction is pinned, and has just found the version in its record.
        if unsafe { seen.as_ref() }.is_some_and(|version| version.stamp() >= work.horizon) {
            seen = self.renew(work, head, seen)?;
        }
        work.reads.push(Read { head, seen });
        Ok(seen)
    }

    /// A key that was removed is missed without a version that says since when. The table says when
    /// the latest was removed.
    #[inline]
    fn missed(&self, work: &mut Work) -> Result<(), Reason> {
        if work.floor < work.horizon {
            return Ok(());
        }
        self.redraw(work)
    }

    #[inline(always)]
    fn stamp(&self, _work: &Work, _order: u64) -> u64 {
        self.clock.announced_time(Time::ZERO).raw()
    }

    #[inline(always)]
    fn check_reads(&self, work: &mut Work, _stamp: u64) -> Result<(), Reason> {
        check_all(work)
    }

    #[inline(always)]
    fn check_read_only(&self, work: &mut Work) -> Result<(), Reason> {
        // All reads took place at the transaction's time.
        if work.absences.is_empty() {
            return Ok(());
        }
        check_all(work)
    }
}
