//! The locks under loom: every interleaving of the shipped source (up to the preemption
//! bound) with every permitted stale read.
//!
//! The value lies in loom's `UnsafeCell`, so an entry that is not ordered after the last
//! holder's section is reported as a race, whatever the count comes to.

use crate::common::{self, Lock, for_waiting_locks, tests_of, where_nothing_may_wait};
use corelay_sync::Session;
use loom::sync::Arc;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};

for_waiting_locks!({
    two_threads_twice: u64,
    three_threads: u64,
    three_threads_twice: u64,
    two_locks_nested: u64,
    one_may_not_wait: u64,
});

fn add<L: Lock<u64>>(lock: &L) -> u64 {
    lock.session().apply(|n| {
        *n += 1;
        *n
    })
}

/// Adds one `times` times in each of `threads`, of which this is one; every answer is given once.
fn model<L: Lock<u64> + 'static>(threads: usize, times: usize) {
    loom::model(move || {
        let lock = Arc::new(L::make(0));
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
        assert_eq!(add(&*lock), total + 1);
    });
}

/// A thread comes back to a lock: nodes are used again, and tickets count on.
fn two_threads_twice<L: Lock<u64> + 'static>() {
    model::<L>(2, 2);
}

/// A queue of holder, waiter and waiter.
fn three_threads<L: Lock<u64> + 'static>() {
    model::<L>(3, 1);
}

/// A queue of holder, waiter and waiter, which all come back to it.
fn three_threads_twice<L: Lock<u64> + 'static>() {
    model::<L>(3, 2);
}

/// A thread holds one lock while it waits for another; nodes go from queue to queue.
fn two_locks_nested<L: Lock<u64> + 'static>() {
    loom::model(|| {
        let locks = Arc::new([L::make(0), L::make(0)]);
        let other = thread::spawn({
            let locks = Arc::clone(&locks);
            move || {
                let [outer, inner] = &*locks;
                add(inner);
                add(outer);
            }
        });
        let [outer, inner] = &*locks;
        let answer = outer.session().apply(|n| {
            *n += 10;
            add(inner)
        });
        other.join().unwrap();
        assert!(answer == 1 || answer == 2);
        assert_eq!((add(outer), add(inner)), (12, 3));
    });
}

/// One of two threads may not wait: it enters a free lock, and a taken one refuses it.
fn one_may_not_wait<L: Lock<u64> + 'static>() {
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
