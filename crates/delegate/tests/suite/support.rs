//! Helpers for all tests: counters of drops, gates, and panics as text.

use corelay_delegate::{Builder, Trust, Trustees};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

pub(crate) use crate::watch::{scaled, watchdog};

/// Starts one trustee.
pub(crate) fn one() -> Trustees {
    start(Trustees::dedicated(1))
}

/// Starts the trustees of a builder.
#[track_caller]
pub(crate) fn start(builder: Builder) -> Trustees {
    builder
        .start()
        .expect("the settings are in order and there are threads")
}

/// Runs `f` on a thread with so many bytes of stack.
pub(crate) fn with_stack_of(bytes: usize, f: impl FnOnce() + Send) {
    std::thread::scope(|s| {
        let thread = std::thread::Builder::new()
            .stack_size(bytes)
            .spawn_scoped(s, f);
        if let Err(payload) = thread.expect("there are threads").join() {
            std::panic::resume_unwind(payload);
        }
    });
}

/// The panic of `f`, as text.
#[track_caller]
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("no panic"),
        Err(payload) => text_of(&*payload),
    }
}

/// A panic's payload, as text.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        String::from("no text")
    }
}

/// A gate that one thread waits at until another one opens it. It stays open.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn wait(&self) {
        let guard = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(guard, |open| !*open).unwrap());
    }
}

/// Counts tokens made and dropped.
#[derive(Clone, Default)]
pub(crate) struct Tally(Arc<Counts>);

#[derive(Default)]
struct Counts {
    made: AtomicU64,
    dropped: AtomicU64,
    balance: AtomicI64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Makes a token, counted now and when it is dropped.
    pub(crate) fn token(&self) -> Token {
        self.0.made.fetch_add(1, Ordering::Relaxed);
        self.0.balance.fetch_add(1, Ordering::Relaxed);
        Token(self.clone())
    }

    pub(crate) fn made(&self) -> u64 {
        self.0.made.load(Ordering::Acquire)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Acquire)
    }

    /// Asserts that `made` tokens have been made, and as many dropped.
    #[track_caller]
    pub(crate) fn assert_all_dropped(&self, made: u64) {
        assert_eq!(
            (self.made(), self.dropped()),
            (made, made),
            "(made, dropped)"
        );
    }
}

/// A token of a [`Tally`].
pub(crate) struct Token(Tally);

impl Clone for Token {
    fn clone(&self) -> Self {
        self.0.token()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let left = self.0.0.balance.fetch_sub(1, Ordering::Relaxed);
        assert!(left > 0, "a token was dropped twice");
        self.0.0.dropped.fetch_add(1, Ordering::Release);
    }
}

/// Runs its closure when it is dropped.
pub(crate) struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    pub(crate) fn new(f: F) -> Self {
        Self(Some(f))
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

/// Waits until `done`, yielding the CPU.
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::thread::yield_now();
    }
}

/// Waits until `ran`, which the calling thread's last request opens, and its tail is published: a
/// trustee turns to another client's call only after that. The calling thread reaps nothing.
pub(crate) fn settle<T: 'static>(t: &Trust<T>, ran: &Gate) {
    ran.wait();
    call_from_elsewhere(t);
}

/// A small generator (xorshift64): the same numbers in every run.
#[derive(Clone, Copy)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Makes a generator. `seed` must not be 0.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Keeps a trustee inside a closure until this is dropped, also by a test that fails.
pub(crate) struct HeldUp(Gate);

impl Drop for HeldUp {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Stops the trustee of `t` in a posted closure, one request in flight.
pub(crate) fn hold_up<T: 'static>(t: &Trust<T>) -> HeldUp {
    let (gate, begun) = (Gate::new(), Gate::new());
    let (held, begin) = (gate.clone(), begun.clone());
    t.post(move |_| {
        begin.open();
        held.wait();
    });
    // Requests of other clients may be served before it until then.
    begun.wait();
    HeldUp(gate)
}

/// [`hold_up`] by another thread: the calling one has nothing in flight.
pub(crate) fn hold_up_from_elsewhere<T: 'static>(t: &Trust<T>) -> HeldUp {
    let (gate, begun) = (Gate::new(), Gate::new());
    let (held, begin, t) = (gate.clone(), begun.clone(), t.clone());
    std::thread::spawn(move || {
        t.apply(|_| {
            begin.open();
            held.wait();
        });
    });
    begun.wait();
    HeldUp(gate)
}

/// Makes a call on the trustee of `t` from another thread: earlier requests have been served when
/// it returns.
pub(crate) fn call_from_elsewhere<T: 'static>(t: &Trust<T>) {
    let t = t.clone();
    std::thread::spawn(move || t.apply(|_| ()))
        .join()
        .expect("an empty closure");
}
