//! A launch in the ring: its closure goes into a coroutine of the trustee's thread.
//!
//! ```text
//!  [label][slot][closure, boxed]
//! ```
//! The request is executed when its coroutine has been made: the tail goes on. Its client counts it
//! until the closure has ended, by a [`Ticket`]. As of an [`ask`](super::ask), the result goes into a
//! slot.

use super::client::{Client, Patience, Refusal};
use super::label::Label;
use super::lane::Lane;
use super::request::{Cursors, Vtable, read_label, write_label};
use super::room::Room;
use super::word::step;
use crate::discard::discard;
use crate::future::{ApplyFuture, Kept, SlotPtr};
use crate::held::circle::{self, Number, address};
use crate::held::launched::{Launch as Body, Request, Ticket, Typed};
use crate::object::Header;
use crate::serving::Serving;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::memory;
use std::any::{Any, type_name};
use std::marker::PhantomData;

/// A request in the ring: `F` on a `T`, in a coroutine, giving `R` to a handle.
struct Launch<T, F, R>(PhantomData<(T, F, R)>);

impl<T, F: FnOnce(&mut T) -> R, R> Launch<T, F, R> {
    /// Units taken in the request ring.
    const UNITS: usize = 3;

    const STEP: u64 = step(Self::UNITS);

    const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: Some(Self::fault),
        launch: Some(Self::number),
        step: Self::STEP,
        answer_units: 0,
        name: type_name::<F>,
    };

    /// # Safety
    /// `record` points at [`Self::UNITS`] writable words.
    unsafe fn write(record: *mut u64, label: Label, slot: SlotPtr, request: Request<F>) {
        let typed = Box::new(Typed::<T, F, R>::new(request));
        // SAFETY: the caller's duty.
        unsafe { write_label(record, label) };
        memory::write(record.wrapping_add(1), 2);
        // SAFETY: the caller's duty.
        unsafe { record.wrapping_add(1).cast::<SlotPtr>().write(slot) };
        let boxed = Box::into_raw(typed);
        // SAFETY: the caller's duty.
        unsafe {
            record
                .wrapping_add(2)
                .cast::<*mut Typed<T, F, R>>()
                .write(boxed)
        };
    }

    /// The request, which stays in the record.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been taken.
    unsafe fn peek(record: *mut u64) -> *mut Typed<T, F, R> {
        memory::read(record.wrapping_add(2), 1);
        // SAFETY: the caller's duty.
        unsafe { record.wrapping_add(2).cast::<*mut Typed<T, F, R>>().read() }
    }

    /// Takes the request.
    ///
    /// # Safety
    /// As [`peek`](Self::peek); once.
    unsafe fn take(record: *mut u64) -> Box<Typed<T, F, R>> {
        // SAFETY: the caller's duty.
        let boxed = unsafe { Self::peek(record) };
        // SAFETY: from `Box::into_raw` in `write`, once.
        unsafe { Box::from_raw(boxed) }
    }

    unsafe fn number(record: *mut u64) -> Number {
        // SAFETY: the caller's duty.
        let boxed = unsafe { Self::peek(record) };
        // SAFETY: it stays in the record meanwhile.
        unsafe { &*boxed }.request.number
    }

    unsafe fn run(record: *mut u64, at: Cursors, lane: &Lane, _stop: u32) -> Cursors {
        // SAFETY: it begins with a label.
        let object = unsafe { read_label(record) }.object();
        // SAFETY: of this type, by the vtable, and run once.
        let request = unsafe { Self::take(record) };
        // SAFETY: on its object, by its trustee, which has not found that held.
        unsafe { begin::<T, F, R>(lane.serving(), object, request) };
        Cursors {
            request: at.request.after(Self::STEP),
            answer: at.answer,
        }
    }

    unsafe fn discard(record: *mut u64) {
        // SAFETY: the caller's duty.
        drop(unsafe { Self::take(record) });
    }

    unsafe fn fault(record: *mut u64, payload: Box<dyn Any + Send>) {
        memory::read(record.wrapping_add(1), 1);
        // SAFETY: of this type.
        let slot = unsafe { record.wrapping_add(1).cast::<SlotPtr>().read() };
        // SAFETY: its own slot, once: the closure does not run.
        unsafe { Kept::<R>::fail(slot, payload) };
    }
}

/// Has `request` run in a coroutine; fails its slot where there can be none.
///
/// # Safety
/// `object` is an `Object<T>` of the trustee that `serving` is of, alive and not held.
unsafe fn begin<T, F, R>(serving: &Serving, object: *mut Header, request: Box<Typed<T, F, R>>)
where
    F: FnOnce(&mut T) -> R,
{
    let slot = request.request.slot;
    let body: Box<dyn Body + '_> = request;
    // SAFETY: only the lifetime changes: a launch's closure borrows nothing, by `Client::launch`.
    let body = unsafe { std::mem::transmute::<Box<dyn Body + '_>, Box<dyn Body>>(body) };
    // SAFETY: the caller's duties.
    if let Err(why) = unsafe { serving.launch(object, body) } {
        // SAFETY: its own slot, once: it will not run.
        unsafe { Kept::<R>::fail(slot, Box::new(why)) };
    }
}

impl super::Channel {
    /// A launch of its client has ended.
    pub(crate) fn end_launch(&self) {
        // Release: pairs with the Acquire of `Client::has_launches`; what the closure did comes
        // before. An addition: coroutines of the trustee's thread and a client that takes its
        // request back do it.
        self.launches.fetch_add(1, Ordering::Release);
        self.sleeper.wake_if_asleep();
    }
}

impl Client {
    /// True while closures that it has launched have not ended.
    pub(super) fn has_launches(&self) -> bool {
        // Acquire: pairs with the Release of `end_launch`.
        self.launched.get() > 0
            && self.channel().launches.load(Ordering::Acquire) != self.launched.get()
    }

    /// Launches `f`.
    ///
    /// # Safety
    /// `object` is an `Object<T>` of this client's trustee, which is hosted, and alive while the
    /// call lasts; nothing borrows.
    #[cold]
    pub(crate) unsafe fn launch<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
        patience: Patience,
    ) -> Result<(ApplyFuture<R>, Number), (Refusal, F)>
    where
        F: FnOnce(&mut T) -> R,
    {
        let _call = self.thread.enter_call();
        let label = Label::new(Launch::<T, F, R>::VTABLE, object);
        let has_room = match self.make_room(Launch::<T, F, R>::UNITS, false, patience) {
            Room::Here => true,
            Room::None => return Err((Refusal::Full, f)),
            Room::NotInCallback if self.may_not_call() => return Err((Refusal::Full, f)),
            Room::NotInCallback => false,
        };
        let (future, slot) = ApplyFuture::new(&self.thread.pools);
        let parent = self
            .thread
            .launch
            .map(|launch| (launch, address(self.channel)));
        let number = circle::number(&self.trustee, parent);
        self.launched.set(self.launched.get() + 1);
        let request = Request {
            f: Box::new(f),
            slot,
            number,
            ticket: Ticket::new(&self.owned, number),
        };
        let refused = match label {
            // SAFETY: there is room; the rest is the caller's duty.
            Some(label) if has_room => unsafe {
                self.launch_by_ring::<T, F, R>(label, slot, request)
            },
            // SAFETY: the caller's duties.
            _ => unsafe { self.launch_by_call::<T, F, R>(object, request) },
        };
        if let Some(request) = refused {
            future.retract();
            return Err((Refusal::Closed, *request.f));
        }
        if matches!(patience, Patience::Wait | Patience::Try) {
            self.thread.raise_held();
        }
        Ok((future, number))
    }

    /// Gives the request back where the trustee has ended.
    ///
    /// # Safety
    /// There is room; the rest as [`launch`](Self::launch).
    unsafe fn launch_by_ring<T, F, R>(
        &self,
        label: Label,
        slot: SlotPtr,
        request: Request<F>,
    ) -> Option<Request<F>>
    where
        F: FnOnce(&mut T) -> R,
    {
        let at = self.position();
        let record = self.request(at, Launch::<T, F, R>::UNITS);
        // SAFETY: there is room.
        unsafe { Launch::<T, F, R>::write(record, label, slot, request) };
        let is_awake = self.advance(self.head(), at.after(Launch::<T, F, R>::STEP));
        self.flush();
        if is_awake || self.rouse_or_retract(at) {
            return None;
        }
        let record = self.request(at, Launch::<T, F, R>::UNITS);
        // SAFETY: not executed, and never will be.
        Some(unsafe { Launch::<T, F, R>::take(record) }.request)
    }

    /// As a lone call that begins it, where there is no label, or a callback finds no room. Gives the
    /// request back where the trustee has ended.
    ///
    /// # Safety
    /// As [`launch`](Self::launch).
    unsafe fn launch_by_call<T, F, R>(
        &self,
        object: *mut Header,
        request: Request<F>,
    ) -> Option<Request<F>>
    where
        F: FnOnce(&mut T) -> R,
    {
        let slot = request.slot;
        let mut request = Some(Box::new(Typed::<T, F, R>::new(request)));
        let call = |_: &mut T| {
            if let Some(request) = request.take() {
                // SAFETY: the call runs on its object, which is not held.
                Serving::with_current(|serving| unsafe {
                    begin::<T, F, R>(serving, object, request)
                });
            }
        };
        // SAFETY: the caller's duties; the call waits.
        match unsafe { self.call::<T, _, ()>(object, call) }.map_err(drop) {
            Ok(Ok(())) => None,
            Ok(Err(payload)) => {
                discard(request);
                // SAFETY: its own slot, once: it has not begun.
                unsafe { Kept::<R>::fail(slot, payload) };
                None
            }
            Err(()) => request.map(|typed| typed.request),
        }
    }
}
