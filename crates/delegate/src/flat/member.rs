//! A thread that serves while it waits.

use super::policy::{Chosen, Schedule};
use super::seat::Job;
use crate::client::finish_clients;
use crate::discard::discard;
use crate::held::circle::{CircularWait, Wait, address};
use crate::held::launched::suspend_until;
use crate::serving::{Serving, guarded};
use crate::thread::{in_leaf, in_turn};
use crate::trust::Trust;
use crate::trustee::{Shared, Trustee};
use corelay_sync::Backoff;
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread_local;
use corelay_sync::facade::{MODEL, hint, thread};
use corelay_sync::trace::{self, Mark};
use corelay_sync::wait::{NoSwitch, Sleeper};
use std::cell::{Cell, RefCell};
use std::fmt;

/// A member of a [`Team`](crate::Team), as the function sees it that runs on it: `me`.
///
/// It stays on its thread.
pub struct Member {
    shared: Arc<Shared>,
    number: usize,
    policy: Chosen,
    /// Borrowed while it serves.
    trustee: RefCell<Trustee>,
    sleeper: std::sync::Arc<Sleeper>,
}

thread_local! {
    /// Of this thread, while a team's function runs.
    static MEMBER: Cell<*const Member> = const { Cell::new(std::ptr::null()) };
}

/// Looks at its answer and its lanes before a member yields: some 100 µs.
const LOOKS: u32 = if MODEL { 0 } else { 4096 };
/// Looks in vain before a member rings, and between two rings: not every round trip is to
/// cost a line more.
const RING_AFTER: u32 = if MODEL { 1 } else { 128 };
/// Looks in vain before a member looks at the heads too, of clients that have published
/// nothing by mail: as a trustee on its own.
const HEADS_AFTER: u32 = if MODEL { 1 } else { 256 };
const YIELDS: u32 = if MODEL { 0 } else { 64 };

/// Stands for a member on the thread of a trustee that lets other coroutines run beside its loop.
/// Never followed.
const BESIDE: *const Member = std::ptr::without_provenance(1);

/// Runs `f`, in which coroutines run beside a trustee's loop: their waits are its business.
pub(crate) fn beside_a_loop<R>(f: impl FnOnce() -> R) -> R {
    let show = |member| {
        let _ = MEMBER.try_with(|m| m.set(member));
    };
    show(BESIDE);
    let result = f();
    show(std::ptr::null());
    result
}

/// Undoes [`beside_a_loop`] while `f` runs.
pub(crate) fn in_the_loop<R>(f: impl FnOnce() -> R) -> R {
    let show = |member| {
        let _ = MEMBER.try_with(|m| m.set(member));
    };
    show(std::ptr::null());
    let result = f();
    show(BESIDE);
    result
}

/// Runs `f` on this thread's member; `None` where no team's function runs here.
#[inline(always)]
pub(crate) fn with_member<R>(f: impl FnOnce(&Member) -> R) -> Option<R> {
    let member = MEMBER.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: set by `work`, which is further up this thread's stack.
    (member.addr() > BESIDE.addr()).then(|| f(unsafe { &*member }))
}

/// True where a wait of this thread serves meanwhile: where a team's function runs, or a coroutine
/// beside a trustee's loop.
pub(crate) fn is_member() -> bool {
    !MEMBER
        .try_with(Cell::get)
        .unwrap_or(std::ptr::null())
        .is_null()
}

/// A client of this thread has published about `requests` requests, to objects of its own
/// member or not: a member may serve.
#[inline]
pub(crate) fn has_made(requests: u32, own: bool) {
    with_member(|member| member.has_made(requests, own));
}

/// Serves, where this thread is a member.
pub(crate) fn serve_once() {
    with_member(Member::serve);
}

/// Serves until `done`, where this thread is a member, or has its trustee's loop serve; false at once
/// where it is neither. A launched closure waits for `what` meanwhile, if its request does not say so.
///
/// # Errors
/// As of [`suspend_until`].
pub(crate) fn wait_until(
    target: &Shared,
    what: Option<Wait>,
    done: &mut dyn FnMut() -> bool,
) -> Result<bool, CircularWait> {
    if in_turn() {
        return suspend_until(what, done).map(|()| true);
    }
    Ok(with_member(|member| member.wait_until(target, done)).is_some())
}

/// Serves until the thread of `trustee`, which has been asked to close, has ended but for its
/// thread-locals, where this thread is a member: what closures there have asked of it must
/// run first. False at once where it is none.
///
/// # Errors
/// A launched closure waits, and the trustee would wait for it.
pub(crate) fn wait_for_end(trustee: &Shared) -> Result<bool, CircularWait> {
    if !is_member() {
        return Ok(false);
    }
    trustee.ended.subscribe(Sleeper::current().waker());
    let end = Wait::End(address(trustee));
    wait_until(trustee, Some(end), &mut || trustee.ended.is_set())
}

/// A member's function, with what it serves meanwhile.
static FUNCTION: Mark = Mark::new("function").with_arg("member");

/// Runs a job on the thread of `trustee`.
pub(crate) fn work(mut trustee: Trustee, job: Job) -> Trustee {
    let shared = Arc::clone(trustee.shared());
    if shared.seat.hear() {
        // Rung while the trustee's own loop served: as behind any ring, but it is none of this
        // function's.
        trustee.pass(false, u32::MAX);
        trustee.send_nested();
    }
    let sleeper = shared.seat.take_sleeper();
    let member = Member {
        policy: shared.settings.policy.unwrap_or_default().choose(),
        number: job.number,
        shared,
        trustee: RefCell::new(trustee),
        sleeper,
    };
    MEMBER.with(|m| m.set(&raw const member));
    let ended = guarded(|| {
        let _span = trace::span(&FUNCTION).with(member.number as u64);
        job.run(&member);
        // What it has asked for is part of its work.
        finish_clients();
    });
    if ended.is_err() {
        // The panic above counts, not what is found now.
        discard(guarded(finish_clients).err());
    }
    MEMBER.with(|m| m.set(std::ptr::null()));
    let mut trustee = member.trustee.into_inner();
    // Whoever has rung is served by the trustee's own loop from here on.
    if member.shared.seat.hear() {
        trustee.count_ring();
    }
    job.end(ended.err());
    trustee
}

impl Member {
    /// Its number in the team, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Gives `value` to this member itself.
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn entrust<T: Send + 'static>(&self, value: T) -> Trust<T> {
        NoSwitch::refuse("Member::entrust");
        self.trustee.borrow_mut().adopt(value)
    }

    /// Serves what others have asked of this member's objects so far, also where its policy
    /// would not; true where there was something. For a function that computes for long
    /// without calling corelay.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// let counts = Trustees::flat(2).run(|me| {
    ///     let mut served = 0;
    ///     for _step in 0..100 {
    ///         served += u32::from(me.serve()); // between steps of a long computation
    ///     }
    ///     served
    /// })?;
    /// assert_eq!(counts.len(), 2);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    pub fn serve(&self) -> bool {
        self.pass(true) > 0
    }

    /// One pass of the trustee; the number of requests run. Nothing while one is under way
    /// already, or a closure that runs at once: no member serves with a delegated closure on
    /// its stack.
    fn pass(&self, heads: bool) -> u32 {
        if in_leaf() {
            return 0;
        }
        let Ok(mut trustee) = self.trustee.try_borrow_mut() else {
            return 0;
        };
        // Who has rung has published by mail, and perhaps gone to sleep, and does not ring again:
        // everything, then.
        let batch = if self.shared.seat.hear() {
            trustee.count_ring();
            u32::MAX
        } else {
            self.shared.settings.batch
        };
        let ran = trustee.pass(heads, batch);
        trustee.send_nested();
        ran
    }

    #[inline(always)]
    pub(super) fn is_direct(&self) -> bool {
        self.policy.is_direct()
    }

    #[inline]
    fn has_made(&self, requests: u32, own: bool) {
        if self.policy.is_due(requests, own, &self.shared.seat) {
            self.serve_when_due();
        }
    }

    /// A request to an object of its own is about to be run at once.
    #[inline]
    pub(super) fn runs_own(&self) {
        if self.policy.is_due_at_once(&self.shared.seat) {
            self.serve_when_due();
        }
    }

    #[inline]
    fn serve_when_due(&self) {
        let ran = self.pass(false);
        let in_all = Serving::with_current(|serving| serving.requests.get());
        self.policy.served(ran, in_all.unwrap_or(0));
    }

    #[cold]
    fn wait_until(&self, target: &Shared, done: &mut dyn FnMut() -> bool) {
        let looks = if Backoff::new().is_yielding() {
            0
        } else {
            LOOKS
        };
        let mut idle = 0u32;
        while !done() {
            if self.pass((idle + 1).is_multiple_of(HEADS_AFTER)) > 0 {
                idle = 0;
                continue;
            }
            idle += 1;
            // Who gives its CPU away rings first: whom it waits for may be next on that CPU.
            if idle.is_multiple_of(RING_AFTER) || idle >= looks {
                target.ring();
            }
            if idle < looks {
                hint::spin_loop();
            } else if idle < looks + YIELDS {
                thread::yield_now();
            } else {
                self.sleep(target, done);
                // Where there was something, more may follow soon.
                idle = 0;
            }
        }
    }

    /// Sleeps until there is an answer or something to serve: see [`Shared::doze`].
    fn sleep(&self, target: &Shared, done: &mut dyn FnMut() -> bool) {
        // Before a sleep, as in `Trustee::sleep`. Borrowed where a pass waits.
        if let (false, Ok(trustee)) = (MODEL, self.trustee.try_borrow()) {
            trustee.publish_metrics();
        }
        self.shared.doze(&self.sleeper, || {
            // Behind the sleeper's barrier: see `Seat::hear`.
            target.ring();
            done() || self.pass(true) > 0
        });
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("number", &self.number)
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}
