//! The combining queue DSM-Synch of Fatourou and Kallimanis (PPoPP 2012).
//!
//! A queue as that of [MCS](crate::Mcs): a thread appends its own node, which has its request, and
//! waits at that node, in its own frame. So each waiter reads memory that is its own, as machines
//! without coherent caches need it.
//!
//! ```text
//!  tail ────────────────────────────────────────────────────┐
//!                                                           v
//!  [combiner] ──next──> [request of waiter 1] ──next──> [request of waiter 2] ──next──> null
//! ```
//! The combiner runs its own request, and then the requests along the links. After `limit` of them
//! it hands over to the next waiter.
//!
//! We depart from the paper in three ways. There a thread owns two nodes and uses them in turns,
//! since the combiner looks at the link of a node that it has answered already. Here it looks first
//! and answers then, so the node can lie in the frame of `apply`; the last waiter in the queue gets
//! its answer one exchange later. A waiter that has spun for long goes to sleep. And a combiner that
//! has reached the limit hands over to the next waiter that spins: it runs the requests of those that
//! sleep, until after several times the limit it wakes [one that can lead](crate::combining::asleep).
//!
//! # Proof sketch
//! *One at a time.* A thread combines if its exchange returned null, or if it was handed the turn. A
//! combiner stops by one step: an exchange of the tail for null, so that the next arrival finds null;
//! an exchange of one signal for the turn; or waking one sleeper to lead.
//! *Every request is run once.* The combiner runs a node's request and then answers "done", or
//! answers "turn" and the node's own thread runs it.
//! *No node dies early.* A waiter leaves its frame after the answer. That is the combiner's last
//! access to the node. The successor's only access is its write of `next`, and the combiner has seen
//! that before it answers, or has taken the node out of the tail, so that there is no successor.
//! (A node that is handed the turn is its own thread's, which does the same.)

use crate::combining::asleep::PATIENCE;
use crate::combining::signal::{Answer, Signal};
use crate::combining::{Combiner, Combining, Request};
use crate::session::sealed::Sealed;
use crate::turn::Turn;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::facade::memory;
use corelay_sync::wait::Call;
use std::ptr;

/// A value behind the combining queue DSM-Synch.
///
/// The source: Fatourou and Kallimanis, "Revisiting the combining synchronization technique" (PPoPP
/// 2012), algorithm DSM-Synch. They made it for machines without coherent caches, and
/// [`CcSynch`](crate::CcSynch) for those that have them.
///
/// **Fairness.** Closures run in the order of arrival, so no waiter starves.
///
/// **The limit.** A thread that combines runs up to the limit of closures before its own call
/// returns. Then the waiter that is next goes on if it spins; if it sleeps, its closure is run, too.
/// After four times the limit a sleeping thread goes on as well, with [an
/// exception](Combining#how-a-thread-waits).
///
/// **A panic** reaches the caller whose closure it was; the others do not notice.
///
/// ```
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::DsmSynch::new(vec![1]);
/// assert_eq!(lock.session().apply(|v| { v.push(2); v.len() }), 2);
/// ```
pub type DsmSynch<T> = Combining<DsmSynchWord, T>;

/// The word of [`DsmSynch`]: the last node in the queue, or null if the lock is free.
#[derive(Debug, Default)]
pub struct DsmSynchWord {
    tail: AtomicPtr<Node>,
}

/// A node in the queue of a [`DsmSynch`], in the frame of `apply`.
// In a build that counts lines it is in a line of its own, as an operation is.
#[cfg_attr(corelay_lines, repr(align(64)))]
#[derive(Debug)]
struct Node {
    signal: Signal,
    next: AtomicPtr<Node>,
    request: Request,
}

impl Sealed for DsmSynchWord {}

// SAFETY: see the module's proof sketch.
unsafe impl Combiner for DsmSynchWord {
    type Seat = ();

    const WAIT: &'static str = "waiting for a `DsmSynch` lock";

    #[inline]
    #[track_caller]
    unsafe fn apply(&self, _seat: &mut (), request: Request, limit: u32) {
        let node = Node::new(request);
        // For the made-up machine: the frame's memory may have held an earlier node, which other
        // threads have in their caches.
        memory::write(node.address(), 1);
        // Acquire: pairs with the Release of the exchange to null in `leave` (this thread sees what
        // the last combiner did) and with the Release of the predecessor's exchange here (its node
        // is initialised). Release: pairs with that Acquire; this node is initialised.
        let before = self.tail.swap(node.address(), Ordering::AcqRel);
        // SAFETY: the tail named this node, so its combiner finds the tail moved, and does not
        // answer in it before this thread has linked itself behind it.
        if let Some(link) = unsafe { before.as_ref() }.map(|before| &before.next)
            && node.follow(link) == Answer::Done
        {
            return;
        }
        // SAFETY: this thread combines; the node is its own, and nobody has run its request.
        unsafe { self.combine(&node, limit) };
    }

    #[cold]
    #[inline(never)]
    unsafe fn try_apply(&self, _seat: &mut (), request: Request, limit: u32) -> bool {
        let node = Node::new(request);
        // AcqRel: like the exchange in `apply` when it finds the lock free. Relaxed: on failure
        // nothing is read.
        let entered = self.tail.compare_exchange(
            ptr::null_mut(),
            node.address(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if entered.is_ok() {
            // SAFETY: this thread combines; the node is its own, and nobody has run its request.
            unsafe { self.combine(&node, limit) };
        }
        entered.is_ok()
    }
}

impl DsmSynchWord {
    /// Runs the requests from `own` on.
    ///
    /// # Safety
    /// The calling thread is the combiner, and `own` its node, whose request nobody has run. The
    /// operations of all requests in the queue stay until they are answered.
    #[inline]
    unsafe fn combine(&self, own: &Node, limit: u32) {
        // SAFETY: this thread is the combiner, so no other request runs; nobody has run this one
        // (the caller's duty).
        unsafe { own.request.run() };
        let Some(mut node) = self.after(own) else {
            return;
        };
        let mut run = 1;
        loop {
            // SAFETY: nobody has answered in the node, so its waiter stays.
            let waiter = unsafe { &*node };
            // SAFETY: only the combiner that comes to a node answers in it.
            if run >= limit && unsafe { waiter.signal.hand_over(run / PATIENCE >= limit) } {
                return;
            }
            // SAFETY: this thread is the combiner, so no other request runs, and only the combiner
            // that answers in a node runs its request.
            unsafe { waiter.request.run() };
            let next = self.after(waiter);
            // SAFETY: as for `hand_over`, which has not answered.
            unsafe { waiter.signal.finish() };
            let Some(next) = next else {
                return;
            };
            run = run.saturating_add(1);
            node = next;
        }
    }

    /// The node behind `node`. If there is none, frees the lock and returns none.
    #[inline]
    fn after(&self, node: &Node) -> Option<*mut Node> {
        // Acquire: pairs with the Release in `follow`; the next node is initialised.
        let next = node.next.load(Ordering::Acquire);
        if !next.is_null() {
            return Some(next);
        }
        // Release: pairs with the Acquire of the next one's exchange; publishes what the requests
        // did. Relaxed: on failure nothing is read.
        let left = self.tail.compare_exchange(
            node.address(),
            ptr::null_mut(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        left.is_err().then(|| node.successor())
    }
}

impl Node {
    #[inline]
    fn new(request: Request) -> Self {
        Self {
            signal: Signal::new(),
            next: AtomicPtr::new(ptr::null_mut()),
            request,
        }
    }

    #[inline]
    fn address(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }

    /// Writes this node into `link`, its predecessor's, and waits for the answer. The predecessor's
    /// node is gone before, so it is no argument here.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn follow(&self, link: &AtomicPtr<Self>) -> Answer {
        // Release: pairs with the Acquire loads of `next`; this node is initialised.
        link.store(self.address(), Ordering::Release);
        self.signal.wait(Call::new(DsmSynchWord::WAIT))
    }

    /// Waits until the successor has linked itself, and returns its node. The successor has taken
    /// the tail already.
    #[cold]
    #[inline(never)]
    fn successor(&self) -> *mut Self {
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
