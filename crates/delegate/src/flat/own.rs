//! Requests of a member to objects of its own, where its policy runs them at once.
//!
//! They go through no channel: closure, then callback, then back to the caller. A callback is
//! not started by another one, so that recursion does not grow: inside a callback it is left
//! over, as where a window is full.

use super::member::{Member, with_member};
use crate::channel::client::Refusal;
use crate::future::ApplyFuture;
use crate::nested;
use crate::object::Header;
use std::any::Any;

type Payload = Box<dyn Any + Send>;

/// Runs `f`.
///
/// # Safety
/// `object` is an `Object<T>` of this thread's member, alive while this runs, and no delegated
/// closure runs.
#[inline]
pub(crate) unsafe fn call<T, F, R>(object: *mut Header, f: F) -> Result<R, Payload>
where
    F: FnOnce(&mut T) -> R,
{
    // SAFETY: the caller's duties.
    me(|member| unsafe { member.run_own::<T, F, R>(object, f) })
}

/// Runs `f`, then `then` with its answer.
///
/// # Safety
/// As [`call`]; inside a callback nothing borrows.
#[inline]
pub(crate) unsafe fn issue<T, F, R, C>(
    object: *mut Header,
    f: F,
    then: C,
) -> Result<(), (Refusal, F, C)>
where
    F: FnOnce(&mut T) -> R,
    R: 'static,
    C: FnOnce(R) + 'static,
{
    me(|member| {
        let state = &*member.state;
        let inside = state.in_callback();
        if inside {
            // SAFETY: alive, by the caller.
            let window = unsafe { &(*object).trustee }.settings.window;
            if !state.may_leave_callback(window) {
                return Err((Refusal::Full, f, then));
            }
        }
        // SAFETY: the caller's duties.
        match unsafe { member.run_own::<T, F, R>(object, f) } {
            Ok(answer) if inside => state.leave_callback(Box::new(move || then(answer))),
            Ok(answer) => state.run_callback(|| then(answer)),
            Err(payload) => state.report_own_fault(payload),
        }
        if state.has_held() {
            state.raise_held();
        }
        Ok(())
    })
}

/// Runs `f`, whose answer nobody wants.
///
/// # Safety
/// As [`call`].
#[inline]
pub(crate) unsafe fn post<T, F>(object: *mut Header, f: F)
where
    F: FnOnce(&mut T),
{
    me(|member| {
        // SAFETY: the caller's duties.
        if let Err(payload) = unsafe { member.run_own::<T, F, ()>(object, f) } {
            member.state.report_own_fault(payload);
        }
    });
}

/// Runs `f`; its result is there when the future is.
///
/// # Safety
/// As [`call`].
pub(crate) unsafe fn ask<T, F, R>(object: *mut Header, f: F) -> ApplyFuture<R>
where
    F: FnOnce(&mut T) -> R,
{
    me(|member| {
        // SAFETY: the caller's duties.
        let result = unsafe { member.run_own::<T, F, R>(object, f) };
        ApplyFuture::ready(&member.state.pools, result)
    })
}

#[inline(always)]
fn me<R>(f: impl FnOnce(&Member) -> R) -> R {
    with_member(f).expect("a member asks itself while its function runs")
}

impl Member {
    /// # Safety
    /// As [`call`].
    #[inline]
    unsafe fn run_own<T, F, R>(&self, object: *mut Header, f: F) -> Result<R, Payload>
    where
        F: FnOnce(&mut T) -> R,
    {
        self.has_made(1);
        // SAFETY: the caller's duties.
        let result = unsafe { self.serving.run_here::<T, F, R>(object, f) };
        if self.serving.nested.get() {
            nested::drain(&self.serving);
        }
        result
    }
}
