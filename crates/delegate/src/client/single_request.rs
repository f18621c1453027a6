//! A lone `apply_then`: travels in the mail line, as a call that waits does.
//!
//! Through the rings a single request costs the mail line, the request's line, the answer's
//! and the tail's. A client that is slow and has nothing in flight therefore asks in the
//! mail line and finds the answer there. What it asks for next goes into the ring as ever,
//! behind the lone one:
//!
//! ```text
//!   NONE ── send_single_request ──► SENT ── done seen ──► ANSWERED ── reaped ──► NONE
//! ```
//! While SENT the mail word stays as it is, or the trustee, seeing a larger cursor and the
//! call at once, would run the ring first. So nothing is published by mail then; the trustee
//! looks at the head by itself when it has run the call. Once ANSWERED the answer lies here
//! and the line is free: a callback of another client may want to call before this one's turn
//! comes. The callback is the oldest in the queue, since everything before it has been reaped,
//! and goes before all later ones.

use crate::client::call::take_fault;
use crate::client::mark;
use crate::client::{Client, Refusal};
use crate::object::Header;
use crate::request::{CallRecord, Callback};
use crate::wire::MAIL_WORDS;
use crate::wire::word::Mail;
use corelay_sync::facade::memory;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// The single request of a client.
#[derive(Clone, Copy)]
enum State {
    None,
    /// Not answered, as far as we have looked: the mail it went with.
    Sent(Mail),
    /// Its result, or its fault, lies in [`SingleRequest::record`].
    Answered(Mail),
}

/// Vtable and object, as in the mail line; then results or a fault.
type Record = MaybeUninit<[u64; 2 + MAIL_WORDS]>;

/// Whether a single request is under way.
pub(super) struct SingleRequest {
    state: Cell<State>,
    /// The answered request, out of the line.
    record: Cell<Record>,
    /// All that had gone wrong before it has been reported.
    is_first_fault: Cell<bool>,
    /// A poll has found nothing in flight since the last request that went the slow way.
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

    /// True from the request until its callback has been taken out.
    #[inline(always)]
    pub(super) fn is_pending(&self) -> bool {
        !matches!(self.state.get(), State::None)
    }

    fn record(&self) -> *mut u64 {
        self.record.as_ptr().cast()
    }
}

/// Takes the callback of the answered single request out of the queue and runs it, or drops it
/// where the request has faulted: the first word of its entry.
///
/// # Safety
/// The oldest entry of `client` is of this type, and its single request has been answered.
type Take = unsafe fn(client: &Client, is_fault: bool);

impl Client {
    /// True where a request that fits the line may go alone: nothing is in flight, and no
    /// stream of requests is under way either, in which this happens now and then. Not of a launched
    /// closure: it waits for everything in its line, and its calls for nothing else.
    #[inline(always)]
    pub(super) fn may_send_single_request(&self) -> bool {
        let streams = !self.single_request.has_rested.replace(false) && !self.is_slow();
        !streams && self.is_quiet() && !self.thread.in_callback() && self.thread.launch.is_none()
    }

    /// The thread has looked for answers. If it has them all, its next request is not one of
    /// a stream.
    pub(super) fn note_quiet(&self) {
        if self.is_quiet() {
            self.single_request.has_rested.set(true);
            self.stop_fast_path();
        }
    }

    /// Asks for `f` by the mail line.
    ///
    /// # Safety
    /// As [`send`](Self::send); the call fits the line, [`may_send_single_request`](Self::may_send_single_request)
    /// has said yes, and there is room for a callback.
    pub(super) unsafe fn send_single_request<T, F, R, C>(
        &self,
        object: *mut Header,
        f: F,
        then: C,
    ) -> Result<(), (Refusal, (F, C))>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        debug_assert!(CallRecord::<T, F, R>::INLINE);
        let entry = self.reaper.callbacks.push(Callback::<T, F, R, C>::UNITS);
        // SAFETY: there is room.
        unsafe { Callback::<T, F, R, C>::write(entry, self.position(), then) };
        // SAFETY: as above; in place of the reap function, which is for the ring.
        unsafe { entry.cast::<Take>().write(take::<T, F, R, C>) };
        let mut frame = CallRecord::<T, F, R>::frame();
        // SAFETY: the line is ours, no other mail call is under way; the frame is not used.
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
        // SAFETY: not run, and never will be.
        let f = unsafe { CallRecord::<T, F, R>::take(self.call_record()) };
        // SAFETY: not taken, and never will be.
        let then = unsafe { Callback::<T, F, R, C>::take(entry) };
        Err((Refusal::Closed, (f, then)))
    }

    /// True where the answer of a single request is still to come: publishing must wait.
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
        // SAFETY: answered, so the line is ours. Some of its words may not have been written.
        unsafe { line.cast::<Record>().copy_to_nonoverlapping(own.cast(), 1) };
        self.single_request.state.set(State::Answered(done));
        false
    }

    /// Takes the answer of the single request, if it is there, and runs the callback. False
    /// where it is still to come, and everything later with it.
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

    /// Waits until the mail line is free for another call.
    #[cold]
    pub(super) fn clear_line(&self) {
        self.wait_until(&mark::LINE, None, || !self.is_single_request_unanswered());
    }

    fn take_single_request(&self) {
        let State::Answered(done) = self.single_request.state.get() else {
            return;
        };
        // What was issued behind it waits for being published.
        self.flush();
        let entry = self.reaper.callbacks.at(self.reaper.reaped().callback());
        // SAFETY: the oldest entry, written by `send_single_request`.
        let take = unsafe { entry.cast::<Take>().read() };
        if done.is_fault() {
            // SAFETY: answered with a fault.
            let payload = unsafe { take_fault(self.single_request.record()) };
            self.report_own_fault(payload, self.single_request.is_first_fault.get());
        }
        // SAFETY: the entry is of that type, and its request is answered.
        unsafe { take(self, done.is_fault()) };
    }
}

/// See [`Take`].
unsafe fn take<T, F, R, C>(client: &Client, is_fault: bool)
where
    F: FnOnce(&mut T) -> R,
    C: FnOnce(R),
{
    let reaped = client.reaper.reaped();
    // SAFETY: the caller's duty.
    let then =
        unsafe { Callback::<T, F, R, C>::take(client.reaper.callbacks.at(reaped.callback())) };
    // Before the callback runs, as in `Callback::reap`.
    client
        .reaper
        .set_reaped(reaped.after(Callback::<T, F, R, C>::UNITS, 0));
    client.single_request.state.set(State::None);
    if !is_fault {
        // SAFETY: answered without a fault; the record is as the line was.
        then(unsafe { CallRecord::<T, F, R>::result(client.single_request.record()) });
    }
}
