//! Requests of a member to objects of its own, where its policy runs them at once.
//!
//! They go through no channel: closure, then callback, then back to the caller. A callback is
//! not started by another one, so that recursion does not grow: inside a callback it is left
//! over, as where a window is full.

use super::member::with_member;
use crate::channel::client::Refusal;
use crate::future::ApplyFuture;
use crate::nested;
use crate::object::Header;
use crate::serving::Serving;
use crate::thread::{ThreadState, state};
use crate::trust::refuse_full;
use std::any::Any;
use std::rc::Rc;

type Payload = Box<dyn Any + Send>;

/// Runs `f`. Panics where the member has ended: sessions may outlive it.
///
/// # Safety
/// `object` is an `Object<T>` of this thread's member, alive while this runs, and no delegated
/// closure runs.
#[inline]
pub(crate) unsafe fn call<T, F, R>(object: *mut Header, f: F) -> Result<R, Payload>
where
    F: FnOnce(&mut T) -> R,
{
    with_member(|member| member.has_made(1));
    let ran = Serving::with_current(|serving| {
        // SAFETY: the caller's duties.
        let result = unsafe { serving.run_here::<T, F, R>(object, f) };
        if serving.nested.get() {
            nested::drain(serving);
        }
        result
    });
    ran.unwrap_or_else(|| refuse_full::<F>("a session", Refusal::Closed))
}

/// Runs `f`, then `then` with its answer.
///
/// # Safety
/// As [`call`]; inside a callback nothing borrows.
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
    let state = own_state();
    let inside = state.in_callback();
    if inside {
        // SAFETY: alive, by the caller.
        let window = unsafe { &(*object).trustee }.settings.window;
        if !state.may_leave_callback(window) {
            return Err((Refusal::Full, f, then));
        }
    }
    // SAFETY: the caller's duties.
    match unsafe { call::<T, F, R>(object, f) } {
        Ok(answer) if inside => state.leave_callback(Box::new(move || then(answer))),
        Ok(answer) => state.run_callback(|| then(answer)),
        Err(payload) => state.report_own_fault(payload),
    }
    state.raise_held();
    Ok(())
}

/// Runs `f`, whose answer nobody wants.
///
/// # Safety
/// As [`call`].
pub(crate) unsafe fn post<T, F>(object: *mut Header, f: F)
where
    F: FnOnce(&mut T),
{
    // SAFETY: the caller's duties.
    if let Err(payload) = unsafe { call::<T, F, ()>(object, f) } {
        own_state().report_own_fault(payload);
    }
}

/// Runs `f`; its result is there when the future is.
///
/// # Safety
/// As [`call`].
pub(crate) unsafe fn ask<T, F, R>(object: *mut Header, f: F) -> ApplyFuture<R>
where
    F: FnOnce(&mut T) -> R,
{
    // SAFETY: the caller's duties.
    let result = unsafe { call::<T, F, R>(object, f) };
    ApplyFuture::ready(&own_state().pools, result)
}

/// Runs the callbacks that callbacks have left, and where `all` says so, those that they leave
/// in turn.
pub(crate) fn reap(all: bool) {
    let Some(state) = state() else { return };
    while state.has_left_callbacks() {
        state.run_callback(|| ());
        if !all {
            break;
        }
    }
    state.raise_held();
}

fn own_state() -> Rc<ThreadState> {
    state().expect("a member's function runs before its thread ends")
}
