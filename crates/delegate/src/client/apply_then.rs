//! The kinds [`ApplyThen`], whose answer goes to the sender's callback, and [`Post`], which has no
//! answer.

use crate::client::fallback_call::leave;
use crate::client::kind::Kind;
use crate::client::nested::{self, Nests};
use crate::client::{Client, Patience, Refusal};
use crate::context::serving::Serving;
use crate::object::Header;
use crate::object::handle::Handle;
use crate::operation::Operation;
use crate::request::label::Label;
use crate::request::{ApplyRecord, CallRecord, Callback, Vtable};
use crate::wire::word::Position;
use std::marker::PhantomData;

/// A request of [`Trust::apply_then`](crate::Trust::apply_then): `F`, whose answer `R` goes to `C`.
pub(crate) struct ApplyThen<F, R, C>(PhantomData<(F, R, C)>);

impl<T, F, R, C> Kind<T> for ApplyThen<F, R, C>
where
    F: Operation<T, R>,
    C: FnOnce(R),
{
    type Sent = (F, C);
    type Receipt = ();

    const CALL: &'static str = "Trust::apply_then";
    const UNITS: usize = ApplyRecord::<T, F, R>::UNITS;
    const CALLBACK_UNITS: usize = Callback::<T, F, R, C>::UNITS;
    const MAY_BE_SINGLE: bool = CallRecord::<T, F, R>::INLINE;
    const VTABLE: &'static Vtable = ApplyRecord::<T, F, R>::VTABLE;

    #[inline(always)]
    unsafe fn write(client: &Client, at: Position, label: Label, (f, then): (F, C)) {
        let entry = client.reaper.callbacks.push(Callback::<T, F, R, C>::UNITS);
        // SAFETY: the caller has made room for the callback.
        unsafe { Callback::<T, F, R, C>::write(entry, at, then) };
        let record = client.request(at, ApplyRecord::<T, F, R>::UNITS);
        // SAFETY: the caller has made room for the record at `at`, and the label is of this kind.
        unsafe { ApplyRecord::<T, F, R>::write(record, label, f) };
    }

    unsafe fn take_back(client: &Client, at: Position, (): ()) -> (F, C) {
        let entry = client.reaper.callbacks.pop(Callback::<T, F, R, C>::UNITS);
        let record = client.request(at, ApplyRecord::<T, F, R>::UNITS);
        // SAFETY: the request was written at `at` and never executed, as the caller promises.
        let f = unsafe { ApplyRecord::<T, F, R>::take(record) };
        // SAFETY: the newest callback belongs to the newest request, and is never reaped.
        let then = unsafe { Callback::<T, F, R, C>::take(entry) };
        (f, then)
    }

    #[inline]
    unsafe fn run_own(
        client: &Client,
        object: *mut Header,
        (f, then): (F, C),
        patience: Patience,
    ) -> Result<(), (F, C)> {
        let inside = client.thread.in_callback();
        if inside && !client.thread.may_leave_callback(client.window()) {
            return Err((f, then));
        }
        // SAFETY: the caller has asked `runs_at_once` and answers for the object.
        match unsafe { client.run_own::<T, F, R>(object, f) } {
            Ok(answer) if inside => leave(client, Box::new(move || then(answer))),
            Ok(answer) => client.thread.run_callback(|| then(answer)),
            Err(payload) => client.thread.report_own_fault(payload),
        }
        if patience.raises() {
            client.raise_own();
        }
        Ok(())
    }

    #[cold]
    unsafe fn send_as_call(
        client: &Client,
        object: *mut Header,
        (f, then): (F, C),
        patience: Patience,
    ) -> Result<(), (Refusal, (F, C))> {
        if !patience.is_trustees() && !client.thread.in_callback() {
            client.reap();
        }
        if client.may_not_call() || !client.thread.may_leave_callback(client.window()) {
            return Err((Refusal::Full, (f, then)));
        }
        // SAFETY: the caller answers for the object, and for borrows until the thread has run the
        // callback that is left.
        match unsafe { client.call_holding::<T, F, R>(object, f) } {
            Ok(Ok(answer)) => leave(client, Box::new(move || then(answer))),
            Ok(Err(payload)) => client.report_own_fault(payload, false),
            Err(f) => return Err((Refusal::Closed, (f, then))),
        }
        // The next request reaps first, so that the callback that is left goes before its own.
        client.stop_fast_path();
        if patience.raises() {
            client.thread.raise_held();
        }
        Ok(())
    }

    unsafe fn send_single(
        client: &Client,
        object: *mut Header,
        (f, then): (F, C),
    ) -> Result<(), (Refusal, (F, C))> {
        // SAFETY: the caller keeps the same duties.
        unsafe { client.send_single_request(object, f, then) }
    }

    unsafe fn nest(handle: &Handle<T>, sent: (F, C)) -> Result<(), (Option<Refusal>, (F, C))> {
        // SAFETY: the caller says that the closures borrow nothing.
        unsafe { nested::push::<T, Self>(handle, sent) }
    }
}

impl<T, F, R, C> Nests<T> for ApplyThen<F, R, C>
where
    F: Operation<T, R>,
    C: FnOnce(R),
{
    unsafe fn run_here(serving: &Serving, object: *mut Header, (f, then): (F, C)) {
        // SAFETY: the caller answers for the object; no closure runs.
        match unsafe { serving.run_here::<T, F, R>(object, f) } {
            Ok(answer) => nested::run_callback(serving, || then(answer)),
            Err(payload) => {
                nested::discard(payload);
                nested::discard(then);
            }
        }
    }
}

/// A request of [`Trust::post`](crate::Trust::post): `F`, without an answer.
pub(crate) struct Post<F>(PhantomData<F>);

impl<T, F: Operation<T, ()>> Kind<T> for Post<F> {
    type Sent = F;
    type Receipt = ();

    const CALL: &'static str = "Trust::post";
    const UNITS: usize = ApplyRecord::<T, F, ()>::UNITS;
    const VTABLE: &'static Vtable = ApplyRecord::<T, F, ()>::VTABLE;

    #[inline(always)]
    unsafe fn write(client: &Client, at: Position, label: Label, f: F) {
        let record = client.request(at, ApplyRecord::<T, F, ()>::UNITS);
        // SAFETY: the caller has made room for the record at `at`, and the label is of this kind.
        unsafe { ApplyRecord::<T, F, ()>::write(record, label, f) };
    }

    unsafe fn take_back(client: &Client, at: Position, (): ()) -> F {
        let record = client.request(at, ApplyRecord::<T, F, ()>::UNITS);
        // SAFETY: the request was written at `at` and never executed, as the caller promises.
        unsafe { ApplyRecord::<T, F, ()>::take(record) }
    }

    #[inline]
    unsafe fn run_own(
        client: &Client,
        object: *mut Header,
        f: F,
        patience: Patience,
    ) -> Result<(), F> {
        // SAFETY: the caller has asked `runs_at_once` and answers for the object.
        if let Err(payload) = unsafe { client.run_own::<T, F, ()>(object, f) } {
            client.thread.report_own_fault(payload);
        }
        if patience.raises() {
            client.raise_own();
        }
        Ok(())
    }

    #[cold]
    unsafe fn send_as_call(
        client: &Client,
        object: *mut Header,
        f: F,
        _patience: Patience,
    ) -> Result<(), (Refusal, F)> {
        if client.may_not_call() {
            return Err((Refusal::Full, f));
        }
        // SAFETY: the caller answers for the object; the call waits, so borrows last.
        match unsafe { client.call::<T, F, ()>(object, f) } {
            Ok(Ok(())) => Ok(()),
            Ok(Err(payload)) => {
                client.report_own_fault(payload, false);
                Ok(())
            }
            Err(f) => Err((Refusal::Closed, f)),
        }
    }

    unsafe fn nest(handle: &Handle<T>, f: F) -> Result<(), (Option<Refusal>, F)> {
        // SAFETY: the caller says that the closure borrows nothing.
        unsafe { nested::push::<T, Self>(handle, f) }
    }
}

impl<T, F: Operation<T, ()>> Nests<T> for Post<F> {
    unsafe fn run_here(serving: &Serving, object: *mut Header, f: F) {
        // SAFETY: the caller answers for the object; no closure runs.
        if let Err(payload) = unsafe { serving.run_here::<T, F, ()>(object, f) } {
            nested::discard(payload);
        }
    }
}
