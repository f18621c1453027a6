//! What travels: closures packed into words, and the functions that unpack them.
//!
//! A record begins with a [`Label`]: vtable and object. Its thunk knows the sizes, runs the
//! closure, writes the answer, and knows where the next record and the next answer lie, so
//! records carry no length and the sums never wait for memory.
//!
//! Records and answers are plain memory that two threads hand over. Whoever reads or writes
//! them says so to the facade's [`memory`], for where lines are counted.
//!
//! A thunk goes on while the next record is of its own type: a stream of equal requests is
//! one loop with the closure inlined, without a call for each. Reaping does the same.

use crate::wire::MAIL_WORDS;
pub(crate) mod callbacks;
pub(crate) mod label;
pub(crate) mod reaper;
pub(crate) mod ring_growth;
pub(crate) mod track;

use self::label::Label;
use self::reaper::{Reaped, Reaper};
use self::track::Track;
use crate::large;
use crate::object::{Header, Object};
use crate::wire::LaunchId;
use crate::wire::ring::{MAX_ANSWER_WORDS, MAX_CALLBACK_WORDS, MAX_CAPTURE_WORDS};
use crate::wire::word::{Position, is_past, step};
use corelay_sync::facade::memory;
use std::any::{Any, type_name};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Where a trustee stands in a channel.
#[derive(Clone, Copy)]
pub(crate) struct Cursors {
    pub(crate) request: Position,
    /// In units; only the lower 32 bits count.
    pub(crate) answer: u64,
}

impl Cursors {
    #[inline(always)]
    pub(crate) fn answer(self) -> u32 {
        self.answer as u32
    }
}

/// How a trustee handles one kind of request. Aligned so that a [`Label`] can number it.
#[repr(align(64))]
pub(crate) struct Vtable {
    /// Runs the request at `at`, and those behind it that are of the same type and begin
    /// before the cursor `stop`; returns the cursors behind them.
    ///
    /// # Safety
    /// `record` holds a request of this vtable, not yet run; it is the one at `at`, and all
    /// before `stop` are published, or it is a mail call.
    pub(crate) run: unsafe fn(record: *mut u64, at: Cursors, track: &Track, stop: u32) -> Cursors,
    /// Drops the closure unrun.
    ///
    /// # Safety
    /// As `run`.
    pub(crate) discard: unsafe fn(record: *mut u64),
    /// Where somebody other than `barrier` wants to hear what went wrong.
    pub(crate) fault: Option<Fault>,
    /// Of a launch: whose it is.
    pub(crate) launch: Option<unsafe fn(record: *mut u64) -> LaunchId>,
    /// What the request adds to [`Cursors::request`].
    pub(crate) step: u64,
    /// What it adds to [`Cursors::answer`].
    pub(crate) answer_units: u64,
    /// The closure's type.
    pub(crate) name: fn() -> &'static str,
}

/// Hands over what went wrong with a request.
///
/// # Safety
/// `record` holds a request of this vtable that has faulted or been discarded. Called once.
pub(crate) type Fault = unsafe fn(record: *mut u64, payload: Box<dyn Any + Send>);

/// Writes what a mail call begins with: which vtable, on which object.
///
/// # Safety
/// `record` points at two writable words at least.
#[inline(always)]
pub(crate) unsafe fn write_head(record: *mut u64, vtable: &'static Vtable, object: *mut Header) {
    memory::write(record, 2);
    // SAFETY: the caller's duty.
    unsafe { record.cast::<&'static Vtable>().write(vtable) };
    // SAFETY: the caller's duty.
    unsafe { record.wrapping_add(1).cast::<*mut Header>().write(object) };
}

/// Reads what [`write_head`] wrote.
///
/// # Safety
/// `record` holds a mail call.
#[inline(always)]
pub(crate) unsafe fn read_head(record: *mut u64) -> (&'static Vtable, *mut Header) {
    memory::read(record, 2);
    // SAFETY: the caller's duty.
    let vtable = unsafe { record.cast::<&'static Vtable>().read() };
    // SAFETY: the caller's duty.
    let object = unsafe { record.wrapping_add(1).cast::<*mut Header>().read() };
    (vtable, object)
}

/// The label of the record in the ring.
///
/// # Safety
/// `record` holds a request.
#[inline(always)]
pub(crate) unsafe fn read_label(record: *mut u64) -> Label {
    memory::read(record, 1);
    // SAFETY: the caller's duty.
    unsafe { record.cast::<Label>().read() }
}

/// Writes the label of a record in the ring.
///
/// # Safety
/// `record` points at a writable word.
#[inline(always)]
pub(crate) unsafe fn write_label(record: *mut u64, label: Label) {
    memory::write(record, 1);
    // SAFETY: the caller's duty.
    unsafe { record.cast::<Label>().write(label) };
}

const fn words<V>() -> usize {
    size_of::<V>().div_ceil(8)
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// A value in words: inline where it fits, boxed where it does not.
pub(crate) struct Packed<V, const MAX: usize>(PhantomData<V>);

impl<V, const MAX: usize> Packed<V, MAX> {
    pub(crate) const INLINE: bool = words::<V>() <= MAX && align_of::<V>() <= 8;

    /// Words taken.
    pub(crate) const WORDS: usize = if Self::INLINE { words::<V>() } else { 1 };

    /// # Safety
    /// `at` points at [`Self::WORDS`] writable words.
    #[inline(always)]
    pub(crate) unsafe fn write(at: *mut u64, value: V) {
        if Self::INLINE {
            // SAFETY: it fits, and words are aligned to 8.
            unsafe { at.cast::<V>().write(value) };
        } else {
            let boxed = Box::into_raw(Box::new(value));
            // SAFETY: one word.
            unsafe { at.cast::<*mut V>().write(boxed) };
        }
    }

    /// # Safety
    /// `at` holds a value that `write` put there and nobody has read yet.
    #[inline(always)]
    pub(crate) unsafe fn read(at: *mut u64) -> V {
        if Self::INLINE {
            // SAFETY: the caller's duty.
            unsafe { at.cast::<V>().read() }
        } else {
            // SAFETY: the caller's duty.
            let boxed = unsafe { at.cast::<*mut V>().read() };
            // SAFETY: from `Box::into_raw` in `write`.
            *unsafe { Box::from_raw(boxed) }
        }
    }

    /// Takes a closure and runs it.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    #[inline(always)]
    pub(crate) unsafe fn run<A, R>(at: *mut u64, a: A) -> R
    where
        V: FnOnce(A) -> R,
    {
        if const { !Self::INLINE && large::is_large::<V>() } {
            // SAFETY: the caller's duty.
            let boxed = unsafe { at.cast::<*mut V>().read() };
            // SAFETY: from `Box::into_raw` in `write`.
            large::run_boxed(unsafe { Box::from_raw(boxed) }, a)
        } else {
            // SAFETY: the caller's duty.
            let f = unsafe { Self::read(at) };
            f(a)
        }
    }

    /// Takes the value and drops it, where it lies.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    pub(crate) unsafe fn discard(at: *mut u64) {
        if Self::INLINE {
            // SAFETY: the caller's duty.
            unsafe { at.cast::<V>().drop_in_place() };
        } else {
            // SAFETY: the caller's duty.
            let boxed = unsafe { at.cast::<*mut V>().read() };
            // SAFETY: from `Box::into_raw` in `write`.
            drop(unsafe { Box::from_raw(boxed) });
        }
    }
}

/// A request in the ring with an answer: `F` on a `T`, giving `R`.
pub(crate) struct ApplyRecord<T, F, R>(PhantomData<(T, F, R)>);

type Captures<F> = Packed<F, MAX_CAPTURE_WORDS>;
type Answer<R> = Packed<R, MAX_ANSWER_WORDS>;

impl<T, F: FnOnce(&mut T) -> R, R> ApplyRecord<T, F, R> {
    /// Units taken in the request ring: as many as the answer takes, at least.
    pub(crate) const UNITS: usize = max(1 + Captures::<F>::WORDS, Answer::<R>::WORDS);

    const STEP: u64 = step(Self::UNITS);

    pub(crate) const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: None,
        launch: None,
        step: Self::STEP,
        answer_units: Answer::<R>::WORDS as u64,
        name: type_name::<F>,
    };

    /// # Safety
    /// `record` points at [`Self::UNITS`] writable words; `label` is of this vtable
    /// and an `Object<T>`.
    #[inline(always)]
    pub(crate) unsafe fn write(record: *mut u64, label: Label, f: F) {
        // SAFETY: the caller's duty.
        unsafe { write_label(record, label) };
        memory::write(record.wrapping_add(1), Captures::<F>::WORDS);
        // SAFETY: the caller's duty.
        unsafe { Captures::<F>::write(record.wrapping_add(1), f) };
    }

    /// Takes the closure back.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been run and never will be.
    pub(crate) unsafe fn take(record: *mut u64) -> F {
        memory::read(record.wrapping_add(1), Captures::<F>::WORDS);
        // SAFETY: the caller's duty.
        unsafe { Captures::<F>::read(record.wrapping_add(1)) }
    }

    /// Takes the answer.
    ///
    /// # Safety
    /// `answer` holds the answer to a request of this type, not yet taken.
    #[inline(always)]
    pub(crate) unsafe fn answer(answer: *mut u64) -> R {
        memory::read(answer, Answer::<R>::WORDS);
        // SAFETY: the caller's duty.
        unsafe { Answer::<R>::read(answer) }
    }

    unsafe fn run(mut record: *mut u64, mut at: Cursors, track: &Track, stop: u32) -> Cursors {
        // SAFETY: it begins with a label.
        let mut label = unsafe { read_label(record) };
        loop {
            memory::read(record.wrapping_add(1), Captures::<F>::WORDS);
            let object = label.object().cast::<Object<T>>();
            // SAFETY: the object lives until every accepted request has run, and only its
            // trustee, which runs this, touches the value.
            let value = unsafe { Object::value(object) };
            // SAFETY: of this type, by the vtable.
            let answer: R = unsafe { Captures::<F>::run(record.wrapping_add(1), value) };
            if Answer::<R>::WORDS > 0 {
                let place = track.answer(at.answer(), Answer::<R>::WORDS);
                memory::write(place, Answer::<R>::WORDS);
                // SAFETY: room for a request is room for its answer, see `Rings`.
                unsafe { Answer::<R>::write(place, answer) };
            } else {
                // Zero-sized: nothing to move, but it is the client's to drop.
                std::mem::forget(answer);
            }
            at = Cursors {
                request: at.request.after(Self::STEP),
                answer: at.answer.wrapping_add(Answer::<R>::WORDS as u64),
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
        memory::read(record.wrapping_add(1), Captures::<F>::WORDS);
        // SAFETY: the caller's duty.
        unsafe { Captures::<F>::discard(record.wrapping_add(1)) };
    }
}

/// A callback of the client: what is done with the answer of a [`ApplyRecord`].
pub(crate) struct Callback<T, F, R, C>(PhantomData<(T, F, R, C)>);

/// Words of a callback-ring entry in front of the callback: reap function, position.
pub(crate) const CALLBACK_HEAD: usize = 2;

/// Reaps the entry at `reaped` and those behind it that are of the same type and executed
/// by `tail`: stores the cursors behind each, then runs its callback. Where the request
/// has faulted, drops the callback instead, and reaps no further.
///
/// # Safety
/// The entry at `reaped` is the oldest of `reaper`, of this type, and has been executed.
pub(crate) type Reap =
    unsafe fn(reaper: &Reaper, reaped: Reaped, tail: Position, check: FaultCheck) -> Reaped;

/// How the requests to be reaped have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultCheck {
    /// All well, up to the tail.
    AllWell,
    /// The first one well; of the others nothing is known.
    FirstWell,
    /// The first one has faulted.
    FirstFaulted,
}

impl<T, F: FnOnce(&mut T) -> R, R, C: FnOnce(R)> Callback<T, F, R, C> {
    /// Units taken in the callback queue.
    pub(crate) const UNITS: usize = CALLBACK_HEAD + Packed::<C, MAX_CALLBACK_WORDS>::WORDS;

    /// # Safety
    /// `entry` points at [`Self::UNITS`] writable words.
    #[inline(always)]
    pub(crate) unsafe fn write(entry: *mut u64, at: Position, then: C) {
        // SAFETY: the caller's duty.
        unsafe { entry.cast::<Reap>().write(Self::reap) };
        // SAFETY: the caller's duty.
        unsafe { entry.wrapping_add(1).write(at.0) };
        // SAFETY: the caller's duty.
        unsafe { Packed::<C, MAX_CALLBACK_WORDS>::write(entry.wrapping_add(CALLBACK_HEAD), then) };
    }

    /// Takes the callback back.
    ///
    /// # Safety
    /// `entry` holds a callback of this type, which is not reaped any more.
    pub(crate) unsafe fn take(entry: *mut u64) -> C {
        // SAFETY: the caller's duty.
        unsafe { Packed::<C, MAX_CALLBACK_WORDS>::read(entry.wrapping_add(CALLBACK_HEAD)) }
    }

    unsafe fn reap(
        reaper: &Reaper,
        mut reaped: Reaped,
        tail: Position,
        check: FaultCheck,
    ) -> Reaped {
        loop {
            let next = reaped.after(Self::UNITS, Answer::<R>::WORDS);
            // SAFETY: of this type, by its reap function.
            let then = unsafe { Self::take(reaper.callbacks.at(reaped.callback())) };
            if check == FaultCheck::FirstFaulted {
                reaper.set_reaped(next);
                return next;
            }
            let place = reaper.answer(reaped.answer(), Answer::<R>::WORDS);
            // SAFETY: executed without a fault, so the answer is there.
            let answer = unsafe { ApplyRecord::<T, F, R>::answer(place) };
            // Before the callback runs: it may unwind, or issue requests into the room
            // that this entry leaves.
            reaper.set_reaped(next);
            then(answer);
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

/// A mail call in the mail line: `F` on a `T`, giving `R`.
///
/// Captures and result of up to [`MAIL_WORDS`] travel in the line; otherwise the line
/// carries the address of a [`CallFrame`] in the caller's stack.
pub(crate) struct CallRecord<T, F, R>(PhantomData<(T, F, R)>);

/// A mail call that does not fit into the mail line.
pub(crate) struct CallFrame<F, R> {
    f: MaybeUninit<F>,
    result: MaybeUninit<R>,
}

impl<T, F: FnOnce(&mut T) -> R, R> CallRecord<T, F, R> {
    /// True where the line carries all of it.
    pub(crate) const INLINE: bool = words::<F>() <= MAIL_WORDS
        && align_of::<F>() <= 8
        && words::<R>() <= MAIL_WORDS
        && align_of::<R>() <= 8;

    /// Words of the line that the captures take, and the result: one where they lie in a frame.
    const WORDS: usize = if Self::INLINE { words::<F>() } else { 1 };
    const RESULT_WORDS: usize = if Self::INLINE { words::<R>() } else { 1 };

    pub(crate) const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: None,
        launch: None,
        step: 0,
        // Of a result in the line, one at least; none where it goes into a frame.
        answer_units: if Self::INLINE {
            max(words::<R>(), 1) as u64
        } else {
            0
        },
        name: type_name::<F>,
    };

    /// An empty frame for [`write`](Self::write): nothing where the call fits the line.
    #[inline(always)]
    pub(crate) fn frame() -> CallFrame<F, R> {
        CallFrame {
            f: MaybeUninit::uninit(),
            result: MaybeUninit::uninit(),
        }
    }

    /// # Safety
    /// `record` points at the call of a mail line that is the client's to write; `frame`
    /// stays where it is until the call has been answered or taken back.
    #[inline(always)]
    pub(crate) unsafe fn write(
        record: *mut u64,
        object: *mut Header,
        f: F,
        frame: &mut CallFrame<F, R>,
    ) {
        // SAFETY: the caller's duty.
        unsafe { write_head(record, Self::VTABLE, object) };
        memory::write(record.wrapping_add(2), Self::WORDS);
        if Self::INLINE {
            // SAFETY: it fits.
            unsafe { record.wrapping_add(2).cast::<F>().write(f) };
        } else {
            // SAFETY: the frame's own.
            unsafe { large::put(frame.f.as_mut_ptr(), f) };
            // SAFETY: one word.
            unsafe {
                record
                    .wrapping_add(2)
                    .cast::<*mut CallFrame<F, R>>()
                    .write(frame)
            };
        }
    }

    /// The place of the closure, where [`large::put`] has put it.
    ///
    /// # Safety
    /// `record` holds a call of this type, not run and not taken yet.
    #[inline(always)]
    unsafe fn place(record: *mut u64) -> *mut F {
        memory::read(record.wrapping_add(2), Self::WORDS);
        if Self::INLINE {
            record.wrapping_add(2).cast()
        } else {
            // SAFETY: the caller's duty.
            let frame = unsafe { record.wrapping_add(2).cast::<*mut CallFrame<F, R>>().read() };
            // SAFETY: the caller of `write` keeps the frame where it is.
            unsafe { (&raw mut (*frame).f).cast() }
        }
    }

    /// Takes the closure back.
    ///
    /// # Safety
    /// As [`place`](Self::place); once.
    #[inline(always)]
    pub(crate) unsafe fn take(record: *mut u64) -> F {
        // SAFETY: the caller's duty.
        let place = unsafe { Self::place(record) };
        // SAFETY: as above.
        unsafe { large::take(place) }
    }

    /// Takes the result.
    ///
    /// # Safety
    /// `record` holds a call of this type, answered without a fault, not taken yet.
    #[inline(always)]
    pub(crate) unsafe fn result(record: *mut u64) -> R {
        memory::read(record.wrapping_add(2), Self::RESULT_WORDS);
        if Self::INLINE {
            // SAFETY: the caller's duty.
            unsafe { record.wrapping_add(2).cast::<R>().read() }
        } else {
            // SAFETY: the caller's duty; the word still holds the frame.
            let frame = unsafe { record.wrapping_add(2).cast::<*mut CallFrame<F, R>>().read() };
            // SAFETY: answered, so written.
            let frame = unsafe { &*frame };
            // SAFETY: answered, so written; not taken yet.
            unsafe { frame.result.assume_init_read() }
        }
    }

    unsafe fn run(record: *mut u64, at: Cursors, _track: &Track, _stop: u32) -> Cursors {
        // SAFETY: of this type, by the vtable.
        let place = unsafe { Self::place(record) };
        // SAFETY: the second word.
        let object = unsafe { record.wrapping_add(1).cast::<*mut Object<T>>().read() };
        // SAFETY: as in `ApplyRecord::run`.
        let value = unsafe { Object::value(object) };
        // SAFETY: its closure, once.
        let result: R = unsafe { large::run(place, value) };
        if Self::INLINE {
            memory::write(record.wrapping_add(2), Self::RESULT_WORDS);
            // SAFETY: it fits.
            unsafe { record.wrapping_add(2).cast::<R>().write(result) };
        } else {
            // SAFETY: the word still holds the frame, which the waiting caller keeps.
            let frame = unsafe { record.wrapping_add(2).cast::<*mut CallFrame<F, R>>().read() };
            // SAFETY: as above.
            let place = unsafe { &raw mut (*frame).result };
            // SAFETY: as above.
            unsafe { place.cast::<R>().write(result) };
        }
        at
    }

    unsafe fn discard(record: *mut u64) {
        // SAFETY: the caller's duty.
        let place = unsafe { Self::place(record) };
        // SAFETY: as above.
        unsafe { large::discard(place) };
    }
}
