//! The queue lock of Craig (1993) and of Magnusson, Landin and Hagersten (IPPS 1994).
//!
//! The lock is the tail of a queue whose links run backwards and are kept by the waiters. A thread
//! exchanges its node for the tail, and reads a word in its *predecessor's* node until the
//! predecessor clears it. The predecessor's node then belongs to the thread, which brings it to its
//! next lock. No link has to be written, so nobody ever waits for a link, as a leaving MCS holder
//! may.
//!
//! ```text
//!  tail ──────────────────────────────────────┐
//!                                             v
//!  [node of the holder] <──reads── waiter 1   [node of waiter 2]
//!        [node of waiter 1] <──reads── waiter 2
//! ```
//!
//! We depart from the papers in one way. The original leaves its last node at the tail of a free
//! lock, and so needs a node for each lock for ever. Here a free lock has a null tail: a leaving
//! holder that finds its own node at the tail exchanges it for null and keeps the node. That costs
//! a free lock a second read-modify-write. It saves a million idle locks a line each, and each
//! acquisition of one a miss on that line.
//!
//! # Who owns a node
//! | the node is | owner | `held` |
//! |---|---|---|
//! | in a [pool](crate::pool) | that thread | true |
//! | in a queue, its thread waiting or holding | that thread; the successor reads `held` | true |
//! | left behind by a release, with a successor | the successor, once it has read false | false |
//! | kept by a release, without one | the releasing thread: back to its pool | true |
//!
//! # Proof sketch
//! *One at a time.* An exchange that returns null found the lock free. Otherwise the thread enters
//! when its predecessor's `held` is false, which the predecessor writes when leaving. Each node has
//! at most one successor, since an exchange hands out each tail once.
//! *Hand-over.* A release either removes its node from the tail (then nobody ever got its address)
//! or finds the tail moved. Then there is exactly one successor, and the store of `held = false` is
//! this thread's last access. The tail cannot come back to a node that is still in the queue, so
//! the comparison is not fooled.

use crate::lock::{Algorithm, Lock};
use crate::pool::{self, pooled};
use crate::session::sealed::Sealed;
use crate::turn::Turn;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, AtomicPtr, Ordering};
use corelay_sync::facade::cell::Cell;
use std::ptr::{self, NonNull};

/// A value behind a CLH queue lock: entry by arrival, each waiter reads its predecessor's word.
///
/// ```
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::Clh::new([3, 1, 2]);
/// lock.session().apply(|a| a.sort());
/// assert_eq!(lock.into_inner(), [1, 2, 3]);
/// ```
pub type Clh<T> = Lock<ClhWord, T>;

/// The lock word of [`Clh`]: the last node in the queue, or null if the lock is free.
#[derive(Debug, Default)]
pub struct ClhWord {
    tail: AtomicPtr<ClhNode>,
}

/// A node in the queue of some [`Clh`]. It has lines of its own, for another thread reads it.
#[derive(Debug)]
struct ClhNode {
    held: CachePadded<AtomicBool>,
}

pooled!(ClhNode, ClhNode::new);

impl ClhNode {
    fn new() -> Self {
        Self {
            held: CachePadded::new(AtomicBool::new(true)),
        }
    }
}

/// The node that a thread brought into the queue by one acquisition, while it waits and holds the
/// lock. None before `acquire`.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct ClhAcquisition(Cell<Option<NonNull<ClhNode>>>);

impl Sealed for ClhWord {}

// SAFETY: see the module's proof sketch.
unsafe impl Algorithm for ClhWord {
    type Acquisition = ClhAcquisition;

    const WAIT: &'static str = "waiting for a `Clh` lock";

    #[inline(always)]
    unsafe fn acquire(&self, acquisition: &ClhAcquisition) {
        let node = pool::take();
        acquisition.0.set(Some(node));
        // Acquire: pairs with the Release of the exchange to null in `release` (this
        // thread sees what the last holder did) and with the Release of the predecessor's
        // exchange here (its node is initialised).
        // Release: pairs with the Acquire of the successor's exchange; this node is
        // initialised, and `held` reads true.
        let before = self.tail.swap(node.as_ptr(), Ordering::AcqRel);
        if let Some(before) = NonNull::new(before) {
            // SAFETY: the exchange gave the tail's node to this thread alone, and its owner leaves
            // it to us.
            unsafe { follow(before) };
        }
    }

    #[inline]
    unsafe fn try_acquire(&self, acquisition: &ClhAcquisition) -> bool {
        let node = self.try_enter();
        acquisition.0.set(node);
        node.is_some()
    }

    #[inline(always)]
    unsafe fn release(&self, acquisition: &ClhAcquisition) {
        let Some(node) = acquisition.0.get() else {
            unreachable!("released without having acquired");
        };
        // Relaxed: a hint; if the queue has moved on, no exchange that would fail disturbs it.
        if self.tail.load(Ordering::Relaxed) == node.as_ptr() {
            // Release: pairs with the Acquire of the next one's exchange; publishes the
            // section. Relaxed: on failure nothing is read.
            let left = self.tail.compare_exchange(
                node.as_ptr(),
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if left.is_ok() {
                // SAFETY: the node has left the tail before any other thread got it from there, so
                // nobody knows it.
                unsafe { pool::put(node) };
                return;
            }
        }
        // SAFETY: the successor frees the node only after the store below.
        let node = unsafe { node.as_ref() };
        // Release: pairs with the Acquire in `follow`; publishes the section and gives the
        // node away.
        node.held.store(false, Ordering::Release);
    }
}

impl ClhWord {
    /// Enters if the lock is free, and returns the node used. Returns none, without having joined
    /// the queue, if another thread holds the lock or waits.
    #[cold]
    #[inline(never)]
    fn try_enter(&self) -> Option<NonNull<ClhNode>> {
        let node = pool::take();
        // AcqRel: like the exchange in `acquire` when it finds the queue empty.
        // Relaxed: on failure nothing is read.
        let entered = self.tail.compare_exchange(
            ptr::null_mut(),
            node.as_ptr(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if entered.is_err() {
            // SAFETY: `take` gave the node to this thread above, and no tail has had it.
            unsafe { pool::put(node) };
            return None;
        }
        Some(node)
    }
}

/// Waits until the owner of `before`, the predecessor, leaves; then keeps that node in this
/// thread's pool.
///
/// # Safety
/// `before` was the tail's node, and the caller's exchange got it.
#[cold]
#[inline(never)]
unsafe fn follow(before: NonNull<ClhNode>) {
    // SAFETY: only its one successor, this thread, may put the node away.
    let node = unsafe { before.as_ref() };
    let mut turn = Turn::new();
    // Acquire: pairs with the Release store in `release`; this thread sees what the holder
    // before it did, and the node is its own.
    while node.held.load(Ordering::Acquire) {
        turn.wait(1);
    }
    // Relaxed: the node is this thread's; the exchange that brings it to a lock publishes.
    node.held.store(true, Ordering::Relaxed);
    // SAFETY: the predecessor's store of false was its last access, so the node is this thread's
    // alone.
    unsafe { pool::put(before) };
}
