//! Reclamation: a block that both ends have passed is used again when nobody can be using it.
//!
//! Two kinds of threads use blocks.
//!
//! * A push or pop that has *claimed* a slot uses the block until it leaves the slot. The slots say
//!   so themselves.
//! * A thread that moves an end of the queue to the next block has claimed nothing. It is a
//!   *visitor*: it is counted while it reads pointers to blocks and follows them.
//!
//! The head is never after the tail, so blocks before the head's are out of the way of new
//! visitors. A visitor that leaves has read the head's lap. If it is the last of all, every
//! visitor from before is gone, and a later one sees (by the count) a head that is at least as
//! far. So of the blocks before that lap each one whose slots are all left is free.
//!
//! One thread at a time frees blocks, from the oldest on; another one that could goes on instead of
//! waiting. It ends at the first block of which a slot is not left.

use super::block::Block;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ptr;

/// The blocks of a queue, as far as reclamation is concerned.
pub(super) struct Stock<T, const SLOTS: usize> {
    visitors: AtomicUsize,
    /// The first block that is not free; null while a thread frees blocks.
    oldest: AtomicPtr<Block<T, SLOTS>>,
    /// An empty block to be used again, or null.
    spare: AtomicPtr<Block<T, SLOTS>>,
}

impl<T, const SLOTS: usize> Stock<T, SLOTS> {
    /// Makes the stock of a queue that begins with the block `first`.
    ///
    /// # Safety
    /// `first` is a box that the stock may free, with all blocks that are linked after it, as the
    /// module says.
    pub(super) unsafe fn new(first: *mut Block<T, SLOTS>) -> Self {
        Self {
            visitors: AtomicUsize::new(0),
            oldest: AtomicPtr::new(first),
            spare: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Counts the caller as a visitor: blocks that it finds by the ends of the queue from now on are
    /// not freed until it leaves.
    pub(super) fn enter(&self) {
        // Acquire: pairs with the Release in `leave`; the ends are at least where the thread saw
        // them that frees the blocks before.
        self.visitors.fetch_add(1, Ordering::Acquire);
    }

    /// Ends a visit. If it was the last one, frees blocks whose number is less than `lap`.
    ///
    /// # Safety
    /// The caller has entered, has read during its visit that the head is at `lap`, and does not
    /// follow pointers to blocks any more.
    pub(super) unsafe fn leave(&self, lap: u64) {
        // Release: pairs with the Acquire in `enter`, see there, and with this one. Acquire: visits
        // from before come before the blocks are used again.
        if self.visitors.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // Acquire: pairs with the Release below; the thread that freed blocks before is through.
        let mut oldest = self.oldest.swap(ptr::null_mut(), Ordering::Acquire);
        if oldest.is_null() {
            return;
        }
        // SAFETY: this thread has taken `oldest`. By the proof above no visitor is at blocks before
        // `lap` any more.
        while let Some(next) = unsafe { self.free_before(lap, oldest) } {
            oldest = next;
        }
        // Release: pairs with the Acquire above; this thread has looked at the block.
        self.oldest.store(oldest, Ordering::Release);
    }

    /// Frees `block` and returns the next one, if its number is less than `lap` and all slots are
    /// left.
    ///
    /// # Safety
    /// The caller alone may free the block, which no visitor is at if its number is less than `lap`.
    unsafe fn free_before(
        &self,
        lap: u64,
        block: *mut Block<T, SLOTS>,
    ) -> Option<*mut Block<T, SLOTS>> {
        // SAFETY: the caller alone may free it (the caller's duty).
        let it = unsafe { &*block };
        if it.lap() >= lap || !it.is_left() {
            return None;
        }
        let next = it.next();
        // SAFETY: blocks are boxes. Nobody else uses it: no visitor (the caller's duty), and the
        // slots are left.
        let mut block = unsafe { Box::from_raw(block) };
        block.clear();
        self.keep(block);
        Some(next)
    }

    /// An empty block: the one that was kept, or a new one.
    pub(super) fn take(&self) -> Box<Block<T, SLOTS>> {
        // Acquire: pairs with the Release in `keep`; the block is empty.
        let spare = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
        if spare.is_null() {
            return Block::new();
        }
        // SAFETY: it was a box in `keep`, and this thread has taken it.
        unsafe { Box::from_raw(spare) }
    }

    /// Keeps an empty block, or frees it if there is one already.
    pub(super) fn keep(&self, block: Box<Block<T, SLOTS>>) {
        let block = Box::into_raw(block);
        // Release: pairs with the Acquire in `take`; the block is empty.
        let (kept, not) = (Ordering::Release, Ordering::Relaxed);
        let spare = &self.spare;
        if spare
            .compare_exchange(ptr::null_mut(), block, kept, not)
            .is_err()
        {
            // SAFETY: it was a box, and is not kept.
            drop(unsafe { Box::from_raw(block) });
        }
    }
}

impl<T, const SLOTS: usize> Drop for Stock<T, SLOTS> {
    fn drop(&mut self) {
        // Relaxed, twice: no other thread can reach them.
        let [mut block, spare] =
            [&self.oldest, &self.spare].map(|block| block.load(Ordering::Relaxed));
        while !block.is_null() {
            // SAFETY: blocks are boxes, linked once, and the queue is gone.
            let it = unsafe { Box::from_raw(block) };
            block = it.next();
        }
        if !spare.is_null() {
            // SAFETY: it is a box that is linked to none.
            drop(unsafe { Box::from_raw(spare) });
        }
    }
}
