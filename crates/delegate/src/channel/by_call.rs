//! Requests that cannot go into the ring: those of callbacks that find no room, and the rare
//! ones without a [`Label`](super::label::Label).
//!
//! A callback must not reap: that would start further callbacks, and recursion would grow
//! with the window. So it cannot make room. Its request goes as a lone call instead, behind
//! everything in the ring, and a round trip later it has been executed. What remains of an
//! `apply_then` is its callback, which its thread runs when the present one has ended.

use super::client::{Client, Refusal};
use crate::object::Header;

impl Client {
    /// # Safety
    /// As [`issue`](Self::issue), until the thread has run what callbacks have left.
    #[cold]
    pub(super) unsafe fn issue_by_call<T, F, R, C>(
        &self,
        object: *mut Header,
        f: F,
        then: C,
    ) -> Result<(), (Refusal, F, C)>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        if !self.thread.in_callback() {
            self.reap();
        }
        if !self.thread.may_leave_callback(self.window()) {
            return Err((Refusal::Full, f, then));
        }
        // SAFETY: the caller's duties.
        match unsafe { self.call::<T, F, R>(object, f) } {
            Ok(Ok(answer)) => leave(self, Box::new(move || then(answer))),
            Ok(Err(payload)) => self.report_own_fault(payload),
            Err(f) => return Err((Refusal::Closed, f, then)),
        }
        Ok(())
    }

    /// # Safety
    /// As [`post`](Self::post).
    #[cold]
    pub(super) unsafe fn post_by_call<T, F>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<(), (Refusal, F)>
    where
        F: FnOnce(&mut T),
    {
        // SAFETY: the caller's duties.
        match unsafe { self.call::<T, F, ()>(object, f) } {
            Ok(Ok(())) => Ok(()),
            Ok(Err(payload)) => {
                self.report_own_fault(payload);
                Ok(())
            }
            Err(f) => Err((Refusal::Closed, f)),
        }
    }
}

/// Leaves a callback to be run when the present one has ended.
pub(super) fn leave<'a>(client: &Client, callback: Box<dyn FnOnce() + 'a>) {
    // SAFETY: only the lifetime changes. What the callback borrows is kept until it has run,
    // by the duty of `issue_by_call`.
    let callback =
        unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'a>, Box<dyn FnOnce()>>(callback) };
    client.thread.leave_callback(callback);
}
