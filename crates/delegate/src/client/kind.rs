//! The kinds of requests, and the one way that all of them go.
//!
//! ```text
//!   send ──► reserve ── room ──► write ── the trustee is awake ──► receipt
//!               │                  └── asleep or gone ──► rouse, or take back
//!               └─ none ──► send_slowly: run at once, a mail call, or make room and write
//! ```
//! A kind says what is sent and what its sender gets for it, how both are written and taken back,
//! and what happens if the request cannot go into the ring: it runs on the thread's own member, or
//! goes as a mail call.

use crate::client::room::Room;
use crate::client::{Client, Patience, Refusal, Reservation};
use crate::object::Header;
use crate::object::handle::Handle;
use crate::request::Vtable;
use crate::request::label::Label;
use crate::wire::word::Position;

/// A kind of request on a `T`.
pub(crate) trait Kind<T>: Sized {
    /// The user's values in the request: the closure, and the callback if there is one. They are
    /// given back if the request is not taken.
    type Sent;
    /// The value that the sender gets at once, by which it gets the answer later, such as a future;
    /// `()` if there is none.
    type Receipt;

    /// The name of the method that makes such requests, such as `apply_then`, for messages.
    const CALL: &'static str;
    /// Units (words of 8 bytes) that the request takes in the request ring.
    const UNITS: usize;
    /// Units that the request takes in the client's queue of callbacks; 0 if it has no callback.
    const CALLBACK_UNITS: usize = 0;
    /// Whether such a request may go as a [single request](Self::send_single), in the mail line.
    const MAY_BE_SINGLE: bool = false;
    /// The functions by which the trustee runs or drops the request.
    const VTABLE: &'static Vtable;

    /// The name of the closure's type.
    fn closure() -> &'static str {
        (Self::VTABLE.name)()
    }

    /// Writes the request's record into the ring and its callback, if it has one, into the queue of
    /// callbacks.
    ///
    /// # Safety
    /// There is room for the record at `at`, and for the callback. `label` is of this kind and of
    /// an `Object<T>`.
    unsafe fn write(client: &Client, at: Position, label: Label, sent: Self::Sent)
    -> Self::Receipt;

    /// Takes the request that [`write`](Self::write) has written out of the ring again, and gives
    /// the user's values back.
    ///
    /// # Safety
    /// The request is the client's newest, at `at`. It has not been executed, and never will be.
    unsafe fn take_back(client: &Client, at: Position, receipt: Self::Receipt) -> Self::Sent;

    /// Runs the request at once, because its object belongs to the member of a flat team that this
    /// thread is. Gives it back if its callback may not run now and cannot be left for later.
    ///
    /// # Safety
    /// [`Client::runs_at_once`] has returned true; `object` is an `Object<T>` of that member, and
    /// lives.
    unsafe fn run_own(
        client: &Client,
        object: *mut Header,
        sent: Self::Sent,
        patience: Patience,
    ) -> Result<Self::Receipt, Self::Sent>;

    /// Sends the request as a mail call, because it has no label or is made in a callback without
    /// room.
    ///
    /// # Safety
    /// The caller keeps the duties of [`Client::send`].
    unsafe fn send_as_call(
        client: &Client,
        object: *mut Header,
        sent: Self::Sent,
        patience: Patience,
    ) -> Result<Self::Receipt, (Refusal, Self::Sent)>;

    /// Sends the request in the mail line instead of the ring. Its answer is reaped like others.
    ///
    /// # Safety
    /// The caller keeps the duties of [`Client::send`]. [`MAY_BE_SINGLE`](Self::MAY_BE_SINGLE) is
    /// true, [`Client::may_send_single_request`] has returned true, and there is room for a
    /// callback.
    unsafe fn send_single(
        _client: &Client,
        _object: *mut Header,
        _sent: Self::Sent,
    ) -> Result<Self::Receipt, (Refusal, Self::Sent)> {
        unreachable!("such requests go in the ring")
    }

    /// Queues the request inside a delegated closure, until that has ended. Gives it back with a
    /// reason if the queue is full or the trustee has ended, and without one if such requests do
    /// not wait there.
    ///
    /// # Safety
    /// The closures borrow nothing.
    unsafe fn nest(
        _handle: &Handle<T>,
        sent: Self::Sent,
    ) -> Result<Self::Receipt, (Option<Refusal>, Self::Sent)> {
        Err((None, sent))
    }
}

impl Client {
    /// Reserves the place of the next request in the ring, for the fast path. Returns `None` if the
    /// request has no label, or if the limits say that [`send_slowly`](Self::send_slowly) has to
    /// look first.
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

    /// Writes a request into a reserved place and advances the head. Returns the receipt, and false
    /// beside it if the trustee is not awake and has to be roused.
    ///
    /// # Safety
    /// The caller keeps the duties of [`send`](Self::send), and has sent nothing since the
    /// reservation.
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
        // SAFETY: `reserve` found room at `at` for this label; the caller answers for object and
        // borrows.
        let receipt = unsafe { K::write(self, at, label, sent) };
        (receipt, self.advance(head, next))
    }

    /// Sends a request: by the fast path if it fits the limits, otherwise by
    /// [`send_slowly`](Self::send_slowly). If it is refused, gives the reason and the user's values
    /// back.
    ///
    /// # Safety
    /// `object` is an `Object<T>` of this client's trustee and alive while the call lasts. If the
    /// closures borrow, the caller does not leave what they borrow before the request has been
    /// reaped.
    #[inline(always)]
    pub(crate) unsafe fn send<T, K: Kind<T>>(
        &self,
        object: *mut Header,
        sent: K::Sent,
        patience: Patience,
    ) -> Result<K::Receipt, (Refusal, K::Sent)> {
        let label = Label::new(K::VTABLE, object);
        let Some(place) = self.reserve::<T, K>(label) else {
            // SAFETY: the caller keeps the same duties.
            return unsafe { self.send_slowly::<T, K>(object, sent, patience) };
        };
        let at = place.at;
        // SAFETY: nothing has been sent since `reserve`; the caller answers for object and borrows.
        let (receipt, is_awake) = unsafe { self.write::<T, K>(place, sent) };
        if is_awake {
            Ok(receipt)
        } else {
            // SAFETY: `write` has written the newest request at `at` and returned this receipt.
            unsafe { self.rouse_or_take_back::<T, K>(at, receipt) }
        }
    }

    /// Sends a request that the fast path could not take: runs it at once on the thread's own
    /// member, sends it by the mail line, or makes room for it, with as much patience as the caller
    /// has.
    ///
    /// # Safety
    /// The caller keeps the duties of [`send`](Self::send).
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
            // SAFETY: `runs_at_once` has returned true; the caller answers for the object.
            let ran = unsafe { K::run_own(self, object, sent, patience) };
            return ran.map_err(|sent| (Refusal::Full, sent));
        }
        let Some(label) = Label::new(K::VTABLE, object) else {
            // SAFETY: the caller keeps the same duties.
            return unsafe { K::send_as_call(self, object, sent, patience) };
        };
        match self.make_room(K::UNITS, K::CALLBACK_UNITS > 0, patience) {
            Room::Here => {}
            Room::None => return Err((Refusal::Full, sent)),
            Room::NotInCallback => {
                // SAFETY: the caller keeps the same duties.
                return unsafe { K::send_as_call(self, object, sent, patience) };
            }
        }
        let receipt = if K::MAY_BE_SINGLE && self.may_send_single_request() {
            self.observe_request(None);
            // SAFETY: both conditions hold, and `make_room` has made room for a callback; the
            // caller answers for object and borrows.
            unsafe { K::send_single(self, object, sent) }?
        } else {
            let place = self.next_place(label, K::UNITS);
            let at = place.at;
            if K::CALLBACK_UNITS > 0 {
                self.observe_request(Some(at));
            }
            // SAFETY: `make_room` has made room, and nothing has been sent since; the caller
            // answers for object and borrows.
            let (receipt, is_awake) = unsafe { self.write::<T, K>(place, sent) };
            self.flush();
            if is_awake {
                receipt
            } else {
                // SAFETY: `write` has written the newest request at `at` and returned this receipt.
                unsafe { self.rouse_or_take_back::<T, K>(at, receipt) }?
            }
        };
        if patience.raises() {
            self.thread.raise_held();
        }
        Ok(receipt)
    }

    /// Rouses the trustee for the newest request, at `at`, or takes the request back if the trustee
    /// has ended.
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
        // SAFETY: `rouse_or_retract` says that the trustee has ended without running the newest
        // request.
        let sent = unsafe { K::take_back(self, at, receipt) };
        Err((Refusal::Closed, sent))
    }
}
