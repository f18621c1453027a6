//! A request whose result goes into a slot: what a future is about.
//!
//! ```text
//!  [label][slot][captures …]
//! ```
//! The slot has a word of its own, apart from the captures: it is needed still when these
//! have been consumed by a closure that panicked. The client has no callback for such a
//! request and takes no answer. It counts in the window until it has been executed.

use super::client::{Client, Patience, Place, Refusal};
use super::label::Label;
use super::lane::Lane;
use super::request::{Cursors, Packed, Vtable, read_label, write_label};
use super::ring::MAX_CAPTURE_WORDS;
use super::room::Room;
use super::word::{Position, is_past, step};
use crate::future::{ApplyFuture, Kept, SlotPtr};
use crate::object::{Header, Object};
use corelay_sync::facade::memory;
use std::any::{Any, type_name};
use std::marker::PhantomData;

/// A request in the ring: `F` on a `T`, giving `R` to a future.
pub(crate) struct Ask<T, F, R>(PhantomData<(T, F, R)>);

/// One word less than of other requests: the slot takes it.
type Captures<F> = Packed<F, { MAX_CAPTURE_WORDS - 1 }>;

/// Slots that a trustee fetches before it gets to them. Each was last written by the client.
const AHEAD: usize = 6;

impl<T, F: FnOnce(&mut T) -> R, R> Ask<T, F, R> {
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

    fn label(object: *mut Header) -> Option<Label> {
        Label::new(Self::VTABLE, object)
    }

    /// As [`Label::of_fitting`].
    #[inline(always)]
    pub(crate) fn label_of_fitting(object: *mut Header) -> Option<Label> {
        Label::of_fitting(Self::VTABLE, object)
    }

    /// # Safety
    /// As [`Then::write`](super::request::Then::write); the slot is of a future of `R`.
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

    unsafe fn run(mut record: *mut u64, mut at: Cursors, lane: &Lane, stop: u32) -> Cursors {
        // SAFETY: it begins with a label.
        let mut label = unsafe { read_label(record) };
        let mut ahead = at.request;
        loop {
            for _ in 0..2 {
                ahead = Self::fetch_slot(ahead, at.request, label, lane, stop);
            }
            // SAFETY: of this type, by the vtable.
            let slot = unsafe { slot_of(record) };
            memory::read(record.wrapping_add(2), Captures::<F>::WORDS);
            let object = label.object().cast::<Object<T>>();
            // SAFETY: as in `Then::run`.
            let value = unsafe { Object::value(object) };
            // SAFETY: as above, and run once.
            let result: R = unsafe { Captures::<F>::run(record.wrapping_add(2), value) };
            // SAFETY: its own slot, once; the closure has ended well.
            unsafe { Kept::complete(slot, result) };
            at.request = at.request.after(Self::STEP);
            if !is_past(stop, at.request.cursor()) || lane.has_nested() {
                return at;
            }
            record = lane.request(at.request.cursor());
            // SAFETY: published, so it begins with a label.
            let next = unsafe { read_label(record) };
            if !next.is_of_kind(label) {
                return at;
            }
            label = next;
            lane.stand_at(at);
        }
    }

    /// Fetches the slot of the record at `ahead`, unless that is of another type, or far
    /// from `at`, or not published; then the position behind it.
    #[inline(always)]
    fn fetch_slot(ahead: Position, at: Position, label: Label, lane: &Lane, stop: u32) -> Position {
        // Both are ahead of `at`.
        let near = (AHEAD * Self::UNITS + 1) as u32;
        let published = stop.wrapping_sub(at.cursor());
        if ahead.cursor().wrapping_sub(at.cursor()) >= published.min(near) {
            return ahead;
        }
        let record = lane.request(ahead.cursor());
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
        unsafe { Kept::<R>::fail(slot, payload) };
    }
}

/// # Safety
/// `record` holds an [`Ask`].
#[inline(always)]
unsafe fn slot_of(record: *mut u64) -> SlotPtr {
    memory::read(record.wrapping_add(1), 1);
    // SAFETY: the caller's duty.
    unsafe { record.wrapping_add(1).cast::<SlotPtr>().read() }
}

impl Client {
    /// Asks for `f`; its result goes to the future.
    ///
    /// # Safety
    /// `object` is an `Object<T>` of this client's trustee and alive while the call lasts;
    /// nothing borrows.
    #[inline(always)]
    pub(crate) unsafe fn ask<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
        patience: Patience,
    ) -> Result<ApplyFuture<R>, (Refusal, F)>
    where
        F: FnOnce(&mut T) -> R,
    {
        let label = Ask::<T, F, R>::label(object);
        let Some(place) = self.place(label, Ask::<T, F, R>::UNITS) else {
            // SAFETY: the caller's duties.
            return unsafe { self.ask_slowly(object, f, patience) };
        };
        let at = place.at;
        // SAFETY: just asked; the rest is the caller's duty.
        let (future, awake) = unsafe { self.write_ask::<T, F, R>(place, f) };
        if awake {
            Ok(future)
        } else {
            // SAFETY: just written.
            unsafe { self.rouse_or_retract_ask::<T, F, R>(at, future) }
        }
    }

    /// The request does not go the fast way.
    ///
    /// # Safety
    /// As [`ask`](Self::ask).
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn ask_slowly<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
        patience: Patience,
    ) -> Result<ApplyFuture<R>, (Refusal, F)>
    where
        F: FnOnce(&mut T) -> R,
    {
        let _call = self.thread.enter_call();
        if self.is_own() && self.runs_at_once() {
            // SAFETY: just asked; the rest is the caller's duty.
            return Ok(unsafe { self.run_own_ask::<T, F, R>(object, f) });
        }
        let Some(label) = Ask::<T, F, R>::label(object) else {
            // SAFETY: the caller's duties.
            return unsafe { self.ask_by_call(object, f) };
        };
        match self.make_room(Ask::<T, F, R>::UNITS, false, patience) {
            Room::Here => {}
            Room::None => return Err((Refusal::Full, f)),
            // SAFETY: the caller's duties.
            Room::NotInCallback => return unsafe { self.ask_by_call(object, f) },
        }
        let place = self.next_place(label, Ask::<T, F, R>::UNITS);
        let at = place.at;
        // SAFETY: `make_room` has made it; the rest is the caller's duty.
        let (mut future, awake) = unsafe { self.write_ask::<T, F, R>(place, f) };
        self.flush();
        if !awake {
            // SAFETY: just written.
            future = unsafe { self.rouse_or_retract_ask::<T, F, R>(at, future) }?;
        }
        self.thread.raise_held();
        Ok(future)
    }

    /// Writes a request; false where the trustee has to be roused.
    ///
    /// # Safety
    /// There is room; the rest as [`ask`](Self::ask).
    #[inline(always)]
    pub(crate) unsafe fn write_ask<T, F, R>(&self, place: Place<'_>, f: F) -> (ApplyFuture<R>, bool)
    where
        F: FnOnce(&mut T) -> R,
    {
        let Place {
            head,
            at,
            next,
            label,
        } = place;
        let (future, slot) = ApplyFuture::new(&self.thread.pools);
        let record = self.request(at, Ask::<T, F, R>::UNITS);
        // SAFETY: there is room.
        unsafe { Ask::<T, F, R>::write(record, label, slot, f) };
        (future, self.advance(head, next))
    }

    /// Rouses the trustee for the request just written at `at`, or takes it back.
    ///
    /// # Safety
    /// The newest request is an `Ask<T, F, R>`, written at `at`.
    #[cold]
    pub(crate) unsafe fn rouse_or_retract_ask<T, F, R>(
        &self,
        at: Position,
        future: ApplyFuture<R>,
    ) -> Result<ApplyFuture<R>, (Refusal, F)>
    where
        F: FnOnce(&mut T) -> R,
    {
        if self.rouse_or_retract(at) {
            return Ok(future);
        }
        // Not executed, and never will be.
        future.retract();
        // SAFETY: as above.
        let f = unsafe { Ask::<T, F, R>::take(self.request(at, Ask::<T, F, R>::UNITS)) };
        Err((Refusal::Closed, f))
    }

    /// # Safety
    /// As [`ask`](Self::ask).
    #[cold]
    unsafe fn ask_by_call<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<ApplyFuture<R>, (Refusal, F)>
    where
        F: FnOnce(&mut T) -> R,
    {
        if self.may_not_call() {
            return Err((Refusal::Full, f));
        }
        // SAFETY: the caller's duties.
        match unsafe { self.call::<T, F, R>(object, f) } {
            Ok(result) => Ok(ApplyFuture::ready(&self.thread.pools, result)),
            Err(f) => Err((Refusal::Closed, f)),
        }
    }
}
