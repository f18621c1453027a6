//! Members of flat teams, as the calls on their threads see them: threads that serve while they wait.
//!
//! [`flat`](crate::flat) makes them known here while a team's function runs.

use super::coroutine::suspend_until;
use super::serving::Serving;
use super::thread::in_turn;
use crate::error::CircularWait;
use crate::object::shared::Shared;
use crate::policy::{Chosen, Schedule};
use crate::wait_graph::{Wait, address};
use corelay_sync::facade::thread_local;
use corelay_sync::wait::Sleeper;
use std::cell::Cell;

/// The trustee of a member, which serves in between.
pub(crate) trait Serve {
    /// One pass, also over the heads where `heads` says so; the number of requests run.
    fn pass(&self, heads: bool) -> u32;

    /// Serves until `done`; `target` is who can make it so.
    fn wait_until(&self, target: &Shared, done: &mut dyn FnMut() -> bool);
}

/// A member of a flat team, while its function runs.
pub(crate) struct Duty<'a> {
    pub(crate) policy: Chosen,
    pub(crate) shared: &'a Shared,
    pub(crate) trustee: &'a dyn Serve,
}

thread_local! {
    /// This thread's, while a team's function runs.
    static DUTY: Cell<*const Duty<'static>> = const { Cell::new(std::ptr::null()) };
}

/// Stands for a duty on the thread of a trustee that lets other coroutines run beside its loop.
/// Never followed.
const BESIDE: *const Duty<'static> = std::ptr::without_provenance(1);

fn show(duty: *const Duty<'static>) {
    let _ = DUTY.try_with(|d| d.set(duty));
}

/// Runs `f`, in which coroutines run beside a trustee's loop: their waits are its business.
pub(super) fn beside_a_loop<R>(f: impl FnOnce() -> R) -> R {
    show(BESIDE);
    let result = f();
    show(std::ptr::null());
    result
}

/// Undoes [`beside_a_loop`] while `f` runs.
pub(super) fn in_the_loop<R>(f: impl FnOnce() -> R) -> R {
    show(std::ptr::null());
    let result = f();
    show(BESIDE);
    result
}

/// Runs `f` on this thread's duty; `None` where no team's function runs here.
#[inline(always)]
pub(crate) fn with_duty<R>(f: impl FnOnce(&Duty<'_>) -> R) -> Option<R> {
    let duty = DUTY.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: neither null nor `BESIDE`, so `Duty::run` has shown it, further up this thread's stack.
    (duty.addr() > BESIDE.addr()).then(|| f(unsafe { &*duty }))
}

/// True where a wait of this thread serves meanwhile: where a team's function runs, or a coroutine
/// beside a trustee's loop.
pub(crate) fn is_member() -> bool {
    let duty = DUTY.try_with(Cell::get).unwrap_or(std::ptr::null());
    !duty.is_null()
}

/// A client of this thread has published about `requests` requests, to objects of its own
/// member or not: a member may serve.
#[inline]
pub(crate) fn has_made(requests: u32, own: bool) {
    with_duty(|duty| {
        if duty.policy.is_due(requests, own, &duty.shared.thread.bell) {
            duty.serve_when_due();
        }
    });
}

/// Serves, where this thread is a member.
pub(crate) fn serve_once() {
    with_duty(|duty| duty.trustee.pass(true));
}

/// Serves until `done`, where this thread is a member, or has its trustee's loop serve; false at once
/// where it is neither. A launched closure waits for `what` meanwhile, if its request does not say so.
///
/// # Errors
/// See [`suspend_until`].
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

impl Duty<'_> {
    /// Runs `function`, during which this thread has this duty. It does not unwind.
    pub(crate) fn run(&self, function: impl FnOnce()) {
        show(std::ptr::from_ref(self).cast());
        function();
        show(std::ptr::null());
    }

    /// A request to an object of its own is about to be run at once.
    #[inline]
    pub(crate) fn runs_own(&self) {
        if self.policy.is_due_at_once(&self.shared.thread.bell) {
            self.serve_when_due();
        }
    }

    #[inline]
    fn serve_when_due(&self) {
        let ran = self.trustee.pass(false);
        let in_all = Serving::with_current(|serving| serving.requests.get());
        self.policy.served(ran, in_all.unwrap_or(0));
    }
}
