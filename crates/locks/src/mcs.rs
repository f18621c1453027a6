//! The queue lock of Mellor-Crummey and Scott (TOCS 1991, section 2.4, algorithm 5).
//!
//! The lock is the tail of a list of waiters. A thread appends its node with one exchange. If
//! another node was there, the thread links its own behind that one, and reads a word in *its own*
//! node until the predecessor clears it. So a hand-over moves one line, however many threads wait.
//!
//! ```text
//!  tail ────────────────────────────────┐
//!                                       v
//!  [holder] ──next──> [waiter] ──next──> [waiter] ──next──> null
//! ```
//!
//! # States of a node
//! | `next` | `waiting` | meaning |
//! |---|---|---|
//! | null | true | fresh; or last in the queue |
//! | null | true, and the tail has moved on | a successor is about to link itself |
//! | set | true | waits, with a successor; or has entered an empty queue |
//! | any | false | the predecessor has let it in |
//!
//! # Proof sketch
//! *One at a time.* An exchange that returns null found the queue empty: the last holder put null
//! there when it left. Otherwise the thread enters only when its `waiting` is cleared, and only its
//! one predecessor does that, when leaving.
//! *No node dies early.* A node lies in the frame of `apply`, and two other threads know it. Its
//! predecessor writes `waiting` last and never looks at it again. Its successor writes `next` once.
//! A leaving thread either proves that there is no successor (its exchange of the tail to null
//! succeeds, so nobody got its node from the tail) or waits until `next` is set. After that neither
//! of them touches the node.

use crate::lock::{Algorithm, Lock};
use crate::session::sealed::Sealed;
use crate::turn::Turn;
use corelay_sync::facade::atomic::{AtomicBool, AtomicPtr, Ordering};
use corelay_sync::facade::memory;
use std::ptr;

/// A value behind an MCS queue lock: entry by arrival, each waiter reads its own word.
///
/// ```
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::Mcs::new((1, 2));
/// lock.session().apply(|(a, b)| std::mem::swap(a, b));
/// assert_eq!(lock.into_inner(), (2, 1));
/// ```
pub type Mcs<T> = Lock<McsWord, T>;

/// The lock word of [`Mcs`]: the last node in the queue, or null if the lock is free.
#[derive(Debug, Default)]
pub struct McsWord {
    tail: AtomicPtr<McsNode>,
}

/// A node in the queue of an [`Mcs`], in the frame of `apply`.
#[doc(hidden)]
#[derive(Debug)]
pub struct McsNode {
    next: AtomicPtr<McsNode>,
    waiting: AtomicBool,
}

impl Default for McsNode {
    #[inline(always)]
    fn default() -> Self {
        Self {
            next: AtomicPtr::new(ptr::null_mut()),
            waiting: AtomicBool::new(true),
        }
    }
}

impl Sealed for McsWord {}

// SAFETY: see the module's proof sketch.
unsafe impl Algorithm for McsWord {
    type Acquisition = McsNode;

    const WAIT: &'static str = "waiting for an `Mcs` lock";

    #[inline(always)]
    unsafe fn acquire(&self, node: &McsNode) {
        // For the made-up machine: the frame that this node is in may have had another one, which
        // others knew.
        memory::write(ptr::from_ref(node), 1);
        // Acquire: pairs with the Release of the exchange to null in `release` (this
        // thread sees what the last holder did) and with the Release of the predecessor's
        // exchange here (its node is initialised).
        // Release: pairs with the Acquire of the successor's exchange; this node is
        // initialised.
        let before = self
            .tail
            .swap(ptr::from_ref(node).cast_mut(), Ordering::AcqRel);
        if !before.is_null() {
            // SAFETY: the tail named this node, so its owner finds the tail moved, and does not
            // leave before this thread has linked itself behind it.
            let link = unsafe { &(*before).next };
            node.follow(link);
        }
    }

    #[inline]
    unsafe fn try_acquire(&self, node: &McsNode) -> bool {
        let this = ptr::from_ref(node).cast_mut();
        // AcqRel: like the exchange in `acquire` when it finds the queue empty.
        // Relaxed: on failure nothing is read.
        self.tail
            .compare_exchange(ptr::null_mut(), this, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    #[inline(always)]
    unsafe fn release(&self, node: &McsNode) {
        // Acquire: pairs with the Release in `follow`; the successor is initialised.
        let mut next = node.next.load(Ordering::Acquire);
        if next.is_null() {
            let this = ptr::from_ref(node).cast_mut();
            // Release: pairs with the Acquire of the next one's exchange; publishes the
            // section. Relaxed: on failure nothing is read.
            let left = self.tail.compare_exchange(
                this,
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if left.is_ok() {
                return;
            }
            next = node.successor();
        }
        // SAFETY: the successor waits, so its frame and node stay until the store below.
        let next = unsafe { &*next };
        // Release: pairs with the Acquire in `follow`; publishes the section.
        next.waiting.store(false, Ordering::Release);
    }
}

impl McsNode {
    /// Writes this node into `link`, its predecessor's, and waits until the predecessor lets this
    /// thread in. The predecessor's node is gone then, so it is no argument here.
    #[cold]
    #[inline(never)]
    fn follow(&self, link: &AtomicPtr<McsNode>) {
        // Release: pairs with the Acquire loads of `next`; this node is initialised.
        link.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        let mut turn = Turn::new();
        // Acquire: pairs with the Release store of `waiting`; this thread sees what the
        // holder before it did.
        while self.waiting.load(Ordering::Acquire) {
            turn.wait(1);
        }
    }

    /// Waits until the successor has linked itself, and returns its node. The successor has taken
    /// the tail already.
    #[cold]
    #[inline(never)]
    fn successor(&self) -> *mut McsNode {
        let mut turn = Turn::new();
        loop {
            // Acquire: pairs with the Release in `follow`; the successor is initialised.
            let next = self.next.load(Ordering::Acquire);
            if !next.is_null() {
                return next;
            }
            turn.wait(1);
        }
    }
}
