//! The slots of a segment: one allocation.

use super::super::super::garbage::Garbage;
use super::slot::Slot;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::AtomicPtr;
use std::alloc::{self, Layout};
use std::ptr;

/// A pointer to the slots of a segment. Their number is a power of two, and stands in the low bits
/// of the pointer, which alignment leaves free: a reader learns both by one load.
///
/// ```text
///  63                               6 5                  0
/// ┌──────────────────────────────────┬────────────────────┐
/// │ address of the first slot        │ log2 of the number │
/// └──────────────────────────────────┴────────────────────┘
/// ```
#[derive(Debug)]
pub(super) struct Block<R>(*mut AtomicPtr<R>);

/// The bytes to which slots are aligned: a cache line.
const LINE: usize = 64;

impl<R> Block<R> {
    /// The number of slots of the smallest block: a cache line of them. The models' is smaller, so
    /// that it is soon full.
    pub(super) const LEAST: usize = if MODEL { 2 } else { LINE / size_of::<usize>() };

    /// Allocates a block of `slots` empty slots, a power of two.
    pub(super) fn allocate(slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "{slots} slots are no power of two");
        let layout = Self::layout(slots);
        // SAFETY: the layout's size is not 0, since a power of two is not.
        let first = unsafe { alloc::alloc(layout) }.cast::<AtomicPtr<R>>();
        if first.is_null() {
            alloc::handle_alloc_error(layout);
        }
        for at in 0..slots {
            // SAFETY: the slot is one of those that were just allocated.
            let slot = unsafe { first.add(at) };
            // SAFETY: it is valid and aligned, and nobody else knows it.
            unsafe { slot.write(AtomicPtr::new(Slot::EMPTY.0)) };
        }
        Self(first.map_addr(|address| address | slots.trailing_zeros() as usize))
    }

    /// The block whose pointer [`raw`](Self::raw) gave.
    #[inline(always)]
    pub(super) fn from_raw(raw: *mut AtomicPtr<R>) -> Self {
        Self(raw)
    }

    #[inline(always)]
    pub(super) fn raw(self) -> *mut AtomicPtr<R> {
        self.0
    }

    /// The number of slots.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        1 << (self.0.addr() % LINE)
    }

    pub(super) fn bytes(self) -> usize {
        Self::layout(self.len()).size()
    }

    /// The slots.
    ///
    /// # Safety
    /// The block is not freed in `'a`.
    #[inline(always)]
    pub(super) unsafe fn slots<'a>(self) -> &'a [AtomicPtr<R>] {
        // SAFETY: `allocate` has made that many slots there, and the caller promises that they live.
        unsafe { std::slice::from_raw_parts(self.first(), self.len()) }
    }

    /// The address of the slot where probing for `hash` begins.
    #[inline(always)]
    pub(super) fn home(self, hash: u64) -> *const AtomicPtr<R> {
        self.first().wrapping_add(hash as usize & (self.len() - 1))
    }

    /// The block as garbage.
    ///
    /// # Safety
    /// No segment leads to the block any more, and nobody else frees it.
    pub(super) unsafe fn into_garbage(self) -> Garbage {
        unsafe fn free<R>(raw: *mut ()) {
            // SAFETY: `into_garbage` gave this pointer, and garbage is freed when nobody has a
            // reference into it.
            unsafe { Block::<R>::from_raw(raw.cast()).free() }
        }
        // SAFETY: `free` may run on any thread, for slots own nothing. The rest the caller promises.
        unsafe { Garbage::new(self.0.cast(), self.bytes(), free::<R>) }
    }

    /// Frees the block.
    ///
    /// # Safety
    /// Nobody uses the block any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        let slots = ptr::slice_from_raw_parts_mut(self.first(), self.len());
        // SAFETY: `allocate` has made the slots, and the caller promises that this is their end.
        unsafe { ptr::drop_in_place(slots) };
        // SAFETY: `allocate` allocated them with this layout.
        unsafe { alloc::dealloc(self.first().cast(), Self::layout(self.len())) };
    }

    #[inline(always)]
    fn first(self) -> *mut AtomicPtr<R> {
        self.0.map_addr(|address| address & !(LINE - 1))
    }

    fn layout(slots: usize) -> Layout {
        Layout::array::<AtomicPtr<R>>(slots)
            .and_then(|layout| layout.align_to(LINE))
            .expect("a block that is too large for the address space")
    }
}

impl<R> Clone for Block<R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Block<R> {}
