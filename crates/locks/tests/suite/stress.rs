//! Everything at once, at random. `CORELAY_STRESS=10 cargo test …` does ten times as much.

use crate::common::{
    Combines, Lock, for_all_locks, for_combining_locks, for_waiting_locks, tests_of,
    where_nothing_may_wait,
};
use corelay_sync::Session;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

for_all_locks!({ everything_at_once: (bool, u64) });

mod limited {
    use super::*;

    for_combining_locks!({ everything_at_once_in_threes: (bool, u64) });
}

const THREADS: u64 = 5;

fn everything_at_once<L: Lock<(bool, u64)>>() {
    stress(L::make((false, 0)));
}

/// The combiner often changes.
fn everything_at_once_in_threes<L: Combines<(bool, u64)>>() {
    stress(L::make_with_limit((false, 0), 3));
}

fn stress<L: Lock<(bool, u64)>>(lock: L) {
    let done: u64 = thread::scope(|s| {
        let threads: Vec<_> = (1..=THREADS)
            .map(|seed| {
                let lock = &lock;
                s.spawn(move || work(lock, seed))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(lock.unmake(), (false, done));
}

/// Returns the number of closures that have run.
fn work<L: Lock<(bool, u64)>>(lock: &L, seed: u64) -> u64 {
    let (mut random, mut done, mut last) = (seed, 0, 0);
    let mut session = lock.session();
    for _ in 0..rounds() {
        // Knuth's multiplier; the high bits are the random ones.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let ran = match random >> 59 {
            0 => {
                session = lock.session();
                None
            }
            1 => {
                thread::yield_now();
                None
            }
            2 => {
                let panics = || {
                    session.apply(|value| {
                        add(value);
                        resume_unwind(Box::new(()));
                    });
                };
                catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
                done += 1;
                None
            }
            3 => {
                let may_not_wait = || where_nothing_may_wait(|| session.apply(add));
                catch_unwind(AssertUnwindSafe(may_not_wait)).ok()
            }
            4 => Some(session.apply(|value| {
                thread::yield_now();
                add(value)
            })),
            _ => Some(session.apply(add)),
        };
        if let Some(n) = ran {
            assert!(n > last, "{n} after {last}");
            last = n;
            done += 1;
        }
    }
    done
}

fn add((is_inside, n): &mut (bool, u64)) -> u64 {
    assert!(!*is_inside, "two threads inside");
    *is_inside = true;
    *n += 1;
    std::hint::black_box(&mut *n);
    *is_inside = false;
    *n
}

/// A thousand times the factor in `CORELAY_STRESS` (1 unless set).
fn rounds() -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    (1_000.0 * factor) as u64
}
