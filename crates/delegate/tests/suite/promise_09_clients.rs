//! Promise 9: Clients come and go; a thread's end waits for its answers and runs its callbacks.

use crate::support::{Gate, OnDrop, Tally, hold_up, one, panic_of, scaled, start, watchdog};
use corelay_delegate::{ClientGuard, Trust, Trustees, barrier, poll};
use corelay_sync::{Issue, Session, Shared};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

#[test]
fn promise_09_more_clients_than_cpus() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let objects: Vec<Trust<u64>> = (0..4).map(|_| trustees.entrust(0)).collect();
    let called = AtomicU64::new(0);
    let (clients, each) = (100, scaled(60));
    thread::scope(|s| {
        for client in 0..clients {
            let (objects, called) = (&objects, &called);
            s.spawn(move || {
                let _client = ClientGuard::new();
                let seen = Arc::new(AtomicU64::new(0));
                for i in 0..each {
                    let t = &objects[((client + i) % 4) as usize];
                    match i % 3 {
                        0 => t.post(|n| *n += 1),
                        1 => t.apply(|n| *n += 1),
                        _ => {
                            let seen = Arc::clone(&seen);
                            t.apply_then(
                                |n| *n += 1,
                                move |()| {
                                    seen.fetch_add(1, Ordering::Relaxed);
                                },
                            );
                        }
                    }
                }
                barrier().unwrap();
                called.fetch_add(seen.load(Ordering::Relaxed), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(called.load(Ordering::Relaxed), clients * (each / 3));
    let total: u64 = objects.iter().map(|t| t.apply(|n| *n)).sum();
    assert_eq!(total, clients * each);
}

#[test]
fn promise_09_threads_that_come_and_go() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let (waves, wave) = (scaled(25), 16);
    for _ in 0..waves {
        let threads: Vec<_> = (0..wave)
            .map(|i| {
                let (t, tally) = (t.clone(), tally.clone());
                thread::spawn(move || {
                    let here = thread::current().id();
                    for _ in 0..i {
                        let (a, b) = (tally.token(), tally.token());
                        t.apply_then(
                            move |n| {
                                *n += 1;
                                drop(a);
                            },
                            move |()| {
                                assert_eq!(thread::current().id(), here);
                                drop(b);
                            },
                        );
                    }
                    if i % 3 == 0 {
                        t.apply(|n| *n += 1);
                    }
                    // No barrier: the end of the thread is one.
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
    let requests = waves * (wave * (wave - 1) / 2);
    tally.assert_all_dropped(2 * requests);
    assert_eq!(t.apply(|n| *n), requests + waves * 6);
}

#[test]
fn promise_09_an_ending_thread_waits_for_its_answers() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let held = hold_up(&t);
    let (client, token) = (t.clone(), tally.token());
    let issued = Gate::new();
    let open = issued.clone();
    let thread = thread::spawn(move || {
        client.apply_then(|n| *n += 1, move |()| drop(token));
        open.open();
    });
    issued.wait();
    thread::yield_now();
    assert_eq!(tally.dropped(), 0);
    drop(held);
    thread.join().unwrap();
    tally.assert_all_dropped(1);
}

/// Also when it ends by a panic, and when its last callbacks make requests, or panic.
#[test]
fn promise_09_threads_that_end_in_other_ways() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let tally = Tally::new();
    let (t, token) = (a.clone(), tally.token());
    let ended = thread::spawn(move || {
        t.apply_then(|n| *n += 1, move |()| drop(token));
        panic!("a thread's own");
    });
    assert!(ended.join().is_err());
    tally.assert_all_dropped(1);

    let (t, other, token) = (a.clone(), b.clone(), tally.token());
    thread::spawn(move || {
        let again = t.clone();
        t.apply_then(
            |n| *n += 1,
            move |()| {
                other.apply_then(
                    |n| *n += 1,
                    move |()| {
                        assert_eq!(again.apply(|n| *n), 2);
                        again.apply_then(|n| *n += 1, move |()| drop(token));
                    },
                );
            },
        );
    })
    .join()
    .unwrap();
    tally.assert_all_dropped(2);

    let (t, token, held) = (a.clone(), tally.token(), hold_up(&a));
    thread::spawn(move || {
        // Released at the end of the thread's function, when nothing has been answered yet.
        let _held = held;
        t.apply_then(|n| *n += 1, |()| panic!("in the last callback"));
        t.apply_then(|n| *n += 1, move |()| drop(token));
        t.post(|_| panic!("in the last closure"));
    })
    .join()
    .unwrap();
    tally.assert_all_dropped(3);
    assert!(a.is_poisoned());
    a.clear_poison();
    assert_eq!((a.apply(|n| *n), b.apply(|n| *n)), (5, 1));
}

// ---- thread-local destructors ----

/// Calls in the destructor of a thread-local value, whichever order they are destroyed in.
fn call_in_a_destructor(client_first: bool, calls: impl FnOnce() + Send + 'static, t: &Trust<u64>) {
    thread_local! {
        static LATE: RefCell<Option<OnDrop<Box<dyn FnOnce()>>>> = const { RefCell::new(None) };
    }
    let t = t.clone();
    thread::spawn(move || {
        let set = || LATE.with(|late| *late.borrow_mut() = Some(OnDrop::new(Box::new(calls))));
        if client_first {
            t.apply(|_| ());
            set();
        } else {
            set();
            t.apply(|_| ());
        }
        t.post(|n| *n += 1);
    })
    .join()
    .unwrap();
}

#[test]
fn promise_09_calls_in_thread_local_destructors() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let tally = Tally::new();
    for round in 0..40 {
        let (t, other, tokens) = (a.clone(), b.clone(), tally.clone());
        let calls = move || {
            assert!(t.apply(|n| *n) > 0);
            for t in [&t, &other] {
                let (token, callback) = (tokens.token(), tokens.token());
                t.post(move |n| {
                    *n += 10;
                    drop(token);
                });
                t.apply_then(|n| *n += 100, move |()| drop(callback));
                assert!(t.try_apply(|n| *n += 1000).is_ok());
                assert!(t.try_post(|n| *n += 10_000).is_ok());
                assert!(t.try_apply_then(|n| *n += 100_000, |()| ()).is_ok());
                let mut block = [0u64; 50];
                t.apply(|n| block[49] = *n);
                assert!(block[49] > 100_000);
                t.session().apply(|n| *n += 1_000_000);
            }
            barrier().unwrap();
            poll();
            drop(ClientGuard::new());
        };
        call_in_a_destructor(round % 2 == 0, calls, &a);
        tally.assert_all_dropped(4 * (round + 1));
    }
    assert_eq!(a.apply(|n| *n), 40 * 1_111_111);
    assert_eq!(b.apply(|n| *n), 40 * 1_111_110);
}

/// A session made in such a destructor has a client of its own, which finishes with it.
#[test]
fn promise_09_sessions_in_thread_local_destructors() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    for round in 0..20 {
        let (handle, tokens) = (t.clone(), tally.clone());
        let calls = move || {
            let mut session = handle.session();
            for _ in 0..100 {
                let token = tokens.token();
                session.issue(|n| *n += 1, move |()| drop(token));
            }
        };
        call_in_a_destructor(round % 2 == 0, calls, &t);
        tally.assert_all_dropped(100 * (round + 1));
    }
    assert_eq!(t.apply(|n| *n), 20 * 101);
}

/// A delegated closure may leave a thread-local value on its trustee's thread, and that one's
/// destructor calls when the trustee's thread ends: another trustee, and its own.
#[test]
fn promise_09_thread_local_destructors_on_a_trustees_thread() {
    let _watch = watchdog();
    thread_local! {
        static LATE: RefCell<Option<OnDrop<Box<dyn FnOnce()>>>> = const { RefCell::new(None) };
    }
    let others = one();
    let (other, tally) = (others.entrust(0u64), Tally::new());
    for _ in 0..10 {
        let trustees = one();
        let t = trustees.entrust(0u64);
        let (handle, own, token) = (other.clone(), t.clone(), tally.token());
        t.post(move |_| {
            let calls = move || {
                handle.apply(|n| *n += 1);
                handle.apply_then(|n| *n += 1, move |()| drop(token));
                assert!(own.try_apply(|n| *n).is_err(), "its trustee has ended");
                barrier().unwrap();
            };
            LATE.with(|late| *late.borrow_mut() = Some(OnDrop::new(Box::new(calls))));
        });
        trustees.shutdown();
    }
    tally.assert_all_dropped(10);
    assert_eq!(other.apply(|n| *n), 20);
}

// ---- guards ----

#[test]
fn promise_09_a_guard_is_the_barrier_before_the_join() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    for _ in 0..scaled(100) {
        let called = Arc::new(AtomicU64::new(0));
        thread::scope(|s| {
            for _ in 0..3 {
                let (t, called) = (&t, &called);
                s.spawn(move || {
                    let _client = ClientGuard::new();
                    for _ in 0..20 {
                        let called = Arc::clone(called);
                        t.apply_then(
                            |n| *n += 1,
                            move |()| {
                                called.fetch_add(1, Ordering::Relaxed);
                            },
                        );
                    }
                });
            }
        });
        // `scope` does not wait for thread-local destructors, so this is the guards' doing.
        assert_eq!(called.load(Ordering::Relaxed), 60);
    }
}

#[test]
fn promise_09_a_thread_may_come_back() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let objects = [trustees.entrust(0u64), trustees.entrust(0u64)];
    let called = Arc::new(AtomicU64::new(0));
    for round in 1..=50 {
        let _outer = ClientGuard::new();
        let _inner = ClientGuard::new();
        for t in &objects {
            let called = Arc::clone(&called);
            t.apply_then(
                |n| *n += 1,
                move |()| {
                    called.fetch_add(1, Ordering::Relaxed);
                },
            );
        }
        drop(_inner);
        assert_eq!(called.load(Ordering::Relaxed), 2 * round);
    }
    assert_eq!(objects.each_ref().map(|t| t.apply(|n| *n)), [50, 50]);
}

/// Inside a callback, and inside a destructor that a call runs, the client is in use: the guard
/// lets it be.
#[test]
fn promise_09_a_guard_dropped_inside_a_callback() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let called = Arc::new(AtomicU64::new(0));
    for round in 0..20u64 {
        for i in 0..10 {
            let called = Arc::clone(&called);
            t.apply_then(
                |n| *n += 1,
                move |()| {
                    if i % 3 == 0 {
                        drop(ClientGuard::new());
                    }
                    called.fetch_add(1, Ordering::Relaxed);
                },
            );
        }
        match round % 3 {
            0 => t.apply(|_| ()),
            1 => poll(),
            _ => drop(ClientGuard::new()),
        }
    }
    barrier().unwrap();
    assert_eq!(
        (called.load(Ordering::Relaxed), t.apply(|n| *n)),
        (200, 200)
    );
}

/// A session keeps its thread's client, though the guard has let go of it.
#[test]
fn promise_09_a_session_outlives_the_guard() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let mut session = t.session();
    drop(ClientGuard::new());
    let gate = Gate::new();
    let held = gate.clone();
    session.issue(move |_| held.wait(), |()| ());
    for _ in 0..100 {
        let token = tally.token();
        session.issue(|n| *n += 1, move |()| drop(token));
    }
    assert_eq!(tally.dropped(), 0);
    gate.open();
    drop(session);
    assert_eq!(t.apply(|n| *n), 100);
    barrier().unwrap();
    tally.assert_all_dropped(100);
}

/// A session in a thread-local value, destroyed before or after the thread's clients.
#[test]
fn promise_09_a_session_at_the_end_of_its_thread() {
    let _watch = watchdog();
    thread_local! {
        static LATE: RefCell<Option<Box<dyn std::any::Any>>> = const { RefCell::new(None) };
    }
    let trustees = one();
    let t: &'static Trust<u64> = Box::leak(Box::new(trustees.entrust(0)));
    let tally = Tally::new();
    for round in 0..10 {
        let tokens = tally.clone();
        thread::spawn(move || {
            if round % 2 == 0 {
                LATE.with(|late| assert!(late.borrow().is_none())); // Registered first.
            }
            let mut session = t.session();
            session.apply(|_| ());
            for _ in 0..50 {
                let token = tokens.token();
                session.issue(|n| *n += 1, move |()| drop(token));
            }
            LATE.with(|late| *late.borrow_mut() = Some(Box::new(session)));
        })
        .join()
        .unwrap();
        tally.assert_all_dropped(50 * (round + 1));
    }
    assert_eq!(t.apply(|n| *n), 500);
    // SAFETY: the box was leaked above, and every session is gone.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(t).cast_mut()) });
}

/// A callback makes its thread a client of a trustee it did not know.
#[test]
fn promise_09_callbacks_make_clients() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(8));
    let objects: Vec<Trust<u64>> = (0..8).map(|i| trustees.entrust_on(i, 0)).collect();
    let tally = Tally::new();
    thread::scope(|s| {
        for turn in 0..8 {
            let (objects, tally) = (objects.clone(), tally.clone());
            s.spawn(move || {
                let _client = ClientGuard::new();
                fn go(objects: Vec<Trust<u64>>, at: usize, left: usize, tally: Tally) {
                    let token = tally.token();
                    let t = objects[at % 8].clone();
                    t.apply_then(
                        |n| *n += 1,
                        move |()| {
                            drop(token);
                            if left > 0 {
                                // Backwards and forwards through the table.
                                let step = if left.is_multiple_of(2) { 3 } else { 7 };
                                go(objects, at + step, left - 1, tally);
                            }
                        },
                    );
                }
                go(objects, turn, 30, tally);
                if turn % 2 == 0 {
                    barrier().unwrap();
                }
            });
        }
    });
    tally.assert_all_dropped(8 * 31);
    assert_eq!(objects.iter().map(|t| t.apply(|n| *n)).sum::<u64>(), 8 * 31);
}

/// A destructor of a closure that a call gives back makes calls.
#[test]
fn promise_09_calls_in_destructors_of_closures() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let other = b.clone();
    // A callback dropped unrun runs its captures' destructors on this thread.
    let caller = OnDrop::new(move || {
        other.apply(|n| *n += 1);
        other.post(|n| *n += 1);
        assert!(panic_of(barrier).contains("inside a callback"));
    });
    a.apply_then(|_| panic!("no answer"), move |()| drop(caller));
    assert_eq!(barrier().unwrap_err().message(), "no answer");
    assert_eq!(b.apply(|n| *n), 2);
}
