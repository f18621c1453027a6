//! Mutex, condition and channel under shuttle: random schedules of more threads than loom can
//! afford.
//!
//! `RUSTFLAGS="--cfg corelay_shuttle" cargo test -p corelay-fibre --profile model --test
//! shuttle_channel`
//!
//! `CORELAY_SHUTTLE_ITERATIONS` says how many schedules each test draws. A failing one is
//! printed, to be replayed with `shuttle::replay`.

use crate::schedules;
use corelay_fibre::{Barrier, Condvar, Mutex, channel};
use shuttle::sync::Arc;
use shuttle::thread;

const SCHEDULES: usize = 300;
const THREADS: usize = 5;
const TIMES: usize = 3;

fn crew<T: Send + 'static>(f: impl Fn(usize) -> T + Clone + Send + 'static) -> Vec<T> {
    let threads: Vec<_> = (0..THREADS)
        .map(|i| {
            let f = f.clone();
            thread::spawn(move || f(i))
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

#[test]
fn one_at_a_time() {
    schedules::model(SCHEDULES, || {
        let mutex = Arc::new(Mutex::new((false, 0)));
        let shared = Arc::clone(&mutex);
        crew(move |_| {
            for _ in 0..TIMES {
                let mut guard = shared.lock();
                assert!(!std::mem::replace(&mut guard.0, true), "two inside");
                thread::yield_now();
                guard.0 = false;
                guard.1 += 1;
            }
        });
        assert_eq!(mutex.lock().1, THREADS * TIMES);
    });
}

/// Turns go around: each notification reaches the waiter that it is for.
#[test]
fn turns() {
    schedules::model(SCHEDULES, || {
        let shared = Arc::new((Mutex::new(0), Condvar::new(), Barrier::new(THREADS)));
        crew(move |i| {
            let (turn, changed, all) = &*shared;
            for _ in 0..TIMES {
                let mut turn = changed.wait_while(turn.lock(), |turn| *turn % THREADS != i);
                *turn += 1;
                changed.notify_all();
            }
            all.wait();
            assert_eq!(*turn.lock(), THREADS * TIMES);
        });
    });
}

#[test]
fn each_value_once() {
    for capacity in [0, 1, 2] {
        schedules::model(SCHEDULES, move || {
            let (sender, receiver) = channel(capacity);
            let receivers: Vec<_> = (0..2)
                .map(|_| {
                    let receiver = receiver.clone();
                    thread::spawn(move || receiver.iter().sum::<usize>())
                })
                .collect();
            drop(receiver);
            crew({
                move |i| {
                    let sender = sender.clone();
                    for n in 0..TIMES {
                        sender.send(i * TIMES + n).unwrap();
                    }
                }
            });
            let sum: usize = receivers.into_iter().map(|r| r.join().unwrap()).sum();
            assert_eq!(sum, (0..THREADS * TIMES).sum());
        });
    }
}
