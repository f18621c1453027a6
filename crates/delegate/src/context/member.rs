//! Members of flat teams as the calls on their threads see them: the thread serves while the call
//! waits.
//!
//! [`flat`](crate::flat) registers them here while a team's function runs.

use super::coroutine::suspend_until;
use super::local::with_local;
use super::serving::Serving;
use super::thread::in_turn;
use crate::error::CircularWait;
use crate::object::shared::Shared;
use crate::policy::{Chosen, Schedule};
use crate::wait_graph::{Wait, address};
use corelay_sync::Backoff;
use corelay_sync::wait::{self, Call, Sleeper, Token};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// The trustee of a member, which serves inside the member's calls.
pub(crate) trait Serve {
    /// Makes one pass over the lanes, and over the heads too if `heads` is set. Returns the number
    /// of requests run.
    fn pass(&self, heads: bool) -> u32;

    /// Serves until `done` returns true. `target` is the trustee whose work the caller waits for.
    fn wait_until(&self, target: &Shared, done: &mut dyn FnMut() -> bool);
}

/// A member of a flat team while its function runs: its policy, its shared state and its trustee.
pub(crate) struct Duty<'a> {
    pub(crate) policy: Chosen,
    pub(crate) shared: &'a Shared,
    pub(crate) trustee: &'a dyn Serve,
}

/// Stands for a duty while coroutines run beside a trustee's loop on this thread. Never followed.
const BESIDE: *const Duty<'static> = std::ptr::without_provenance(1);

/// The duty of this thread, or what stands for it.
#[inline(always)]
fn shown() -> *const Duty<'static> {
    with_local(|local| local.duty.get()).unwrap_or(std::ptr::null())
}

fn show(duty: *const Duty<'static>) {
    with_local(|local| local.duty.set(duty));
}

/// Runs `f`, in which coroutines run beside a trustee's loop. Meanwhile [`is_member`] is true,
/// because the loop serves while a coroutine waits.
pub(super) fn beside_a_loop<R>(f: impl FnOnce() -> R) -> R {
    show(BESIDE);
    let result = f();
    show(std::ptr::null());
    result
}

/// Undoes [`beside_a_loop`] while `f` runs, which does the loop's own work inside a coroutine's
/// call.
pub(super) fn in_the_loop<R>(f: impl FnOnce() -> R) -> R {
    show(std::ptr::null());
    let result = f();
    show(BESIDE);
    result
}

/// Runs `f` on the member that this thread is. Returns `None` if no team's function runs here.
#[inline(always)]
pub(crate) fn with_duty<R>(f: impl FnOnce(&Duty<'_>) -> R) -> Option<R> {
    let duty = shown();
    // SAFETY: neither null nor `BESIDE`, so `Duty::run` has shown it, and has not returned on this
    // thread's stack.
    (duty.addr() > BESIDE.addr()).then(|| f(unsafe { &*duty }))
}

/// Whether a trustee serves on this thread while a call waits here, because a team's function runs
/// here or a coroutine beside a trustee's loop.
#[inline]
pub(crate) fn is_member() -> bool {
    !shown().is_null()
}

/// Tells the member's policy that a client of this thread has made about `requests` requests, to
/// the member's own objects if `own` is set. The member makes a pass if the policy says that one is
/// due. Does nothing if this thread is no member.
#[inline]
pub(crate) fn has_made(requests: u32, own: bool) {
    with_duty(|duty| {
        if duty.policy.is_due(requests, own, &duty.shared.thread.bell) {
            duty.serve_when_due();
        }
    });
}

/// Makes one pass, heads included, if this thread is a member.
#[inline]
pub(crate) fn serve_once() {
    with_duty(|duty| duty.trustee.pass(true));
}

/// Waits until `done` returns true, and has a trustee serve on this thread meanwhile: a member
/// serves itself, and a coroutine beside a trustee's loop is suspended so that the loop serves.
/// Returns false at once on any other thread. `what` is the wait of a launched closure for the
/// graph of waits, as in [`suspend_until`].
///
/// # Errors
/// The errors of [`suspend_until`].
pub(crate) fn wait_until(
    target: &Shared,
    what: Option<Wait>,
    done: &mut dyn FnMut() -> bool,
) -> Result<bool, CircularWait> {
    if in_turn() {
        return suspend_until(what, done).map(|()| true);
    }
    Ok(with_duty(|duty| duty.trustee.wait_until(target, done)).is_some())
}

/// Waits until `token`, which the trustee `target` will set, is set. A member serves meanwhile, and
/// a fibre or coroutine is suspended. No cancellation ends the wait.
///
/// # Errors
/// The errors of [`suspend_until`].
///
/// # Panics
/// Inside a [`NoSwitch`](corelay_sync::wait::NoSwitch) guard.
pub(crate) fn wait_for(call: Call, target: &Shared, token: &Token) -> Result<(), CircularWait> {
    if is_member() {
        token.subscribe(Sleeper::current().waker());
        wait_until(target, None, &mut || token.is_set())?;
    }
    let _ = wait::wait_in(call, token);
    Ok(())
}

/// Waits until `future` gives its result, which comes from the trustee `target` or from a timer, in
/// the way of [`wait_for`].
///
/// # Panics
/// Inside a [`NoSwitch`](corelay_sync::wait::NoSwitch) guard.
pub(crate) fn block_on<F: Future + Unpin>(call: Call, target: &Shared, mut future: F) -> F::Output {
    // An answer that comes at once needs no waker of its own.
    let mut backoff = Backoff::new();
    while !backoff.is_yielding() {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut context) {
            return output;
        }
        backoff.wait();
    }
    loop {
        let event = Arc::new(Event(Token::new()));
        let waker = Waker::from(Arc::clone(&event));
        let polled = Pin::new(&mut future).poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(output) = polled {
            return output;
        }
        let waited = wait_for(call, target, &event.0);
        debug_assert!(
            waited.is_ok(),
            "a wait that is not in the graph closes no ring"
        );
    }
}

/// An event that is set by a waker, which wakes the thread or fibre that waits.
pub(crate) struct Event(pub(crate) Token);

impl Wake for Event {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Serves, if this thread is a member, until the thread of `trustee`, which has been asked to
/// close, has ended but for its thread-locals. The member has to serve, because closures there may
/// have made requests to it that must run first. Returns false at once if this thread is no member.
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

impl Duty<'_> {
    /// Runs the team's `function`, which does not unwind. Calls inside it find this member
    /// meanwhile.
    pub(crate) fn run(&self, function: impl FnOnce()) {
        show(std::ptr::from_ref(self).cast());
        function();
        show(std::ptr::null());
    }

    /// Makes a pass if the policy says that one is due before a request that runs at once on the
    /// member's own object.
    #[inline]
    pub(crate) fn runs_own(&self) {
        if self.policy.is_due_at_once(&self.shared.thread.bell) {
            self.serve_when_due();
        }
    }

    /// Not inlined: a pass is large, and rarely due where a request is made.
    #[inline(never)]
    fn serve_when_due(&self) {
        let ran = self.trustee.pass(false);
        let in_all = Serving::with_current(|serving| serving.requests.get());
        self.policy.served(ran, in_all.unwrap_or(0));
    }
}
