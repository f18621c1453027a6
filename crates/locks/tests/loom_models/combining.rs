//! The combining locks under loom, as the others are in `locks.rs`.
//!
//! In the models a waiter that has looked once goes to sleep, so both ways of waiting are explored:
//! an answer comes before that, or wakes. And a combiner that has reached the limit is relieved by a
//! sleeper at once.

use crate::common::{self, Combines, for_combining_locks, tests_of, where_nothing_may_wait};
use corelay_sync::Session;
use corelay_sync::wait::{Source, register};
use loom::sync::Arc;
use loom::thread;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

for_combining_locks!({
    limit_of_one: u64,
    limit_of_two: u64,
    three_threads: u64,
    three_threads_limit_of_one: u64,
    sessions_are_kept: u64,
    a_panic_reaches_its_caller: u64,
    one_may_not_wait: u64,
    a_callback_waits_below_a_waiter: u64,
});

fn add<L: Combines<u64>>(lock: &L) -> u64 {
    lock.session().apply(|n| {
        *n += 1;
        *n
    })
}

/// Adds one `times` times in each of `threads`, of which this is one; every answer is given once.
fn model<L: Combines<u64> + 'static>(limit: u32, threads: usize, times: usize) {
    loom::model(move || {
        let lock = Arc::new(L::make_with_limit(0, limit));
        let work = move |lock: &L| (0..times).map(|_| add(lock)).collect::<Vec<_>>();
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || work(&lock))
            })
            .collect();
        let mut seen = work(&lock);
        seen.extend(others.into_iter().flat_map(|t| t.join().unwrap()));
        seen.sort_unstable();
        let total = (threads * times) as u64;
        assert!(seen.into_iter().eq(1..=total));
        // The lock is free again.
        assert_eq!(where_nothing_may_wait(|| add(&*lock)), total + 1);
    });
}

/// A thread combines no more than its own operation, and then wakes the next if that sleeps.
fn limit_of_one<L: Combines<u64> + 'static>() {
    model::<L>(1, 2, 2);
}

fn limit_of_two<L: Combines<u64> + 'static>() {
    model::<L>(2, 2, 2);
}

/// A queue of a combiner and two waiters.
fn three_threads<L: Combines<u64> + 'static>() {
    model::<L>(3, 3, 1);
}

/// The turn goes from waiter to waiter.
fn three_threads_limit_of_one<L: Combines<u64> + 'static>() {
    model::<L>(1, 3, 1);
}

/// Sessions outlive their operations: records stay, are removed, and are linked again.
fn sessions_are_kept<L: Combines<u64> + 'static>() {
    loom::model(|| {
        let lock = Arc::new(L::make_with_limit(0, 2));
        let work = |lock: &L| {
            let mut session = lock.session();
            for _ in 0..3 {
                session.apply(|n| *n += 1);
            }
        };
        let other = thread::spawn({
            let lock = Arc::clone(&lock);
            move || work(&lock)
        });
        work(&lock);
        other.join().unwrap();
        assert_eq!(add(&*lock), 7);
    });
}

/// Each thread's second operation panics, whoever runs it, and its first and the lock do not suffer.
fn a_panic_reaches_its_caller<L: Combines<u64> + 'static>() {
    loom::model(|| {
        let lock = Arc::new(L::make_with_limit(0, 2));
        let work = |lock: &L, name: u64| {
            add(lock);
            let panic = catch_unwind(AssertUnwindSafe(|| {
                lock.session().apply(|n| {
                    *n += 1;
                    // It unwinds without the panic hook, so nothing is printed.
                    resume_unwind(Box::new(name));
                });
            }));
            assert_eq!(panic.unwrap_err().downcast_ref(), Some(&name));
        };
        let other = thread::spawn({
            let lock = Arc::clone(&lock);
            move || work(&lock, 1)
        });
        work(&lock, 0);
        other.join().unwrap();
        assert_eq!(add(&*lock), 5);
    });
}

/// One of two threads may not wait: it enters a free lock, and a taken one refuses it.
fn one_may_not_wait<L: Combines<u64> + 'static>() {
    common::silence_refusals();
    loom::model(|| {
        let lock = Arc::new(L::make(0));
        let other = thread::spawn({
            let lock = Arc::clone(&lock);
            move || add(&*lock) + add(&*lock)
        });
        let entered = (0..2)
            .filter(|_| {
                let enter = || where_nothing_may_wait(|| add(&*lock));
                catch_unwind(AssertUnwindSafe(enter)).is_ok()
            })
            .count() as u64;
        other.join().unwrap();
        assert_eq!(add(&*lock), 2 + entered + 1);
    });
}

/// A source with one callback, which adds, and may wait.
struct Callback<L> {
    lock: Arc<L>,
    is_due: Cell<bool>,
}

impl<L: Combines<u64>> Source for Callback<L> {
    fn poll(&self) -> bool {
        if self.is_due.replace(false) {
            add(&*self.lock);
        }
        false
    }
}

/// A thread that sleeps runs a callback, which waits for the same lock. So the thread cannot go on in
/// a combiner's place.
fn a_callback_waits_below_a_waiter<L: Combines<u64> + 'static>() {
    loom::model(|| {
        let lock = Arc::new(L::make_with_limit(0, 1));
        let waiter = thread::spawn({
            let lock = Arc::clone(&lock);
            move || {
                let callback = Rc::new(Callback {
                    lock: Arc::clone(&lock),
                    is_due: Cell::new(true),
                });
                let _registration = register(&callback);
                add(&*lock);
                callback.poll();
            }
        });
        add(&*lock);
        waiter.join().unwrap();
        assert_eq!(where_nothing_may_wait(|| add(&*lock)), 4);
    });
}
