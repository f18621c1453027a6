//! A launch in the ring: its closure goes into a coroutine of the trustee's thread.
//!
//! ```text
//!  [label][slot][closure, boxed]
//! ```
//! The request is executed when its coroutine has been made: the tail goes on. Its client counts it
//! until the closure has ended, by a [`Ticket`]. As of an [`ask`](super::ask), the result goes into a
//! slot.

use crate::catch::guarded;
use crate::client::future::{ApplyFuture, SlotResult};
use crate::client::kind::Kind;
use crate::client::{Client, Patience, Refusal};
use crate::context::coroutine::{LaunchBody, Ticket};
use crate::context::discard::discard;
use crate::context::serving::Serving;
use crate::large::run_boxed;
use crate::object::{Header, Object};
use crate::request::label::Label;
use crate::request::track::Track;
use crate::request::{Cursors, Vtable, read_label, write_label};
use crate::slots::SlotPtr;
use crate::wait_graph::{self, address};
use crate::wire::LaunchId;
use crate::wire::word::{Position, step};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::memory;
use std::any::{Any, type_name};
use std::marker::PhantomData;

/// `F` on a `T`.
pub(crate) struct PendingLaunch<F> {
    /// Runs where it lies: the coroutine's stack may be small.
    pub(crate) f: Box<F>,
    pub(crate) slot: SlotPtr,
    pub(crate) number: LaunchId,
    pub(crate) ticket: Ticket,
}

/// A [`PendingLaunch`] that knows its types.
pub(crate) struct TypedLaunch<T, F, R> {
    pub(crate) request: PendingLaunch<F>,
    types: PhantomData<fn(&mut T) -> R>,
}

impl<T, F, R> TypedLaunch<T, F, R> {
    pub(crate) fn new(request: PendingLaunch<F>) -> Self {
        Self {
            request,
            types: PhantomData,
        }
    }
}

impl<T, F: FnOnce(&mut T) -> R, R> LaunchBody for TypedLaunch<T, F, R> {
    unsafe fn run(self: Box<Self>, object: *mut Header, serving: &Serving) -> Ticket {
        let PendingLaunch {
            f, slot, ticket, ..
        } = self.request;
        // SAFETY: held, so nobody else uses the value; of that type, by who made the request.
        let value = unsafe { Object::value(object.cast::<Object<T>>()) };
        // SAFETY: its own slot, once. Off the stack as soon as it is there.
        match guarded(|| unsafe { SlotResult::<R>::write(slot, run_boxed(f, value)) }) {
            // SAFETY: as above.
            Ok(()) => unsafe { SlotResult::<R>::announce(slot) },
            Err(payload) => {
                serving.poison(object);
                // SAFETY: as above.
                unsafe { SlotResult::<R>::fail(slot, payload) };
            }
        }
        ticket
    }

    fn number(&self) -> LaunchId {
        self.request.number
    }
}

/// A request in the ring: `F` on a `T`, in a coroutine, giving `R` to a handle.
struct LaunchRecord<T, F, R>(PhantomData<(T, F, R)>);

impl<T, F: FnOnce(&mut T) -> R, R> LaunchRecord<T, F, R> {
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
    unsafe fn write(record: *mut u64, label: Label, request: PendingLaunch<F>) {
        let slot = request.slot;
        let typed = Box::new(TypedLaunch::<T, F, R>::new(request));
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
                .cast::<*mut TypedLaunch<T, F, R>>()
                .write(boxed)
        };
    }

    /// The request, which stays in the record.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been taken.
    unsafe fn peek(record: *mut u64) -> *mut TypedLaunch<T, F, R> {
        memory::read(record.wrapping_add(2), 1);
        // SAFETY: the caller's duty.
        unsafe {
            record
                .wrapping_add(2)
                .cast::<*mut TypedLaunch<T, F, R>>()
                .read()
        }
    }

    /// Takes the request.
    ///
    /// # Safety
    /// As [`peek`](Self::peek); once.
    unsafe fn take(record: *mut u64) -> Box<TypedLaunch<T, F, R>> {
        // SAFETY: the caller's duty.
        let boxed = unsafe { Self::peek(record) };
        // SAFETY: from `Box::into_raw` in `write`, once.
        unsafe { Box::from_raw(boxed) }
    }

    unsafe fn number(record: *mut u64) -> LaunchId {
        // SAFETY: the caller's duty.
        let boxed = unsafe { Self::peek(record) };
        // SAFETY: it stays in the record meanwhile.
        unsafe { &*boxed }.request.number
    }

    unsafe fn run(record: *mut u64, at: Cursors, track: &Track, _stop: u32) -> Cursors {
        // SAFETY: it begins with a label.
        let object = unsafe { read_label(record) }.object();
        // SAFETY: of this type, by the vtable, and run once.
        let request = unsafe { Self::take(record) };
        // SAFETY: on its object, by its trustee, which has not found that held.
        unsafe { begin::<T, F, R>(track.serving(), object, request) };
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
        unsafe { SlotResult::<R>::fail(slot, payload) };
    }
}

/// Has `request` run in a coroutine; fails its slot where there can be none.
///
/// # Safety
/// `object` is an `Object<T>` of the trustee that `serving` is of, alive and not held.
unsafe fn begin<T, F, R>(serving: &Serving, object: *mut Header, request: Box<TypedLaunch<T, F, R>>)
where
    F: FnOnce(&mut T) -> R,
{
    let slot = request.request.slot;
    let body: Box<dyn LaunchBody + '_> = request;
    // SAFETY: only the lifetime changes: a launch's closure borrows nothing, by `Client::launch`.
    let body =
        unsafe { std::mem::transmute::<Box<dyn LaunchBody + '_>, Box<dyn LaunchBody>>(body) };
    // SAFETY: the caller's duties.
    if let Err(why) = unsafe { serving.launch(object, body) } {
        // SAFETY: its own slot, once: it will not run.
        unsafe { SlotResult::<R>::fail(slot, Box::new(why)) };
    }
}

impl Client {
    /// True while closures that it has launched have not ended.
    pub(super) fn has_launches(&self) -> bool {
        // Acquire: pairs with the Release of `end_launch`.
        self.launched.get() > 0
            && self.channel().launches.load(Ordering::Acquire) != self.launched.get()
    }
}

/// [`Trust::launch`](crate::Trust::launch): `F`, in a coroutine of the trustee's thread.
pub(crate) struct Launch<F, R>(PhantomData<(F, R)>);

impl<F, R> Launch<F, R> {
    /// A new launch, counted by its client until it has ended.
    fn request(client: &Client, f: F) -> (ApplyFuture<R>, PendingLaunch<F>) {
        let (future, slot) = ApplyFuture::new(&client.thread.pools);
        let parent = client
            .thread
            .launch
            .map(|launch| (launch, address(client.channel)));
        let number = wait_graph::number(&client.trustee, parent);
        client.launched.set(client.launched.get() + 1);
        let request = PendingLaunch {
            f: Box::new(f),
            slot,
            number,
            ticket: Ticket::new(&client.owned, number),
        };
        (future, request)
    }
}

impl<T, F: FnOnce(&mut T) -> R, R> Kind<T> for Launch<F, R> {
    type Sent = F;
    type Receipt = (ApplyFuture<R>, LaunchId);

    const CALL: &'static str = "Trust::launch";
    const UNITS: usize = LaunchRecord::<T, F, R>::UNITS;
    const VTABLE: &'static Vtable = LaunchRecord::<T, F, R>::VTABLE;

    unsafe fn write(client: &Client, at: Position, label: Label, f: F) -> Self::Receipt {
        let (future, request) = Self::request(client, f);
        let number = request.number;
        let record = client.request(at, LaunchRecord::<T, F, R>::UNITS);
        // SAFETY: there is room, by the caller, and the label is of this kind.
        unsafe { LaunchRecord::<T, F, R>::write(record, label, request) };
        (future, number)
    }

    unsafe fn take_back(client: &Client, at: Position, (future, _): Self::Receipt) -> F {
        future.retract();
        let record = client.request(at, LaunchRecord::<T, F, R>::UNITS);
        // SAFETY: written at `at` and not executed, by the caller.
        *unsafe { LaunchRecord::<T, F, R>::take(record) }.request.f
    }

    unsafe fn run_own(
        _client: &Client,
        _object: *mut Header,
        _f: F,
        _patience: Patience,
    ) -> Result<Self::Receipt, F> {
        unreachable!("members have no host")
    }

    /// As a mail call that begins the launch.
    #[cold]
    unsafe fn send_as_call(
        client: &Client,
        object: *mut Header,
        f: F,
        patience: Patience,
    ) -> Result<Self::Receipt, (Refusal, F)> {
        if client.may_not_call() {
            return Err((Refusal::Full, f));
        }
        let (future, request) = Self::request(client, f);
        let (slot, number) = (request.slot, request.number);
        let mut request = Some(Box::new(TypedLaunch::<T, F, R>::new(request)));
        let call = |_: &mut T| {
            if let Some(request) = request.take() {
                // SAFETY: the call runs on its object, which is not held.
                Serving::with_current(|serving| unsafe {
                    begin::<T, F, R>(serving, object, request)
                });
            }
        };
        // SAFETY: the caller's duties, which are the same; the call waits.
        match unsafe { client.call::<T, _, ()>(object, call) }.map_err(drop) {
            Ok(Ok(())) => {}
            Ok(Err(payload)) => {
                discard(request);
                // SAFETY: its own slot, once: it has not begun.
                unsafe { SlotResult::<R>::fail(slot, payload) };
            }
            Err(()) => {
                future.retract();
                let request = request.expect("not run, so not taken").request;
                return Err((Refusal::Closed, *request.f));
            }
        }
        if matches!(patience, Patience::Wait | Patience::Try) {
            client.thread.raise_held();
        }
        Ok((future, number))
    }
}
