//! A segment: the records whose hashes begin with the same bits, and the lock of their writers.

use super::super::super::garbage::Guard;
use super::super::{Changed, Gap, Keyed};
use super::block::Block;
use super::slot::Slot;
use super::word::Word;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicUsize, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::hint;
use corelay_sync::{Backoff, prefetch_read};
use std::ops::ControlFlow;
use std::ptr;

/// A segment. It has a cache line of its own.
#[repr(align(64))]
pub(super) struct Segment<R> {
    /// A [`Word`].
    word: AtomicUsize,
    /// A [`Block`]. Only the holder of the lock changes it.
    block: AtomicPtr<AtomicPtr<R>>,
    /// Only for the holder of the lock.
    counts: UnsafeCell<Counts>,
}

/// The contents of a segment's slots.
#[derive(Clone, Copy, Default)]
struct Counts {
    records: usize,
    tombstones: usize,
}

// SAFETY: `counts` is accessed by the holder of the lock only. References to records are handed to
// any thread, which a `Keyed` record allows, for it is `Sync`.
unsafe impl<R: Keyed> Sync for Segment<R> {}
// SAFETY: a segment owns no record, and nothing in it belongs to a thread.
unsafe impl<R: Keyed> Send for Segment<R> {}

/// The slots of a block that may be in use: three of four, so a probe always ends.
fn limit(slots: usize) -> usize {
    slots / 4 * 3 + slots % 4 / 2
}

/// The slots for `records` records: when a block is made, at most half of its limit is in use. So
/// the next one is not due before as many inserts again.
fn slots_for<R>(records: usize) -> usize {
    let mut slots = Block::<R>::LEAST;
    while limit(slots) < records * 2 {
        slots *= 2;
    }
    slots
}

/// Walks over the slots from the `hash`'s home on, up to all of them, until `visit` breaks.
#[inline(always)]
fn walk<'s, R, B>(
    slots: &'s [AtomicPtr<R>],
    hash: u64,
    mut visit: impl FnMut(&'s AtomicPtr<R>, Slot<R>) -> ControlFlow<B>,
) -> Option<B> {
    let mask = slots.len() - 1;
    for step in 0..slots.len() {
        let place = &slots[(hash as usize).wrapping_add(step) & mask];
        // Acquire: pairs with the Release stores of `insert` and `unlink`. A probe that finds a
        // record sees its fields. A probe that finds a record gone sees what its remover did before.
        let slot = Slot(place.load(Ordering::Acquire));
        if let ControlFlow::Break(end) = visit(place, slot) {
            return Some(end);
        }
    }
    None
}

/// Puts `record` into the first empty slot on its way.
fn fill<R>(slots: &[AtomicPtr<R>], hash: u64, record: *mut R) {
    let new = Slot::of(record, Slot::<R>::tag(hash));
    let done = walk(slots, hash, |place, slot| {
        if !slot.is_empty() {
            return ControlFlow::Continue(());
        }
        // Release: pairs with the Acquire in `walk`; publishes the record.
        place.store(new.0, Ordering::Release);
        ControlFlow::Break(())
    });
    debug_assert!(done.is_some(), "a block without an empty slot");
}

impl<R: Keyed> Segment<R> {
    /// The number of slots of the smallest block.
    pub(super) const LEAST: usize = Block::<R>::LEAST;

    pub(super) fn new(slots: usize) -> Self {
        Self {
            word: AtomicUsize::new(Word::from_raw(0).raw()),
            block: AtomicPtr::new(Block::allocate(slots).raw()),
            counts: UnsafeCell::new(Counts::default()),
        }
    }

    /// The record of `hash` for which `is_key` is true, or the gap.
    #[inline(always)]
    pub(super) fn get<'g, G: Guard>(
        &self,
        hash: u64,
        is_key: impl Fn(&R) -> bool,
        _guard: &'g G,
    ) -> Result<&'g R, Gap> {
        let seen = self.version();
        // SAFETY: the guard lives in `'g`.
        let found = unsafe { self.find(hash, is_key) };
        found.ok_or_else(|| self.gap(seen, hash, is_absent::<R>))
    }

    /// The gap of the whole segment and its records.
    pub(super) fn scan<'g, G: Guard>(
        &self,
        _guard: &'g G,
    ) -> (Gap, impl Iterator<Item = &'g R> + use<'g, R, G>) {
        let gap = self.gap(self.version(), 0, is_same_version::<R>);
        // SAFETY: the guard lives in `'g`.
        let slots: &'g [AtomicPtr<R>] = unsafe { self.slots() };
        let records = slots.iter().filter_map(|place| {
            // Acquire: as in `walk`.
            let slot = Slot(place.load(Ordering::Acquire));
            // SAFETY: the record was in its slot while the guard lived.
            slot.record().map(|record| unsafe { record_of(record) })
        });
        (gap, records)
    }

    /// Inserts `record` unless a record of the same key is there.
    ///
    /// # Safety
    /// As for [`HashIndex::insert`](super::HashIndex::insert).
    pub(super) unsafe fn insert<'g, G: Guard>(
        &self,
        hash: u64,
        record: *mut R,
        guard: &'g G,
    ) -> Result<Changed, &'g R> {
        // SAFETY: the caller promises a valid record.
        let new: &'g R = unsafe { record_of(record) };
        let mut lock = self.lock();
        let tag = Slot::<R>::tag(hash);
        let mut free: Option<&AtomicPtr<R>> = None;
        // SAFETY: the guard lives in `'g`.
        let slots: &'g [AtomicPtr<R>] = unsafe { self.slots() };
        let found = walk(slots, hash, |place, slot| {
            if slot.has_tag(tag) {
                // SAFETY: the record was in its slot while the guard lived.
                let record: &'g R = unsafe { record_of(slot.address()) };
                if record.key() == new.key() {
                    return ControlFlow::Break(Some(record));
                }
            } else if slot.is_tombstone() {
                free = free.or(Some(place));
            } else if slot.is_empty() {
                return ControlFlow::Break(None);
            }
            ControlFlow::Continue(())
        });
        if let Some(Some(record)) = found {
            return Err(record);
        }
        let old = match free {
            Some(place) => {
                // Release: pairs with the Acquire in `walk`; publishes the record.
                place.store(Slot::of(record, tag).0, Ordering::Release);
                lock.count(1, -1);
                None
            }
            None => {
                let old = lock.make_room();
                // SAFETY: while the lock is held, nobody takes the block out of the segment.
                fill(unsafe { self.slots() }, hash, record);
                lock.count(1, 0);
                old
            }
        };
        let changed = lock.release_inserted();
        if let Some(old) = old {
            // SAFETY: the segment has another block now, and only this call has taken this one out.
            guard.retire(unsafe { old.into_garbage() });
        }
        Ok(changed)
    }

    /// Takes `record` out and returns the pointer that was inserted, or none if it is not here.
    pub(super) fn unlink(&self, hash: u64, record: &R) -> Option<*mut R> {
        let mut lock = self.lock();
        // SAFETY: while the lock is held, nobody takes the block out of the segment.
        let slots = unsafe { self.slots() };
        let mask = slots.len() - 1;
        let tag = Slot::<R>::tag(hash);
        let sought = Slot::of(ptr::from_ref(record).cast_mut(), tag);
        let mut at = (hash as usize) & mask;
        let found = walk(slots, hash, |_, slot| {
            if slot.0 == sought.0 {
                return ControlFlow::Break(slot.record());
            }
            if slot.is_empty() {
                return ControlFlow::Break(None);
            }
            at = (at + 1) & mask;
            ControlFlow::Continue(())
        });
        let found = found.flatten()?;
        lock.count(-1, 1);
        // Relaxed: the lock orders all of its holders' accesses.
        let is_last = Slot(slots[(at + 1) & mask].load(Ordering::Relaxed)).is_empty();
        let gone = if is_last {
            Slot::EMPTY
        } else {
            Slot::TOMBSTONE
        };
        loop {
            // Release: pairs with the Acquire in `walk`; a reader that misses the record sees what
            // this thread did before.
            slots[at].store(gone.0, Ordering::Release);
            if !is_last {
                return Some(found);
            }
            lock.count(0, -1);
            at = at.wrapping_sub(1) & mask;
            // Relaxed: as above.
            if !Slot(slots[at].load(Ordering::Relaxed)).is_tombstone() {
                return Some(found);
            }
        }
    }

    /// Fetches the slot where probing for `hash` begins.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch_read(self.block().home(hash));
    }

    /// Fetches the first record that may have the `hash`.
    #[inline(always)]
    pub(super) fn prefetch_record<G: Guard>(&self, hash: u64, _guard: &G) {
        let tag = Slot::<R>::tag(hash);
        // SAFETY: the guard lives during this call.
        walk(unsafe { self.slots() }, hash, |_, slot| {
            if slot.has_tag(tag) {
                prefetch_read(slot.address());
                return ControlFlow::Break(());
            }
            if slot.is_empty() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
    }

    /// The bytes of the block.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.block().bytes()
    }

    /// The record of the `hash`'s tag for which `is_it` is true.
    ///
    /// # Safety
    /// A guard lives in `'g`.
    #[inline(always)]
    unsafe fn find<'g>(&self, hash: u64, is_it: impl Fn(&R) -> bool) -> Option<&'g R> {
        let tag = Slot::<R>::tag(hash);
        // SAFETY: the caller promises the guard.
        let slots: &'g [AtomicPtr<R>] = unsafe { self.slots() };
        let found = walk(slots, hash, |_, slot| {
            if slot.has_tag(tag) {
                // SAFETY: the record was in its slot while the guard lived.
                let record: &'g R = unsafe { record_of(slot.address()) };
                if is_it(record) {
                    return ControlFlow::Break(Some(record));
                }
            } else if slot.is_empty() {
                return ControlFlow::Break(None);
            }
            ControlFlow::Continue(())
        });
        found.flatten()
    }

    /// The version before what the caller reads next.
    #[inline(always)]
    fn version(&self) -> usize {
        // Acquire: pairs with the Release in `Lock::drop`; whoever sees a version sees its inserts.
        let raw = self.word.load(Ordering::Acquire);
        Word::from_raw(raw).unlocked().raw()
    }

    #[inline(always)]
    fn gap(&self, seen: usize, hash: u64, is_unchanged: IsUnchanged) -> Gap {
        Gap {
            place: ptr::from_ref(self).cast(),
            seen,
            hash,
            is_unchanged,
        }
    }

    #[inline(always)]
    fn block(&self) -> Block<R> {
        // Acquire: pairs with the Release in `make_room`; publishes the slots.
        Block::from_raw(self.block.load(Ordering::Acquire))
    }

    /// The slots.
    ///
    /// # Safety
    /// A guard lives in `'s`, or the segment's lock is held.
    #[inline(always)]
    unsafe fn slots<'s>(&self) -> &'s [AtomicPtr<R>] {
        // SAFETY: only the holder of the lock takes the block out of the segment. It is retired
        // after that, when the caller's guard is there.
        unsafe { self.block().slots() }
    }

    fn lock(&self) -> Lock<'_, R> {
        let mut backoff = Backoff::new();
        loop {
            // Relaxed: the exchange decides.
            let word = Word::from_raw(self.word.load(Ordering::Relaxed)).unlocked();
            // Acquire: pairs with the Release in `Lock::drop`; a holder sees what the holder before
            // it did.
            let taken = self.word.compare_exchange_weak(
                word.raw(),
                word.locked().raw(),
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return Lock {
                    segment: self,
                    word,
                };
            }
            backoff.wait();
            hint::in_vain(backoff.yields());
        }
    }
}

impl<R> Drop for Segment<R> {
    fn drop(&mut self) {
        // Relaxed: nobody else has the segment.
        let block = Block::from_raw(self.block.load(Ordering::Relaxed));
        // SAFETY: blocks that were replaced are garbage, and this is the last one.
        unsafe { block.free() };
    }
}

type IsUnchanged = unsafe fn(&Gap, &dyn Fn(*const ()) -> bool) -> bool;

/// Whether no record of the gap's hash was inserted into its segment.
///
/// # Safety
/// [`Segment::gap`] made the gap, and a guard that was there then still is.
unsafe fn is_absent<R: Keyed>(gap: &Gap, is_own: &dyn Fn(*const ()) -> bool) -> bool {
    // SAFETY: the index, which the caller keeps, has the segment at this address.
    let segment = unsafe { &*gap.place.cast::<Segment<R>>() };
    // Relaxed: the fence of `order_checks` comes before it.
    if segment.word.load(Ordering::Relaxed) == gap.seen {
        return true;
    }
    let is_other = |record: &R| record.hash() == gap.hash && !is_own(ptr::from_ref(record).cast());
    // SAFETY: the caller promises that a guard lives during this call.
    unsafe { segment.find(gap.hash, is_other) }.is_none()
}

/// Whether no record was inserted into the gap's segment, and no writer is there.
///
/// # Safety
/// As for [`is_absent`].
unsafe fn is_same_version<R: Keyed>(gap: &Gap, _is_own: &dyn Fn(*const ()) -> bool) -> bool {
    // SAFETY: the index, which the caller keeps, has the segment at this address.
    let segment = unsafe { &*gap.place.cast::<Segment<R>>() };
    // Relaxed: the fence of `order_checks` comes before it.
    segment.word.load(Ordering::Relaxed) == gap.seen
}

/// The record at `record`.
///
/// # Safety
/// A guard lives in `'g`, and the record was found in a slot during that guard's life; or the
/// caller of `insert` handed the record over.
#[inline(always)]
unsafe fn record_of<'g, R>(record: *mut R) -> &'g R {
    // SAFETY: a record is valid when it is inserted, and freed only after every guard has ended
    // that was there when it was unlinked: that promise the caller of `insert` gave.
    unsafe { &*record }
}

/// The lock of a segment. Dropping it releases the lock, also when a key's `Eq` has panicked.
struct Lock<'a, R> {
    segment: &'a Segment<R>,
    /// The segment's word after the release.
    word: Word,
}

impl<R: Keyed> Lock<'_, R> {
    /// Replaces the block if all slots that may be in use are. Returns the old one.
    fn make_room(&mut self) -> Option<Block<R>> {
        let old = self.segment.block();
        let counts = self.counts();
        if counts.records + counts.tombstones < limit(old.len()) {
            return None;
        }
        let new = Block::allocate(slots_for::<R>(counts.records + 1));
        // SAFETY: while the lock is held, nobody takes the block out of the segment.
        for place in unsafe { old.slots() } {
            // Relaxed: the lock orders all of its holders' accesses.
            if let Some(record) = Slot(place.load(Ordering::Relaxed)).record() {
                // SAFETY: the record is in its slot, and nobody unlinks it while the lock is held.
                let hash = unsafe { &*record }.hash();
                // SAFETY: nobody else knows the block yet.
                fill(unsafe { new.slots() }, hash, record);
            }
        }
        self.count(0, -(counts.tombstones as isize));
        // Release: pairs with the Acquire in `block`; publishes the slots.
        self.segment.block.store(new.raw(), Ordering::Release);
        Some(old)
    }

    fn counts(&self) -> Counts {
        // SAFETY: only the holder of the lock is here.
        self.segment.counts.with(|counts| unsafe { *counts })
    }

    fn count(&mut self, records: isize, tombstones: isize) {
        let mut counts = self.counts();
        counts.records = counts.records.wrapping_add_signed(records);
        counts.tombstones = counts.tombstones.wrapping_add_signed(tombstones);
        self.segment.counts.with_mut(|place| {
            // SAFETY: only the holder of the lock is here.
            unsafe { *place = counts }
        });
    }

    /// Releases the lock after an insert.
    fn release_inserted(mut self) -> Changed {
        let from = self.word;
        self.word = from.after_insert();
        Changed {
            place: ptr::from_ref(self.segment).cast(),
            from: from.raw(),
            to: self.word.raw(),
        }
    }
}

impl<R> Drop for Lock<'_, R> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next holder, and with that of a lookup, which must
        // see the insert if it sees its version.
        self.segment.word.store(self.word.raw(), Ordering::Release);
    }
}
