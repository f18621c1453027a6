//! A heap: chunks, and the inbox through which their slots come back.
//!
//! [`Hold`] is the right to a heap: one session has it, or the pool's depot. What is in a `Hold` is its
//! holder's alone; what is in a [`Heap`] is reached by everybody who has one of its slots.

use super::chunk::{Chunk, Fresh};
use super::inbox::Inbox;
use super::slot::{Chain, Link, Slot, Vacant};
use super::stats::Counters;
use corelay_sync::facade::Shadow;
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::sync::Arc;
use corelay_sync::{CachePadded, prefetch_write};
// Not the facade's: no other thread ever reaches these cells.
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

/// Nodes of one other heap that a session gathers before it gives them back: one exchange on a line
/// that others write too is then shared by so many.
pub(super) const BATCH: usize = if corelay_sync::facade::MODEL { 2 } else { 32 };

/// What everybody reaches who has a slot of it.
pub(super) struct Heap<T> {
    inbox: CachePadded<Inbox<T>>,
    /// Written by the holder; read by who frees them.
    chunks: UnsafeCell<Option<NonNull<Chunk<T>>>>,
    /// In each chunk.
    slots: usize,
    /// For the model checkers: who comes from outside reads it, who frees the heap writes it.
    lives: Shadow,
}

impl<T> Heap<T> {
    /// Frees the heap with its chunks.
    ///
    /// # Safety
    /// None of its slots is out, and nobody holds it.
    unsafe fn free(heap: NonNull<Self>) {
        // SAFETY: made by `Hold::new`, and nobody else's any more.
        let heap = unsafe { Box::from_raw(heap.as_ptr()) };
        heap.lives.write(0, 1);
        // SAFETY: as above.
        let mut chunks = heap.chunks.with(|chunks| unsafe { *chunks });
        while let Some(chunk) = chunks {
            // SAFETY: no slot of it is out.
            chunks = unsafe { Chunk::free(chunk, heap.slots) };
        }
    }

    /// Gives back slots of the heap; frees it where they were the last ones out of a closed one.
    ///
    /// # Safety
    /// As [`Inbox::put`].
    #[inline(always)]
    unsafe fn put(
        heap: NonNull<Self>,
        first: NonNull<Slot<T>>,
        last: NonNull<Slot<T>>,
        count: usize,
    ) {
        let was_last = {
            // SAFETY: slots of it are out, so it lives until they are in.
            let heap = unsafe { heap.as_ref() };
            heap.lives.read(0, 1);
            // SAFETY: our caller's word.
            unsafe { heap.inbox.put(first, last, count) }
        };
        if was_last {
            // SAFETY: the heap is closed, and these were the last.
            unsafe { Self::free(heap) };
        }
    }
}

/// Gives back one slot, from anywhere.
#[inline(never)]
pub(super) fn give_back<T>(slot: Vacant<T>) {
    let (heap, slot) = (slot.heap(), slot.slot());
    // SAFETY: the right to it was handed over, and it is its own first and last.
    unsafe { Heap::put(heap, slot, slot, 1) };
}

/// The right to a heap, and what only its holder reaches.
///
/// Not dropped but [closed](Self::close); a lost one is memory that is never freed.
pub(super) struct Hold<T> {
    /// What was freed here.
    vacant: Chain<T>,
    /// What was never handed out, of one chunk.
    fresh: Fresh<T>,
    heap: NonNull<Heap<T>>,
    /// Slots of one other heap, on their way back.
    away: Away<T>,
    /// Chunks of which nothing was handed out.
    spare: RefCell<Vec<NonNull<Chunk<T>>>>,
    counters: Arc<Counters>,
}

// SAFETY: the right to a heap may go to another thread as a whole. No value is in it; slots that hold
// one are not the heap's to touch. Slots in its inbox come from other threads anyway.
unsafe impl<T: Send> Send for Hold<T> {}

impl<T> Hold<T> {
    /// A new heap, of chunks with `slots` slots each, 1 to [`Chunk::MAX_SLOTS`].
    pub(super) fn new(slots: usize) -> Self {
        let heap = Box::new(Heap {
            inbox: CachePadded::new(Inbox::new()),
            chunks: UnsafeCell::new(None),
            slots,
            lives: Shadow::new(1),
        });
        Self {
            vacant: Chain::new(),
            fresh: Fresh::new(),
            heap: NonNull::from(Box::leak(heap)),
            away: Away::new(),
            spare: RefCell::default(),
            counters: Arc::default(),
        }
    }

    pub(super) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    fn heap(&self) -> &Heap<T> {
        // SAFETY: a heap that is held lives.
        unsafe { self.heap.as_ref() }
    }

    /// A vacant slot.
    #[inline(always)]
    pub(super) fn pop(&self) -> Vacant<T> {
        if let Some(slot) = self.vacant.pop() {
            return slot;
        }
        if let Some(slot) = self.fresh.pop() {
            return slot;
        }
        self.refill()
    }

    /// Takes back a slot of any heap.
    #[inline(always)]
    pub(super) fn push(&self, slot: Vacant<T>) {
        if slot.heap() == self.heap {
            self.vacant.push(slot);
        } else {
            self.send(slot);
        }
    }

    /// Both of its own are used up.
    #[cold]
    #[inline(never)]
    fn refill(&self) -> Vacant<T> {
        // SAFETY: we hold the heap.
        if let Some(chain) = unsafe { self.heap().inbox.take() } {
            self.counters.collected.add(1);
            self.vacant.replace_empty(chain);
            if let Some(slot) = self.vacant.pop() {
                return slot;
            }
        }
        let spare = self.spare.borrow_mut().pop();
        let chunk = spare.unwrap_or_else(|| self.add_chunk(false));
        // SAFETY: with as many slots as the heap's chunks have, new or kept aside since it was.
        unsafe { self.fresh.set(chunk, self.heap().slots) };
        let slot = self.fresh.pop();
        slot.expect("a chunk has a slot at least")
    }

    fn add_chunk(&self, touch: bool) -> NonNull<Chunk<T>> {
        let heap = self.heap();
        let chunk = heap.chunks.with_mut(|chunks| {
            // SAFETY: only the holder reaches it while the heap is held.
            let next = unsafe { *chunks };
            let chunk = Chunk::new(self.heap, next, heap.slots, touch);
            // SAFETY: as above.
            unsafe { *chunks = Some(chunk) };
            chunk
        });
        self.counters.chunks.add(1);
        chunk
    }

    /// Makes chunks until `count` slots are there that were never handed out.
    pub(super) fn reserve(&self, count: usize) {
        let slots = self.heap().slots;
        let spare = self.spare.borrow().len();
        let there = self.fresh.count() + spare * slots;
        let chunks = count.saturating_sub(there).div_ceil(slots);
        for _ in 0..chunks {
            let chunk = self.add_chunk(true);
            self.spare.borrow_mut().push(chunk);
        }
    }

    /// Another heap's slot: it goes with the others of that heap.
    #[inline(never)]
    fn send(&self, slot: Vacant<T>) {
        // Stores that miss are done one after the other; fetches overlap.
        prefetch_write(slot.slot().as_ptr());
        if !self.away.is_to(&slot) {
            self.flush();
        }
        if self.away.push(slot) == BATCH {
            self.flush();
        }
    }

    /// Gives back what was gathered of another heap.
    pub(super) fn flush(&self) {
        let count = self.away.give_back();
        if count > 0 {
            self.counters.batches.add(1);
            self.counters.batched.add(count as u64);
        }
    }

    /// The heap will be held no more: it ends when all of its slots are back. Its holder has given back
    /// what was gathered of others.
    pub(super) fn close(self) {
        let heap = self.heap();
        let chunks = self.counters.chunks.get() as usize - self.spare.borrow().len();
        let handed_out = chunks * heap.slots - self.fresh.count();
        let mut back = self.vacant.count();
        loop {
            // SAFETY: we hold the heap.
            if let Some(chain) = unsafe { heap.inbox.take() } {
                back += chain.count();
            }
            let out = handed_out - back;
            if out == 0 {
                break;
            }
            if heap.inbox.close(out) {
                return;
            }
        }
        // SAFETY: none is out, and this was the hold.
        unsafe { Heap::free(self.heap) };
    }
}

/// Slots of one heap, linked from `first` to `last`.
struct Away<T> {
    heap: Cell<Option<NonNull<Heap<T>>>>,
    first: Cell<Link<T>>,
    last: Cell<Link<T>>,
    count: Cell<usize>,
}

impl<T> Away<T> {
    fn new() -> Self {
        Self {
            heap: Cell::new(None),
            first: Cell::new(None),
            last: Cell::new(None),
            count: Cell::new(0),
        }
    }

    /// Whether there are others of the slot's heap.
    #[inline(always)]
    fn is_to(&self, slot: &Vacant<T>) -> bool {
        self.heap.get() == Some(slot.heap())
    }

    /// Adds a slot of the same heap, or of any where there is none; how many are there now?
    #[inline(always)]
    fn push(&self, slot: Vacant<T>) -> usize {
        let first = self.first.get();
        if first.is_none() {
            self.heap.set(Some(slot.heap()));
            self.last.set(Some(slot.slot()));
        }
        // SAFETY: the right to it is in our hands.
        unsafe { Slot::set_next(slot.slot(), first) };
        self.first.set(Some(slot.slot()));
        let count = self.count.get() + 1;
        self.count.set(count);
        count
    }

    /// Gives all back; how many were there?
    fn give_back(&self) -> usize {
        let (Some(heap), Some(first), Some(last)) =
            (self.heap.take(), self.first.take(), self.last.take())
        else {
            return 0;
        };
        let count = self.count.take();
        // SAFETY: `push` was handed the rights to them, all of this heap, and has linked them.
        unsafe { Heap::put(heap, first, last, count) };
        count
    }
}
