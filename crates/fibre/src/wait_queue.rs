//! Those who wait for one thing, in order of arrival.
//!
//! A node lies in the frame of who waits, and stays there until it has been taken out of the queue:
//! by who wakes it ([`Taken`]) or by who interrupts its wait ([`WaitQueue::remove`]). Everything here runs
//! under the lock of what is waited for, but for what is done with a taken one: it is its taker's
//! until that one has woken it.

use crate::waiter::Waiter;
use corelay_sync::facade::cell::Cell;
use std::ptr::{self, NonNull};

/// One who waits, and what it says and is told.
pub(crate) struct Node<P> {
    waiter: Cell<*mut u8>,
    is_in: Cell<bool>,
    before: Cell<*const Node<P>>,
    next: Cell<*const Node<P>>,
    pub(crate) payload: P,
}

impl<P> Node<P> {
    pub(crate) fn new(payload: P) -> Self {
        Self {
            waiter: Cell::new(ptr::null_mut()),
            is_in: Cell::new(false),
            before: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            payload,
        }
    }
}

/// First come, first out.
pub(crate) struct WaitQueue<P> {
    first: *const Node<P>,
    last: *const Node<P>,
}

// SAFETY: its nodes are reached under the lock only, and their payloads go from thread to thread.
unsafe impl<P: Send> Send for WaitQueue<P> {}

impl<P> WaitQueue<P> {
    pub(crate) fn new() -> Self {
        Self {
            first: ptr::null(),
            last: ptr::null(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Behind the others.
    ///
    /// # Safety
    /// The node is in no queue, and stays where it is until it has been taken out.
    pub(crate) unsafe fn push(&mut self, node: &Node<P>, waiter: Waiter) {
        node.waiter.set(waiter.into_word());
        node.is_in.set(true);
        node.before.set(self.last);
        node.next.set(ptr::null());
        // SAFETY: nodes in the queue live.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.next.set(node),
            None => self.first = node,
        }
        self.last = node;
    }

    /// Before the others: for one whose turn it was.
    ///
    /// # Safety
    /// As [`push`](Self::push).
    pub(crate) unsafe fn push_first(&mut self, node: &Node<P>, waiter: Waiter) {
        node.waiter.set(waiter.into_word());
        node.is_in.set(true);
        node.before.set(ptr::null());
        node.next.set(self.first);
        // SAFETY: nodes in the queue live.
        match unsafe { self.first.as_ref() } {
            Some(first) => first.before.set(node),
            None => self.last = node,
        }
        self.first = node;
    }

    /// Takes the first out.
    pub(crate) fn pop(&mut self) -> Option<Taken<P>> {
        // SAFETY: nodes in the queue live.
        let first = unsafe { self.first.as_ref() }?;
        self.unlink(first);
        Some(Taken(NonNull::from(first)))
    }

    /// Takes a waiter out, where it is still there: its wait has been interrupted.
    ///
    /// # Safety
    /// The node is in this queue or in none.
    pub(crate) unsafe fn remove(&mut self, node: &Node<P>) -> Option<Waiter> {
        if !node.is_in.get() {
            return None;
        }
        self.unlink(node);
        // SAFETY: taken out.
        Some(unsafe { Waiter::from_word(node.waiter.get()) })
    }

    fn unlink(&mut self, node: &Node<P>) {
        node.is_in.set(false);
        let (before, next) = (node.before.get(), node.next.get());
        // SAFETY: nodes in the queue live.
        match unsafe { before.as_ref() } {
            Some(before) => before.next.set(next),
            None => self.first = next,
        }
        // SAFETY: as above.
        match unsafe { next.as_ref() } {
            Some(next) => next.before.set(before),
            None => self.last = before,
        }
    }

    /// Takes all out.
    pub(crate) fn take_all(&mut self) -> TakenAll<P> {
        let first = self.first;
        let mut at = first;
        // SAFETY: nodes in the queue live.
        while let Some(node) = unsafe { at.as_ref() } {
            node.is_in.set(false);
            at = node.next.get();
        }
        *self = Self::new();
        TakenAll(first)
    }
}

/// One that has been taken out, and waits until it is woken.
#[must_use = "it waits for ever"]
pub(crate) struct Taken<P>(NonNull<Node<P>>);

impl<P> Taken<P> {
    pub(crate) fn payload(&self) -> &P {
        // SAFETY: it waits, so its frame stays.
        &unsafe { self.0.as_ref() }.payload
    }

    /// Lets it go on: outside the lock.
    pub(crate) fn wake(self) {
        // SAFETY: as above.
        let word = unsafe { self.0.as_ref() }.waiter.get();
        // SAFETY: taken out.
        unsafe { Waiter::from_word(word) }.wake();
    }
}

/// All that were in a queue.
#[must_use = "they wait for ever"]
pub(crate) struct TakenAll<P>(*const Node<P>);

impl<P> TakenAll<P> {
    /// Lets them go on, the first first: outside the lock.
    pub(crate) fn wake(self) {
        let mut at = self.0;
        while let Some(node) = NonNull::new(at.cast_mut()) {
            // Read before: then it goes on, and its frame with it.
            // SAFETY: it waits, so its frame stays.
            at = unsafe { node.as_ref() }.next.get();
            Taken(node).wake();
        }
    }
}
