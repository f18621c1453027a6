//! A chunk: a block of memory with the slots of one heap.
//!
//! ```text
//!  a multiple of ALIGN                                              at most ALIGN - MARGIN
//!  ├─ header: heap, next chunk ─┤ … ├─ slot 0 ─┼─ slot 1 ─┼─ … ─┼─ slot n - 1 ─┤
//!  0                            128 FIRST
//! ```
//!
//! `ALIGN` is a constant of the value's type, whatever the size of a pool's chunks: so a slot's address
//! alone, cut down to a multiple of it, is the header's. The header never changes once it is written,
//! and has its lines for itself, because every thread that gives back a slot reads it.

use super::heap::Heap;
use super::slot::{Slot, Vacant};
use corelay_sync::CachePadded;
use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};

// loom's follow what is allocated and freed.
#[cfg(corelay_loom)]
use corelay_sync::facade::checker::alloc::{alloc, dealloc};
#[cfg(not(corelay_loom))]
use std::alloc::{alloc, dealloc};

/// What a chunk is to take if its slots are small, in bytes.
const DEFAULT_BYTES: usize = 64 << 10;

/// Slots that there is room for in a chunk, however large they are.
const MIN_SLOTS: usize = 8;

/// Left free before the next multiple of `ALIGN`, in bytes, so that an allocator that puts a header of
/// its own before each block (glibc: 16 bytes) can lay chunks side by side.
const MARGIN: usize = 64;

/// In bytes; what is touched to have a page there.
const PAGE: usize = 4096;

/// The header of a chunk.
pub(super) struct Chunk<T> {
    heap: NonNull<Heap<T>>,
    /// The next one of the same heap.
    next: Option<NonNull<Chunk<T>>>,
}

impl<T> Chunk<T> {
    /// Where slot 0 begins.
    const FIRST: usize = size_of::<CachePadded<Chunk<T>>>().next_multiple_of(align_of::<Slot<T>>());

    /// Of the chunk's address.
    const ALIGN: usize = {
        let bytes = MIN_SLOTS * size_of::<Slot<T>>() + Self::FIRST + MARGIN;
        let align = bytes.next_power_of_two();
        if align > DEFAULT_BYTES {
            align
        } else {
            DEFAULT_BYTES
        }
    };

    /// The slots that a chunk can have at most.
    pub(super) const MAX_SLOTS: usize = (Self::ALIGN - MARGIN - Self::FIRST) / size_of::<Slot<T>>();

    /// The slots that it has where nothing else is asked for.
    pub(super) const DEFAULT: usize = {
        let usual = DEFAULT_BYTES.saturating_sub(MARGIN + Self::FIRST) / size_of::<Slot<T>>();
        if usual > MIN_SLOTS { usual } else { MIN_SLOTS }
    };

    fn layout(slots: usize) -> Layout {
        let size = Self::FIRST + slots * size_of::<Slot<T>>();
        Layout::from_size_align(size, Self::ALIGN)
            .expect("corelay: no chunk can hold nodes as large as these")
    }

    /// A chunk of `slots` slots, at most [`MAX_SLOTS`](Self::MAX_SLOTS); with `touch`, its pages are there.
    ///
    /// Where memory is out this ends the process, as a `Box` does.
    pub(super) fn new(
        heap: NonNull<Heap<T>>,
        next: Option<NonNull<Self>>,
        slots: usize,
        touch: bool,
    ) -> NonNull<Self> {
        assert!((1..=Self::MAX_SLOTS).contains(&slots));
        let layout = Self::layout(slots);
        // SAFETY: the layout has a size: a slot has one.
        let block = unsafe { alloc(layout) };
        let Some(block) = NonNull::new(block) else {
            handle_alloc_error(layout)
        };
        if touch {
            for at in (0..layout.size()).step_by(PAGE) {
                // SAFETY: inside the block.
                let place = unsafe { block.add(at) };
                // SAFETY: nobody knows the block yet. Volatile, or it would be left out.
                unsafe { place.write_volatile(0) };
            }
        }
        let chunk = block.cast::<Self>();
        // SAFETY: the block begins with room for the header, aligned more than enough.
        unsafe { chunk.write(Self { heap, next }) };
        if cfg!(corelay_loom) {
            for index in 0..slots {
                // SAFETY: one of the slots.
                let slot = unsafe { Self::slot(chunk, index) };
                // SAFETY: inside the block, which nobody knows yet.
                unsafe { slot.write(Slot::new()) };
            }
        }
        chunk
    }

    /// Frees the chunk; what is the next one of its heap?
    ///
    /// # Safety
    /// It was made with as many `slots`, and nobody uses one of them, or the chunk, any more.
    pub(super) unsafe fn free(chunk: NonNull<Self>, slots: usize) -> Option<NonNull<Self>> {
        if cfg!(corelay_loom) {
            for index in 0..slots {
                // SAFETY: one of its slots.
                let slot = unsafe { Self::slot(chunk, index) };
                // SAFETY: made by `new`.
                unsafe { slot.as_ref() }.ends();
            }
        }
        // SAFETY: the chunk lives until the next line.
        let next = unsafe { chunk.as_ref() }.next;
        // SAFETY: made with this layout, and nobody uses it any more.
        unsafe { dealloc(chunk.as_ptr().cast(), Self::layout(slots)) };
        next
    }

    /// The slot `index`, or the end of the slots.
    ///
    /// # Safety
    /// The chunk has at least `index` slots.
    unsafe fn slot(chunk: NonNull<Self>, index: usize) -> NonNull<Slot<T>> {
        // SAFETY: inside the block, or at its end.
        let first = unsafe { chunk.byte_add(Self::FIRST) }.cast::<Slot<T>>();
        // SAFETY: our caller's word.
        unsafe { first.add(index) }
    }

    /// The chunk of a slot.
    #[inline(always)]
    fn of(slot: NonNull<Slot<T>>) -> *const Self {
        // The pointer to a slot is good for its whole block: it comes from `slot` above.
        slot.as_ptr()
            .map_addr(|address| address & !(Self::ALIGN - 1))
            .cast()
    }

    /// The slot that the value lies in.
    ///
    /// # Safety
    /// The pointer came from a slot's value, and is good for its whole block.
    pub(super) unsafe fn slot_of_value(value: NonNull<T>) -> NonNull<Slot<T>> {
        let place = value.cast::<Slot<T>>();
        if cfg!(corelay_loom) {
            // loom's cells have something before their content.
            let within = (place.addr().get() & (Self::ALIGN - 1)) - Self::FIRST;
            // SAFETY: back to where the slot begins.
            unsafe { place.byte_sub(within % size_of::<Slot<T>>()) }
        } else {
            place
        }
    }
}

impl<T> Vacant<T> {
    /// The heap that it belongs to, which lives at least until the slot is given back.
    #[inline(always)]
    pub(super) fn heap(&self) -> NonNull<Heap<T>> {
        // SAFETY: the slot lies in a living chunk, whose header was written before any of its slots
        // was handed out, and never after.
        unsafe { (*Chunk::of(self.slot())).heap }
    }
}

/// The slots of a chunk that were never handed out.
pub(super) struct Fresh<T> {
    at: Cell<*mut Slot<T>>,
    end: Cell<*mut Slot<T>>,
}

impl<T> Fresh<T> {
    pub(super) const fn new() -> Self {
        Self {
            at: Cell::new(ptr::null_mut()),
            end: Cell::new(ptr::null_mut()),
        }
    }

    /// All slots of another chunk.
    ///
    /// # Safety
    /// The chunk has `slots` slots, and none of them was ever handed out, nor will be but from here.
    pub(super) unsafe fn set(&self, chunk: NonNull<Chunk<T>>, slots: usize) {
        debug_assert_eq!(self.count(), 0, "slots would be lost");
        // SAFETY: the first of them.
        self.at.set(unsafe { Chunk::slot(chunk, 0) }.as_ptr());
        // SAFETY: their end.
        self.end.set(unsafe { Chunk::slot(chunk, slots) }.as_ptr());
    }

    #[inline(always)]
    pub(super) fn pop(&self) -> Option<Vacant<T>> {
        let at = self.at.get();
        if at == self.end.get() {
            return None;
        }
        // SAFETY: before the end.
        self.at.set(unsafe { at.add(1) });
        // SAFETY: null is only the end, and of nothing.
        let slot = unsafe { NonNull::new_unchecked(at) };
        // SAFETY: the chunk lives as long as its heap is held, and each slot comes out of here once.
        Some(unsafe { Vacant::new(slot) })
    }

    pub(super) fn count(&self) -> usize {
        (self.end.get().addr() - self.at.get().addr()) / size_of::<Slot<T>>()
    }
}
