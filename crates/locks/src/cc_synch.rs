//! The combining queue CC-Synch of Fatourou and Kallimanis (PPoPP 2012).
//!
//! A thread appends a fresh node with one exchange, and writes its request into the node that was
//! the tail *before*. So the last node in the queue is always empty, and a combiner that has come to
//! it need not wait for anybody.
//!
//! ```text
//!  combiner's fresh node                              tail ──┐
//!          v                                                 v
//!  [request of waiter 1] ──next──> [request of waiter 2] ──> [empty]
//!   waiter 1 waits here             waiter 2 waits here
//! ```
//! The combiner runs its own request, and then the requests along the links. After `limit` of them,
//! or at a node whose request is not there yet, it hands over to that node's waiter.
//!
//! We depart from the paper in three ways. The lock that is free has a null tail, as our
//! [CLH](crate::Clh) has, so that a lock owns no node; a thread that finds it so runs its own
//! request without writing it anywhere. A waiter that has spun for long goes to sleep. And a combiner
//! that has reached the limit hands over to the next waiter that spins: it runs the requests of those
//! that sleep, until after several times the limit it wakes [one that can lead](crate::combining::asleep).
//!
//! # Who owns a node
//! | the node is | owner |
//! |---|---|
//! | in a [pool](crate::pool) | that thread |
//! | the tail, or linked, without an answer | the queue; the thread that got it from the tail writes the request and `next` |
//! | answered | the thread that got it from the tail: back to its pool |
//! | removed from the tail by the combiner | the combiner: back to its pool |
//!
//! # Proof sketch
//! *One at a time.* A thread combines if its exchange returned null, or if it was handed the turn. A
//! combiner stops by one step: an exchange of the tail for null, so that the next arrival finds null;
//! an exchange of one signal for the turn; or waking one sleeper to lead. Until then its own place in the queue is the only way on.
//! *Every request is run once.* A request is in the one node that its thread got from the tail. The
//! combiner runs it and then answers "done", or answers "turn" and its own thread runs it.
//! *A request is read after it was written.* The combiner reads it after it has seen `next`, which
//! is written later, or a sleeping waiter, who has written both before.
//! *No node dies early.* The answer is the combiner's last access to a node: it has read `next`
//! before. The tail cannot come back to a node that is still in the queue, so the comparison that
//! frees the lock is not fooled.

use crate::combining::asleep::PATIENCE;
use crate::combining::signal::{Answer, Signal};
use crate::combining::{Combiner, Combining, Request};
use crate::pool::{self, pooled};
use crate::session::sealed::Sealed;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::wait::Call;
use std::ptr::{self, NonNull};

/// A value behind the combining queue CC-Synch.
///
/// The source: Fatourou and Kallimanis, "Revisiting the combining synchronization technique" (PPoPP
/// 2012), algorithm CC-Synch.
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
/// let lock = corelay_locks::CcSynch::new(vec![1]);
/// assert_eq!(lock.session().apply(|v| { v.push(2); v.len() }), 2);
/// ```
pub type CcSynch<T> = Combining<CcSynchWord, T>;

/// The word of [`CcSynch`]: the last node in the queue, which is empty; or null if the lock is free.
#[derive(Debug, Default)]
pub struct CcSynchWord {
    tail: AtomicPtr<Node>,
}

/// A node in the queue of some [`CcSynch`]. It has lines of its own, for a waiter reads it while
/// others write theirs.
#[derive(Debug)]
struct Node(CachePadded<Fields>);

#[derive(Debug)]
struct Fields {
    signal: Signal,
    next: AtomicPtr<Node>,
    request: UnsafeCell<Option<Request>>,
}

pooled!(Node, Node::new);

impl Sealed for CcSynchWord {}

// SAFETY: see the module's proof sketch.
unsafe impl Combiner for CcSynchWord {
    type Seat = ();

    const WAIT: &'static str = "waiting for a `CcSynch` lock";

    #[inline]
    #[track_caller]
    unsafe fn apply(&self, _seat: &mut (), request: Request, limit: u32) {
        let node = pool::take();
        // Acquire: pairs with the Release of the exchange to null in `combine` (this thread sees
        // what the last combiner did) and with the Release of the exchange here that brought the
        // node (it is initialised). Release: pairs with that Acquire; this node is initialised.
        let before = self.tail.swap(node.as_ptr(), Ordering::AcqRel);
        if let Some(before) = NonNull::new(before) {
            // SAFETY: the exchange gave the tail's node to this thread alone; the request's frame
            // stays (the caller's duty).
            let answer = unsafe { join(before, request, node) };
            if answer == Answer::Done {
                return;
            }
        }
        // SAFETY: this thread combines, with `node` as its place; the request is its own.
        unsafe { self.combine(request, node, limit) };
    }

    #[cold]
    #[inline(never)]
    unsafe fn try_apply(&self, _seat: &mut (), request: Request, limit: u32) -> bool {
        let node = pool::take();
        // AcqRel: like the exchange in `apply` when it finds the lock free. Relaxed: on failure
        // nothing is read.
        let entered = self.tail.compare_exchange(
            ptr::null_mut(),
            node.as_ptr(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if entered.is_err() {
            // SAFETY: `take` gave the node to this thread above, and no tail has had it.
            unsafe { pool::put(node) };
            return false;
        }
        // SAFETY: this thread combines, with `node` as its place; the request is its own.
        unsafe { self.combine(request, node, limit) };
        true
    }
}

impl CcSynchWord {
    /// Runs `own`, and then the requests from `node` on.
    ///
    /// # Safety
    /// The calling thread is the combiner, and `node` the one that it brought. Nobody has run `own`,
    /// its request, whose operation stays.
    #[inline]
    unsafe fn combine(&self, own: Request, mut node: NonNull<Node>, limit: u32) {
        // SAFETY: this thread is the combiner, so no other request runs; nobody has run this one
        // (the caller's duty).
        unsafe { own.run() };
        let mut run = 1;
        loop {
            // SAFETY: nobody has answered in the node, or it is the tail: it is the queue's.
            let fields = &unsafe { node.as_ref() }.0;
            // Acquire: pairs with the Release in `join`; the request is written, and the next node
            // initialised.
            let next = fields.next.load(Ordering::Acquire);
            let Some(next) = NonNull::new(next) else {
                // SAFETY: only the combiner that comes to a node answers in it.
                if self.leave(node) || unsafe { fields.signal.hand_over(false) } {
                    return;
                }
                // The waiter has linked itself meanwhile, and sleeps already.
                continue;
            };
            // SAFETY: as above.
            if run >= limit && unsafe { fields.signal.hand_over(run / PATIENCE >= limit) } {
                return;
            }
            let request = fields.request.with(|request| {
                // SAFETY: the waiter wrote it before `next`, and does not write again before the
                // answer.
                unsafe { *request }
            });
            let Some(request) = request else {
                unreachable!("a linked node without a request");
            };
            // SAFETY: this thread is the combiner, so no other request runs, and only the combiner
            // that answers a node runs its request. The waiter stays in its frame until then.
            unsafe { request.run() };
            // SAFETY: only the combiner that comes to a node answers in it.
            unsafe { fields.signal.finish() };
            run = run.saturating_add(1);
            node = next;
        }
    }

    /// Frees the lock, if `node` is still the tail, and keeps the node. Returns false if another
    /// thread has got the node.
    #[inline]
    fn leave(&self, node: NonNull<Node>) -> bool {
        // Release: pairs with the Acquire of the next one's exchange; publishes what the requests
        // did. Relaxed: on failure nothing is read.
        let left = self.tail.compare_exchange(
            node.as_ptr(),
            ptr::null_mut(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if left.is_ok() {
            // SAFETY: the node has left the tail before any other thread got it from there, so
            // nobody knows it, and nothing was written to it.
            unsafe { pool::put(node) };
        }
        left.is_ok()
    }
}

/// Writes `request` into `before`, links `node` behind it and waits for the answer. Then keeps
/// `before` in the thread's pool.
///
/// # Safety
/// `before` was the tail's node, and the caller's exchange got it for `node`. The request's operation
/// stays until this returns.
#[cold]
#[inline(never)]
#[track_caller]
unsafe fn join(before: NonNull<Node>, request: Request, node: NonNull<Node>) -> Answer {
    // SAFETY: only this thread, which got it from the tail, may put the node away.
    let fields = &unsafe { before.as_ref() }.0;
    fields.request.with_mut(|place| {
        // SAFETY: the combiner reads the request after it has seen `next`, which is null yet.
        unsafe { *place = Some(request) };
    });
    // Release: pairs with the Acquire in `combine`; publishes the request and the fresh node.
    fields.next.store(node.as_ptr(), Ordering::Release);
    let answer = fields.signal.wait(Call::new(CcSynchWord::WAIT));
    // Relaxed: the node is this thread's; the exchange that brings it to a lock publishes.
    fields.next.store(ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: the answer was the combiner's last access, so the node is this thread's alone.
    unsafe { fields.signal.reset() };
    // SAFETY: the node is this thread's alone, and as new.
    unsafe { pool::put_after_wait(before) };
    answer
}

impl Node {
    fn new() -> Self {
        Self(CachePadded::new(Fields {
            signal: Signal::new(),
            next: AtomicPtr::new(ptr::null_mut()),
            request: UnsafeCell::new(None),
        }))
    }
}
