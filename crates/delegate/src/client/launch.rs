//! A launch in the ring: its closure goes into a coroutine of the trustee's thread.
//!
//! ```text
//!  [label][slot][closure, boxed]
//! ```
//! The request is executed when its coroutine has been made: the tail goes on. Its client counts it
//! until the closure has ended, by a [`Ticket`]. The result goes into a slot, as in an
//! [`apply_async`](crate::client::apply_async).

use crate::catch::guarded;
use crate::client::future::{ApplyFuture, SlotResult};
use crate::client::kind::Kind;
use crate::client::{Client, Patience, Refusal};
use crate::context::coroutine::{LaunchBody, Ticket};
use crate::context::discard::discard;
use crate::context::serving::Serving;
use crate::object::{Header, Object};
use crate::operation::Operation;
use crate::request::label::Label;
use crate::request::track::Track;
use crate::request::{Cursors, Vtable, read_label, write_label};
use crate::slots::SlotPtr;
use crate::wait_graph::{self, address};
use crate::wire::LaunchId;
use crate::wire::word::{Position, step};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::memory;
use std::any::Any;
use std::marker::PhantomData;

/// A closure to be launched, with the slot for its result and the ticket by which its client counts
/// it.
pub(crate) struct PendingLaunch<F> {
    /// Boxed, and run in its box: the coroutine's stack may be small.
    pub(crate) f: Box<F>,
    pub(crate) slot: SlotPtr,
    pub(crate) number: LaunchId,
    pub(crate) ticket: Ticket,
}

/// A [`PendingLaunch`] with the types of its object and result.
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

impl<T, F: Operation<T, R>, R> LaunchBody for TypedLaunch<T, F, R> {
    unsafe fn run(self: Box<Self>, object: *mut Header, serving: &Serving) -> Ticket {
        let PendingLaunch {
            f, slot, ticket, ..
        } = self.request;
        // SAFETY: the object is held for this launch, so nobody else uses the value; it is of type
        // `T`, as the sender of the request has checked.
        let value = unsafe { Object::value(object.cast::<Object<T>>()) };
        // SAFETY: the launch's own slot, written once. The result leaves the stack as soon as it is
        // there.
        match guarded(|| unsafe { SlotResult::<R>::write(slot, f.run_boxed(value)) }) {
            // SAFETY: the launch's own slot, which `write` has just filled.
            Ok(()) => unsafe { SlotResult::<R>::announce(slot) },
            Err(payload) => {
                let payload = serving.poison(object, F::name, payload);
                // SAFETY: the launch's own slot, completed once: the closure has not returned.
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

impl<T, F: Operation<T, R>, R> LaunchRecord<T, F, R> {
    /// Units that the request takes in the request ring.
    const UNITS: usize = 3;

    const STEP: u64 = step(Self::UNITS);

    const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: Some(Self::fault),
        launch: Some(Self::number),
        step: Self::STEP,
        answer_units: 0,
        name: F::name,
    };

    /// Writes the record of a request: its label, its slot, and the boxed launch.
    ///
    /// # Safety
    /// `record` points at [`Self::UNITS`] writable words.
    unsafe fn write(record: *mut u64, label: Label, request: PendingLaunch<F>) {
        let slot = request.slot;
        let typed = Box::new(TypedLaunch::<T, F, R>::new(request));
        // SAFETY: the caller promises `UNITS` writable words; the label takes the first.
        unsafe { write_label(record, label) };
        memory::write(record.wrapping_add(1), 2);
        // SAFETY: the caller promises `UNITS` writable words; the slot takes the second.
        unsafe { record.wrapping_add(1).cast::<SlotPtr>().write(slot) };
        let boxed = Box::into_raw(typed);
        // SAFETY: the caller promises `UNITS` writable words; the box's address takes the third.
        unsafe {
            record
                .wrapping_add(2)
                .cast::<*mut TypedLaunch<T, F, R>>()
                .write(boxed)
        };
    }

    /// The address of the boxed request, which stays in the record.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been taken.
    unsafe fn peek(record: *mut u64) -> *mut TypedLaunch<T, F, R> {
        memory::read(record.wrapping_add(2), 1);
        // SAFETY: `write` has written the address into the third word of such a record.
        unsafe {
            record
                .wrapping_add(2)
                .cast::<*mut TypedLaunch<T, F, R>>()
                .read()
        }
    }

    /// Takes the boxed request out of the record.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been taken. Called once.
    unsafe fn take(record: *mut u64) -> Box<TypedLaunch<T, F, R>> {
        // SAFETY: the caller promises a request of this type that has not been taken.
        let boxed = unsafe { Self::peek(record) };
        // SAFETY: `write` made the address by `Box::into_raw`, and the caller takes it once.
        unsafe { Box::from_raw(boxed) }
    }

    unsafe fn number(record: *mut u64) -> LaunchId {
        // SAFETY: the caller promises a request of this type that has not been taken.
        let boxed = unsafe { Self::peek(record) };
        // SAFETY: the box stays in the record meanwhile.
        unsafe { &*boxed }.request.number
    }

    unsafe fn run(record: *mut u64, at: Cursors, track: &Track, _stop: u32) -> Cursors {
        // SAFETY: each record in the ring begins with a label.
        let object = unsafe { read_label(record) }.object();
        // SAFETY: the label's vtable says that the record is of this type; it is run once.
        let request = unsafe { Self::take(record) };
        // SAFETY: the request is on its object, which the lane has found alive and not held.
        unsafe { begin::<T, F, R>(track.serving(), object, request) };
        Cursors {
            request: at.request.after(Self::STEP),
            answer: at.answer,
        }
    }

    unsafe fn discard(record: *mut u64) {
        // SAFETY: the record holds a request of this type that has not been taken, as the caller
        // promises.
        drop(unsafe { Self::take(record) });
    }

    unsafe fn fault(record: *mut u64, payload: Box<dyn Any + Send>) {
        memory::read(record.wrapping_add(1), 1);
        // SAFETY: `write` has written the slot into the second word of such a record.
        let slot = unsafe { record.wrapping_add(1).cast::<SlotPtr>().read() };
        // SAFETY: the launch's own slot, completed once: the closure does not run.
        unsafe { SlotResult::<R>::fail(slot, payload) };
    }
}

/// Begins `request` in a new coroutine that holds `object`. If no coroutine can be made, completes
/// the request's slot with that failure.
///
/// # Safety
/// `object` is an `Object<T>` of the trustee that `serving` belongs to, alive and not held.
unsafe fn begin<T, F, R>(serving: &Serving, object: *mut Header, request: Box<TypedLaunch<T, F, R>>)
where
    F: Operation<T, R>,
{
    let slot = request.request.slot;
    let body: Box<dyn LaunchBody + '_> = request;
    // SAFETY: only the lifetime changes. A launch's closure borrows nothing, as its sender
    // promises.
    let body =
        unsafe { std::mem::transmute::<Box<dyn LaunchBody + '_>, Box<dyn LaunchBody>>(body) };
    // SAFETY: the caller promises that the object is this trustee's, alive and not held.
    if let Err(why) = unsafe { serving.launch(object, body) } {
        // SAFETY: the launch's own slot, completed once: the closure will not run.
        unsafe { SlotResult::<R>::fail(slot, Box::new(why)) };
    }
}

impl Client {
    /// Whether closures that this client has launched have not ended.
    pub(super) fn has_launches(&self) -> bool {
        // Acquire: pairs with the Release of `end_launch`.
        self.launched.get() > 0
            && self.channel().launches.load(Ordering::Acquire) != self.launched.get()
    }
}

/// A request of [`Trust::launch`](crate::Trust::launch): `F`, in a coroutine of the trustee's
/// thread.
pub(crate) struct Launch<F, R>(PhantomData<(F, R)>);

impl<F, R> Launch<F, R> {
    /// Makes a launch, which its client counts until it has ended.
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

impl<T, F: Operation<T, R>, R> Kind<T> for Launch<F, R> {
    type Sent = F;
    type Receipt = (ApplyFuture<R>, LaunchId);

    const CALL: &'static str = "Trust::launch";
    const UNITS: usize = LaunchRecord::<T, F, R>::UNITS;
    const VTABLE: &'static Vtable = LaunchRecord::<T, F, R>::VTABLE;

    unsafe fn write(client: &Client, at: Position, label: Label, f: F) -> Self::Receipt {
        let (future, request) = Self::request(client, f);
        let number = request.number;
        let record = client.request(at, LaunchRecord::<T, F, R>::UNITS);
        // SAFETY: the caller has made room for the record at `at`, and the label is of this kind.
        unsafe { LaunchRecord::<T, F, R>::write(record, label, request) };
        (future, number)
    }

    unsafe fn take_back(client: &Client, at: Position, (future, _): Self::Receipt) -> F {
        future.retract();
        let record = client.request(at, LaunchRecord::<T, F, R>::UNITS);
        // SAFETY: the request was written at `at` and never executed, as the caller promises.
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

    /// Sends the launch by a mail call, for a request that cannot go into the ring: the call begins
    /// the coroutine and does not wait for its end.
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
                // SAFETY: the call runs on its object, so it is alive, and the lane defers calls to
                // held objects.
                Serving::with_current(|serving| unsafe {
                    begin::<T, F, R>(serving, object, request)
                });
            }
        };
        // SAFETY: the caller answers for the object; the call waits, so borrows last.
        match unsafe { client.call::<T, _, ()>(object, call) }.map_err(drop) {
            Ok(Ok(())) => {}
            Ok(Err(payload)) => {
                discard(request);
                // SAFETY: the launch's own slot, completed once: the closure has not begun.
                unsafe { SlotResult::<R>::fail(slot, payload) };
            }
            Err(()) => {
                future.retract();
                let request = request.expect("not run, so not taken").request;
                return Err((Refusal::Closed, *request.f));
            }
        }
        if patience.raises() {
            client.thread.raise_held();
        }
        Ok((future, number))
    }
}
