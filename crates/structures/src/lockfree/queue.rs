//! The queue of Michael and Scott.

use super::node::{Chain, IntoIter, Node};
use crate::reclaim::{Atomic, Domain, Shared};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::{Backoff, CachePadded};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// An unbounded lock-free queue (Michael and Scott, "Simple, fast, and practical non-blocking and
/// blocking concurrent queue algorithms", PODC 1996, figure 1).
///
/// ```
/// use corelay_structures::lockfree::MsQueue;
///
/// let queue = MsQueue::new();
/// std::thread::scope(|s| {
///     s.spawn(|| (0..100).for_each(|n| queue.push(n)));
///     s.spawn(|| (100..200).for_each(|n| queue.push(n)));
/// });
/// assert_eq!(queue.pop().map(|n| n % 100), Some(0));
/// assert_eq!(queue.into_iter().count(), 199);
/// ```
///
/// # When not to use it
/// [`BlockQueue`](super::BlockQueue) does the same and is [several times as fast](super#speed): it
/// allocates for 63 values at once. This queue is the rival that the literature compares with, and
/// the smaller one while it is empty. If a consumer should wait for values, use a channel.
///
/// # Guarantees
/// * **Order.** First in, first out. Calls are linearizable: a push takes effect when it sets the
///   last node's link, a successful pop when it moves the head, and a pop that returns `None` when
///   it finds that the first node has no successor. A pop happens after the push of its value.
/// * **Progress.** Lock-free: a call is repeated only because another one has succeeded. A thread
///   that is stopped inside a call keeps others from freeing memory, not from their calls.
/// * **Cost.** Each call takes a constant number of steps if it is not disturbed: a push allocates
///   a node and has two compare-exchanges, a pop has one. There is no `len`: one more word that
///   all calls write would cost each of them.
/// * **Memory.** A value is moved out by `pop`, so it is dropped where and when the caller drops
///   it. Its node is freed [later](super#memory). A queue that is dropped drops its values without
///   recursion, the others even if the drop of one panics. An empty queue has one node.
/// * **Panics.** No code of the caller runs inside a call, so none can panic there. A drop of a
///   value may use the queue.
///
/// # How it works
/// ```text
///  head                       tail
///   v                          v
///  [-] ──next──> [a] ──next──> [b] ──next──> null
/// ```
/// The first node has no value: it was the last one to be popped from. A push links its node
/// behind the last one, and moves the tail there. Between these two steps the tail lags behind by
/// one node, and any call that finds it so moves it. A pop does that before it moves the head, so
/// the tail never points to a node before the head, and a retired node cannot be found by it.
///
/// *Departures from the paper.* Its counters beside pointers, which guard against ABA, are not
/// needed: nodes are reclaimed by epochs, so no address that a thread has read comes back during
/// its call. For the same reason a pop reads the value after its compare-exchange, not before, and
/// only one thread ever does.
pub struct MsQueue<T> {
    head: CachePadded<Atomic<Node<T>>>,
    tail: CachePadded<Atomic<Node<T>>>,
    domain: Domain,
    owns: PhantomData<T>,
}

// SAFETY: values are moved in and out by any thread, and never shared. A retired node has none.
unsafe impl<T: Send> Send for MsQueue<T> {}

// SAFETY: as above.
unsafe impl<T: Send> Sync for MsQueue<T> {}

// No code of a user's runs, so nothing can panic, between two steps of a call.
impl<T> UnwindSafe for MsQueue<T> {}
impl<T> RefUnwindSafe for MsQueue<T> {}

impl<T> MsQueue<T> {
    /// An empty queue. It allocates one node.
    #[must_use]
    pub fn new() -> Self {
        let first = Shared::new(Node::empty());
        Self {
            head: CachePadded::new(Atomic::new(first)),
            tail: CachePadded::new(Atomic::new(first)),
            domain: Domain::new(),
            owns: PhantomData,
        }
    }

    /// Appends `value`.
    pub fn push(&self, value: T) {
        let guard = self.domain.pin();
        let new = Shared::new(Node::new(value));
        let mut backoff = None::<Backoff>;
        loop {
            // Acquire: pairs with the Release of the exchange that has set the tail; the node is
            // initialised.
            let tail = self.tail.load(Ordering::Acquire, &guard);
            // SAFETY: read under the guard; nodes are not borrowed mutably before they are freed.
            let last = unsafe { tail.as_ref() }.expect("the tail points to a node");
            // Acquire: pairs with the Release below; the next node is initialised, for whoever
            // gets it from the tail.
            let next = last.next.load(Ordering::Acquire, &guard);
            if !next.is_null() {
                self.advance(tail, next);
                continue;
            }
            // Release: pairs with the Acquire loads of `next`; publishes the node and its value.
            if last.next.compare_exchange(next, new, Ordering::Release) {
                self.advance(tail, new);
                return;
            }
            backoff.get_or_insert_default().spin();
        }
    }

    /// Takes the first value, or returns `None` if there is none.
    pub fn pop(&self) -> Option<T> {
        let guard = self.domain.pin();
        let mut backoff = None::<Backoff>;
        loop {
            // Acquire: pairs with the Release of the exchange that has set the head; the node is
            // initialised.
            let head = self.head.load(Ordering::Acquire, &guard);
            // SAFETY: read under the guard; nodes are not borrowed mutably before they are freed.
            let first = unsafe { head.as_ref() }.expect("the head points to a node");
            // Acquire: pairs with the Release in `push`; the next node has its value.
            let next = first.next.load(Ordering::Acquire, &guard);
            // SAFETY: as above.
            let node = unsafe { next.as_ref() }?;
            // Relaxed: the thread that linked `next` had read `head` from the tail, and that
            // happened before the load of `next`. So this reads `head` or what came later.
            if self.tail.load(Ordering::Relaxed, &guard) == head {
                self.advance(head, next);
            }
            // Release: pairs with the Acquire above; the node is initialised.
            if self.head.compare_exchange(head, next, Ordering::Release) {
                // SAFETY: it was pushed with a value, and the head moves to each node once.
                let value = unsafe { node.take() };
                // SAFETY: the head has moved on from the node, and before that the tail: no link
                // of the queue leads to it. A node without a value drops nothing.
                unsafe { guard.retire(head) };
                return Some(value);
            }
            backoff.get_or_insert_default().spin();
        }
    }

    /// Whether there is no value at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let guard = self.domain.pin();
        // Acquire: as in `pop`.
        let head = self.head.load(Ordering::Acquire, &guard);
        // SAFETY: read under the guard; nodes are not borrowed mutably before they are freed.
        let first = unsafe { head.as_ref() }.expect("the head points to a node");
        // Acquire: a caller that finds a value may rely on what its push came after.
        first.next.load(Ordering::Acquire, &guard).is_null()
    }

    /// Moves the tail from `tail` to the node after it, if no other thread has.
    #[inline]
    fn advance(&self, tail: Shared<'_, Node<T>>, next: Shared<'_, Node<T>>) {
        // Release: pairs with the Acquire in `push`; the node is initialised.
        self.tail.compare_exchange(tail, next, Ordering::Release);
    }

    /// Takes all values, and leaves the queue empty.
    fn take_all(&mut self) -> Chain<T> {
        let head = self.head.load_own();
        // SAFETY: `self` is borrowed mutably, so no other thread is in a call.
        let first = unsafe { head.as_ref() }.expect("the head points to a node");
        // SAFETY: the nodes behind the first have values, and are unlinked in the next step.
        let values = unsafe { Chain::new(first.next.load_own()) };
        // Relaxed, twice: no other thread can reach them.
        first.next.store(Shared::null(), Ordering::Relaxed);
        self.tail.store(head, Ordering::Relaxed);
        values
    }
}

impl<T> Drop for MsQueue<T> {
    fn drop(&mut self) {
        let values = self.take_all();
        // SAFETY: no other thread can reach the queue, whose only node this is.
        drop(unsafe { self.head.load_own().into_box() });
        drop(values);
    }
}

impl<T> Default for MsQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for MsQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MsQueue").finish_non_exhaustive()
    }
}

impl<T> Extend<T> for MsQueue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl<T> FromIterator<T> for MsQueue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut queue = Self::new();
        queue.extend(values);
        queue
    }
}

impl<T> IntoIterator for MsQueue<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(mut self) -> IntoIter<T> {
        IntoIter(self.take_all())
    }
}
