//! A node: a pointer to its contents, with the bit that a merge locks it by.
//!
//! **Every `&Node` and `&Block` outside `Drop` lives within the life of a guard.** The methods of
//! [`Ordered`](super::Ordered) begin at the root under a guard, and take references from there.
//! What they reach is retired by guards of the same domain, after it was made unreachable. So what
//! was reachable at any time under a guard is not freed before its end.

use super::Record;
use super::block::Block;
use crate::store::garbage::{Garbage, Guard};
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::facade::hint;
use std::ptr;

/// A node of the tree. Its low key never changes; everything else is in its contents.
pub(super) struct Node<R: Record, const N: usize> {
    word: AtomicPtr<Block<R, N>>,
    /// The first key that the node may have; `None` for the leftmost node of a level.
    low: Option<R::Key>,
}

/// The word of a node.
struct Word<R: Record, const N: usize>(*mut Block<R, N>);

impl<R: Record, const N: usize> Clone for Word<R, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Record, const N: usize> Copy for Word<R, N> {}

/// The bit of a word that says that a merge has locked the node.
const LOCKED: usize = 1;

impl<R: Record, const N: usize> Word<R, N> {
    #[inline(always)]
    fn is_locked(self) -> bool {
        self.0.addr() & LOCKED != 0
    }

    #[inline(always)]
    fn block(self) -> *mut Block<R, N> {
        self.0.map_addr(|address| address & !LOCKED)
    }

    fn locked(self) -> Self {
        Self(self.0.map_addr(|address| address | LOCKED))
    }
}

impl<R: Record, const N: usize> Node<R, N> {
    pub(super) fn new(low: Option<R::Key>, block: Box<Block<R, N>>) -> Self {
        Self {
            word: AtomicPtr::new(Box::into_raw(block)),
            low,
        }
    }

    #[inline(always)]
    pub(super) fn low(&self) -> Option<&R::Key> {
        self.low.as_ref()
    }

    /// The contents.
    #[inline(always)]
    pub(super) fn block(&self) -> &Block<R, N> {
        // Acquire: pairs with the Release of `replace` and `publish`; the block is whole, and so is
        // what it points to.
        let word = Word(self.word.load(Ordering::Acquire));
        // SAFETY: the contents of a node are a block that is not retired before it is replaced; we
        // have a guard, as for every node.
        let block = unsafe { &*word.block() };
        block.is_read();
        block
    }

    /// Whether the contents are the block at `address`.
    pub(super) fn has(&self, address: usize) -> bool {
        // Acquire: as in `block`, though nothing is read there.
        Word(self.word.load(Ordering::Acquire)).block().addr() == address
    }

    /// Replaces the contents `old` by `new`. Fails if the contents have changed or are locked.
    pub(super) fn replace<G: Guard>(
        &self,
        old: &Block<R, N>,
        new: Box<Block<R, N>>,
        guard: &G,
    ) -> Result<&Block<R, N>, Box<Block<R, N>>> {
        let expected = ptr::from_ref(old).cast_mut();
        let new = Box::into_raw(new);
        // Release: pairs with the Acquire of `block`; publishes the block, and a new node to which
        // it points. Relaxed: whoever fails looks at the contents again.
        let replaced =
            self.word
                .compare_exchange(expected, new, Ordering::Release, Ordering::Relaxed);
        if replaced.is_err() {
            // SAFETY: the box of above, which nobody has seen.
            return Err(unsafe { Box::from_raw(new) });
        }
        // SAFETY: the exchange has taken `old` from the only word that had it.
        guard.retire(unsafe { old.garbage() });
        // SAFETY: it is contents since now, under our guard.
        Ok(unsafe { &*new })
    }

    /// Waits until the node is not locked: called after [`replace`](Self::replace) failed.
    #[cold]
    pub(super) fn wait(&self) {
        let (mut backoff, mut times) = (Backoff::new(), 0);
        // Relaxed: whoever waits looks at the contents afterwards.
        while Word(self.word.load(Ordering::Relaxed)).is_locked() {
            times += 1;
            hint::in_vain(times);
            backoff.wait();
        }
    }

    /// Locks the node, so that nobody else replaces its contents.
    pub(super) fn lock(&self) -> Locked<'_, R, N> {
        loop {
            self.wait();
            // Relaxed: the exchange acquires.
            let word = Word(self.word.load(Ordering::Relaxed));
            if word.is_locked() {
                continue;
            }
            // Acquire: pairs with the Release of `replace` and `publish`, as in `block`.
            let locked = self.word.compare_exchange(
                word.0,
                word.locked().0,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if locked.is_ok() {
                // SAFETY: as in `block`.
                let block = unsafe { &*word.block() };
                block.is_read();
                return Locked { node: self, block };
            }
        }
    }

    /// The node and its contents as garbage.
    ///
    /// # Safety
    /// The node came from a box, it is reachable no more, and nobody else retires it.
    pub(super) unsafe fn garbage(&self) -> Garbage {
        unsafe fn free<R: Record, const N: usize>(node: *mut ()) {
            // SAFETY: by the duties of `garbage`.
            drop(unsafe { Box::from_raw(node.cast::<Node<R, N>>()) });
        }
        let address = ptr::from_ref(self).cast_mut().cast();
        let bytes = size_of::<Self>() + size_of::<Block<R, N>>();
        // SAFETY: the caller promises that nobody finds the node from now on. Keys are `Send`.
        unsafe { Garbage::new(address, bytes, free::<R, N>) }
    }
}

/// Frees the contents with the node.
impl<R: Record, const N: usize> Drop for Node<R, N> {
    fn drop(&mut self) {
        // Acquire: pairs with the Release of `replace` and `publish`, if nothing else orders them.
        let word = Word(self.word.load(Ordering::Acquire));
        // SAFETY: contents come from a box, and whoever replaces them retires only the old ones.
        drop(unsafe { Box::from_raw(word.block()) });
    }
}

/// A node that this thread has locked. Dropping it unlocks the node.
pub(super) struct Locked<'g, R: Record, const N: usize> {
    node: &'g Node<R, N>,
    block: &'g Block<R, N>,
}

impl<'g, R: Record, const N: usize> Locked<'g, R, N> {
    pub(super) fn node(&self) -> &'g Node<R, N> {
        self.node
    }

    pub(super) fn block(&self) -> &'g Block<R, N> {
        self.block
    }

    /// Replaces the contents, and returns the old ones, which the caller retires. The node stays
    /// locked.
    pub(super) fn publish(&mut self, new: Box<Block<R, N>>) -> &'g Block<R, N> {
        let word = Word(Box::into_raw(new)).locked();
        // Release: pairs with the Acquire of `block` and `lock`; publishes the block.
        self.node.word.store(word.0, Ordering::Release);
        // SAFETY: it is contents now, under our guard.
        let new = unsafe { &*word.block() };
        std::mem::replace(&mut self.block, new)
    }
}

impl<R: Record, const N: usize> Drop for Locked<'_, R, N> {
    fn drop(&mut self) {
        let block = ptr::from_ref(self.block).cast_mut();
        // Release: pairs with the Acquire of `block` and `lock`. Those that now see this value see
        // what `publish` has published.
        self.node.word.store(block, Ordering::Release);
    }
}
