//! The adaptive lock under loom: guards, closures, and both at once.
//!
//! In the models nobody spins or yields: who finds the lock held publishes a closure, looks once, and
//! sleeps. A thread leaves the lock after one closure, if the others are awake.

use crate::common::{silence_refusals, where_nothing_may_wait};
use corelay_locks::Adaptive;
use corelay_sync::Session;
use corelay_sync::Shared;
use corelay_sync::wait::{
    Call, Cancelled, Context, CoroutineState, Source, Token, enter, on_thread, register,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::rc::Rc;

fn apply(lock: &Adaptive<u64>) -> u64 {
    lock.apply(|n| {
        *n += 1;
        *n
    })
}

fn lock(lock: &Adaptive<u64>) -> u64 {
    let mut n = lock.lock().unwrap();
    *n += 1;
    *n
}

type Add = fn(&Adaptive<u64>) -> u64;

/// Each thread does its additions; every answer is given once, and in the end the lock is free.
fn model<const THREADS: usize>(threads: [&'static [Add]; THREADS]) {
    loom::model(move || {
        let adaptive = Arc::new(Adaptive::new(0));
        let work = |lock: &Adaptive<u64>, adds: &[Add]| -> Vec<u64> {
            adds.iter().map(|add| add(lock)).collect()
        };
        let others: Vec<_> = threads[1..]
            .iter()
            .map(|&adds| {
                let adaptive = Arc::clone(&adaptive);
                thread::spawn(move || work(&adaptive, adds))
            })
            .collect();
        let mut seen = work(&adaptive, threads[0]);
        seen.extend(others.into_iter().flat_map(|t| t.join().unwrap()));
        seen.sort_unstable();
        let total = threads.iter().map(|adds| adds.len() as u64).sum();
        assert!(seen.into_iter().eq(1..=total));
        assert_eq!(*adaptive.try_lock().unwrap(), total);
    });
}

#[test]
fn closures_twice() {
    model([&[apply, apply], &[apply, apply]]);
}

#[test]
fn closures_of_three_threads() {
    model([&[apply], &[apply], &[apply]]);
}

#[test]
fn guards_twice() {
    model([&[lock, lock], &[lock, lock]]);
}

#[test]
fn guards_of_three_threads() {
    model([&[lock], &[lock], &[lock]]);
}

#[test]
fn closures_beside_a_guard() {
    model([&[lock], &[apply], &[apply]]);
}

#[test]
fn guards_beside_a_closure() {
    model([&[lock], &[lock], &[apply]]);
}

#[test]
fn closures_and_guards_in_turn() {
    model([&[apply, lock], &[lock, apply]]);
}

/// Each thread's second closure panics, whoever runs it; the other thread does not notice, for it
/// uses sessions, which ignore the mark.
#[test]
fn a_panic_reaches_its_caller_and_poisons() {
    loom::model(|| {
        let adaptive = Arc::new(Adaptive::new(0));
        let work = |lock: &Adaptive<u64>, name: u64| {
            lock.session().apply(|n| *n += 1);
            let panic = catch_unwind(AssertUnwindSafe(|| {
                lock.session().apply(|n| {
                    *n += 1;
                    // It unwinds without the panic hook, so nothing is printed.
                    resume_unwind(Box::new(name));
                });
            }));
            assert_eq!(panic.unwrap_err().downcast_ref(), Some(&name));
            assert!(lock.is_poisoned());
        };
        let other = thread::spawn({
            let adaptive = Arc::clone(&adaptive);
            move || work(&adaptive, 1)
        });
        work(&adaptive, 0);
        other.join().unwrap();
        assert_eq!(*adaptive.lock().unwrap_err().into_inner(), 4);
    });
}

/// One of two threads may not wait: it enters a free lock, and a taken one refuses it.
#[test]
fn one_may_not_wait() {
    silence_refusals();
    loom::model(|| {
        let adaptive = Arc::new(Adaptive::new(0));
        let other = thread::spawn({
            let adaptive = Arc::clone(&adaptive);
            move || apply(&adaptive) + lock(&adaptive)
        });
        let enters = |add: Add| {
            let enter = || where_nothing_may_wait(|| add(&adaptive));
            catch_unwind(AssertUnwindSafe(enter)).is_ok()
        };
        let entered = u64::from(enters(apply)) + u64::from(enters(lock));
        other.join().unwrap();
        assert_eq!(*adaptive.lock().unwrap(), 2 + entered);
    });
}

/// A context in which every wait that can be cancelled is.
struct Cancelling;

// SAFETY: it has no coroutines.
unsafe impl Context for Cancelling {
    fn wait(&self, call: Call, _: &Token) -> Result<(), Cancelled> {
        if call.is_cancellable {
            // What happens between the choice of the sleeper and its leaving.
            thread::yield_now();
            return Err(Cancelled::default());
        }
        Ok(())
    }

    fn running(&self) -> Option<NonNull<CoroutineState>> {
        None
    }
}

/// One of three waiters gives up, perhaps after it has been woken. The others still get in.
#[test]
fn a_waiter_gives_up() {
    loom::model(|| {
        let adaptive = Arc::new(Adaptive::new(0));
        let spawn = |work: fn(&Adaptive<u64>) -> u64| {
            let adaptive = Arc::clone(&adaptive);
            thread::spawn(move || work(&adaptive))
        };
        let gives_up = spawn(|adaptive| {
            let mut entered = 0;
            // SAFETY: no scheduler suspends this thread.
            unsafe {
                enter(&Cancelling, || {
                    let wait = catch_unwind(AssertUnwindSafe(|| lock(adaptive)));
                    entered = u64::from(wait.is_ok());
                    assert!(wait.map_or_else(|why| why.is::<Cancelled>(), |_| true));
                });
            }
            entered
        });
        let other = spawn(|adaptive| {
            lock(adaptive);
            1
        });
        lock(&adaptive);
        let total = 1 + gives_up.join().unwrap() + other.join().unwrap();
        assert_eq!(*adaptive.try_lock().unwrap(), total);
    });
}

/// A source with one callback, which adds, and may wait.
struct Callback {
    adaptive: Arc<Adaptive<u64>>,
    is_due: Arc<AtomicBool>,
    add: Cell<Option<Add>>,
}

impl Source for Callback {
    fn poll(&self) -> bool {
        // Relaxed: only when the callback runs.
        if self.is_due.load(Ordering::Relaxed) {
            self.run();
        }
        false
    }
}

impl Callback {
    fn run(&self) {
        if let Some(add) = self.add.take() {
            let _blocks = on_thread();
            add(&self.adaptive);
        }
    }
}

/// A thread that waits for the last of `rounds` guards runs a callback, which waits for the same lock.
/// If the outer wait is woken, it goes on only after the inner one.
fn a_callback(outer: Add, inner: Add, rounds: u64) {
    loom::model(move || {
        let adaptive = Arc::new(Adaptive::new(0));
        let is_due = Arc::new(AtomicBool::new(false));
        let waiter = thread::spawn({
            let (adaptive, is_due) = (Arc::clone(&adaptive), Arc::clone(&is_due));
            move || {
                let callback = Rc::new(Callback {
                    adaptive: Arc::clone(&adaptive),
                    is_due,
                    add: Cell::new(Some(inner)),
                });
                let _registration = register(&callback);
                outer(&adaptive);
                callback.run();
            }
        });
        for round in 1..=rounds {
            let mut n = adaptive.lock().unwrap();
            *n += 1;
            is_due.store(round == rounds, Ordering::Relaxed);
        }
        waiter.join().unwrap();
        assert_eq!(*adaptive.try_lock().unwrap(), 2 + rounds);
    });
}

#[test]
fn a_callback_waits_below_a_guard() {
    a_callback(lock, lock, 1);
}

#[test]
fn a_callback_waits_below_a_closure() {
    a_callback(apply, lock, 1);
}

#[test]
fn a_callbacks_closure_waits_below_a_guard() {
    a_callback(lock, apply, 1);
}

/// The outer wait has lost once, after which a thread without callbacks is granted the lock.
#[test]
fn a_callback_waits_below_a_patient_guard() {
    a_callback(lock, lock, 2);
}
