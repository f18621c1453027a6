//! The nodes of a queue or a stack: each has a value, which one thread takes out.

use crate::exhaust::exhaust;
use crate::reclaim::{Atomic, Shared};
use corelay_sync::facade::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;

/// A node. It does not drop its value: a retired node may be freed after everything that the type
/// of its value borrows, and has none any more.
pub(super) struct Node<T> {
    value: UnsafeCell<MaybeUninit<T>>,
    pub(super) next: Atomic<Node<T>>,
}

impl<T> Node<T> {
    #[inline]
    pub(super) fn new(value: T) -> Box<Self> {
        Box::new(Self {
            value: UnsafeCell::new(MaybeUninit::new(value)),
            next: Atomic::null(),
        })
    }

    /// A node without a value.
    pub(super) fn empty() -> Box<Self> {
        Box::new(Self {
            value: UnsafeCell::new(MaybeUninit::uninit()),
            next: Atomic::null(),
        })
    }

    /// Takes the value out.
    ///
    /// # Safety
    /// The node has a value, which only the caller takes, once.
    #[inline]
    pub(super) unsafe fn take(&self) -> T {
        // For the checkers it is a write: no other thread may so much as look at the value.
        self.value.with_mut(|value| {
            // SAFETY: the caller alone uses the value (the caller's duty).
            let value = unsafe { &*value };
            // SAFETY: the node has a value, which is not used again (the caller's duties).
            unsafe { value.assume_init_read() }
        })
    }
}

/// Nodes with values, linked, that no other thread can reach.
pub(super) struct Chain<T>(Atomic<Node<T>>);

impl<T> Chain<T> {
    /// Makes the chain that begins with `first`.
    ///
    /// # Safety
    /// Only the caller can reach the nodes from `first` on, and gives them up. All have values.
    pub(super) unsafe fn new(first: Shared<'_, Node<T>>) -> Self {
        Self(Atomic::new(first))
    }
}

impl<T> Iterator for Chain<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        // SAFETY: the chain alone has its nodes, of which none is retired, and this one leaves it
        // in the next step.
        let node = unsafe { self.0.load_own().into_box() }?;
        self.0 = Atomic::new(node.next.load_own());
        // SAFETY: a node of the chain has a value, and this one is gone after that.
        Some(unsafe { node.take() })
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        exhaust(self);
    }
}

/// The values of an [`MsQueue`](super::MsQueue) or of a [`TreiberStack`](super::TreiberStack), in
/// the order in which `pop` would have returned them.
pub struct IntoIter<T>(pub(super) Chain<T>);

// SAFETY: it owns its values, and the nodes that they lie in.
unsafe impl<T: Send> Send for IntoIter<T> {}

// SAFETY: a shared one gives access to nothing.
unsafe impl<T: Sync> Sync for IntoIter<T> {}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next()
    }
}

impl<T> std::iter::FusedIterator for IntoIter<T> {}

impl<T> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").finish_non_exhaustive()
    }
}
