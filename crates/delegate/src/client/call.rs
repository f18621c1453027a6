//! Mail calls: requests that travel in the mail line of the channel, one at a time, while the
//! caller waits for the result.

use crate::client::Client;
use crate::client::mark;
use crate::object::Header;
use crate::operation::Operation;
use crate::request::{CallFrame, CallRecord};
use crate::wire::word::Mail;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::cell::place_of;
use corelay_sync::facade::memory;
use std::any::Any;

impl Client {
    /// Runs `f` on the object by a mail call, and waits for its result: `Ok(Ok)` is the result,
    /// `Ok(Err)` the payload of a panic, and `Err` gives `f` back because the trustee has ended
    /// without running it. On a member's own object `f` runs at once if it may. Callbacks that are
    /// due run before the call.
    ///
    /// # Safety
    /// `object` is an `Object<T>` of this client's trustee and alive while the call lasts.
    #[inline(always)]
    pub(crate) unsafe fn call<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<Result<R, Box<dyn Any + Send>>, F>
    where
        F: Operation<T, R>,
    {
        if self.own && self.calls_at_once() {
            // SAFETY: `calls_at_once` has returned true; the caller answers for the object.
            let outcome = unsafe { self.run_own::<T, F, R>(object, f) };
            self.raise_own();
            return Ok(outcome);
        }
        let reaped = self.has_callbacks() && !self.thread.in_callback();
        if reaped {
            self.reap();
        }
        // SAFETY: the caller answers for the object.
        let outcome = unsafe { self.call_holding::<T, F, R>(object, f) }?;
        if reaped && outcome.is_ok() {
            self.thread.raise_held();
        }
        Ok(outcome)
    }

    /// Makes the mail call of [`call`](Self::call), with the same results, but runs no callbacks
    /// and raises no panics of callbacks.
    ///
    /// # Safety
    /// The caller keeps the duties of [`call`](Self::call).
    #[inline(always)]
    pub(super) unsafe fn call_holding<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<Result<R, Box<dyn Any + Send>>, F>
    where
        F: Operation<T, R>,
    {
        if self.calling.get() {
            used_twice();
        }
        if self.single_request.is_pending() {
            self.clear_line();
        }
        let mut frame = CallRecord::<T, F, R>::frame();
        // SAFETY: the line is this call's: no other mail call is under way in this channel, not
        // even of another coroutine, as the checks above have found. The frame stays until the
        // answer below.
        let mail = unsafe { self.send_call(object, f, &mut frame) };
        if !self.accept_call(mail) {
            self.take_back(mail);
            // SAFETY: the trustee has ended without running the call, and `take_back` has withdrawn
            // it.
            return Err(unsafe { CallRecord::<T, F, R>::take(self.call_record()) });
        }
        self.calling.set(true);
        let done = self.await_done(mail);
        self.calling.set(false);
        if done.is_fault() {
            // SAFETY: the call was answered with a fault, which nobody has taken.
            Ok(Err(unsafe { take_fault(self.call_record()) }))
        } else {
            // SAFETY: the call was answered without a fault, and nobody has taken the result.
            Ok(Ok(unsafe {
                CallRecord::<T, F, R>::result(self.call_record())
            }))
        }
    }

    /// The address of the part of the mail line in which a call and then its result lie.
    #[inline(always)]
    pub(super) fn call_record(&self) -> *mut u64 {
        let mail = &self.channel().mail;
        mail.shadow.write(0, 1);
        place_of(&mail.call).cast()
    }

    /// Writes a mail call and publishes it, to run after all requests that this client has sent
    /// before. Returns the mail that the answer will name.
    ///
    /// # Safety
    /// The caller keeps the duties of [`call`](Self::call). No other mail call is under way in this
    /// channel, and the frame stays where it is until the call has been answered or taken back.
    #[inline(always)]
    pub(super) unsafe fn send_call<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
        frame: &mut CallFrame<F, R>,
    ) -> Mail
    where
        F: Operation<T, R>,
    {
        // SAFETY: no other mail call is under way, so the line is the client's; the caller keeps
        // the frame.
        unsafe { CallRecord::<T, F, R>::write(self.call_record(), object, f, frame) };
        let mail = self.mail.get().with_next_call(self.position().cursor());
        self.mail.set(mail);
        // Release: pairs with the Acquire of `Lane::serve`; publishes the call and every record
        // before it.
        self.channel().mail.word.store(mail.0, Ordering::Release);
        mail
    }

    /// Withdraws the call of `mail`, which the trustee has not run before it ended. Afterwards the
    /// closure can be taken out of the line.
    #[cold]
    pub(super) fn take_back(&self, mail: Mail) {
        let mail = mail.with_previous_call();
        self.mail.set(mail);
        // Relaxed: for reports; no trustee looks for calls any more.
        self.channel().mail.word.store(mail.0, Ordering::Relaxed);
    }

    /// Makes sure that the call of `mail` will be run: rouses the trustee if it sleeps. Returns
    /// false if the trustee has ended without running the call.
    #[inline(always)]
    pub(super) fn accept_call(&self, mail: Mail) -> bool {
        self.trustee.is_awake() || self.accept_call_slowly(mail)
    }

    #[cold]
    fn accept_call_slowly(&self, mail: Mail) -> bool {
        self.rouse_or_learn_that_it_is_gone() || self.channel().done().answers(mail)
    }

    #[inline(always)]
    fn await_done(&self, mail: Mail) -> Mail {
        let mut done = Mail(0);
        self.wait_until(&mark::APPLY, None, || {
            done = self.channel().done();
            if done.answers(mail) {
                return true;
            }
            self.channel().prefetch_mail();
            false
        });
        done
    }
}

/// Panics because two coroutines use one client at a time. A launched closure has left its session
/// where another coroutine of the thread found it.
#[cold]
#[inline(never)]
fn used_twice() -> ! {
    panic!(
        "corelay: a session is used by two coroutines at a time; open one in each instead of \
         keeping one in a thread-local"
    )
}

/// Takes the payload of the panic, or other failure, with which a mail call was answered, out of
/// `record`, the call's words in the mail line or a copy of them.
///
/// # Safety
/// `record` holds a call that has been answered with a fault, and the fault has not been taken yet.
#[cold]
pub(super) unsafe fn take_fault(record: *mut u64) -> Box<dyn Any + Send> {
    let boxed = record.wrapping_add(2);
    memory::read(boxed, 1);
    // SAFETY: a fault leaves the address of the boxed payload in the first word.
    let payload = unsafe { boxed.cast::<*mut Box<dyn Any + Send>>().read() };
    // SAFETY: `Lane::run_call` made the address by `Box::into_raw`, and it is taken once.
    *unsafe { Box::from_raw(payload) }
}
