//! A FIFO queue with a lock at each end.
//!
//! Michael and Scott, "Simple, fast, and practical non-blocking and blocking concurrent queue
//! algorithms", PODC 1996, section 2 (figure 2).
//!
//! The first node is a dummy, whose value was taken already. So an enqueuer, which has the tail,
//! and a dequeuer, which has the head, do not touch the same pointer, and meet in one word only:
//! the link of the last node.
//!
//! ```text
//!   head ──► dummy ──► a ──► b ◄── tail        an empty queue: head ──► dummy ◄── tail
//! ```
//!
//! A dequeuer takes the value out of the node after the dummy, which becomes the dummy, and frees
//! the old one. The enqueuer that linked that node does not touch the old dummy afterwards. So no
//! node has to wait until it is freed, and values need not be `'static`.

use super::lock::Locked;
use crate::exhaust::exhaust;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr;

/// A FIFO queue of any length: one thread can push while another pops.
///
/// `push` and `pop` take O(1); each takes one lock, and the locks are on different cache
/// lines. A call takes effect at its only change of a link: `push` when it links the new node,
/// `pop` when it reads the link of the dummy, in its lock.
///
/// If you need the fastest queue, use a channel. This one is the literature's rival for delegated
/// queues.
///
/// ```
/// use corelay_structures::fine::TwoLockQueue;
///
/// let queue = TwoLockQueue::new();
/// std::thread::scope(|s| {
///     s.spawn(|| (0..3).for_each(|n| queue.push(n)));
/// });
/// assert_eq!([(); 4].map(|()| queue.pop()), [Some(0), Some(1), Some(2), None]);
/// ```
///
/// Values go from thread to thread, so they are `Send`:
/// ```compile_fail,E0277
/// use corelay_structures::fine::TwoLockQueue;
///
/// let queue = TwoLockQueue::new();
/// std::thread::scope(|s| {
///     s.spawn(|| queue.push(std::rc::Rc::new(0)));
/// });
/// ```
pub struct TwoLockQueue<T> {
    /// The dummy.
    head: CachePadded<Locked<*mut Node<T>>>,
    /// The last node.
    tail: CachePadded<Locked<*mut Node<T>>>,
}

struct Node<T> {
    /// `None` in the dummy.
    value: UnsafeCell<Option<T>>,
    next: AtomicPtr<Node<T>>,
}

// SAFETY: the queue owns its nodes, and so its values. It lends none of them out: a value is moved
// in by one thread and out by another.
unsafe impl<T: Send> Send for TwoLockQueue<T> {}
// SAFETY: as above; pointers are followed in the locks only.
unsafe impl<T: Send> Sync for TwoLockQueue<T> {}

// No code of users runs in the locks, so a panic leaves no link half changed.
impl<T> UnwindSafe for TwoLockQueue<T> {}
impl<T> RefUnwindSafe for TwoLockQueue<T> {}

impl<T> Node<T> {
    fn boxed(value: Option<T>) -> *mut Self {
        Box::into_raw(Box::new(Self {
            value: UnsafeCell::new(value),
            next: AtomicPtr::new(ptr::null_mut()),
        }))
    }
}

impl<T> TwoLockQueue<T> {
    /// Makes an empty queue. It has one node.
    #[must_use]
    pub fn new() -> Self {
        let dummy = Node::boxed(None);
        Self {
            head: CachePadded::new(Locked::new(dummy)),
            tail: CachePadded::new(Locked::new(dummy)),
        }
    }

    /// Adds `value` at the end.
    ///
    /// ```
    /// use corelay_structures::fine::TwoLockQueue;
    ///
    /// let queue = TwoLockQueue::new();
    /// queue.push("a");
    /// assert_eq!(queue.pop(), Some("a"));
    /// ```
    pub fn push(&self, value: T) {
        let node = Node::boxed(Some(value));
        self.tail.with(|tail| {
            // SAFETY: the last node has no successor, so no dequeuer frees it, and only the holder
            // of this lock gives it one.
            let last = unsafe { &**tail };
            // Release: pairs with the Acquire in `pop`; publishes the node. The last node may
            // be freed as soon as it is linked, so it is not touched afterwards.
            last.next.store(node, Ordering::Release);
            *tail = node;
        });
    }

    /// Takes the value at the front.
    ///
    /// ```
    /// use corelay_structures::fine::TwoLockQueue;
    ///
    /// assert_eq!(TwoLockQueue::<u64>::new().pop(), None);
    /// ```
    pub fn pop(&self) -> Option<T> {
        let (dummy, value) = self.head.with(|head| {
            // SAFETY: only the holder of this lock replaces the dummy, and it is freed afterwards.
            let dummy = unsafe { &**head };
            // Acquire: pairs with the Release in `push`; the node is there as it was made.
            let next = dummy.next.load(Ordering::Acquire);
            // SAFETY: it is null or the node after the dummy, which is freed when it is the dummy.
            let first = unsafe { next.as_ref() }?;
            let value = first.value.with_mut(|value| {
                // SAFETY: the value was published with the node, and only the holder of this lock
                // touches it afterwards.
                unsafe { &mut *value }.take()
            });
            Some((std::mem::replace(head, next), value))
        })?;
        // SAFETY: this call has taken the dummy out of `head`. The enqueuer that linked its
        // successor has left it, and so it is not in `tail` any more, or is not read from there.
        drop(unsafe { Box::from_raw(dummy) });
        value
    }

    /// Whether there is no value at this moment.
    ///
    /// ```
    /// use corelay_structures::fine::TwoLockQueue;
    ///
    /// assert!(TwoLockQueue::<u64>::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.head.with(|head| {
            // SAFETY: only the holder of this lock replaces the dummy, and it is freed afterwards.
            let dummy = unsafe { &**head };
            // Relaxed: only whether there is one; `pop` reads it anew.
            dummy.next.load(Ordering::Relaxed).is_null()
        })
    }
}

impl<T> Drop for TwoLockQueue<T> {
    fn drop(&mut self) {
        let mut next = *self.head.get_mut();
        exhaust(std::iter::from_fn(|| {
            if next.is_null() {
                return None;
            }
            // SAFETY: every node is a box, and nobody else has the queue. The node is the dummy, or
            // linked to by the one before, which was taken in the step before.
            let node = unsafe { Box::from_raw(next) };
            // Relaxed: no other thread writes.
            next = node.next.load(Ordering::Relaxed);
            Some(node)
        }));
    }
}

impl<T> Default for TwoLockQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Extend<T> for TwoLockQueue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T> FromIterator<T> for TwoLockQueue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut queue = Self::new();
        queue.extend(values);
        queue
    }
}

impl<T> fmt::Debug for TwoLockQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwoLockQueue").finish_non_exhaustive()
    }
}
