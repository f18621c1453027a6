//! Condvar and barrier, on fibres and threads.

use crate::promise;
use crate::waiters::{Running, everywhere, late, rounds, run, soon, spawn};
use corelay_fibre::{Barrier, Cancelled, Condvar, Interrupted, Mutex, yield_now};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bounded buffer: producers and consumers, each notified by the other side.
#[test]
fn no_notification_is_lost() {
    everywhere(|cluster, crew| {
        let buffer = Arc::new((Mutex::new(VecDeque::new()), Condvar::new(), Condvar::new()));
        let times = rounds(100);
        let sums = run(cluster, crew, 12, {
            let buffer = Arc::clone(&buffer);
            move |i| {
                let (queue, filled, taken) = &*buffer;
                let mut sum = 0;
                for n in 0..times {
                    if i < 6 {
                        let mut queue = taken.wait_while(queue.lock(), |queue| queue.len() == 2);
                        queue.push_back(n);
                        filled.notify_one();
                    } else {
                        let mut queue = filled.wait_while(queue.lock(), |queue| queue.is_empty());
                        sum += queue.pop_front().unwrap();
                        drop(queue);
                        taken.notify_one();
                    }
                }
                sum
            }
        });
        assert_eq!(sums.iter().sum::<usize>(), 6 * times * (times - 1) / 2);
    });
}

/// A notification goes to a waiter that uses it, however many others are cancelled or time out
/// meanwhile: while anybody waits, no ticket is left.
#[test]
fn a_notification_is_not_lost_with_its_waiter() {
    everywhere(|cluster, crew| {
        for round in 0..rounds(40) {
            // The number of tickets that are left, and whether there will be more.
            let tickets = Arc::new((Mutex::new((0, true)), Condvar::new()));
            let got = Arc::new(AtomicUsize::new(0));
            let running: Vec<_> = (0..9)
                .map(|i| {
                    let (tickets, got) = (Arc::clone(&tickets), Arc::clone(&got));
                    spawn(cluster, crew(i), move || {
                        let (state, given) = &*tickets;
                        let mut state = state.lock();
                        while *state == (0, true) {
                            if i % 3 == 0 {
                                let (guard, end) = given.wait_until(state, soon(i + round));
                                state = guard;
                                if end.is_err() {
                                    return;
                                }
                            } else {
                                state = given.wait(state);
                            }
                        }
                        if state.0 > 0 {
                            state.0 -= 1;
                            got.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            let fibres: Vec<_> = running.iter().filter_map(Running::fibre).collect();
            for i in 0..4 {
                tickets.0.lock().0 += 1;
                tickets.1.notify_one();
                if let Some(fibre) = fibres.get((i * 2 + round) % 9) {
                    fibre.cancel();
                }
            }
            while tickets.0.lock().0 > 0 && !running.iter().all(Running::is_finished) {
                std::thread::yield_now();
            }
            tickets.0.lock().1 = false;
            tickets.1.notify_all();
            for end in running.into_iter().map(Running::join) {
                assert!(end.is_ok() || end.is_err_and(|end| end.is::<Cancelled>()));
            }
            assert_eq!(got.load(Ordering::Relaxed) + tickets.0.lock().0, 4);
        }
    });
}

#[test]
fn all_are_notified() {
    everywhere(|cluster, crew| {
        let gate = Arc::new((Mutex::new((0, false)), Condvar::new()));
        let running: Vec<_> = (0..10)
            .map(|i| {
                let gate = Arc::clone(&gate);
                spawn(cluster, crew(i), move || {
                    let mut state = gate.0.lock();
                    state.0 += 1;
                    while !state.1 {
                        state = gate.1.wait(state);
                    }
                })
            })
            .collect();
        while gate.0.lock().0 < 10 {
            std::thread::yield_now();
        }
        gate.0.lock().1 = true;
        gate.1.notify_all();
        for running in running {
            running.join().unwrap();
        }
    });
}

/// First come, first notified.
#[test]
fn in_order_of_arrival() {
    let cluster = promise::cluster(1);
    let order = cluster.spawn(|| {
        let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let waiting: Vec<_> = (0..5)
            .map(|i| {
                let shared = Arc::clone(&shared);
                corelay_fibre::spawn(move || shared.1.wait(shared.0.lock()).push(i))
            })
            .collect();
        yield_now();
        for _ in 0..5 {
            shared.1.notify_one();
            yield_now();
        }
        for waiting in waiting {
            waiting.join().unwrap();
        }
        shared.0.lock().clone()
    });
    assert_eq!(order.join().unwrap(), [0, 1, 2, 3, 4]);
}

/// After a cancellation the plain wait unwinds without the mutex; the other form has it again.
#[test]
fn cancelled() {
    let cluster = promise::cluster(2);
    for _ in 0..rounds(100) {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let plain = cluster.spawn({
            let shared = Arc::clone(&shared);
            move || *shared.1.wait(shared.0.lock()) += 1
        });
        let until = cluster.spawn({
            let shared = Arc::clone(&shared);
            move || {
                // A wait for the mutex would be interrupted, too.
                let guard = loop {
                    if let Some(guard) = shared.0.try_lock() {
                        break guard;
                    }
                    // The fibre that holds it may be enqueued after this one.
                    yield_now();
                };
                let (mut guard, end) = shared.1.wait_until(guard, late());
                *guard += 10;
                end
            }
        });
        plain.fibre().cancel();
        until.fibre().cancel();
        assert!(plain.join().unwrap_err().is::<Cancelled>());
        assert_eq!(until.join().unwrap(), Err(Interrupted::Cancelled));
        assert_eq!(shared.0.try_lock().as_deref(), Some(&10));
    }
}

/// Round after round, with one leader each, and nobody ahead of the others.
#[test]
fn a_barrier_keeps_all_together() {
    everywhere(|cluster, crew| {
        let barrier = Arc::new(Barrier::new(6));
        let come = Arc::new(AtomicUsize::new(0));
        let times = rounds(50);
        let leaders = run(cluster, crew, 6, {
            let come = Arc::clone(&come);
            move |_| {
                let mut leads = 0;
                for round in 1..=times {
                    come.fetch_add(1, Ordering::Relaxed);
                    leads += usize::from(barrier.wait());
                    assert!(come.load(Ordering::Relaxed) >= 6 * round);
                }
                leads
            }
        });
        assert_eq!(leaders.iter().sum::<usize>(), times);
    });
}

/// A fibre that leaves a barrier early has not arrived.
#[test]
fn a_barrier_waits_for_another_one() {
    everywhere(|cluster, crew| {
        let barrier = Arc::new(Barrier::new(2));
        let late_one = run(cluster, crew, 1, {
            let barrier = Arc::clone(&barrier);
            move |_| barrier.wait_until(soon(3))
        });
        assert_eq!(late_one, [Err(Interrupted::TimedOut)]);
        let leaders = run(cluster, crew, 2, move |_| {
            barrier.wait_until(late()).unwrap()
        });
        assert_eq!(leaders.into_iter().filter(|leads| *leads).count(), 1);
    });
    let cluster = promise::cluster(2);
    let barrier = Arc::new(Barrier::new(2));
    let cancelled = cluster.spawn({
        let barrier = Arc::clone(&barrier);
        move || barrier.wait()
    });
    cancelled.fibre().cancel();
    assert!(cancelled.join().unwrap_err().is::<Cancelled>());
    let one = cluster.spawn({
        let barrier = Arc::clone(&barrier);
        move || barrier.wait()
    });
    assert!(barrier.wait() ^ one.join().unwrap());
}
