//! A slot that a transaction has claimed: what pins it, and what it retires.

use super::garbage::{Garbage, Guard};
use super::limbo;
use super::pins::{BUSY, DRAWING, IDLE, NO_TIME, Own, Pins, QUIET, SHIFT, Slot};
use super::sweep::{self, Entry};
use super::work::Work;
use corelay_sync::barrier;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{Ordering, fence};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// Transactions with garbage after which a slot tries to advance the epoch.
const ADVANCE_EVERY: u64 = if MODEL { 1 } else { 4 };

/// Commits of a slot after which it looks how much memory is retained.
const LOOK_EVERY: u64 = if MODEL { 1 } else { 64 };

/// A claimed slot. Ends the pin, and gives the slot back, when it is dropped.
pub(crate) struct Claim<'s> {
    pins: &'s Pins,
    slot: &'s Slot,
    number: usize,
    /// The number of the running attempt.
    attempt: u64,
    /// Not `Sync`: the slot's owner is one transaction.
    _owner: PhantomData<*mut ()>,
}

impl<'s> Claim<'s> {
    /// The claim of a slot that its maker has just taken.
    pub(super) fn new(pins: &'s Pins, slot: &'s Slot, number: usize) -> Self {
        Self {
            pins,
            slot,
            number,
            attempt: 0,
            _owner: PhantomData,
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn pins(&self) -> &'s Pins {
        self.pins
    }

    /// Refuses transactions that sleep and keep memory. Returns their number.
    pub(crate) fn refuse_sleepers(&self) -> u64 {
        self.pins.refuse_sleepers(self.slot)
    }

    /// The owner's part of the slot.
    fn own<R>(&self, f: impl FnOnce(&mut Own) -> R) -> R {
        self.slot.own.with_mut(|own| {
            // SAFETY: this claim owns the slot, and is neither `Sync` nor `Clone`. No `f` in this
            // file calls `own` again, or runs anybody else's code.
            f(unsafe { &mut *own })
        })
    }

    /// Takes the sets of the slot's earlier transaction, empty, or makes new ones.
    pub(crate) fn take_work(&self) -> Box<Work> {
        self.own(|own| own.work.take()).unwrap_or_default()
    }

    /// Leaves the sets to the slot's next transaction.
    pub(crate) fn leave_work(&self, work: Box<Work>) {
        self.own(|own| own.work = Some(work));
    }

    /// Begins an attempt: what it reaches from now on is not freed before it ends.
    #[inline]
    pub(crate) fn pin(&mut self) {
        let slot = self.slot;
        // Relaxed, all three: the fence orders them. Only the owner changes `attempt`.
        self.attempt = slot.attempt.load(Ordering::Relaxed) + 1;
        slot.attempt.store(self.attempt, Ordering::Relaxed);
        let epoch = self.pins.epoch.load(Ordering::Relaxed);
        slot.since.store(DRAWING, Ordering::Relaxed);
        // Release: pairs with the Acquire in `Slot::holds`; hands on what the slot's earlier attempt has
        // left, whose word this replaces.
        slot.pin.store(epoch << SHIFT | BUSY, Ordering::Release);
        // SeqCst: pairs with the fences of `Pins::advance` and `Pins::oldest`.
        fence(Ordering::SeqCst);
    }

    /// Says from which time on the attempt reads; [`NO_TIME`] if it reads only what is newest.
    #[inline]
    pub(crate) fn read_since(&self, time: u64) {
        // Release: pairs with the Acquire in `Pins::oldest`; what the clock said is before it.
        self.slot.since.store(time, Ordering::Release);
    }

    /// Begins an operation. False if the attempt has been refused: nothing may be touched then.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        let slot = self.slot;
        // Relaxed: only the owner changes it.
        let pin = slot.pin.load(Ordering::Relaxed);
        // Release: as in `pin`.
        slot.pin.store(pin & !3 | BUSY, Ordering::Release);
        // Pairs with the heavy barrier of `refuse_sleepers`: see `pins`.
        barrier::light();
        // Relaxed: ordered by the barrier.
        slot.refused.load(Ordering::Relaxed) != self.attempt
    }

    /// Ends an operation.
    #[inline]
    pub(crate) fn leave(&self) {
        // Relaxed: only the owner changes it.
        let pin = self.slot.pin.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `refuse_sleepers`: the operation's reads are over.
        self.slot.pin.store(pin & !3 | IDLE, Ordering::Release);
    }

    /// Ends the attempt.
    #[inline]
    pub(crate) fn unpin(&self) {
        self.own(|own| {
            if own.limbo.has_fresh() {
                // SeqCst: pairs with the fences of `pin` and `Pins::advance`: a transaction that
                // can still reach what is retired has pinned this epoch or an older one.
                fence(Ordering::SeqCst);
                // Relaxed: the fence orders it.
                own.limbo.seal(self.pins.epoch.load(Ordering::Relaxed));
            }
        });
        // Release: pairs with the Acquire in `Pins::oldest`.
        self.slot.since.store(NO_TIME, Ordering::Release);
        // Release: pairs with the Acquire in `Slot::holds`: the reads are over.
        self.slot.pin.store(QUIET, Ordering::Release);
    }

    /// Whether it is this attempt's turn to free memory.
    #[inline]
    fn is_due(&self) -> bool {
        self.attempt.is_multiple_of(ADVANCE_EVERY) && self.own(|own| !own.limbo.is_empty())
    }

    /// Frees what no transaction can reach any more. Called between attempts; runs destructors of
    /// values, so the slot must be in order.
    #[inline]
    pub(crate) fn collect(&self) {
        if self.is_due() {
            self.collect_now();
        }
    }

    #[cold]
    #[inline(never)]
    fn collect_now(&self) {
        let epoch = self.pins.advance();
        let mut ripe = Vec::new();
        self.own(|own| {
            own.limbo.ripen(epoch, &mut ripe);
        });
        let slabs = self.pins.slabs();
        // SAFETY: the block came from this store's slabs, and what was in it is dropped.
        let give_back =
            |class, block| self.own(|own| unsafe { own.cache.free(slabs, class, block) });
        // SAFETY: by the order of fences that `pins` cites nobody reaches what was retired two
        // epochs ago.
        unsafe { limbo::free_all(ripe, give_back) };
    }

    /// Moves `value` into a block of the store's slabs.
    #[inline(always)]
    pub(crate) fn place<T>(&self, value: T) -> *mut T {
        // The block first, so that `value` is moved once.
        let place = self.own(|own| own.cache.block::<T>(self.pins.slabs()));
        // SAFETY: a block for a `T`, which nobody else has.
        unsafe { place.write(value) };
        place
    }

    /// Puts a record into the slot's queue.
    pub(crate) fn queue(&self, entry: Entry) {
        self.own(|own| own.queue.push_back(entry));
    }

    /// Whether records wait in the slot's queue.
    pub(crate) fn has_queue(&self) -> bool {
        self.own(|own| !own.queue.is_empty())
    }

    /// Sweeps the records in the slot's queue that every transaction reads later than; `oldest` is
    /// the time at which the oldest reads. At most as many as there are now.
    #[cold]
    #[inline(never)]
    pub(crate) fn sweep(&self, oldest: u64) {
        for _ in 0..self.own(|own| own.queue.len()) {
            let take = |own: &mut Own| {
                let is_due = own.queue.front().is_some_and(|entry| entry.stamp < oldest);
                is_due.then(|| own.queue.pop_front()).flatten()
            };
            let Some(entry) = self.own(take) else {
                return;
            };
            if let Some(again) = sweep::sweep(self, entry, oldest) {
                self.queue(again);
            }
        }
    }

    /// Notes the bytes of versions that were replaced and are kept for older readers.
    pub(crate) fn keep(&self, bytes: usize) {
        self.own(|own| own.kept = own.kept.wrapping_add(bytes as u64));
    }

    /// Notes the bytes of kept versions that were cut off.
    pub(crate) fn cut(&self, bytes: usize) {
        self.own(|own| own.kept = own.kept.wrapping_sub(bytes as u64));
    }

    /// Counts a commit. True once in a while, for what need not be done each time.
    #[inline]
    pub(crate) fn count_commit(&self) -> bool {
        // Relaxed: a count, which only the owner changes.
        let commits = self.slot.commits.load(Ordering::Relaxed) + 1;
        self.slot.commits.store(commits, Ordering::Relaxed);
        commits.is_multiple_of(LOOK_EVERY)
    }

    /// The bytes of all slots that are not freed. Also publishes this slot's own.
    #[cold]
    pub(crate) fn retained(&self) -> u64 {
        self.own(|own| {
            let bytes = own.limbo.bytes().wrapping_add(own.kept);
            // Relaxed: a count for reports and limits.
            self.slot.retained.store(bytes, Ordering::Relaxed);
        });
        self.pins.retained()
    }
}

// SAFETY: `retire` puts garbage into the limbo of this slot, which frees it two epochs after the
// end of this attempt; see `pins`.
unsafe impl Guard for Claim<'_> {
    #[inline]
    fn retire(&self, garbage: Garbage) {
        self.own(|own| own.limbo.push(garbage));
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Pins::try_claim`; hands the slot's own part over.
        self.slot.taken.store(false, Ordering::Release);
    }
}

/// A claimed slot that is pinned, for work on tables that is no transaction's.
pub(crate) struct Pinned<'s>(Claim<'s>);

impl<'s> Pinned<'s> {
    pub(crate) fn new(pins: &'s Pins) -> Self {
        let mut claim = pins.claim();
        claim.pin();
        claim.read_since(NO_TIME);
        Self(claim)
    }
}

impl<'s> Deref for Pinned<'s> {
    type Target = Claim<'s>;

    fn deref(&self) -> &Claim<'s> {
        &self.0
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.0.unpin();
        // Destructors of values run there, which may panic, too.
        if !std::thread::panicking() {
            self.0.collect();
        }
    }
}

impl fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("number", &self.number)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
