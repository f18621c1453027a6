//! A call that suspends its caller, a coroutine, while others run on its thread.
//!
//! The mail line holds one mail call, and the others on this thread want to call too, so the call
//! goes into the ring, and is published with theirs:
//!
//! ```text
//!   [label][frame][captures …]     ──►  trustee
//!   [answer]                       ◄──          reaped: into the frame, whose point is set
//! ```
//! Closure and result of a few words travel by value, so that no line of the caller's stack does;
//! larger ones stay in its [`SuspendedFrame`], which the caller does not leave before its point is
//! set. The trustee writes a fault there. The thread that has sent the call takes its answer, and
//! its coroutines are those that wait, so waking one up takes no more than putting it among those
//! that are ready.
//!
//! After the wait the coroutine touches nothing of the client: it may be on another thread.

use crate::client::connect::lookup;
use crate::client::kind::Kind;
use crate::client::room::Room;
use crate::client::{Client, Patience, Refusal};
use crate::context::member::is_member;
use crate::large::ByAddress;
use crate::object::{Header, Object};
use crate::operation::Operation;
use crate::request::label::Label;
use crate::request::reaper::{Reaped, Reaper};
use crate::request::track::Track;
use crate::request::{
    CALLBACK_HEAD, Cursors, FaultCheck, Packed, Reap, Vtable, read_label, write_label,
};
use crate::wire::ring::{MAX_ANSWER_WORDS, MAX_CAPTURE_WORDS};
use crate::wire::word::{Position, is_past, step};
use corelay_sync::facade::cell::{UnsafeCell, place_of};
use corelay_sync::facade::memory;
use corelay_sync::wait::{self, Here, SuspensionPoint};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

type Answer<R> = Result<R, Box<dyn Any + Send>>;

/// Units of requests that are put together before they are published: some twenty. The trustee is
/// to begin before the last coroutine has stopped, so that the first answer is there by then.
const PUBLISH_UNITS: u32 = 48;

/// The part of a call that stays with its caller while it waits. The trustee writes `fault` or, if
/// it does not travel, `result`; the client writes `result` and, at the end, sets `point`.
struct SuspendedFrame<F, R> {
    point: SuspensionPoint,
    fault: Cell<Option<Box<dyn Any + Send>>>,
    result: UnsafeCell<MaybeUninit<R>>,
    /// The closure, if it does not travel in the ring.
    f: UnsafeCell<MaybeUninit<F>>,
}

/// A request in the ring, and its kind: `F` on a `T`, giving `R` to a coroutine that waits in a
/// frame.
struct SuspendedCall<T, F, R>(PhantomData<(T, F, R)>);

/// Captures of one word less than in other requests, since the frame's address takes one.
type Captures<F> = Packed<F, { MAX_CAPTURE_WORDS - 1 }>;
type Carried<R> = Packed<R, MAX_ANSWER_WORDS>;

impl<T, F: Operation<T, R>, R> SuspendedCall<T, F, R> {
    /// Words of the record that the closure takes, none if it stays in the frame; and words of the
    /// answer that the result takes.
    const CAPTURES: usize = if Captures::<F>::INLINE {
        Captures::<F>::WORDS
    } else {
        0
    };
    const ANSWER: usize = if Carried::<R>::INLINE {
        Carried::<R>::WORDS
    } else {
        0
    };

    /// Units that the request takes in the request ring: at least as many as its answer takes in
    /// the answer ring.
    const UNITS: usize = if 2 + Self::CAPTURES > Self::ANSWER {
        2 + Self::CAPTURES
    } else {
        Self::ANSWER
    };
    const STEP: u64 = step(Self::UNITS);

    /// Units that the request takes in the callback queue: the head of an entry, and the frame's
    /// address.
    const CALLBACK_UNITS: usize = CALLBACK_HEAD + 1;

    const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: Some(Self::fault),
        launch: None,
        step: Self::STEP,
        answer_units: Self::ANSWER as u64,
        name: F::name,
    };

    /// Writes the record of a request: its label, the frame's address and, if it travels, the
    /// closure.
    ///
    /// # Safety
    /// `record` points at [`Self::UNITS`] writable words; `label` is of this type's vtable and an
    /// `Object<T>`. The frame stays until its point is set.
    #[inline(always)]
    unsafe fn write(record: *mut u64, label: Label, frame: &SuspendedFrame<F, R>, f: F) {
        // SAFETY: the caller promises `UNITS` writable words; the label takes the first.
        unsafe { write_label(record, label) };
        memory::write(record.wrapping_add(1), 1 + Self::CAPTURES);
        // SAFETY: the caller promises `UNITS` writable words; the frame's address takes the second.
        unsafe {
            record
                .wrapping_add(1)
                .cast::<*const SuspendedFrame<F, R>>()
                .write(frame)
        };
        if Captures::<F>::INLINE {
            // SAFETY: the caller promises `UNITS` writable words; the captures take the rest.
            unsafe { Captures::<F>::write(record.wrapping_add(2), f) };
        } else {
            // SAFETY: the trustee has not been told of the frame yet, so its closure's place is the
            // caller's.
            unsafe { place_of(&frame.f).cast::<F>().write(f) };
        }
    }

    /// The caller's frame, whose address the record holds.
    ///
    /// # Safety
    /// `record` holds a request of this type.
    #[inline(always)]
    unsafe fn frame<'a>(record: *mut u64) -> &'a SuspendedFrame<F, R> {
        memory::read(record.wrapping_add(1), 1);
        // SAFETY: `write` has written the frame's address into the second word of such a record.
        let frame = unsafe {
            record
                .wrapping_add(1)
                .cast::<*const SuspendedFrame<F, R>>()
                .read()
        };
        // SAFETY: the caller of the request stays in its frame until the request has been reaped.
        unsafe { &*frame }
    }

    /// The address of the closure: in the record, or in the caller's frame.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been run.
    #[inline(always)]
    unsafe fn place(record: *mut u64) -> *mut F {
        if Captures::<F>::INLINE {
            memory::read(record.wrapping_add(2), Self::CAPTURES);
            return record.wrapping_add(2).cast();
        }
        // SAFETY: the caller promises a record of this type.
        place_of(&unsafe { Self::frame(record) }.f).cast()
    }

    unsafe fn run(mut record: *mut u64, mut at: Cursors, track: &Track, stop: u32) -> Cursors {
        // SAFETY: each record in the ring begins with a label.
        let mut label = unsafe { read_label(record) };
        loop {
            // SAFETY: the label's vtable says that the record is of this type; it has not been run
            // before.
            let place = unsafe { Self::place(record) };
            let object = label.object().cast::<Object<T>>();
            // SAFETY: the object lives until every accepted request has run, and only its trustee,
            // which runs this, touches the value.
            let value = unsafe { Object::value(object) };
            // SAFETY: `write` has written the closure, and a request runs once.
            let result: R = unsafe { place.read() }.run(value);
            if const { Self::ANSWER > 0 } {
                let place = track.answer(at.answer(), Self::ANSWER);
                memory::write(place, Self::ANSWER);
                // SAFETY: room for a request is room for its answer, see `Rings`.
                unsafe { Carried::<R>::write(place, result) };
            } else {
                // SAFETY: the record is of this type.
                let place = place_of(&unsafe { Self::frame(record) }.result);
                // SAFETY: the frame's result is the trustee's until the tail passes the request.
                unsafe { place.cast::<R>().write(result) };
            }
            at = Cursors {
                request: at.request.after(Self::STEP),
                answer: at.answer.wrapping_add(Self::ANSWER as u64),
            };
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

    unsafe fn discard(record: *mut u64) {
        // SAFETY: the record holds a request of this type that has not been run, as the caller
        // promises.
        let place = unsafe { Self::place(record) };
        // SAFETY: `write` has written the closure, and a request is discarded once.
        unsafe { place.drop_in_place() };
    }

    unsafe fn fault(record: *mut u64, payload: Box<dyn Any + Send>) {
        // SAFETY: the record is of this type; only its captures have been consumed.
        unsafe { Self::frame(record) }.fault.set(Some(payload));
    }

    /// Reaps entries of this type: puts the answers into their frames, and lets their callers go
    /// on.
    ///
    /// # Safety
    /// The same as for [`Reap`].
    unsafe fn reap(
        reaper: &Reaper,
        mut reaped: Reaped,
        tail: Position,
        check: FaultCheck,
    ) -> Reaped {
        loop {
            let entry = reaper.callbacks.at(reaped.callback());
            let next = reaped.after(Self::CALLBACK_UNITS, Self::ANSWER);
            let frame = entry.wrapping_add(CALLBACK_HEAD);
            // SAFETY: the entry's reap function, which runs, says that it is of this type.
            let frame = unsafe { frame.cast::<*const SuspendedFrame<F, R>>().read() };
            // SAFETY: the caller waits in its frame until the point is set, below.
            let SuspendedFrame {
                point,
                fault,
                result,
                ..
            } = unsafe { &*frame };
            // SAFETY: the tail has passed the request, so the trustee is done with the frame.
            let went_well = unsafe { &*fault.as_ptr() }.is_none();
            if const { Self::ANSWER > 0 } && went_well {
                let place = reaper.answer(reaped.answer(), Self::ANSWER);
                memory::read(place, Self::ANSWER);
                // SAFETY: the request was executed without a fault, so the answer is there.
                let answer = unsafe { Carried::<R>::read(place) };
                // SAFETY: the frame has room for the result, and the caller does not look before
                // its point is set.
                unsafe { place_of(result).cast::<R>().write(answer) };
            }
            reaper.set_reaped(next);
            point.set();
            reaped = next;
            if check == FaultCheck::FirstWell || !reaper.is_reapable(reaped, tail) {
                return reaped;
            }
            // SAFETY: an entry begins here, since one is reapable, and its first word is a reap
            // function.
            let reap = unsafe {
                reaper
                    .callbacks
                    .at(reaped.callback())
                    .cast::<usize>()
                    .read()
            };
            if reap != Self::reap as Reap as usize {
                return reaped;
            }
        }
    }
}

/// The coroutine that runs here, if a call is to suspend it, and the client of its thread for that
/// trustee, which the call may use until it suspends. No coroutine if the thread is to wait
/// instead: a member's thread serves while it waits, and an idle scheduler would not.
///
/// Not inlined, as [`here`](wait::here) asks for; both results in registers.
///
/// # Safety
/// The same as for [`lookup`]: the client is used until the coroutine is suspended, or a call on it
/// returns.
#[inline(never)]
pub(crate) unsafe fn here_and_client<'a>(
    trustee_number: u32,
) -> (Option<Here>, Option<&'a Client>) {
    // SAFETY: the caller uses the client as `lookup` asks for.
    (suspendable(), unsafe { lookup(trustee_number) })
}

/// The coroutine that runs here, if a call is to suspend it. For callers that know the client; not
/// inlined, as [`here`](wait::here) asks for.
#[inline(never)]
fn suspendable_outlined() -> Option<Here> {
    // Two functions: on a thread without a scheduler the first one saves no registers.
    if !wait::has_context() {
        return None;
    }
    suspendable_in_context()
}

#[inline(never)]
fn suspendable_in_context() -> Option<Here> {
    suspendable()
}

#[inline(always)]
fn suspendable() -> Option<Here> {
    wait::here().filter(|_| !is_member())
}

impl Client {
    /// Calls `f` and waits for its result: by suspending the coroutine that runs here, or on the
    /// thread.
    ///
    /// # Safety
    /// The caller keeps the duties of [`call`](Self::call).
    #[track_caller]
    #[inline(always)]
    pub(crate) unsafe fn call_here<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<Answer<R>, F>
    where
        F: Operation<T, R>,
    {
        if const { ByAddress::<F, R>::IS_BETTER } {
            // SAFETY: the caller answers for the object.
            unsafe { self.call_by_address(object, f) }
        } else {
            // SAFETY: the caller answers for the object.
            unsafe { self.call_here_by_value(object, f) }
        }
    }

    /// [`call_here`](Self::call_here) for a closure and a result that may lie in several frames.
    ///
    /// # Safety
    /// The caller keeps the duties of [`call`](Self::call).
    #[track_caller]
    #[inline(always)]
    unsafe fn call_here_by_value<T, F, R>(&self, object: *mut Header, f: F) -> Result<Answer<R>, F>
    where
        F: Operation<T, R>,
    {
        match suspendable_outlined() {
            // SAFETY: the caller answers for the object; nothing has suspended the coroutine since
            // `here` was found.
            Some(here) => unsafe { self.call_suspending(here, object, f) },
            // SAFETY: the caller answers for the object.
            None => unsafe { self.call::<T, F, R>(object, f) },
        }
    }

    /// [`call_here`](Self::call_here) for a large closure or result. Not inlined, so that these are
    /// in no frame of a caller.
    ///
    /// # Safety
    /// The caller keeps the duties of [`call`](Self::call).
    #[track_caller]
    #[inline(never)]
    unsafe fn call_by_address<T, F, R>(&self, object: *mut Header, f: F) -> Result<Answer<R>, F>
    where
        F: Operation<T, R>,
    {
        let mut request = ByAddress::new(f);
        // SAFETY: the caller answers for the object.
        let outcome = unsafe { self.call_here_by_value::<T, _, _>(object, request.operation()) };
        let outcome = outcome.map_err(drop);
        // SAFETY: a call says `Ok(Ok(()))` if its closure has returned, and gives it back otherwise
        // only if it has not been run.
        unsafe { request.finish(outcome) }.map_err(|((), f)| f)
    }

    /// Calls `f`, and suspends the coroutine that runs here until the result has come.
    ///
    /// # Safety
    /// The caller keeps the duties of [`call`](Self::call); nothing has suspended the coroutine
    /// since `here` was found.
    #[track_caller]
    #[inline(always)]
    pub(crate) unsafe fn call_suspending<T, F, R>(
        &self,
        here: Here,
        object: *mut Header,
        f: F,
    ) -> Result<Answer<R>, F>
    where
        F: Operation<T, R>,
    {
        let frame = SuspendedFrame {
            point: SuspensionPoint::new(),
            fault: Cell::new(None),
            result: UnsafeCell::new(MaybeUninit::uninit()),
            f: UnsafeCell::new(MaybeUninit::uninit()),
        };
        let Some(label) = Label::new(SuspendedCall::<T, F, R>::VTABLE, object) else {
            // SAFETY: the caller answers for the object.
            return unsafe { self.call::<T, F, R>(object, f) };
        };
        let units = SuspendedCall::<T, F, R>::UNITS;
        let place = self.reserve::<T, SuspendedCall<T, F, R>>(Some(label));
        let place = place.unwrap_or_else(|| {
            self.make_room_for_call(units);
            self.next_place(label, units)
        });
        let (at, next) = (place.at, place.next);
        // SAFETY: the place is reserved, or `make_room_for_call` has made room; the frame stays
        // until the wait below is over.
        let ((), is_awake) =
            unsafe { self.write::<T, SuspendedCall<T, F, R>>(place, (&raw const frame, f)) };
        if !is_awake {
            // SAFETY: `write` has written the newest request at `at`, with this receipt.
            let sent = unsafe { self.rouse_or_take_back::<T, SuspendedCall<T, F, R>>(at, ()) };
            sent.map_err(|(_, (_, f))| f)?;
        }
        // The scheduler publishes the rest when nothing else runs on this thread any more.
        if next.cursor().wrapping_sub(self.mail.get().cursor()) >= PUBLISH_UNITS {
            self.flush();
        }
        // SAFETY: nothing has suspended the coroutine since `here` was found; the point is this
        // call's own.
        unsafe { here.wait(&frame.point) };
        match frame.fault.take() {
            Some(payload) => Ok(Err(payload)),
            // SAFETY: the point is set and there was no fault, so the result has been written; it
            // is read once.
            None => Ok(Ok(unsafe { place_of(&frame.result).cast::<R>().read() })),
        }
    }

    /// Makes room in the ring for a call of `units`. If there is none, the whole thread waits for
    /// answers, not this coroutine alone.
    #[cold]
    #[inline(never)]
    fn make_room_for_call(&self, units: usize) {
        // With `Hold` nothing unwinds. Callbacks run under `on_thread`, which suspends no call, so
        // this is none.
        match self.make_room(units, true, Patience::Hold) {
            Room::Here => {}
            Room::None | Room::NotInCallback => unreachable!("it waits"),
        }
        self.flush();
    }
}

impl<T, F: Operation<T, R>, R> Kind<T> for SuspendedCall<T, F, R> {
    /// The caller's frame and the closure. The frame stays until its point is set, or until the
    /// request is taken back.
    type Sent = (*const SuspendedFrame<F, R>, F);
    type Receipt = ();

    const CALL: &'static str = "Trust::apply";
    const UNITS: usize = Self::UNITS;
    const CALLBACK_UNITS: usize = Self::CALLBACK_UNITS;
    const VTABLE: &'static Vtable = Self::VTABLE;

    #[inline(always)]
    unsafe fn write(client: &Client, at: Position, label: Label, (frame, f): Self::Sent) {
        let entry = client.reaper.callbacks.push(Self::CALLBACK_UNITS);
        // SAFETY: the caller has made room for the callback; this is its entry's first word.
        unsafe { entry.cast::<Reap>().write(Self::reap) };
        // SAFETY: the caller has made room for the callback; this is its entry's second word.
        unsafe { entry.wrapping_add(1).write(at.0) };
        let callback = entry.wrapping_add(CALLBACK_HEAD);
        // SAFETY: the caller has made room for the callback; this is its entry's third word.
        unsafe { callback.cast::<*const SuspendedFrame<F, R>>().write(frame) };
        let record = client.request(at, Self::UNITS);
        // SAFETY: the frame stays until its point is set, as `Sent` asks for.
        let frame = unsafe { &*frame };
        // SAFETY: the caller has made room for the record at `at`, and the label is of this kind.
        unsafe { Self::write(record, label, frame, f) };
    }

    unsafe fn take_back(client: &Client, at: Position, (): ()) -> Self::Sent {
        client.reaper.callbacks.pop(Self::CALLBACK_UNITS);
        let record = client.request(at, Self::UNITS);
        // SAFETY: the request was written at `at`, as the caller promises.
        let frame = unsafe { Self::frame(record) };
        // SAFETY: the request was written at `at` and never executed, as the caller promises.
        let place = unsafe { Self::place(record) };
        // SAFETY: `write` has written the closure, and it is taken back once.
        (frame, unsafe { place.read() })
    }

    unsafe fn run_own(
        _client: &Client,
        _object: *mut Header,
        _sent: Self::Sent,
        _patience: Patience,
    ) -> Result<(), Self::Sent> {
        unreachable!("a member's calls serve instead of suspending")
    }

    unsafe fn send_as_call(
        _client: &Client,
        _object: *mut Header,
        _sent: Self::Sent,
        _patience: Patience,
    ) -> Result<(), (Refusal, Self::Sent)> {
        unreachable!("it finds room in the ring, or is a call from the beginning")
    }
}
