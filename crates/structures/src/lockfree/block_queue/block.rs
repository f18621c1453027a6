//! A block of slots. One push and one pop claim each slot, and both leave it.
//!
//! ```text
//!   EMPTY ──── push: swap ────> FULL ──── pop: store ────────────────────────────┐
//!     │                                                                          v
//!     └─ pop: compare-exchange ─> GIVEN_UP ── push: swap, takes its value back ─> LEFT
//! ```
//!
//! A pop that has claimed a slot before the value is there waits for a moment, and then gives the
//! slot up. The push finds that out when it swaps, and needs another slot. Neither waits for the
//! other any longer. Whoever sets `LEFT` is the last of the two, and does not touch the block
//! afterwards.

use crate::step::step;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicU8, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;

const EMPTY: u8 = 0;
const FULL: u8 = 1;
const GIVEN_UP: u8 = 2;
const LEFT: u8 = 3;

/// A place for one value.
pub(super) struct Slot<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Slot<T> {
    fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Fills the slot, or returns `value` if the pop has given the slot up.
    ///
    /// It takes a pointer because the block may be freed before it returns.
    ///
    /// # Safety
    /// The caller is the push that has claimed the slot, and calls this once.
    #[inline]
    pub(super) unsafe fn put(slot: *const Self, value: T) -> Result<(), T> {
        // SAFETY: the block is not freed before its slots are left, this one by the pop after the
        // swap, or by this push.
        let slot = unsafe { &*slot };
        slot.write(value);
        // Release: pairs with the Acquire in `is_full`; publishes the value. Acquire: pairs with the
        // Release of the pop that gives the slot up, so that its look comes before the block is
        // used again.
        if slot.state.swap(FULL, Ordering::AcqRel) == EMPTY {
            return Ok(());
        }
        // SAFETY: the pop has given the slot up, so the value of this push is still there.
        let value = unsafe { slot.read() };
        leave(&slot.state);
        Err(value)
    }

    /// Takes the value. Returns `None` if the push has not put it there soon: the slot is then
    /// given up.
    ///
    /// It takes a pointer because the block may be freed before it returns.
    ///
    /// # Safety
    /// The caller is the pop that has claimed the slot, and calls this once. A push has claimed the
    /// slot.
    #[inline]
    pub(super) unsafe fn take(slot: *const Self) -> Option<T> {
        // SAFETY: the block is not freed before its slots are left, this one by this pop or, after
        // this pop has given it up, by the push.
        let slot = unsafe { &*slot };
        if !is_full(&slot.state) && gives_up(&slot.state) {
            return None;
        }
        // SAFETY: the slot is full, and the pop alone takes the value, once.
        let value = unsafe { slot.read() };
        leave(&slot.state);
        Some(value)
    }

    #[inline]
    fn write(&self, value: T) {
        self.value.with_mut(|place| {
            // SAFETY: between the claim of the push and its swap nobody else uses the value.
            let place = unsafe { &mut *place };
            place.write(value);
        });
    }

    /// Moves the value out.
    ///
    /// # Safety
    /// The value is there, and the caller alone uses it, once.
    #[inline]
    unsafe fn read(&self) -> T {
        // For the checkers it is a write: no other thread may so much as look at the value.
        self.value.with_mut(|place| {
            // SAFETY: the caller alone uses the value (the caller's duty).
            let place = unsafe { &*place };
            // SAFETY: the value is there and not used again (the caller's duties).
            unsafe { place.assume_init_read() }
        })
    }

    fn is_left(&self) -> bool {
        step();
        // Acquire: pairs with the Release in `leave`; the push and the pop are through with the slot.
        self.state.load(Ordering::Acquire) == LEFT
    }

    /// Makes the slot empty again.
    fn clear(&mut self) {
        // For the checkers: no other thread uses the value.
        self.value.with_mut(|_| ());
        // Relaxed: no other thread can reach the slot.
        self.state.store(EMPTY, Ordering::Relaxed);
    }
}

#[inline]
fn is_full(state: &AtomicU8) -> bool {
    step();
    // Acquire: pairs with the Release in `Slot::put`; the value is there.
    state.load(Ordering::Acquire) == FULL
}

#[inline]
fn leave(state: &AtomicU8) {
    // Release: pairs with the Acquire in `Slot::is_left`; the block may be used again.
    state.store(LEFT, Ordering::Release);
}

/// Waits for about a microsecond until the slot is full, or else gives it up and says so.
#[cold]
fn gives_up(state: &AtomicU8) -> bool {
    let mut backoff = Backoff::new();
    while !backoff.is_yielding() {
        backoff.wait();
        if is_full(state) {
            return false;
        }
    }
    // Release: pairs with the Acquire of the swap in `Slot::put`; this pop has left the block.
    // Acquire: as in `is_full`, if the value has come after all.
    let (is_given_up, is_full) = (Ordering::Release, Ordering::Acquire);
    state
        .compare_exchange(EMPTY, GIVEN_UP, is_given_up, is_full)
        .is_ok()
}

/// `SLOTS` places for values, in the order of the queue.
pub(super) struct Block<T, const SLOTS: usize> {
    /// The number of blocks before this one, ever. It is set while one thread has the block.
    lap: UnsafeCell<u64>,
    next: AtomicPtr<Self>,
    pub(super) slots: [Slot<T>; SLOTS],
}

impl<T, const SLOTS: usize> Block<T, SLOTS> {
    /// An empty block. It is made in place, because it may be large.
    pub(super) fn new() -> Box<Self> {
        const { assert!(SLOTS > 0, "a block has at least one slot") };
        let mut block = Box::<Self>::new_uninit();
        let place = block.as_mut_ptr();
        // SAFETY: the field lies in the new block.
        let lap = unsafe { &raw mut (*place).lap };
        // SAFETY: as above.
        let next = unsafe { &raw mut (*place).next };
        // SAFETY: as above.
        let slots = unsafe { &raw mut (*place).slots };
        // SAFETY: it is a place in the new block, which nobody else has.
        unsafe { lap.write(UnsafeCell::new(0)) };
        // SAFETY: as above.
        unsafe { next.write(AtomicPtr::new(ptr::null_mut())) };
        for number in 0..SLOTS {
            let slot = slots.cast::<Slot<T>>().wrapping_add(number);
            // SAFETY: as above.
            unsafe { slot.write(Slot::new()) };
        }
        // SAFETY: every field is written.
        unsafe { block.assume_init() }
    }

    /// Makes this block number `lap` of the queue, with `value` in its first slot.
    pub(super) fn begin(&mut self, lap: u64, value: T) {
        self.lap.with_mut(|place| {
            // SAFETY: `self` is borrowed mutably.
            unsafe { *place = lap };
        });
        self.slots[0].write(value);
        // Relaxed: the block is published with its first value.
        self.slots[0].state.store(FULL, Ordering::Relaxed);
    }

    /// Undoes [`begin`](Self::begin) in a block that was not published.
    ///
    /// # Safety
    /// `begin` was called last.
    pub(super) unsafe fn take_back(&mut self) -> T {
        // SAFETY: the value is there, since `begin` was called last (the caller's duty).
        let value = unsafe { self.slots[0].read() };
        self.slots[0].clear();
        value
    }

    pub(super) fn lap(&self) -> u64 {
        self.lap.with(|place| {
            // SAFETY: it is written only while one thread has the block.
            unsafe { *place }
        })
    }

    /// The next block, or null.
    pub(super) fn next(&self) -> *mut Self {
        step();
        // Acquire: pairs with the Release in `link`; the next block is initialised.
        self.next.load(Ordering::Acquire)
    }

    /// Links `new` after this block, unless there is one already, which it returns then.
    pub(super) fn link(&self, new: *mut Self) -> Result<(), *mut Self> {
        // Release: pairs with the Acquire in `next` and below; publishes the block and its first
        // value. Acquire: as in `next`.
        let (linked, other) = (Ordering::Release, Ordering::Acquire);
        self.next
            .compare_exchange(ptr::null_mut(), new, linked, other)
            .map(|_| ())
    }

    /// Whether the push and the pop of each slot have left the block.
    pub(super) fn is_left(&self) -> bool {
        self.slots.iter().all(Slot::is_left)
    }

    /// Makes the block empty again, and links it to none.
    pub(super) fn clear(&mut self) {
        // For the checkers: no other thread reads the number.
        self.lap.with_mut(|_| ());
        // Relaxed: no other thread can reach the block.
        self.next.store(ptr::null_mut(), Ordering::Relaxed);
        self.slots.iter_mut().for_each(Slot::clear);
    }
}
