//! The locks under shuttle: random schedules of more threads than loom can afford.
//!
//! `RUSTFLAGS="--cfg corelay_shuttle" cargo test -p corelay-locks --release --test
//! shuttle_locks`
//!
//! `CORELAY_SHUTTLE_ITERATIONS` says how many schedules each test draws. A failing one is
//! printed, to be replayed with `shuttle::replay`.

#![cfg(corelay_shuttle)]

mod common;
#[path = "../../sync/tests/schedules/mod.rs"]
mod schedules;

use common::{Combines, Lock, for_combining_locks, for_waiting_locks, tests_of};
use corelay_sync::Session;
use shuttle::sync::Arc;
use shuttle::thread;

for_waiting_locks!({ six_threads: (bool, u64), two_locks_nested: (bool, u64) });

mod combining {
    use super::*;

    for_combining_locks!({
        six_threads: (bool, u64),
        six_threads_that_combine_two: (bool, u64),
    });
}

const SCHEDULES: usize = 500;
const THREADS: u64 = 6;
const TIMES: u64 = 4;

/// Adds one, with a switch of threads in the middle of the section.
fn add((inside, n): &mut (bool, u64)) -> u64 {
    assert!(!*inside, "two threads inside");
    *inside = true;
    thread::yield_now();
    *inside = false;
    *n += 1;
    *n
}

fn six_threads<L: Lock<(bool, u64)> + 'static>() {
    adding(L::make);
}

/// The combiner changes in the middle of the queue.
fn six_threads_that_combine_two<L: Combines<(bool, u64)> + 'static>() {
    adding(|value| L::make_with_limit(value, 2));
}

fn adding<L: Lock<(bool, u64)> + 'static>(make: impl Fn((bool, u64)) -> L + Send + Sync + 'static) {
    schedules::model(SCHEDULES, move || {
        let lock = Arc::new(make((false, 0)));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    let mut session = lock.session();
                    (0..TIMES).map(|_| session.apply(add)).collect::<Vec<_>>()
                })
            })
            .collect();
        let mut seen: Vec<u64> = threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(1..=THREADS * TIMES));
    });
}

/// Nodes wander between two queues, and each thread has two in use.
fn two_locks_nested<L: Lock<(bool, u64)> + 'static>() {
    schedules::model(SCHEDULES, || {
        let locks = Arc::new([L::make((false, 0)), L::make((false, 0))]);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let locks = Arc::clone(&locks);
                thread::spawn(move || {
                    let [outer, inner] = &*locks;
                    for _ in 0..TIMES {
                        if thread % 2 == 0 {
                            outer.session().apply(|value| {
                                inner.session().apply(add);
                                add(value)
                            });
                        } else {
                            inner.session().apply(add);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        let [outer, inner] = &*locks;
        assert_eq!(outer.session().apply(|value| value.1), THREADS / 2 * TIMES);
        assert_eq!(inner.session().apply(|value| value.1), THREADS * TIMES);
    });
}

/// Guards of the adaptive lock, and closures beside them.
mod adaptive {
    use super::*;
    use corelay_locks::Adaptive;

    tests_of!(closures Adaptive { six_threads: (bool, u64) });

    /// Each thread adds `TIMES`; `by_guard` says of a thread and a round whether it does so by a guard.
    fn adding(by_guard: fn(u64, u64) -> bool) {
        schedules::model(SCHEDULES, move || {
            let lock = Arc::new(Adaptive::new((false, 0)));
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let lock = Arc::clone(&lock);
                    thread::spawn(move || {
                        let step = |round| {
                            if by_guard(thread, round) {
                                add(&mut lock.lock().unwrap())
                            } else {
                                lock.apply(add)
                            }
                        };
                        (0..TIMES).map(step).collect::<Vec<_>>()
                    })
                })
                .collect();
            let mut seen: Vec<u64> = threads
                .into_iter()
                .flat_map(|t| t.join().unwrap())
                .collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(1..=THREADS * TIMES));
        });
    }

    #[test]
    fn guards() {
        adding(|_, _| true);
    }

    #[test]
    fn threads_with_guards_beside_threads_with_closures() {
        adding(|thread, _| thread % 2 == 0);
    }

    #[test]
    fn guards_and_closures_in_turn() {
        adding(|thread, round| (thread + round) % 2 == 0);
    }
}
