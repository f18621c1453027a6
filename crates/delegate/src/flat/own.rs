//! Requests of a member to objects of its own, where its policy runs them at once, and calls.
//!
//! They go through no ring: closure, then callback, then back to the caller. The client that a
//! member is to itself never gets a fast path then, and finds out here. What it has put into
//! its ring earlier, when the policy said otherwise, goes first.
//!
//! A callback is not started by another one, so that recursion does not grow: inside a
//! callback it is left over, as where a window is full.

use super::member::{Member, with_member};
use crate::channel::by_call::leave;
use crate::channel::client::{Client, Patience, Refusal};
use crate::future::ApplyFuture;
use crate::nested;
use crate::object::Header;
use crate::serving::Serving;
use crate::thread::in_leaf;
use std::any::Any;

type Payload = Box<dyn Any + Send>;

impl Client {
    /// True where the next request is to be run at once. Only for an
    /// [own](Self::is_own) client.
    #[inline]
    pub(crate) fn runs_at_once(&self) -> bool {
        with_member(|member| member.is_direct()) == Some(true) && self.calls_at_once()
    }

    /// True where the next call, which would wait, can be run at once instead, whatever the
    /// policy says. Only for an [own](Self::is_own) client.
    #[inline]
    pub(crate) fn calls_at_once(&self) -> bool {
        with_member(|_| !in_leaf()) == Some(true) && (self.is_quiet() || self.settle_own())
    }

    /// Runs what lies in the ring, and the callbacks; false where not all of it could.
    #[cold]
    fn settle_own(&self) -> bool {
        if self.thread.in_callback() {
            return false;
        }
        self.flush();
        with_member(|member| member.serve());
        self.reap();
        self.stop_fast_path();
        self.is_quiet()
    }

    /// Runs `f`.
    ///
    /// # Safety
    /// [`runs_at_once`](Self::runs_at_once) has said so; `object` is an `Object<T>` of this
    /// thread's member, alive while this runs.
    #[inline]
    pub(crate) unsafe fn run_own<T, F, R>(&self, object: *mut Header, f: F) -> Result<R, Payload>
    where
        F: FnOnce(&mut T) -> R,
    {
        with_member(Member::runs_own);
        let ran = Serving::with_current(|serving| {
            // SAFETY: the caller's duties; no closure runs, as `runs_at_once` has seen.
            let result = unsafe { serving.run_here::<T, F, R>(object, f) };
            if serving.nested.get() {
                nested::drain(serving);
            }
            result
        });
        ran.expect("a member is a trustee")
    }

    /// Runs `f`, then `then` with its answer.
    ///
    /// # Safety
    /// As [`run_own`](Self::run_own); what `then` borrows is kept until the thread has run
    /// what callbacks have left.
    #[inline]
    pub(crate) unsafe fn run_own_then<T, F, R, C>(
        &self,
        object: *mut Header,
        f: F,
        then: C,
        patience: Patience,
    ) -> Result<(), (Refusal, F, C)>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        let inside = self.thread.in_callback();
        if inside && !self.thread.may_leave_callback(self.window()) {
            return Err((Refusal::Full, f, then));
        }
        // SAFETY: the caller's duties.
        match unsafe { self.run_own::<T, F, R>(object, f) } {
            Ok(answer) if inside => leave(self, Box::new(move || then(answer))),
            Ok(answer) => self.thread.run_callback(|| then(answer)),
            Err(payload) => self.thread.report_own_fault(payload),
        }
        if patience != Patience::Hold {
            self.raise_own();
        }
        Ok(())
    }

    /// Goes on with the panic of a callback that a request to this thread itself has run, its own
    /// or, to [clear its way](Self::settle_own), another one's.
    #[inline]
    pub(crate) fn raise_own(&self) {
        if self.thread.has_held() {
            self.thread.raise_held();
        }
    }

    /// Runs `f`, whose answer nobody wants.
    ///
    /// # Safety
    /// As [`run_own`](Self::run_own).
    #[inline]
    pub(crate) unsafe fn run_own_post<T, F>(&self, object: *mut Header, f: F, patience: Patience)
    where
        F: FnOnce(&mut T),
    {
        // SAFETY: the caller's duties.
        if let Err(payload) = unsafe { self.run_own::<T, F, ()>(object, f) } {
            self.thread.report_own_fault(payload);
        }
        if patience != Patience::Hold {
            self.raise_own();
        }
    }

    /// Runs `f`; its result is there when the future is.
    ///
    /// # Safety
    /// As [`run_own`](Self::run_own).
    pub(crate) unsafe fn run_own_ask<T, F, R>(&self, object: *mut Header, f: F) -> ApplyFuture<R>
    where
        F: FnOnce(&mut T) -> R,
    {
        // SAFETY: the caller's duties.
        let result = unsafe { self.run_own::<T, F, R>(object, f) };
        let future = ApplyFuture::ready(&self.thread.pools, result);
        self.raise_own();
        future
    }
}
