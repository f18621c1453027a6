//! A call that suspends its caller: on a coroutine, where others run meanwhile.
//!
//! The mail line holds one mail call, and the others on this thread want to call too, so the
//! call goes into the ring, and is published with theirs:
//!
//! ```text
//!   [label][frame][captures …]     ──►  trustee
//!   [answer]                       ◄──          reaped: into the frame, whose point is set
//! ```
//! Closure and result of a few words travel by value, so that no line of the caller's stack does;
//! larger ones stay in its [`SuspendedFrame`], which it does not leave before its point is set. What goes
//! wrong is written there by the trustee. Answers are taken by the thread that has asked, whose
//! coroutines wait, so waking one up takes no more than putting it among those that are ready.
//!
//! Behind the wait nothing of the client is touched: the coroutine may be on another thread.

use crate::client::connect::lookup;
use crate::client::kind::Kind;
use crate::client::room::Room;
use crate::client::{Client, Patience, Refusal};
use crate::context::member::is_member;
use crate::large::ByAddress;
use crate::object::{Header, Object};
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
use std::any::{Any, type_name};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

type Answer<R> = Result<R, Box<dyn Any + Send>>;

/// Units of requests that are put together before they are published: some twenty. The trustee is to
/// begin before the last coroutine has stopped, so that the first answer is there by then.
const PUBLISH_UNITS: u32 = 48;

/// What the caller keeps while it waits. The trustee writes `fault` or, where it does not travel,
/// `result`; the client `result` and, at the end, `point`.
struct SuspendedFrame<F, R> {
    point: SuspensionPoint,
    fault: Cell<Option<Box<dyn Any + Send>>>,
    result: UnsafeCell<MaybeUninit<R>>,
    /// Where it does not travel.
    f: UnsafeCell<MaybeUninit<F>>,
}

/// A request in the ring: `F` on a `T`, giving `R` to who waits in a frame.
struct SuspendedCall<T, F, R>(PhantomData<(T, F, R)>);

/// One word less than of other requests: the frame takes it.
type Captures<F> = Packed<F, { MAX_CAPTURE_WORDS - 1 }>;
type Carried<R> = Packed<R, MAX_ANSWER_WORDS>;

impl<T, F: FnOnce(&mut T) -> R, R> SuspendedCall<T, F, R> {
    /// Words of the record that the closure takes, none where it stays in the frame; and of the
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

    /// Units taken in the request ring: as many as the answer takes, at least.
    const UNITS: usize = if 2 + Self::CAPTURES > Self::ANSWER {
        2 + Self::CAPTURES
    } else {
        Self::ANSWER
    };
    const STEP: u64 = step(Self::UNITS);

    /// Units taken in the callback queue: the frame.
    const CALLBACK_UNITS: usize = CALLBACK_HEAD + 1;

    const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: Some(Self::fault),
        launch: None,
        step: Self::STEP,
        answer_units: Self::ANSWER as u64,
        name: type_name::<F>,
    };

    /// # Safety
    /// `record` points at [`Self::UNITS`] writable words; `label` is of this type's vtable and an
    /// `Object<T>`. The frame stays until its point is set.
    #[inline(always)]
    unsafe fn write(record: *mut u64, label: Label, frame: &SuspendedFrame<F, R>, f: F) {
        // SAFETY: the caller's duty.
        unsafe { write_label(record, label) };
        memory::write(record.wrapping_add(1), 1 + Self::CAPTURES);
        // SAFETY: the caller's duty.
        unsafe {
            record
                .wrapping_add(1)
                .cast::<*const SuspendedFrame<F, R>>()
                .write(frame)
        };
        if Captures::<F>::INLINE {
            // SAFETY: the caller's duty.
            unsafe { Captures::<F>::write(record.wrapping_add(2), f) };
        } else {
            // SAFETY: the trustee has not been told of the frame yet.
            unsafe { place_of(&frame.f).cast::<F>().write(f) };
        }
    }

    /// # Safety
    /// `record` holds a request of this type.
    #[inline(always)]
    unsafe fn frame<'a>(record: *mut u64) -> &'a SuspendedFrame<F, R> {
        memory::read(record.wrapping_add(1), 1);
        // SAFETY: the caller's duty.
        let frame = unsafe {
            record
                .wrapping_add(1)
                .cast::<*const SuspendedFrame<F, R>>()
                .read()
        };
        // SAFETY: the caller of the request stays in it until that has been reaped.
        unsafe { &*frame }
    }

    /// The place of the closure.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been run.
    #[inline(always)]
    unsafe fn place(record: *mut u64) -> *mut F {
        if Captures::<F>::INLINE {
            memory::read(record.wrapping_add(2), Self::CAPTURES);
            return record.wrapping_add(2).cast();
        }
        // SAFETY: the caller's duty.
        place_of(&unsafe { Self::frame(record) }.f).cast()
    }

    unsafe fn run(mut record: *mut u64, mut at: Cursors, track: &Track, stop: u32) -> Cursors {
        // SAFETY: it begins with a label.
        let mut label = unsafe { read_label(record) };
        loop {
            // SAFETY: of this type, by the vtable.
            let place = unsafe { Self::place(record) };
            let object = label.object().cast::<Object<T>>();
            // SAFETY: as in `ApplyRecord::run`.
            let value = unsafe { Object::value(object) };
            // SAFETY: its closure, run once.
            let f = unsafe { place.read() };
            let result: R = f(value);
            if const { Self::ANSWER > 0 } {
                let place = track.answer(at.answer(), Self::ANSWER);
                memory::write(place, Self::ANSWER);
                // SAFETY: room for a request is room for its answer, see `Rings`.
                unsafe { Carried::<R>::write(place, result) };
            } else {
                // SAFETY: of this type.
                let place = place_of(&unsafe { Self::frame(record) }.result);
                // SAFETY: ours until the tail passes the request.
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
            // SAFETY: published, so it begins with a label.
            let next = unsafe { read_label(record) };
            if !next.is_of_kind(label) {
                return at;
            }
            label = next;
            track.set_at(at);
        }
    }

    unsafe fn discard(record: *mut u64) {
        // SAFETY: the caller's duty.
        let place = unsafe { Self::place(record) };
        // SAFETY: as above, once.
        unsafe { place.drop_in_place() };
    }

    unsafe fn fault(record: *mut u64, payload: Box<dyn Any + Send>) {
        // SAFETY: of this type; only its captures have been consumed.
        unsafe { Self::frame(record) }.fault.set(Some(payload));
    }

    /// Reaps entries of this type: their frames get the answers, their callers go on.
    ///
    /// # Safety
    /// As [`Reap`] says.
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
            // SAFETY: of this type, by its reap function.
            let frame = unsafe { frame.cast::<*const SuspendedFrame<F, R>>().read() };
            // SAFETY: its caller waits in it, until the point is set.
            let SuspendedFrame {
                point,
                fault,
                result,
                ..
            } = unsafe { &*frame };
            // SAFETY: the trustee is done with it.
            let went_well = unsafe { &*fault.as_ptr() }.is_none();
            if const { Self::ANSWER > 0 } && went_well {
                let place = reaper.answer(reaped.answer(), Self::ANSWER);
                memory::read(place, Self::ANSWER);
                // SAFETY: executed without a fault, so the answer is there.
                let answer = unsafe { Carried::<R>::read(place) };
                // SAFETY: the caller does not look before the point is set.
                unsafe { place_of(result).cast::<R>().write(answer) };
            }
            reaper.set_reaped(next);
            point.set();
            reaped = next;
            if check == FaultCheck::FirstWell || !reaper.is_reapable(reaped, tail) {
                return reaped;
            }
            // SAFETY: the first word of an entry.
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

/// The coroutine that runs here, where a call is to suspend it, and the client of its thread for
/// the trustee in `trustee_number`, which it may use until it is suspended. None where the thread is to wait:
/// a member's serves while it waits, and a scheduler that is idle would not.
///
/// Not inlined, as [`here`](wait::here) asks for; in two registers.
///
/// # Safety
/// As [`lookup`]'s: the client is used until the coroutine is suspended, or a call on it returns.
#[inline(never)]
pub(crate) unsafe fn here_and_client<'a>(
    trustee_number: u32,
) -> (Option<Here>, Option<&'a Client>) {
    // SAFETY: the caller's duty, which is the same.
    (suspendable(), unsafe { lookup(trustee_number) })
}

/// As [`here_and_client`], for who knows the client.
#[inline(never)]
fn suspendable_outlined() -> Option<Here> {
    suspendable()
}

#[inline(always)]
fn suspendable() -> Option<Here> {
    wait::here().filter(|_| !is_member())
}

impl Client {
    /// Calls `f` and waits for its result, as the code that runs here waits.
    ///
    /// # Safety
    /// As [`call`](Self::call).
    #[track_caller]
    #[inline(always)]
    pub(crate) unsafe fn call_here<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<Answer<R>, F>
    where
        F: FnOnce(&mut T) -> R,
    {
        if const { ByAddress::<F, R>::IS_BETTER } {
            // SAFETY: the caller's duties.
            unsafe { self.call_by_address(object, f) }
        } else {
            // SAFETY: the caller's duties.
            unsafe { self.call_here_by_value(object, f) }
        }
    }

    /// As [`call_here`](Self::call_here), of a closure and result that may lie in several frames.
    ///
    /// # Safety
    /// As [`call`](Self::call).
    #[track_caller]
    #[inline(always)]
    unsafe fn call_here_by_value<T, F, R>(&self, object: *mut Header, f: F) -> Result<Answer<R>, F>
    where
        F: FnOnce(&mut T) -> R,
    {
        match suspendable_outlined() {
            // SAFETY: the caller's duties; just asked.
            Some(here) => unsafe { self.call_suspending(here, object, f) },
            // SAFETY: the caller's duties.
            None => unsafe { self.call::<T, F, R>(object, f) },
        }
    }

    /// As [`call_here`](Self::call_here), of a large closure or result. Apart, so that they are in
    /// no frame into which this is inlined.
    ///
    /// # Safety
    /// As [`call`](Self::call).
    #[track_caller]
    #[inline(never)]
    unsafe fn call_by_address<T, F, R>(&self, object: *mut Header, f: F) -> Result<Answer<R>, F>
    where
        F: FnOnce(&mut T) -> R,
    {
        let mut request = ByAddress::new(f);
        // SAFETY: the caller's duties.
        let outcome =
            unsafe { self.call_here_by_value(object, |value: &mut T| request.run(value)) };
        let outcome = outcome.map_err(drop);
        // SAFETY: a call says `Ok(Ok(()))` if its closure has returned, and gives it back otherwise
        // only if it has not been run.
        unsafe { request.finish(outcome) }.map_err(|((), f)| f)
    }

    /// Calls `f`, and suspends the coroutine that runs here until the result has come.
    ///
    /// # Safety
    /// As [`call`](Self::call); nothing has suspended the coroutine since `here` was asked for.
    #[track_caller]
    #[inline(always)]
    pub(crate) unsafe fn call_suspending<T, F, R>(
        &self,
        here: Here,
        object: *mut Header,
        f: F,
    ) -> Result<Answer<R>, F>
    where
        F: FnOnce(&mut T) -> R,
    {
        let frame = SuspendedFrame {
            point: SuspensionPoint::new(),
            fault: Cell::new(None),
            result: UnsafeCell::new(MaybeUninit::uninit()),
            f: UnsafeCell::new(MaybeUninit::uninit()),
        };
        let Some(label) = Label::new(SuspendedCall::<T, F, R>::VTABLE, object) else {
            // SAFETY: the caller's duties.
            return unsafe { self.call::<T, F, R>(object, f) };
        };
        let units = SuspendedCall::<T, F, R>::UNITS;
        let place = self.reserve::<T, SuspendedCall<T, F, R>>(Some(label));
        let place = place.unwrap_or_else(|| {
            self.make_room_for_call(units);
            self.next_place(label, units)
        });
        let (at, next) = (place.at, place.next);
        // SAFETY: there is room; the frame is kept below.
        let ((), is_awake) =
            unsafe { self.write::<T, SuspendedCall<T, F, R>>(place, (&raw const frame, f)) };
        if !is_awake {
            // SAFETY: just written.
            let sent = unsafe { self.rouse_or_take_back::<T, SuspendedCall<T, F, R>>(at, ()) };
            sent.map_err(|(_, (_, f))| f)?;
        }
        // The rest is published when nothing else runs on this thread any more.
        if next.cursor().wrapping_sub(self.mail.get().cursor()) >= PUBLISH_UNITS {
            self.flush();
        }
        // SAFETY: nothing has suspended it; the point is this call's.
        unsafe { here.wait(&frame.point) };
        match frame.fault.take() {
            Some(payload) => Ok(Err(payload)),
            // SAFETY: the point is set, and there was no fault.
            None => Ok(Ok(unsafe { place_of(&frame.result).cast::<R>().read() })),
        }
    }

    /// Where there is none, the thread waits, not the coroutine alone: for one answer.
    #[cold]
    #[inline(never)]
    fn make_room_for_call(&self, units: usize) {
        // With `Hold` nothing unwinds. Callbacks run under `on_thread`, so this is none.
        match self.make_room(units, true, Patience::Hold) {
            Room::Here => {}
            Room::None | Room::NotInCallback => unreachable!("it waits"),
        }
        self.flush();
    }
}

impl<T, F: FnOnce(&mut T) -> R, R> Kind<T> for SuspendedCall<T, F, R> {
    /// The frame stays until its point is set, or the request is taken back.
    type Sent = (*const SuspendedFrame<F, R>, F);
    type Receipt = ();

    const CALL: &'static str = "Trust::apply";
    const UNITS: usize = Self::UNITS;
    const CALLBACK_UNITS: usize = Self::CALLBACK_UNITS;
    const VTABLE: &'static Vtable = Self::VTABLE;

    #[inline(always)]
    unsafe fn write(client: &Client, at: Position, label: Label, (frame, f): Self::Sent) {
        let entry = client.reaper.callbacks.push(Self::CALLBACK_UNITS);
        // SAFETY: there is room, by the caller.
        unsafe { entry.cast::<Reap>().write(Self::reap) };
        // SAFETY: as above.
        unsafe { entry.wrapping_add(1).write(at.0) };
        let callback = entry.wrapping_add(CALLBACK_HEAD);
        // SAFETY: as above.
        unsafe { callback.cast::<*const SuspendedFrame<F, R>>().write(frame) };
        let record = client.request(at, Self::UNITS);
        // SAFETY: it stays until its point is set, by `Sent`.
        let frame = unsafe { &*frame };
        // SAFETY: there is room, by the caller, and the label is of this kind.
        unsafe { Self::write(record, label, frame, f) };
    }

    unsafe fn take_back(client: &Client, at: Position, (): ()) -> Self::Sent {
        client.reaper.callbacks.pop(Self::CALLBACK_UNITS);
        let record = client.request(at, Self::UNITS);
        // SAFETY: written at `at`, by the caller.
        let frame = unsafe { Self::frame(record) };
        // SAFETY: written at `at` and not executed, by the caller.
        let place = unsafe { Self::place(record) };
        // SAFETY: its closure, taken once.
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
