//! Requests in memory: closures packed into words, and the functions that unpack them.
//!
//! A record begins with a [`Label`]: vtable and object. Its thunk knows the sizes, runs the
//! closure, writes the answer, and knows where the next record and the next answer lie, so records
//! carry no length and the sums never wait for memory.
//!
//! Records and answers are plain memory that two threads hand over. Each read or write of them is
//! reported to the facade's [`memory`], for builds that count lines.
//!
//! A thunk goes on while the next record is of its own type: a stream of equal requests is one loop
//! with the closure inlined, without a call for each. Reaping does the same.
//!
//! | record | request |
//! |---|---|
//! | [`ApplyRecord`] | `apply_then` and `post`, in the ring |
//! | [`CallRecord`] | a mail call: `apply`, or a single `apply_then`, in the mail line |
//! | [`ApplyAsyncRecord`](crate::client::apply_async) | `apply_async`, in the ring |
//! | [`LaunchRecord`](crate::client::launch) | `launch`, in the ring |
//! | [`SuspendedCall`](crate::client::suspend) | `apply` of a coroutine, in the ring |

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
use crate::operation::Operation;
use crate::wire::LaunchId;
use crate::wire::ring::{MAX_ANSWER_WORDS, MAX_CALLBACK_WORDS, MAX_CAPTURE_WORDS};
use crate::wire::word::{Position, is_past, step};
use corelay_sync::facade::memory;
use std::any::Any;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A trustee's place in the two rings of a channel: the next request, and where its answer goes.
#[derive(Clone, Copy)]
pub(crate) struct Cursors {
    pub(crate) request: Position,
    /// The place in the answer ring, in units. Only the lower 32 bits count.
    pub(crate) answer: u64,
}

impl Cursors {
    #[inline(always)]
    pub(crate) fn answer(self) -> u32 {
        self.answer as u32
    }
}

/// The functions and sizes by which a trustee handles one kind of request. Aligned so that a
/// [`Label`] can number it.
#[repr(align(64))]
pub(crate) struct Vtable {
    /// The function that runs the request at `at`, and later ones of the same type that begin
    /// before the cursor `stop`. Returns the cursors after them.
    ///
    /// # Safety
    /// `record` holds a request of this vtable, not yet run. It is the one at `at`, and all before
    /// `stop` are published; or it is a mail call.
    pub(crate) run: unsafe fn(record: *mut u64, at: Cursors, track: &Track, stop: u32) -> Cursors,
    /// The function that drops the closure unrun.
    ///
    /// # Safety
    /// `record` holds a request of this vtable, not yet run, that never will be.
    pub(crate) discard: unsafe fn(record: *mut u64),
    /// The function that hands a failure to whoever waits for the request, such as a future. `None`
    /// if the client's next `barrier` is to report it.
    pub(crate) fault: Option<Fault>,
    /// The function that reads a launch's number from its record. `None` if such requests are no
    /// launches.
    pub(crate) launch: Option<unsafe fn(record: *mut u64) -> LaunchId>,
    /// The amount that the request adds to [`Cursors::request`].
    pub(crate) step: u64,
    /// The amount that the request adds to [`Cursors::answer`].
    pub(crate) answer_units: u64,
    /// The name that the request has in reports and messages.
    pub(crate) name: fn() -> &'static str,
}

/// A function that hands over the failure of a request to the future or frame that waits for it.
///
/// # Safety
/// `record` holds a request of this vtable that has faulted or been discarded. Called once.
pub(crate) type Fault = unsafe fn(record: *mut u64, payload: Box<dyn Any + Send>);

/// Writes the vtable and the object with which a mail call begins.
///
/// # Safety
/// `record` points at two writable words at least.
#[inline(always)]
pub(crate) unsafe fn write_head(record: *mut u64, vtable: &'static Vtable, object: *mut Header) {
    memory::write(record, 2);
    // SAFETY: the caller promises two writable words.
    unsafe { record.cast::<&'static Vtable>().write(vtable) };
    // SAFETY: the caller promises two writable words.
    unsafe { record.wrapping_add(1).cast::<*mut Header>().write(object) };
}

/// Reads vtable and object of a mail call.
///
/// # Safety
/// `record` holds a mail call.
#[inline(always)]
pub(crate) unsafe fn read_head(record: *mut u64) -> (&'static Vtable, *mut Header) {
    memory::read(record, 2);
    // SAFETY: `write_head` has written the vtable, since this is a mail call.
    let vtable = unsafe { record.cast::<&'static Vtable>().read() };
    // SAFETY: `write_head` has written the object, since this is a mail call.
    let object = unsafe { record.wrapping_add(1).cast::<*mut Header>().read() };
    (vtable, object)
}

/// Reads the label of a record in the ring.
///
/// # Safety
/// `record` holds a request.
#[inline(always)]
pub(crate) unsafe fn read_label(record: *mut u64) -> Label {
    memory::read(record, 1);
    // SAFETY: `write_label` has written the first word of each record in the ring.
    unsafe { record.cast::<Label>().read() }
}

/// Writes the label of a record in the ring.
///
/// # Safety
/// `record` points at a writable word.
#[inline(always)]
pub(crate) unsafe fn write_label(record: *mut u64, label: Label) {
    memory::write(record, 1);
    // SAFETY: the caller promises a writable word.
    unsafe { record.cast::<Label>().write(label) };
}

const fn words<V>() -> usize {
    size_of::<V>().div_ceil(8)
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// A value in words: inline if it fits, otherwise boxed.
pub(crate) struct Packed<V, const MAX: usize>(PhantomData<V>);

impl<V, const MAX: usize> Packed<V, MAX> {
    pub(crate) const INLINE: bool = words::<V>() <= MAX && align_of::<V>() <= 8;

    /// The number of words that the value takes, or 1 for the address of its box.
    pub(crate) const WORDS: usize = if Self::INLINE { words::<V>() } else { 1 };

    /// Writes a value into words, or boxes it and writes the box's address.
    ///
    /// # Safety
    /// `at` points at [`Self::WORDS`] writable words.
    #[inline(always)]
    pub(crate) unsafe fn write(at: *mut u64, value: V) {
        if Self::INLINE {
            // SAFETY: the caller promises room for the value; words are aligned to 8.
            unsafe { at.cast::<V>().write(value) };
        } else {
            let boxed = Box::into_raw(Box::new(value));
            // SAFETY: the caller promises room for one word.
            unsafe { at.cast::<*mut V>().write(boxed) };
        }
    }

    /// Takes the value out of the words, and frees its box if it has one.
    ///
    /// # Safety
    /// `at` holds a value that `write` put there and nobody has read yet.
    #[inline(always)]
    pub(crate) unsafe fn read(at: *mut u64) -> V {
        if Self::INLINE {
            // SAFETY: `write` has written the value inline, and nobody has read it, as the caller
            // promises.
            unsafe { at.cast::<V>().read() }
        } else {
            // SAFETY: `write` has written the address of a box, as the caller promises.
            let boxed = unsafe { at.cast::<*mut V>().read() };
            // SAFETY: `write` made the address by `Box::into_raw`, and it is read once.
            *unsafe { Box::from_raw(boxed) }
        }
    }

    /// Takes the operation out of the words and runs it on `value`. A large one runs in its box.
    ///
    /// # Safety
    /// `at` holds a closure that `write` put there and nobody has read yet.
    #[inline(always)]
    pub(crate) unsafe fn run<T, R>(at: *mut u64, value: &mut T) -> R
    where
        V: Operation<T, R>,
    {
        if const { !Self::INLINE && large::is_large::<V>() } {
            // SAFETY: `write` has written the address of a box, as the caller promises.
            let boxed = unsafe { at.cast::<*mut V>().read() };
            // SAFETY: `write` made the address by `Box::into_raw`, and it is read once.
            unsafe { Box::from_raw(boxed) }.run_boxed(value)
        } else {
            // SAFETY: the caller promises that `write` has written the closure and nobody has read
            // it.
            unsafe { Self::read(at) }.run(value)
        }
    }

    /// Drops the value in its words or its box.
    ///
    /// # Safety
    /// `at` holds a value that `write` put there and nobody has read yet.
    pub(crate) unsafe fn discard(at: *mut u64) {
        if Self::INLINE {
            // SAFETY: `write` has written the value inline, and nobody has read it, as the caller
            // promises.
            unsafe { at.cast::<V>().drop_in_place() };
        } else {
            // SAFETY: `write` has written the address of a box, as the caller promises.
            let boxed = unsafe { at.cast::<*mut V>().read() };
            // SAFETY: `write` made the address by `Box::into_raw`, and it is read once.
            drop(unsafe { Box::from_raw(boxed) });
        }
    }
}

/// A request in the ring whose answer goes into the answer ring: `F` on a `T`, giving `R`. A post
/// has the answer `()`.
pub(crate) struct ApplyRecord<T, F, R>(PhantomData<(T, F, R)>);

type Captures<F> = Packed<F, MAX_CAPTURE_WORDS>;
type Answer<R> = Packed<R, MAX_ANSWER_WORDS>;

impl<T, F: Operation<T, R>, R> ApplyRecord<T, F, R> {
    /// Units that the request takes in the request ring: at least as many as its answer takes in
    /// the answer ring.
    pub(crate) const UNITS: usize = max(1 + Captures::<F>::WORDS, Answer::<R>::WORDS);

    const STEP: u64 = step(Self::UNITS);

    pub(crate) const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: None,
        launch: None,
        step: Self::STEP,
        answer_units: Answer::<R>::WORDS as u64,
        name: F::name,
    };

    /// Writes the record of a request: its label and its closure.
    ///
    /// # Safety
    /// `record` points at [`Self::UNITS`] writable words; `label` is of this vtable and an
    /// `Object<T>`.
    #[inline(always)]
    pub(crate) unsafe fn write(record: *mut u64, label: Label, f: F) {
        // SAFETY: the caller promises `UNITS` writable words, of which the label takes the first.
        unsafe { write_label(record, label) };
        memory::write(record.wrapping_add(1), Captures::<F>::WORDS);
        // SAFETY: the caller promises `UNITS` writable words, of which the captures take the next.
        unsafe { Captures::<F>::write(record.wrapping_add(1), f) };
    }

    /// Takes the closure out of the record of a request that is withdrawn.
    ///
    /// # Safety
    /// `record` holds a request of this type that has not been run and never will be.
    pub(crate) unsafe fn take(record: *mut u64) -> F {
        memory::read(record.wrapping_add(1), Captures::<F>::WORDS);
        // SAFETY: `write` has written the closure, and nobody has run or taken it, as the caller
        // promises.
        unsafe { Captures::<F>::read(record.wrapping_add(1)) }
    }

    /// Takes the answer out of the answer ring.
    ///
    /// # Safety
    /// `answer` holds the answer to a request of this type, not yet taken.
    #[inline(always)]
    pub(crate) unsafe fn answer(answer: *mut u64) -> R {
        memory::read(answer, Answer::<R>::WORDS);
        // SAFETY: `run` has written the answer, and nobody has taken it, as the caller promises.
        unsafe { Answer::<R>::read(answer) }
    }

    unsafe fn run(mut record: *mut u64, mut at: Cursors, track: &Track, stop: u32) -> Cursors {
        // SAFETY: each record in the ring begins with a label.
        let mut label = unsafe { read_label(record) };
        loop {
            memory::read(record.wrapping_add(1), Captures::<F>::WORDS);
            let object = label.object().cast::<Object<T>>();
            // SAFETY: the object lives until every accepted request has run, and only its trustee,
            // which runs this, touches the value.
            let value = unsafe { Object::value(object) };
            // SAFETY: the label's vtable says that the record is of this type; it has not been run
            // before.
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
        memory::read(record.wrapping_add(1), Captures::<F>::WORDS);
        // SAFETY: the record holds a request of this type that has not been run, as the caller
        // promises.
        unsafe { Captures::<F>::discard(record.wrapping_add(1)) };
    }
}

/// An entry in the client's queue of callbacks: the callback `C`, which takes the answer of an
/// [`ApplyRecord`].
pub(crate) struct Callback<T, F, R, C>(PhantomData<(T, F, R, C)>);

/// Words of an entry in the callback queue before the callback: reap function, position.
pub(crate) const CALLBACK_HEAD: usize = 2;

/// A function that reaps the entry at `reaped` and later ones of the same type that have been
/// executed by `tail`: it stores the cursors after each, then runs its callback. If a request has
/// faulted, it drops the callback instead, and reaps no further.
///
/// # Safety
/// The entry at `reaped` is the oldest of `reaper`, of this type, and has been executed.
pub(crate) type Reap =
    unsafe fn(reaper: &Reaper, reaped: Reaped, tail: Position, check: FaultCheck) -> Reaped;

/// The client's knowledge of faults among the requests to be reaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultCheck {
    /// No request up to the tail has faulted.
    AllWell,
    /// The first request has not faulted; nothing is known about the others.
    FirstWell,
    /// The first request has faulted.
    FirstFaulted,
}

impl<T, F: Operation<T, R>, R, C: FnOnce(R)> Callback<T, F, R, C> {
    /// Units that the entry takes in the callback queue.
    pub(crate) const UNITS: usize = CALLBACK_HEAD + Packed::<C, MAX_CALLBACK_WORDS>::WORDS;

    /// Writes an entry for the request at `at`.
    ///
    /// # Safety
    /// `entry` points at [`Self::UNITS`] writable words.
    #[inline(always)]
    pub(crate) unsafe fn write(entry: *mut u64, at: Position, then: C) {
        // SAFETY: the caller promises `UNITS` writable words; this is the first.
        unsafe { entry.cast::<Reap>().write(Self::reap) };
        // SAFETY: the caller promises `UNITS` writable words; this is the second.
        unsafe { entry.wrapping_add(1).write(at.0) };
        // SAFETY: the caller promises `UNITS` writable words; the callback takes the rest.
        unsafe { Packed::<C, MAX_CALLBACK_WORDS>::write(entry.wrapping_add(CALLBACK_HEAD), then) };
    }

    /// Takes the callback out of its entry.
    ///
    /// # Safety
    /// `entry` holds a callback of this type, which is not reaped any more.
    pub(crate) unsafe fn take(entry: *mut u64) -> C {
        // SAFETY: `write` has written the callback, and nobody else takes it, as the caller
        // promises.
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
            // SAFETY: the entry's reap function, which runs, says that it is of this type; it is
            // reaped once.
            let then = unsafe { Self::take(reaper.callbacks.at(reaped.callback())) };
            if check == FaultCheck::FirstFaulted {
                reaper.set_reaped(next);
                return next;
            }
            let place = reaper.answer(reaped.answer(), Answer::<R>::WORDS);
            // SAFETY: the request was executed without a fault, so the answer is there.
            let answer = unsafe { ApplyRecord::<T, F, R>::answer(place) };
            // Before the callback runs: it may unwind, or make requests that use the room of this
            // entry.
            reaper.set_reaped(next);
            then(answer);
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

/// A mail call: `F` on a `T`, giving `R`, in the mail line.
///
/// Captures and result of up to [`MAIL_WORDS`] travel in the line; otherwise the line carries the
/// address of a [`CallFrame`] in the caller's stack.
pub(crate) struct CallRecord<T, F, R>(PhantomData<(T, F, R)>);

/// The closure and the result of a mail call that does not fit into the mail line.
pub(crate) struct CallFrame<F, R> {
    f: MaybeUninit<F>,
    result: MaybeUninit<R>,
}

impl<T, F: Operation<T, R>, R> CallRecord<T, F, R> {
    /// Whether closure and result both fit into the mail line, so that it carries them.
    pub(crate) const INLINE: bool = words::<F>() <= MAIL_WORDS
        && align_of::<F>() <= 8
        && words::<R>() <= MAIL_WORDS
        && align_of::<R>() <= 8;

    /// Words of the line that the captures take, or 1 for the address of a frame.
    const WORDS: usize = if Self::INLINE { words::<F>() } else { 1 };
    /// Words of the line that the result takes, or 1 if it lies in a frame.
    const RESULT_WORDS: usize = if Self::INLINE { words::<R>() } else { 1 };

    pub(crate) const VTABLE: &'static Vtable = &Vtable {
        run: Self::run,
        discard: Self::discard,
        fault: None,
        launch: None,
        step: 0,
        // Units of a result in the line, one at least; none if it goes into a frame.
        answer_units: if Self::INLINE {
            max(words::<R>(), 1) as u64
        } else {
            0
        },
        name: F::name,
    };

    /// An empty frame for [`write`](Self::write). It stays empty if the call fits the line.
    #[inline(always)]
    pub(crate) fn frame() -> CallFrame<F, R> {
        CallFrame {
            f: MaybeUninit::uninit(),
            result: MaybeUninit::uninit(),
        }
    }

    /// Writes a call into the mail line, and into `frame` what does not fit there.
    ///
    /// # Safety
    /// `record` points at the call of a mail line that is the client's to write; `frame` stays
    /// where it is until the call has been answered or taken back.
    #[inline(always)]
    pub(crate) unsafe fn write(
        record: *mut u64,
        object: *mut Header,
        f: F,
        frame: &mut CallFrame<F, R>,
    ) {
        // SAFETY: the caller promises that the line is the client's to write.
        unsafe { write_head(record, Self::VTABLE, object) };
        memory::write(record.wrapping_add(2), Self::WORDS);
        if Self::INLINE {
            // SAFETY: `INLINE` says that the closure fits into the line's words.
            unsafe { record.wrapping_add(2).cast::<F>().write(f) };
        } else {
            // SAFETY: the closure's place in the frame, which the caller lends for writing.
            unsafe { large::put(frame.f.as_mut_ptr(), f) };
            // SAFETY: the line has room for one word.
            unsafe {
                record
                    .wrapping_add(2)
                    .cast::<*mut CallFrame<F, R>>()
                    .write(frame)
            };
        }
    }

    /// The address of the closure that [`large::put`] has written: in the line, or in the frame.
    ///
    /// # Safety
    /// `record` holds a call of this type, not run and not taken yet.
    #[inline(always)]
    unsafe fn place(record: *mut u64) -> *mut F {
        memory::read(record.wrapping_add(2), Self::WORDS);
        if Self::INLINE {
            record.wrapping_add(2).cast()
        } else {
            // SAFETY: `write` has written the frame's address, since this is a call of this type.
            let frame = unsafe { record.wrapping_add(2).cast::<*mut CallFrame<F, R>>().read() };
            // SAFETY: the caller of `write` keeps the frame where it is until the call is answered.
            unsafe { (&raw mut (*frame).f).cast() }
        }
    }

    /// Takes the closure out of a call that is withdrawn.
    ///
    /// # Safety
    /// `record` holds a call of this type, not run and not taken yet. Called once.
    #[inline(always)]
    pub(crate) unsafe fn take(record: *mut u64) -> F {
        // SAFETY: the caller promises a call of this type, not run and not taken yet.
        let place = unsafe { Self::place(record) };
        // SAFETY: `write` has put the closure there, and the caller takes it once.
        unsafe { large::take(place) }
    }

    /// Takes the result of an answered call out of the line or its frame.
    ///
    /// # Safety
    /// `record` holds a call of this type, answered without a fault, not taken yet.
    #[inline(always)]
    pub(crate) unsafe fn result(record: *mut u64) -> R {
        memory::read(record.wrapping_add(2), Self::RESULT_WORDS);
        if Self::INLINE {
            // SAFETY: `run` has written the result into the line, and nobody has taken it, as the
            // caller promises.
            unsafe { record.wrapping_add(2).cast::<R>().read() }
        } else {
            // SAFETY: `write` has written the frame's address, which the result leaves in place.
            let frame = unsafe { record.wrapping_add(2).cast::<*mut CallFrame<F, R>>().read() };
            // SAFETY: the caller of `write`, who takes the result, keeps the frame.
            let frame = unsafe { &*frame };
            // SAFETY: the call was answered without a fault, so `run` has written the result; it is
            // taken once.
            unsafe { frame.result.assume_init_read() }
        }
    }

    unsafe fn run(record: *mut u64, at: Cursors, _track: &Track, _stop: u32) -> Cursors {
        // SAFETY: the call's vtable says that it is of this type; it has not been run before.
        let place = unsafe { Self::place(record) };
        // SAFETY: `write_head` has written the object into the second word.
        let object = unsafe { record.wrapping_add(1).cast::<*mut Object<T>>().read() };
        // SAFETY: the caller of the call keeps the object, and only its trustee, which runs this,
        // touches the value.
        let value = unsafe { Object::value(object) };
        // SAFETY: `write` has put the closure there, and a call runs once.
        let result: R = unsafe { large::run(place, value) };
        if Self::INLINE {
            memory::write(record.wrapping_add(2), Self::RESULT_WORDS);
            // SAFETY: `INLINE` says that the result fits into the line's words.
            unsafe { record.wrapping_add(2).cast::<R>().write(result) };
        } else {
            // SAFETY: the word still holds the frame's address, and the waiting caller keeps the
            // frame.
            let frame = unsafe { record.wrapping_add(2).cast::<*mut CallFrame<F, R>>().read() };
            // SAFETY: the waiting caller keeps the frame.
            let place = unsafe { &raw mut (*frame).result };
            // SAFETY: the frame has room for the result, and the caller does not look before the
            // answer.
            unsafe { place.cast::<R>().write(result) };
        }
        at
    }

    unsafe fn discard(record: *mut u64) {
        // SAFETY: the caller promises a call of this type, not run and not taken yet.
        let place = unsafe { Self::place(record) };
        // SAFETY: `write` has put the closure there, and a call is discarded once.
        unsafe { large::discard(place) };
    }
}
