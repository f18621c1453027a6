//! A single `apply_then`, which travels in the mail line, as a call that waits does.
//!
//! Through the rings a request by itself costs the mail line, the request's line, the answer's and
//! the tail's. A client that is slow and has nothing in flight therefore sends it in the mail line
//! and finds the answer there. Its next requests go into the ring as ever, after the single one:
//!
//! ```text
//!   NONE ── send_single_request ──► SENT ── done seen ──► ANSWERED ── reaped ──► NONE
//! ```
//! While SENT the mail word stays as it is, or the trustee, seeing a larger cursor and the call at
//! once, would run the ring first. So nothing is published by mail then; the trustee looks at the
//! head by itself when it has run the call. Once ANSWERED the answer lies in the client and the
//! line is free: a callback of another client may want to call before this one's turn comes. The
//! callback is the oldest in the queue, since everything before it has been reaped, and goes before
//! all later ones.

use crate::client::call::take_fault;
use crate::client::mark;
use crate::client::{Client, Refusal};
use crate::object::Header;
use crate::operation::Operation;
use crate::request::{CallRecord, Callback};
use crate::wire::MAIL_WORDS;
use crate::wire::word::Mail;
use corelay_sync::facade::memory;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// The state of a client's single request.
#[derive(Clone, Copy)]
enum State {
    None,
    /// The request has been sent with this mail, and the client has not seen an answer yet.
    Sent(Mail),
    /// The request has been answered, and its result or fault has been copied into
    /// [`SingleRequest::record`]. Holds the trustee's `done` word.
    Answered(Mail),
}

/// A copy of the call's words in the mail line: vtable and object, then the result or the fault.
type Record = MaybeUninit<[u64; 2 + MAIL_WORDS]>;

/// The single request of a client, if one is under way.
pub(super) struct SingleRequest {
    state: Cell<State>,
    /// The answered request, copied out of the line.
    record: Cell<Record>,
    /// Whether all failures had been reported to a barrier when the request was sent, so that its
    /// own failure would be the first of the next report.
    is_first_fault: Cell<bool>,
    /// Whether a poll has found nothing in flight since a request last took the slow path: then the
    /// next request does not belong to a stream.
    has_rested: Cell<bool>,
}

impl SingleRequest {
    pub(super) fn new() -> Self {
        Self {
            state: Cell::new(State::None),
            record: Cell::new(MaybeUninit::uninit()),
            is_first_fault: Cell::new(false),
            // A client begins with nothing in flight.
            has_rested: Cell::new(true),
        }
    }

    /// Whether a single request is under way: from its sending until its callback has been taken
    /// out.
    #[inline(always)]
    pub(super) fn is_pending(&self) -> bool {
        !matches!(self.state.get(), State::None)
    }

    fn record(&self) -> *mut u64 {
        self.record.as_ptr().cast()
    }
}

/// The type of function that finishes an answered single request: it takes the callback out of the
/// queue and runs it, or drops it if the request has faulted. It is the first word of the
/// callback's entry.
///
/// # Safety
/// The oldest entry of `client` is of this type, and its single request has been answered.
type Take = unsafe fn(client: &Client, is_fault: bool);

impl Client {
    /// Whether the next request may go as a single request, if it fits the mail line. That is so if
    /// nothing is in flight and the request does not belong to a stream of requests, in which the
    /// ring is empty now and then, too. Asking forgets that a poll has found nothing in flight, so
    /// a stream that begins here is taken for one. Launched closures send no single requests: their
    /// mail line is for calls alone.
    #[inline(always)]
    pub(super) fn may_send_single_request(&self) -> bool {
        let streams = !self.single_request.has_rested.replace(false) && !self.is_slow();
        !streams && self.is_quiet() && !self.thread.in_callback() && self.thread.launch.is_none()
    }

    /// Notes that the thread has looked for answers. If it has them all, its next request is not
    /// one of a stream.
    pub(super) fn note_quiet(&self) {
        if self.is_quiet() {
            self.single_request.has_rested.set(true);
            self.stop_fast_path();
        }
    }

    /// Sends `f` by the mail line, with its callback in the queue, and does not wait. Gives both
    /// back if the trustee has ended.
    ///
    /// # Safety
    /// The caller keeps the duties of [`send`](Self::send). The call fits the line,
    /// [`may_send_single_request`](Self::may_send_single_request) has returned true, and there is
    /// room for a callback.
    pub(super) unsafe fn send_single_request<T, F, R, C>(
        &self,
        object: *mut Header,
        f: F,
        then: C,
    ) -> Result<(), (Refusal, (F, C))>
    where
        F: Operation<T, R>,
        C: FnOnce(R),
    {
        debug_assert!(CallRecord::<T, F, R>::INLINE);
        let entry = self.reaper.callbacks.push(Callback::<T, F, R, C>::UNITS);
        // SAFETY: the caller has made room for a callback.
        unsafe { Callback::<T, F, R, C>::write(entry, self.position(), then) };
        // SAFETY: the entry's first word, written above. It takes the place of the reap function,
        // which is for the ring.
        unsafe { entry.cast::<Take>().write(take::<T, F, R, C>) };
        let mut frame = CallRecord::<T, F, R>::frame();
        // SAFETY: nothing is in flight, so the line is free; the call fits it, so the frame is not
        // used.
        let mail = unsafe { self.send_call::<T, F, R>(object, f, &mut frame) };
        self.single_request.state.set(State::Sent(mail));
        self.single_request.is_first_fault.set(!self.has_faults());
        self.stop_fast_path();
        if self.accept_call(mail) {
            self.mark_single_request();
            return Ok(());
        }
        self.take_back(mail);
        self.single_request.state.set(State::None);
        self.reaper.callbacks.pop(Callback::<T, F, R, C>::UNITS);
        // SAFETY: the trustee has ended without running the call, and `take_back` has withdrawn it.
        let f = unsafe { CallRecord::<T, F, R>::take(self.call_record()) };
        // SAFETY: written above, and popped from the queue, so it is never reaped.
        let then = unsafe { Callback::<T, F, R, C>::take(entry) };
        Err((Refusal::Closed, (f, then)))
    }

    /// Whether the answer of a single request is still to come, so that publishing must wait.
    #[inline(always)]
    pub(super) fn is_single_request_unanswered(&self) -> bool {
        let State::Sent(mail) = self.single_request.state.get() else {
            return false;
        };
        let done = self.channel().done();
        if !done.answers(mail) {
            self.channel().prefetch_mail();
            return true;
        }
        let (line, own) = (self.call_record(), self.single_request.record());
        memory::read(line, 2 + MAIL_WORDS);
        // SAFETY: the call is answered, so the line is the client's. Some of its words may not have
        // been written.
        unsafe { line.cast::<Record>().copy_to_nonoverlapping(own.cast(), 1) };
        self.single_request.state.set(State::Answered(done));
        false
    }

    /// Takes the answer of the single request, if there is one, and runs its callback. Returns
    /// false if the answer is still to come: then nothing later can be reaped either.
    #[inline(always)]
    pub(super) fn reap_single_request(&self) -> bool {
        if !self.single_request.is_pending() {
            return true;
        }
        if self.is_single_request_unanswered() {
            return false;
        }
        self.take_single_request();
        true
    }

    /// Waits until the pending single request is answered and copied out, so that the mail line is
    /// free for another call.
    #[cold]
    pub(super) fn clear_line(&self) {
        self.wait_until(&mark::LINE, None, || !self.is_single_request_unanswered());
    }

    fn take_single_request(&self) {
        let State::Answered(done) = self.single_request.state.get() else {
            return;
        };
        self.observe_single_answer();
        // Requests sent after it wait to be published.
        self.flush();
        let entry = self.reaper.callbacks.at(self.reaper.reaped().callback());
        // SAFETY: `send_single_request` has written the oldest entry, since everything before it
        // was reaped.
        let take = unsafe { entry.cast::<Take>().read() };
        if done.is_fault() {
            // SAFETY: the request was answered with a fault, which nobody has taken.
            let payload = unsafe { take_fault(self.single_request.record()) };
            self.report_own_fault(payload, self.single_request.is_first_fault.get());
        }
        // SAFETY: the entry has this function for its type, and its request is answered.
        unsafe { take(self, done.is_fault()) };
    }
}

/// The function of type [`Take`] for a request of these types.
///
/// # Safety
/// The same as for [`Take`].
unsafe fn take<T, F, R, C>(client: &Client, is_fault: bool)
where
    F: Operation<T, R>,
    C: FnOnce(R),
{
    let reaped = client.reaper.reaped();
    // SAFETY: the oldest entry is of this type, as the caller promises, and is taken once.
    let then =
        unsafe { Callback::<T, F, R, C>::take(client.reaper.callbacks.at(reaped.callback())) };
    // Before the callback runs, as in `Callback::reap`.
    client
        .reaper
        .set_reaped(reaped.after(Callback::<T, F, R, C>::UNITS, 0));
    client.single_request.state.set(State::None);
    if !is_fault {
        // SAFETY: answered without a fault, and the record is a copy of the line.
        then(unsafe { CallRecord::<T, F, R>::result(client.single_request.record()) });
    }
}
