//! The kinds of requests that travel in the ring, and the one way that all of them go.
//!
//! ```text
//!   issue ──► reserve ── room ──► write ── the trustee is awake ──► receipt
//!                │                  └── asleep or gone ──► rouse, or take back
//!                └─ none ──► send_slowly: a mail call, at once, or make room and write
//! ```
//! A kind says what is sent and what its sender gets for it, how both are written and taken back, and
//! what it does where the ring is no way: it runs on the thread's own member, or goes as a mail call.

use crate::client::room::Room;
use crate::client::{Client, Patience, Refusal, Reservation};
use crate::object::Header;
use crate::object::handle::Handle;
use crate::request::Vtable;
use crate::request::label::Label;
use crate::wire::word::Position;

/// A kind of request on a `T`.
pub(crate) trait Kind<T>: Sized {
    /// The closure, and the callback where there is one. Given back where the request is not taken.
    type Sent;
    /// Given to the sender at once, for its answer.
    type Receipt;

    /// The call that makes such requests, for messages.
    const CALL: &'static str;
    /// Units taken in the request ring.
    const UNITS: usize;
    /// Units taken in the queue of callbacks; 0 without a callback.
    const CALLBACK_UNITS: usize = 0;
    /// True where such a request may [go alone](Self::send_single), in the mail line.
    const MAY_BE_SINGLE: bool = false;
    const VTABLE: &'static Vtable;

    /// The closure's type.
    fn closure() -> &'static str {
        (Self::VTABLE.name)()
    }

    /// Writes record and callback.
    ///
    /// # Safety
    /// There is room for both, the record's at `at`; `label` is of this kind and of an `Object<T>`.
    unsafe fn write(client: &Client, at: Position, label: Label, sent: Self::Sent)
    -> Self::Receipt;

    /// Takes back what [`write`](Self::write) has written.
    ///
    /// # Safety
    /// It is the client's newest request, at `at`; it has not been executed, and never will be.
    unsafe fn take_back(client: &Client, at: Position, receipt: Self::Receipt) -> Self::Sent;

    /// Runs the request on the thread's own member; gives it back where a callback that may not be
    /// started finds no room.
    ///
    /// # Safety
    /// [`Client::runs_at_once`] has said so; `object` is an `Object<T>` of that member, and lives.
    unsafe fn run_own(
        client: &Client,
        object: *mut Header,
        sent: Self::Sent,
        patience: Patience,
    ) -> Result<Self::Receipt, Self::Sent>;

    /// Sends the request as a mail call, where it has no label or a callback finds no room.
    ///
    /// # Safety
    /// As [`Client::send`].
    unsafe fn send_as_call(
        client: &Client,
        object: *mut Header,
        sent: Self::Sent,
        patience: Patience,
    ) -> Result<Self::Receipt, (Refusal, Self::Sent)>;

    /// Sends the request in the mail line, to be reaped like others.
    ///
    /// # Safety
    /// As [`Client::send`]; [`MAY_BE_SINGLE`](Self::MAY_BE_SINGLE), and the client
    /// [may](Client::may_send_single_request), and has room for a callback.
    unsafe fn send_single(
        _client: &Client,
        _object: *mut Header,
        _sent: Self::Sent,
    ) -> Result<Self::Receipt, (Refusal, Self::Sent)> {
        unreachable!("such requests go in the ring")
    }

    /// Queues the request inside a delegated closure, until that has ended. Gives it back where the
    /// queue is full or the trustee has ended; without a reason where such requests do not wait there.
    ///
    /// # Safety
    /// Nothing borrows.
    unsafe fn nest(
        _handle: &Handle<T>,
        sent: Self::Sent,
    ) -> Result<Self::Receipt, (Option<Refusal>, Self::Sent)> {
        Err((None, sent))
    }
}

impl Client {
    /// The place of the next request, if it may go there at once.
    #[inline(always)]
    pub(crate) fn reserve<T, K: Kind<T>>(&self, label: Option<Label>) -> Option<Reservation<'_>> {
        let place = self.next_place(label?, K::UNITS);
        let is_limited = if K::CALLBACK_UNITS > 0 {
            self.is_callback_limited(place.next, K::CALLBACK_UNITS)
        } else {
            self.is_limited(place.next)
        };
        (!is_limited).then_some(place)
    }

    /// Writes a request into a place that it has reserved; false where the trustee has to be roused.
    ///
    /// # Safety
    /// As [`send`](Self::send); nothing has been issued since.
    #[inline(always)]
    pub(crate) unsafe fn write<T, K: Kind<T>>(
        &self,
        place: Reservation<'_>,
        sent: K::Sent,
    ) -> (K::Receipt, bool) {
        let Reservation {
            head,
            at,
            next,
            label,
        } = place;
        // SAFETY: reserved; the rest is the caller's duty.
        let receipt = unsafe { K::write(self, at, label, sent) };
        (receipt, self.advance(head, next))
    }

    /// Sends a request.
    ///
    /// # Safety
    /// `object` is an `Object<T>` of this client's trustee and alive while the call lasts. If what is
    /// sent borrows, the caller does not leave what it borrows before the request has been reaped.
    #[inline(always)]
    pub(crate) unsafe fn send<T, K: Kind<T>>(
        &self,
        object: *mut Header,
        sent: K::Sent,
        patience: Patience,
    ) -> Result<K::Receipt, (Refusal, K::Sent)> {
        let label = Label::new(K::VTABLE, object);
        let Some(place) = self.reserve::<T, K>(label) else {
            // SAFETY: the caller's duties, which are the same.
            return unsafe { self.send_slowly::<T, K>(object, sent, patience) };
        };
        let at = place.at;
        // SAFETY: just reserved; the rest is the caller's duty.
        let (receipt, is_awake) = unsafe { self.write::<T, K>(place, sent) };
        if is_awake {
            Ok(receipt)
        } else {
            // SAFETY: just written.
            unsafe { self.rouse_or_take_back::<T, K>(at, receipt) }
        }
    }

    /// Sends a request that has found no place.
    ///
    /// # Safety
    /// As [`send`](Self::send).
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn send_slowly<T, K: Kind<T>>(
        &self,
        object: *mut Header,
        sent: K::Sent,
        patience: Patience,
    ) -> Result<K::Receipt, (Refusal, K::Sent)> {
        let _call = self.thread.enter_call();
        if self.is_own() && self.runs_at_once() {
            // SAFETY: just asked; the rest is the caller's duty.
            let ran = unsafe { K::run_own(self, object, sent, patience) };
            return ran.map_err(|sent| (Refusal::Full, sent));
        }
        let Some(label) = Label::new(K::VTABLE, object) else {
            // SAFETY: the caller's duties, which are the same.
            return unsafe { K::send_as_call(self, object, sent, patience) };
        };
        match self.make_room(K::UNITS, K::CALLBACK_UNITS > 0, patience) {
            Room::Here => {}
            Room::None => return Err((Refusal::Full, sent)),
            Room::NotInCallback => {
                // SAFETY: the caller's duties, which are the same.
                return unsafe { K::send_as_call(self, object, sent, patience) };
            }
        }
        let receipt = if K::MAY_BE_SINGLE && self.may_send_single_request() {
            self.observe_request(None);
            // SAFETY: just asked; `make_room` has seen to the callback; the rest is the caller's duty.
            unsafe { K::send_single(self, object, sent) }?
        } else {
            let place = self.next_place(label, K::UNITS);
            let at = place.at;
            if K::CALLBACK_UNITS > 0 {
                self.observe_request(Some(at));
            }
            // SAFETY: `make_room` has made it; the rest is the caller's duty.
            let (receipt, is_awake) = unsafe { self.write::<T, K>(place, sent) };
            self.flush();
            if is_awake {
                receipt
            } else {
                // SAFETY: just written.
                unsafe { self.rouse_or_take_back::<T, K>(at, receipt) }?
            }
        };
        if matches!(patience, Patience::Wait | Patience::Try) {
            self.thread.raise_held();
        }
        Ok(receipt)
    }

    /// Rouses the trustee for the request just written at `at`, or takes it back where it has ended.
    ///
    /// # Safety
    /// The client's newest request is of kind `K`, written at `at`, with that receipt.
    #[cold]
    pub(crate) unsafe fn rouse_or_take_back<T, K: Kind<T>>(
        &self,
        at: Position,
        receipt: K::Receipt,
    ) -> Result<K::Receipt, (Refusal, K::Sent)> {
        if self.rouse_or_retract(at) {
            return Ok(receipt);
        }
        // SAFETY: not executed, and never will be.
        let sent = unsafe { K::take_back(self, at, receipt) };
        Err((Refusal::Closed, sent))
    }
}
