//! Requests of a member to objects of its own, if its policy runs them at once, and calls.
//!
//! They go through no ring: closure, then callback, then back to the caller. The client that a
//! member is to itself never gets a fast path then, and its requests come here. Requests that it
//! has put into its ring earlier, when the policy said otherwise, go first.
//!
//! A callback is not started by another one, so that recursion does not grow: inside a callback it
//! is left to run later, as when a window is full.

use super::{Client, nested};
use crate::context::member::{serve_once, with_duty};
use crate::context::serving::Serving;
use crate::context::thread::in_leaf;
use crate::object::Header;
use crate::operation::Operation;
use crate::policy::Schedule;
use std::any::Any;

type Payload = Box<dyn Any + Send>;

impl Client {
    /// Whether the next request is to be run at once. Only for an [own](Self::is_own) client.
    #[inline]
    pub(crate) fn runs_at_once(&self) -> bool {
        with_duty(|duty| duty.policy.is_direct()) == Some(true) && self.calls_at_once()
    }

    /// Whether the next call, which would wait, can be run at once instead, under any policy. Only
    /// for an [own](Self::is_own) client.
    #[inline]
    pub(crate) fn calls_at_once(&self) -> bool {
        with_duty(|_| !in_leaf()) == Some(true) && (self.is_quiet() || self.settle_own())
    }

    /// Runs the requests to itself that lie in the member's own ring, and their callbacks. Returns
    /// false if not all of them could run.
    #[cold]
    fn settle_own(&self) -> bool {
        if self.thread.in_callback() {
            return false;
        }
        self.flush();
        serve_once();
        self.reap();
        self.stop_fast_path();
        self.is_quiet()
    }

    /// Runs `f` at once on an object of this thread's own member, instead of sending a request.
    ///
    /// # Safety
    /// [`runs_at_once`](Self::runs_at_once) has returned true; `object` is an `Object<T>` of this
    /// thread's member, alive while this runs.
    #[inline]
    pub(crate) unsafe fn run_own<T, F, R>(&self, object: *mut Header, f: F) -> Result<R, Payload>
    where
        F: Operation<T, R>,
    {
        with_duty(|duty| duty.runs_own());
        let ran = Serving::with_current(|serving| {
            // SAFETY: the caller answers for the object; no closure runs, as `runs_at_once` has
            // seen.
            let result = unsafe { serving.run_here::<T, F, R>(object, f) };
            if serving.nested.get() {
                nested::drain(serving);
            }
            result
        });
        ran.expect("a member is a trustee")
    }

    /// Resumes the panic of a callback that ran inside a request to this thread itself: the
    /// request's own callback or, when it [cleared its way](Self::settle_own), another one.
    #[inline]
    pub(crate) fn raise_own(&self) {
        if self.thread.has_held() {
            self.thread.raise_held();
        }
    }
}
