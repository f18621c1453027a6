//! A request whose result goes into a slot, for a future.
//!
//! ```text
//!  [label][slot][captures …]
//! ```
//! The slot has a word of its own, apart from the captures: it is still needed after a closure that
//! panicked has consumed these. The client has no callback for such a request and takes no answer.
//! The request counts in the window until it has been executed.

use crate::client::future::{ApplyFuture, SlotResult};
use crate::client::kind::Kind;
use crate::client::{Client, Patience, Refusal};
use crate::object::{Header, Object};
use crate::operation::Operation;
use crate::request::label::Label;
use crate::request::track::Track;
use crate::request::{Cursors, Packed, Vtable, read_label, write_label};
use crate::slots::SlotPtr;
use crate::wire::ring::MAX_CAPTURE_WORDS;
use crate::wire::word::{Position, is_past, step};
use corelay_sync::facade::memory;
use std::any::Any;
use std::marker::PhantomData;

/// A request in the ring: `F` on a `T`, giving `R` to a future.
pub(crate) struct ApplyAsyncRecord<T, F, R>(PhantomData<(T, F, R)>);

/// The closure, packed. Captures stay inline up to one word less than in other requests, since the
/// slot's address takes a word of the record.
type Captures<F> = Packed<F, { MAX_CAPTURE_WORDS - 1 }>;

/// The number of records ahead of the running one whose slots the trustee prefetches. The client
/// has written each slot last, so its line lies in the client's cache.
const AHEAD: usize = 6;

impl<T, F: Operation<T, R>, R> ApplyAsyncRecord<T, F, R> {
    /// Units that the request takes in the request ring.
    pub(crate) const UNITS: usize = 2 + Captures::<F>::WORDS;

    const STEP: u64 = step(Self::UNITS);

    const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: Some(Self::fault),
        launch: None,
        step: Self::STEP,
        answer_units: 0,
        name: F::name,
    };

    /// Writes the record of a request: its label, the slot for its result, and its closure.
    ///
    /// # Safety
    /// `record` points at [`Self::UNITS`] writable words; `label` is of this vtable and an
    /// `Object<T>`; the slot is of a future of `R`.
    #[inline(always)]
    unsafe fn write(record: *mut u64, label: Label, slot: SlotPtr, f: F) {
        // SAFETY: the caller promises `UNITS` writable words; the label takes the first.
        unsafe { write_label(record, label) };
        memory::write(record.wrapping_add(1), 1 + Captures::<F>::WORDS);
        // SAFETY: the caller promises `UNITS` writable words; the slot takes the second.
        unsafe { record.wrapping_add(1).cast::<SlotPtr>().write(slot) };
        // SAFETY: the caller promises `UNITS` writable words; the captures take the rest.
        unsafe { Captures::<F>::write(record.wrapping_add(2), f) };
    }

    /// Takes the closure out of the record of a request that is withdrawn.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been run and never will be.
    unsafe fn take(record: *mut u64) -> F {
        memory::read(record.wrapping_add(2), Captures::<F>::WORDS);
        // SAFETY: `write` has written the closure, and nobody has run or taken it, as the caller
        // promises.
        unsafe { Captures::<F>::read(record.wrapping_add(2)) }
    }

    unsafe fn run(mut record: *mut u64, mut at: Cursors, track: &Track, stop: u32) -> Cursors {
        // SAFETY: each record in the ring begins with a label.
        let mut label = unsafe { read_label(record) };
        let mut ahead = at.request;
        loop {
            for _ in 0..2 {
                ahead = Self::fetch_slot(ahead, at.request, label, track, stop);
            }
            // SAFETY: the label's vtable says that the record is of this type.
            let slot = unsafe { slot_of(record) };
            memory::read(record.wrapping_add(2), Captures::<F>::WORDS);
            let object = label.object().cast::<Object<T>>();
            // SAFETY: the object lives until every accepted request has run, and only its trustee,
            // which runs this, touches the value.
            let value = unsafe { Object::value(object) };
            // SAFETY: the record is of this type, and its closure has not been run before.
            let result: R = unsafe { Captures::<F>::run(record.wrapping_add(2), value) };
            // SAFETY: the request's own slot, completed once: the closure has returned, so `fault`
            // is not called.
            unsafe { SlotResult::complete(slot, result) };
            at.request = at.request.after(Self::STEP);
            if !is_past(stop, at.request.cursor()) || track.has_nested() {
                return at;
            }
            record = track.request(at.request.cursor());
            // SAFETY: all before `stop` are published, so a record begins here, with a label.
            let next = unsafe { read_label(record) };
            if !next.is_of_kind(label) {
                return at;
            }
            label = next;
            track.set_at(at);
        }
    }

    /// Prefetches the slot of the record at `ahead`, and returns the position after that record.
    /// Returns `ahead` if the record is of another type than `label`'s, is more than [`AHEAD`]
    /// records after `at`, or is not published yet.
    #[inline(always)]
    fn fetch_slot(
        ahead: Position,
        at: Position,
        label: Label,
        track: &Track,
        stop: u32,
    ) -> Position {
        // Both distances are counted from `at`.
        let near = (AHEAD * Self::UNITS + 1) as u32;
        let published = stop.wrapping_sub(at.cursor());
        if ahead.cursor().wrapping_sub(at.cursor()) >= published.min(near) {
            return ahead;
        }
        let record = track.request(ahead.cursor());
        // SAFETY: published, and all records since `at` are of this type, so a record begins here,
        // with a label.
        if !unsafe { read_label(record) }.is_of_kind(label) {
            return ahead;
        }
        // SAFETY: its label says that the record is of this type.
        unsafe { slot_of(record) }.prefetch();
        ahead.after(Self::STEP)
    }

    unsafe fn discard(record: *mut u64) {
        // SAFETY: the record holds a request of this type that has not been run, as the caller
        // promises.
        unsafe { Captures::<F>::discard(record.wrapping_add(2)) };
    }

    unsafe fn fault(record: *mut u64, payload: Box<dyn Any + Send>) {
        // SAFETY: the record is of this type; only its captures have been consumed.
        let slot = unsafe { slot_of(record) };
        // SAFETY: the request's own slot, completed once: the closure has not returned.
        unsafe { SlotResult::<R>::fail(slot, payload) };
    }
}

/// The slot for the result, which the request's record holds.
///
/// # Safety
/// `record` holds an [`ApplyAsyncRecord`].
#[inline(always)]
unsafe fn slot_of(record: *mut u64) -> SlotPtr {
    memory::read(record.wrapping_add(1), 1);
    // SAFETY: `write` has written the slot into the second word of such a record.
    unsafe { record.wrapping_add(1).cast::<SlotPtr>().read() }
}

/// A request of [`Trust::apply_async`](crate::Trust::apply_async): `F`, whose result `R` goes to a
/// future.
pub(crate) struct ApplyAsync<F, R>(PhantomData<(F, R)>);

impl<T, F: Operation<T, R>, R> Kind<T> for ApplyAsync<F, R> {
    type Sent = F;
    type Receipt = ApplyFuture<R>;

    const CALL: &'static str = "Trust::apply_async";
    const UNITS: usize = ApplyAsyncRecord::<T, F, R>::UNITS;
    const VTABLE: &'static Vtable = ApplyAsyncRecord::<T, F, R>::VTABLE;

    #[inline(always)]
    unsafe fn write(client: &Client, at: Position, label: Label, f: F) -> ApplyFuture<R> {
        let (future, slot) = ApplyFuture::new(&client.thread.pools);
        let record = client.request(at, ApplyAsyncRecord::<T, F, R>::UNITS);
        // SAFETY: the caller has made room for the record at `at`, and the label is of this kind;
        // the slot is the future's.
        unsafe { ApplyAsyncRecord::<T, F, R>::write(record, label, slot, f) };
        future
    }

    unsafe fn take_back(client: &Client, at: Position, future: ApplyFuture<R>) -> F {
        future.retract();
        let record = client.request(at, ApplyAsyncRecord::<T, F, R>::UNITS);
        // SAFETY: the request was written at `at` and never executed, as the caller promises.
        unsafe { ApplyAsyncRecord::<T, F, R>::take(record) }
    }

    unsafe fn run_own(
        client: &Client,
        object: *mut Header,
        f: F,
        patience: Patience,
    ) -> Result<ApplyFuture<R>, F> {
        // SAFETY: the caller has asked `runs_at_once` and answers for the object.
        let result = unsafe { client.run_own::<T, F, R>(object, f) };
        let future = ApplyFuture::ready(&client.thread.pools, result);
        if patience.raises() {
            client.raise_own();
        }
        Ok(future)
    }

    #[cold]
    unsafe fn send_as_call(
        client: &Client,
        object: *mut Header,
        f: F,
        _patience: Patience,
    ) -> Result<ApplyFuture<R>, (Refusal, F)> {
        if client.may_not_call() {
            return Err((Refusal::Full, f));
        }
        // SAFETY: the caller answers for the object; the call waits, so borrows last.
        match unsafe { client.call::<T, F, R>(object, f) } {
            Ok(result) => Ok(ApplyFuture::ready(&client.thread.pools, result)),
            Err(f) => Err((Refusal::Closed, f)),
        }
    }
}
