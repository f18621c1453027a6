//! A request whose result goes into a slot: what a future is about.
//!
//! ```text
//!  [label][slot][captures …]
//! ```
//! The slot has a word of its own, apart from the captures: it is needed still when these
//! have been consumed by a closure that panicked. The client has no callback for such a
//! request and takes no answer. It counts in the window until it has been executed.

use crate::client::future::{ApplyFuture, SlotResult};
use crate::client::kind::Kind;
use crate::client::{Client, Patience, Refusal};
use crate::object::{Header, Object};
use crate::request::label::Label;
use crate::request::track::Track;
use crate::request::{Cursors, Packed, Vtable, read_label, write_label};
use crate::slots::SlotPtr;
use crate::wire::ring::MAX_CAPTURE_WORDS;
use crate::wire::word::{Position, is_past, step};
use corelay_sync::facade::memory;
use std::any::{Any, type_name};
use std::marker::PhantomData;

/// A request in the ring: `F` on a `T`, giving `R` to a future.
pub(crate) struct ApplyAsyncRecord<T, F, R>(PhantomData<(T, F, R)>);

/// One word less than of other requests: the slot takes it.
type Captures<F> = Packed<F, { MAX_CAPTURE_WORDS - 1 }>;

/// Slots that a trustee fetches before it gets to them. Each was last written by the client.
const AHEAD: usize = 6;

impl<T, F: FnOnce(&mut T) -> R, R> ApplyAsyncRecord<T, F, R> {
    /// Units taken in the request ring.
    pub(crate) const UNITS: usize = 2 + Captures::<F>::WORDS;

    const STEP: u64 = step(Self::UNITS);

    const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: Some(Self::fault),
        launch: None,
        step: Self::STEP,
        answer_units: 0,
        name: type_name::<F>,
    };

    /// # Safety
    /// As [`Then::write`](super::request::ApplyRecord::write); the slot is of a future of `R`.
    #[inline(always)]
    unsafe fn write(record: *mut u64, label: Label, slot: SlotPtr, f: F) {
        // SAFETY: the caller's duty.
        unsafe { write_label(record, label) };
        memory::write(record.wrapping_add(1), 1 + Captures::<F>::WORDS);
        // SAFETY: the caller's duty.
        unsafe { record.wrapping_add(1).cast::<SlotPtr>().write(slot) };
        // SAFETY: the caller's duty.
        unsafe { Captures::<F>::write(record.wrapping_add(2), f) };
    }

    /// Takes the closure back.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been run and never will be.
    unsafe fn take(record: *mut u64) -> F {
        memory::read(record.wrapping_add(2), Captures::<F>::WORDS);
        // SAFETY: the caller's duty.
        unsafe { Captures::<F>::read(record.wrapping_add(2)) }
    }

    unsafe fn run(mut record: *mut u64, mut at: Cursors, track: &Track, stop: u32) -> Cursors {
        // SAFETY: it begins with a label.
        let mut label = unsafe { read_label(record) };
        let mut ahead = at.request;
        loop {
            for _ in 0..2 {
                ahead = Self::fetch_slot(ahead, at.request, label, track, stop);
            }
            // SAFETY: of this type, by the vtable.
            let slot = unsafe { slot_of(record) };
            memory::read(record.wrapping_add(2), Captures::<F>::WORDS);
            let object = label.object().cast::<Object<T>>();
            // SAFETY: as in `ApplyRecord::run`.
            let value = unsafe { Object::value(object) };
            // SAFETY: as above, and run once.
            let result: R = unsafe { Captures::<F>::run(record.wrapping_add(2), value) };
            // SAFETY: its own slot, once; the closure has ended well.
            unsafe { SlotResult::complete(slot, result) };
            at.request = at.request.after(Self::STEP);
            if !is_past(stop, at.request.cursor()) || track.has_nested() {
                return at;
            }
            record = track.request(at.request.cursor());
            // SAFETY: published, so it begins with a label.
            let next = unsafe { read_label(record) };
            if !next.is_of_kind(label) {
                return at;
            }
            label = next;
            track.set_at(at);
        }
    }

    /// Fetches the slot of the record at `ahead`, unless that is of another type, or far
    /// from `at`, or not published; then the position behind it.
    #[inline(always)]
    fn fetch_slot(
        ahead: Position,
        at: Position,
        label: Label,
        track: &Track,
        stop: u32,
    ) -> Position {
        // Both are ahead of `at`.
        let near = (AHEAD * Self::UNITS + 1) as u32;
        let published = stop.wrapping_sub(at.cursor());
        if ahead.cursor().wrapping_sub(at.cursor()) >= published.min(near) {
            return ahead;
        }
        let record = track.request(ahead.cursor());
        // SAFETY: published, and all records since `at` are of this type: a record begins
        // here, and with a label.
        if !unsafe { read_label(record) }.is_of_kind(label) {
            return ahead;
        }
        // SAFETY: of this type.
        unsafe { slot_of(record) }.prefetch();
        ahead.after(Self::STEP)
    }

    unsafe fn discard(record: *mut u64) {
        // SAFETY: the caller's duty.
        unsafe { Captures::<F>::discard(record.wrapping_add(2)) };
    }

    unsafe fn fault(record: *mut u64, payload: Box<dyn Any + Send>) {
        // SAFETY: of this type; only its captures have been consumed.
        let slot = unsafe { slot_of(record) };
        // SAFETY: its own slot, once: the closure has not ended well.
        unsafe { SlotResult::<R>::fail(slot, payload) };
    }
}

/// # Safety
/// `record` holds an [`ApplyAsyncRecord`].
#[inline(always)]
unsafe fn slot_of(record: *mut u64) -> SlotPtr {
    memory::read(record.wrapping_add(1), 1);
    // SAFETY: the caller's duty.
    unsafe { record.wrapping_add(1).cast::<SlotPtr>().read() }
}

/// [`Trust::apply_async`](crate::Trust::apply_async): `F`, whose result `R` goes to a future.
pub(crate) struct ApplyAsync<F, R>(PhantomData<(F, R)>);

impl<T, F: FnOnce(&mut T) -> R, R> Kind<T> for ApplyAsync<F, R> {
    type Sent = F;
    type Receipt = ApplyFuture<R>;

    const CALL: &'static str = "Trust::apply_async";
    const UNITS: usize = ApplyAsyncRecord::<T, F, R>::UNITS;
    const VTABLE: &'static Vtable = ApplyAsyncRecord::<T, F, R>::VTABLE;

    #[inline(always)]
    unsafe fn write(client: &Client, at: Position, label: Label, f: F) -> ApplyFuture<R> {
        let (future, slot) = ApplyFuture::new(&client.thread.pools);
        let record = client.request(at, ApplyAsyncRecord::<T, F, R>::UNITS);
        // SAFETY: there is room, by the caller, and the label is of this kind.
        unsafe { ApplyAsyncRecord::<T, F, R>::write(record, label, slot, f) };
        future
    }

    unsafe fn take_back(client: &Client, at: Position, future: ApplyFuture<R>) -> F {
        future.retract();
        let record = client.request(at, ApplyAsyncRecord::<T, F, R>::UNITS);
        // SAFETY: written at `at` and not executed, by the caller.
        unsafe { ApplyAsyncRecord::<T, F, R>::take(record) }
    }

    unsafe fn run_own(
        client: &Client,
        object: *mut Header,
        f: F,
        _patience: Patience,
    ) -> Result<ApplyFuture<R>, F> {
        // SAFETY: the caller's duties, which are the same.
        let result = unsafe { client.run_own::<T, F, R>(object, f) };
        let future = ApplyFuture::ready(&client.thread.pools, result);
        client.raise_own();
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
        // SAFETY: the caller's duties, which are the same; the call waits.
        match unsafe { client.call::<T, F, R>(object, f) } {
            Ok(result) => Ok(ApplyFuture::ready(&client.thread.pools, result)),
            Err(f) => Err((Refusal::Closed, f)),
        }
    }
}
