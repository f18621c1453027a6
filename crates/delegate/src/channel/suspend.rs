//! A call that waits by the waiting seam: a fibre is suspended and others run meanwhile.
//!
//! The mail line holds one lone call, and the others on this thread want to call too, so
//! the call goes into the ring. Closure and result stay in the caller's frame, which it
//! does not leave before its token is set.

use super::client::{Client, Patience};
use crate::error::Poisoned;
use crate::flat::member::is_member;
use crate::object::{Header, Object};
use crate::serving::{guarded, is_poisoned_inside, poison_from_inside};
use crate::trustee::Registry;
use corelay_sync::wait::{self, Token};
use std::any::Any;
use std::cell::Cell;

type Answer<R> = Result<R, Box<dyn Any + Send>>;

struct Frame<F, R> {
    f: Cell<Option<F>>,
    answer: Cell<Option<Answer<R>>>,
    token: Token,
}

/// The frame, on its way to the trustee.
struct Borrowed<F, R>(*const Frame<F, R>);

// SAFETY: `F` and `R` are `Send` by the public functions, and only one side uses the cells
// at a time: the trustee while the request runs, the caller before and after.
unsafe impl<F, R> Send for Borrowed<F, R> {}

/// Sets the token when the request has been reaped, run or discarded.
struct Notify(*const Token);

impl Drop for Notify {
    fn drop(&mut self) {
        // SAFETY: the caller keeps its frame until the token is set, which is now.
        unsafe { &*self.0 }.notify();
    }
}

impl Client {
    /// Calls `f` and waits for its result, as the code that runs here waits. On a member the
    /// thread waits, and serves: a scheduler that is idle would not.
    ///
    /// # Safety
    /// As [`call`](Self::call).
    #[inline(always)]
    pub(crate) unsafe fn call_here<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<Answer<R>, F>
    where
        F: FnOnce(&mut T) -> R,
    {
        if wait::is_suspendable() && !self.thread.in_callback() && !is_member() {
            // SAFETY: the caller's duties.
            unsafe { self.call_suspending(object, f) }
        } else {
            // SAFETY: the caller's duties.
            unsafe { self.call::<T, F, R>(object, f) }
        }
    }

    #[cold]
    unsafe fn call_suspending<T, F, R>(&self, object: *mut Header, f: F) -> Result<Answer<R>, F>
    where
        F: FnOnce(&mut T) -> R,
    {
        let frame = Frame {
            f: Cell::new(Some(f)),
            answer: Cell::new(None),
            token: Token::new(),
        };
        let borrowed = Borrowed(&raw const frame);
        let target = AssertSend(object);
        // A request on the registry, which is never poisoned: it looks for the poison of its
        // object itself, so that the caller hears of it, and of a panic, and nobody else.
        let request = move |_: &mut Registry| {
            let (borrowed, target) = (borrowed, target);
            if is_poisoned_inside(target.0) {
                return;
            }
            // SAFETY: the caller stays in its frame until the token is set.
            let frame = unsafe { &*borrowed.0 };
            if let Some(f) = frame.f.take() {
                // SAFETY: an `Object<T>`, alive, by the caller; this runs on its trustee,
                // which runs nothing else meanwhile.
                let answer = guarded(|| f(unsafe { Object::value(target.0.cast::<Object<T>>()) }));
                if answer.is_err() {
                    poison_from_inside(target.0);
                }
                frame.answer.set(Some(answer));
            }
        };
        let notify = Notify(&raw const frame.token);
        let home = self.trustee.home();
        // SAFETY: the caller's duties; the frame is kept until the token is set, and with
        // `Hold` nothing unwinds out of here.
        let issued = unsafe {
            self.issue::<Registry, _, (), _>(home, request, move |()| drop(notify), Patience::Hold)
        };
        if let Err((_, request, then)) = issued {
            drop((request, then));
            return Err(frame.f.take().expect("not run"));
        }
        self.flush();
        let bomb = AbortOnUnwind;
        wait::wait(&frame.token);
        std::mem::forget(bomb);
        // This may be another thread than before, so `self` is not touched any more.
        Ok(frame
            .answer
            .take()
            .unwrap_or_else(|| Err(Box::new(Poisoned))))
    }
}

/// A context that unwinds out of a wait would free a frame that its request borrows.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        eprintln!("corelay: a context has unwound out of a wait before its token was set");
        std::process::abort();
    }
}

struct AssertSend(*mut Header);

// SAFETY: an object's header is shared by all.
unsafe impl Send for AssertSend {}
