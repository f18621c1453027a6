//! Treiber's stack, with elimination.

use super::elimination::Elimination;
use super::node::{Chain, IntoIter, Node};
use crate::reclaim::{Atomic, Domain, Shared, const_fn};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A lock-free stack (Treiber, "Systems programming: coping with parallelism", 1986) whose pushes
/// and pops eliminate each other if they collide (Hendler, Shavit and Yerushalmi, "A scalable
/// lock-free stack algorithm", SPAA 2004; Herlihy and Shavit, "The art of multiprocessor
/// programming", sections 11.2 to 11.4).
///
/// ```
/// use corelay_structures::lockfree::TreiberStack;
///
/// static FREE: TreiberStack<u32> = TreiberStack::new();
/// std::thread::scope(|s| {
///     s.spawn(|| (0..100).for_each(|n| FREE.push(n)));
///     s.spawn(|| (0..100).for_each(|n| FREE.push(n)));
/// });
/// assert_eq!(FREE.pop(), Some(99));
/// ```
///
/// `SLOTS` is the number of places where calls that collide may meet, each on cache lines of its
/// own. Half the number of threads is plenty; with 0 they only back off.
///
/// # When not to use it
/// If few threads push and pop at once, a `Vec` behind a mutex is [faster](super#speed): it needs no
/// node for each value. For a list of free objects, give each thread one of its own first.
///
/// # Guarantees
/// * **Order.** Last in, first out. Calls are linearizable: a push takes effect when it moves the
///   head, and so does a successful pop; a pop that returns `None`, when it reads a head without
///   node. If a push and a pop eliminate each other, both take effect when the pop accepts the
///   node, the push first. A pop happens after the push of its value.
/// * **Progress.** Lock-free: a call is repeated only because another one has succeeded, after a
///   wait that is bounded by 64 pauses. A thread that is stopped inside a call keeps others from
///   freeing memory, not from their calls.
/// * **Cost.** Each call takes a constant number of steps if it is not disturbed: a push allocates
///   a node and has one compare-exchange, a pop has one. There is no `len`: one more word that all
///   calls write would cost each of them. A stack takes `SLOTS` + 1 times 128 bytes.
/// * **Memory.** A value is moved out by `pop`, so it is dropped where and when the caller drops
///   it. Its node is freed [later](super#memory). A stack that is dropped drops its values without
///   recursion, the others even if the drop of one panics. An empty stack allocates nothing.
/// * **Panics.** No code of the caller runs inside a call, so none can panic there. A drop of a
///   value may use the stack.
///
/// # How it works
/// ```text
///  head
///   v
///  [c] ──next──> [b] ──next──> [a] ──next──> null
/// ```
/// A push links its node before the first one by a compare-exchange of the head, a pop moves the
/// head on. The danger (ABA) is a pop that has read `c` and `b`, is delayed while others pop both
/// and push `c` again, and then makes `b` the head. It cannot come: nodes are reclaimed by epochs,
/// so no node has the address of `c` until that pop is over.
///
/// A push that loses the race offers its node in a slot for a while, and a pop that loses looks
/// into one. With each loss a call waits longer, and chooses among twice as many slots.
///
/// *Departures from the paper.* There both sides announce themselves and wait, and each thread
/// learns over many calls how many slots to choose from. Here only pushes wait, and every call
/// begins with the first slot.
pub struct TreiberStack<T, const SLOTS: usize = 4> {
    head: CachePadded<Atomic<Node<T>>>,
    elimination: Elimination<T, SLOTS>,
    domain: Domain,
    owns: PhantomData<T>,
}

// SAFETY: values are moved in and out by any thread, and never shared. A retired node has none.
unsafe impl<T: Send, const SLOTS: usize> Send for TreiberStack<T, SLOTS> {}

// SAFETY: as above.
unsafe impl<T: Send, const SLOTS: usize> Sync for TreiberStack<T, SLOTS> {}

// No code of a user's runs, so nothing can panic, between two steps of a call.
impl<T, const SLOTS: usize> UnwindSafe for TreiberStack<T, SLOTS> {}
impl<T, const SLOTS: usize> RefUnwindSafe for TreiberStack<T, SLOTS> {}

impl<T> TreiberStack<T> {
    const_fn! {
        /// An empty stack with 4 slots.
        #[must_use]
        pub fn new() -> Self {
            Self::with_slots()
        }
    }
}

impl<T, const SLOTS: usize> TreiberStack<T, SLOTS> {
    const_fn! {
        /// An empty stack with `SLOTS` slots.
        ///
        /// ```
        /// use corelay_structures::lockfree::TreiberStack;
        ///
        /// let stack = TreiberStack::<_, 16>::with_slots();
        /// stack.push("for 32 threads");
        /// ```
        #[must_use]
        pub fn with_slots() -> Self {
            Self {
                head: CachePadded::new(Atomic::null()),
                elimination: Elimination::new(),
                domain: Domain::new(),
                owns: PhantomData,
            }
        }
    }

    /// Puts `value` on top.
    pub fn push(&self, value: T) {
        let guard = self.domain.pin();
        let new = Shared::new(Node::new(value));
        // SAFETY: nobody frees it before this push is over, because it is pinned.
        let node = unsafe { new.as_ref() }.expect("points to a node");
        let mut disturbed = None;
        loop {
            // Relaxed: nothing is read through it. The push that has set it, and each since, was a
            // read-modify-write, so the Release below passes on what it has published.
            let head = self.head.load(Ordering::Relaxed, &guard);
            // Relaxed: published below, or by `offer`.
            node.next.store(head, Ordering::Relaxed);
            // Release: pairs with the Acquire in `pop`; publishes the node and its value.
            if self.head.compare_exchange(head, new, Ordering::Release)
                || self.elimination.offer(new, &mut disturbed, &guard)
            {
                return;
            }
        }
    }

    /// Takes the value on top, or returns `None` if there is none.
    pub fn pop(&self) -> Option<T> {
        let guard = self.domain.pin();
        let mut disturbed = None;
        let taken = loop {
            // Acquire: pairs with the Release in `push`; the node has its link and its value.
            let head = self.head.load(Ordering::Acquire, &guard);
            // SAFETY: read under the guard; nodes are not borrowed mutably before they are freed.
            let first = unsafe { head.as_ref() }?;
            // Relaxed: the link was set before the node was published.
            let next = first.next.load(Ordering::Relaxed, &guard);
            // Relaxed: the next node was published by a push, and every change of the head since
            // was a read-modify-write.
            if self.head.compare_exchange(head, next, Ordering::Relaxed) {
                break head;
            }
            if let Some(node) = self.elimination.accept(&mut disturbed, &guard) {
                break node;
            }
        };
        // SAFETY: read under the guard; nodes are not borrowed mutably before they are freed.
        let node = unsafe { taken.as_ref() }.expect("points to a node");
        // SAFETY: it was pushed with a value, and one pop alone unlinks or accepts it.
        let value = unsafe { node.take() };
        // SAFETY: it is unlinked, or never was linked, by this call alone. A node without a value
        // drops nothing.
        unsafe { guard.retire(taken) };
        Some(value)
    }

    /// Whether there is no value at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Acquire: a caller that finds a value may rely on what its push came after.
        self.head
            .load(Ordering::Acquire, &self.domain.pin())
            .is_null()
    }

    /// Takes all values, and leaves the stack empty.
    fn take_all(&mut self) -> Chain<T> {
        // SAFETY: `self` is borrowed mutably, so no other thread is in a call, and no node is
        // offered. Nodes in the stack have values, and are unlinked in the next step.
        let values = unsafe { Chain::new(self.head.load_own()) };
        // Relaxed: no other thread can reach it.
        self.head.store(Shared::null(), Ordering::Relaxed);
        values
    }
}

impl<T, const SLOTS: usize> Drop for TreiberStack<T, SLOTS> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

impl<T, const SLOTS: usize> Default for TreiberStack<T, SLOTS> {
    fn default() -> Self {
        Self::with_slots()
    }
}

impl<T, const SLOTS: usize> fmt::Debug for TreiberStack<T, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreiberStack").finish_non_exhaustive()
    }
}

impl<T, const SLOTS: usize> Extend<T> for TreiberStack<T, SLOTS> {
    /// Pushes each of `values`, so the last one is on top.
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl<T, const SLOTS: usize> FromIterator<T> for TreiberStack<T, SLOTS> {
    /// Makes a stack with the last of `values` on top.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut stack = Self::with_slots();
        stack.extend(values);
        stack
    }
}

impl<T, const SLOTS: usize> IntoIterator for TreiberStack<T, SLOTS> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    /// The values from the top to the bottom.
    fn into_iter(mut self) -> IntoIter<T> {
        IntoIter(self.take_all())
    }
}
