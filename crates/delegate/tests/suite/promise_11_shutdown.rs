//! Promise 11: Shutdown serves all accepted requests and drops the values on the trustee. Then
//! calls fail as `Closed` and give back.

use crate::support::{Gate, OnDrop, Tally, hold_up, one, panic_of, scaled, start, until, watchdog};
use corelay_delegate::{
    ClientGuard, Trust, Trustees, TryApplyError, TryApplyThenError, TryPostError, barrier, poll,
};
use corelay_sync::{Issue, Session, Shared};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn promise_11_what_was_accepted_is_served() {
    let _watch = watchdog();
    for requests in [0, 1, 2, 63, 64, 65, 200] {
        let trustees = start(Trustees::dedicated(2).window(1000));
        let objects = [trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64)];
        let (tally, ran) = (Tally::new(), Arc::new(AtomicU64::new(0)));
        let called = Rc::new(Cell::new(0));
        let held: Vec<_> = objects.iter().map(hold_up).collect();
        for _ in 0..requests {
            for t in &objects {
                let (token, ran, called) = (tally.token(), Arc::clone(&ran), Rc::clone(&called));
                t.apply_then(
                    move |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                        drop(token);
                    },
                    move |()| called.set(called.get() + 1),
                );
            }
        }
        drop(held);
        let metrics = trustees.shutdown();
        assert_eq!(ran.load(Ordering::Relaxed), 2 * requests);
        tally.assert_all_dropped(2 * requests);
        assert_eq!(
            metrics.iter().map(|m| m.requests).sum::<u64>(),
            2 * (requests + 2)
        );
        // The callbacks stay with their client, which may run them still.
        let before = called.get();
        assert!(before <= 2 * requests);
        poll();
        assert_eq!(called.get(), 2 * requests);
        barrier().unwrap();
    }
}

#[test]
fn promise_11_values_are_dropped_on_their_trustee() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(3));
    let tally = Tally::new();
    let homes: Vec<_> = (0..3)
        .map(|i| trustees.entrust_with_on(i, || thread::current().id()))
        .collect();
    let homes: Vec<_> = homes.iter().map(|t| t.apply(|id| *id)).collect();
    let values: Vec<Trust<_>> = (0..30)
        .map(|i| {
            let (token, home) = (tally.token(), homes[i % 3]);
            trustees.entrust_on(
                i % 3,
                OnDrop::new(move || {
                    assert_eq!(thread::current().id(), home);
                    drop(token);
                }),
            )
        })
        .collect();
    assert_eq!(tally.dropped(), 0);
    let metrics = trustees.shutdown();
    tally.assert_all_dropped(30);
    assert!(metrics.iter().all(|m| m.panics == 0));
    drop(values);
}

/// Dropping the trustees does the same as `shutdown`.
#[test]
fn promise_11_dropping_trustees_shuts_down() {
    let _watch = watchdog();
    let tally = Tally::new();
    let t = {
        let trustees = one();
        let t = trustees.entrust(0u64);
        for _ in 0..100 {
            let token = tally.token();
            t.post(move |_| drop(token));
        }
        t
    };
    tally.assert_all_dropped(100);
    assert!(matches!(t.try_apply(|n| *n), Err(TryApplyError::Closed(_))));
}

/// Every closure comes back, whether the trustee has a client on this thread or not.
#[test]
fn promise_11_later_calls_are_refused_and_give_back() {
    let _watch = watchdog();
    for known in [false, true] {
        let trustees = one();
        let t = trustees.entrust(0u64);
        let mut session = known.then(|| t.session());
        let tally = Tally::new();
        let check = |t: &Trust<u64>| {
            let mut here = 0;
            let token = tally.token();
            match t.try_apply(move |n| {
                *n += 1;
                drop(token);
            }) {
                Err(error @ TryApplyError::Closed(_)) => {
                    assert_eq!(error.to_string(), "the trustee has been shut down");
                    if let TryApplyError::Closed(f) = error {
                        f(&mut here);
                    }
                }
                other => panic!("{other:?}"),
            }
            let (token, block) = (tally.token(), [1u64; 80]);
            match t.try_apply(move |n| {
                *n += block[79];
                drop(token);
            }) {
                Err(TryApplyError::Closed(f)) => f(&mut here),
                other => panic!("{other:?}"),
            }
            let token = tally.token();
            match t.try_post(move |n| {
                *n += 1;
                drop(token);
            }) {
                Err(TryPostError::Closed(f)) => f(&mut here),
                other => panic!("{other:?}"),
            }
            let (token, other) = (tally.token(), tally.token());
            match t.try_apply_then(
                move |n| {
                    *n += block[0];
                    drop(token);
                    *n
                },
                move |n| {
                    assert_eq!(n, 4);
                    drop(other);
                },
            ) {
                Err(TryApplyThenError::Closed(f, then)) => then(f(&mut here)),
                other => panic!("{other:?}"),
            }
            assert_eq!(here, 4);
        };
        let plain = |t: &Trust<u64>| {
            let tokens: Vec<_> = (0..4).map(|_| tally.token()).collect();
            let [a, b, c, d] = tokens.try_into().unwrap_or_else(|_| unreachable!());
            let texts = [
                panic_of(|| t.apply(move |_| drop(a))),
                panic_of(|| t.post(move |_| drop(b))),
                panic_of(|| t.apply_then(move |_| drop(c), move |()| drop(d))),
            ];
            for (text, call) in texts.iter().zip(["apply", "post", "apply_then"]) {
                assert!(
                    text.starts_with(&format!("corelay: Trust::{call} of ")),
                    "{text}"
                );
                assert!(
                    text.contains("promise_11_later_calls_are_refused"),
                    "{text}"
                );
                assert!(text.contains("promise_11_shutdown.rs:"), "{text}");
                assert!(text.ends_with("the trustee has been shut down"), "{text}");
            }
        };
        thread::scope(|s| {
            // A thread that meets the trustee only then, and one that has known it.
            let (known, closed) = (Gate::new(), Gate::new());
            let (know, wait) = (known.clone(), closed.clone());
            let (t, check, plain) = (&t, &check, &plain);
            s.spawn(move || {
                t.apply(|n| *n);
                know.open();
                wait.wait();
                for _ in 0..3 {
                    check(t);
                    plain(t);
                }
            });
            known.wait();
            trustees.shutdown();
            closed.open();
            for _ in 0..3 {
                check(t);
                plain(t);
            }
        });
        if let Some(session) = &mut session {
            let text = panic_of(|| session.apply(|n| *n));
            assert!(text.ends_with("the trustee has been shut down"), "{text}");
            let text = panic_of(|| session.issue(|n| *n, |_| ()));
            assert!(text.ends_with("the trustee has been shut down"), "{text}");
            session.reap();
            session.barrier();
        }
        let text = panic_of(|| {
            thread::scope(|s| {
                let handle = s.spawn(|| drop(t.session()));
                if let Err(payload) = handle.join() {
                    std::panic::resume_unwind(payload);
                }
            })
        });
        assert!(
            text.contains("Trust::session") && text.contains("shut down"),
            "{text}"
        );
        barrier().unwrap();
        tally.assert_all_dropped(2 * 3 * (5 + 4));
    }
}

/// Each request is either executed or given back, however close the end is.
#[test]
fn promise_11_shutdown_while_others_send() {
    let _watch = watchdog();
    for round in 0..scaled(40) {
        let builder = Trustees::dedicated(1)
            .window([1, 3, 16, 256][round as usize % 4])
            .spin(Duration::from_micros(100 * (round % 2)));
        let trustees = start(builder);
        let t = trustees.entrust(0u64);
        let tally = Tally::new();
        let (executed, called) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (accepted, expected_calls) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|s| {
            for client in 0..4 {
                let (t, tally) = (t.clone(), tally.clone());
                let (executed, called) = (Arc::clone(&executed), Arc::clone(&called));
                let (accepted, expected_calls) = (&accepted, &expected_calls);
                s.spawn(move || {
                    let block = [0u8; 300];
                    for i in client.. {
                        let (ran, token) = (Arc::clone(&executed), tally.token());
                        let work = move |n: &mut u64| {
                            *n += 1;
                            ran.fetch_add(1, Ordering::Relaxed);
                            drop(token);
                        };
                        let taken = match i % 5 {
                            0 => match t.try_post(work) {
                                Ok(()) => true,
                                Err(TryPostError::Full(_)) => {
                                    thread::yield_now();
                                    continue;
                                }
                                Err(TryPostError::Closed(_)) => false,
                            },
                            1 => {
                                let (calls, token) = (Arc::clone(&called), tally.token());
                                let then = move |()| {
                                    calls.fetch_add(1, Ordering::Relaxed);
                                    drop(token);
                                };
                                match t.try_apply_then(work, then) {
                                    Ok(()) => {
                                        expected_calls.fetch_add(1, Ordering::Relaxed);
                                        true
                                    }
                                    Err(TryApplyThenError::Full(..)) => continue,
                                    Err(TryApplyThenError::Closed(..)) => false,
                                }
                            }
                            2 => match t.try_apply(work) {
                                Ok(()) => true,
                                Err(TryApplyError::Closed(_)) => false,
                                Err(error) => panic!("{error}"),
                            },
                            3 => {
                                let work = move |n: &mut u64| {
                                    assert_eq!(block[299], 0);
                                    work(n);
                                };
                                match t.try_apply(work) {
                                    Ok(()) => true,
                                    Err(TryApplyError::Closed(_)) => false,
                                    Err(error) => panic!("{error}"),
                                }
                            }
                            // The plain form waits for room, and panics at the end.
                            _ => {
                                let post = || t.post(work);
                                std::panic::catch_unwind(std::panic::AssertUnwindSafe(post)).is_ok()
                            }
                        };
                        if !taken {
                            break;
                        }
                        accepted.fetch_add(1, Ordering::Relaxed);
                    }
                    barrier().unwrap();
                });
            }
            let enough = 50 * round;
            until(|| executed.load(Ordering::Relaxed) >= enough);
            let metrics = trustees.shutdown();
            assert_eq!(metrics[0].panics, 0);
        });
        assert_eq!(
            executed.load(Ordering::Relaxed),
            accepted.load(Ordering::Relaxed)
        );
        assert_eq!(
            called.load(Ordering::Relaxed),
            expected_calls.load(Ordering::Relaxed)
        );
        tally.assert_all_dropped(tally.made());
    }
}

/// New clients announce themselves while the trustee closes.
#[test]
fn promise_11_shutdown_while_clients_come() {
    let _watch = watchdog();
    for round in 0..scaled(60) {
        let trustees = start(Trustees::dedicated(1).spin(Duration::from_micros(50 * (round % 3))));
        let t = trustees.entrust(0u64);
        let (executed, accepted) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        thread::scope(|s| {
            for _ in 0..8 {
                let (t, executed, accepted) = (t.clone(), Arc::clone(&executed), &accepted);
                s.spawn(move || {
                    for form in 0..3 {
                        let ran = Arc::clone(&executed);
                        let work = move |_: &mut u64| {
                            ran.fetch_add(1, Ordering::Relaxed);
                        };
                        let taken = match form {
                            0 => t.try_post(work).is_ok(),
                            1 => t.try_apply(work).is_ok(),
                            _ => t.try_apply_then(work, |()| ()).is_ok(),
                        };
                        accepted.fetch_add(u64::from(taken), Ordering::Relaxed);
                    }
                    barrier().unwrap();
                });
            }
            drop(trustees);
        });
        assert_eq!(
            executed.load(Ordering::Relaxed),
            accepted.load(Ordering::Relaxed)
        );
    }
}

/// Last handles go away while the trustee closes.
#[test]
fn promise_11_shutdown_while_handles_go() {
    let _watch = watchdog();
    let tally = Tally::new();
    for _ in 0..scaled(60) {
        let trustees = one();
        let objects: Vec<_> = (0..64).map(|_| trustees.entrust(tally.token())).collect();
        thread::scope(|s| {
            for mut some in objects.chunks(16).map(<[_]>::to_vec).collect::<Vec<_>>() {
                s.spawn(move || {
                    while let Some(t) = some.pop() {
                        let _ = t.try_post(|_| ());
                        drop(t);
                    }
                });
            }
            drop(objects);
            drop(trustees);
        });
        tally.assert_all_dropped(tally.made());
    }
}

#[test]
fn promise_11_shutdown_inside_a_callback() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let trustees = Rc::new(RefCell::new(Some(trustees)));
    let (own, handle, called) = (Rc::clone(&trustees), t.clone(), Rc::new(Cell::new(0)));
    let held = hold_up(&t); // So that no callback runs before the barrier.
    for i in 0..5 {
        let (own, handle, called) = (Rc::clone(&own), handle.clone(), Rc::clone(&called));
        t.apply_then(
            |n| *n += 1,
            move |()| {
                if i == 2 {
                    let metrics = own.take().unwrap().shutdown();
                    // With the entrusting, the request that was held up, and two posts.
                    assert_eq!(metrics[0].requests, 9);
                }
                assert_eq!(handle.try_post(|_| ()).is_err(), i >= 2);
                called.set(called.get() + 1);
            },
        );
    }
    drop(held);
    barrier().unwrap();
    assert_eq!(called.get(), 5);
    assert!(trustees.borrow().is_none());
}

/// A thread that goes from trustee to trustee need not poll: callbacks left at one that has
/// ended run when it turns to the next, whatever it does there.
#[test]
fn promise_11_callbacks_left_behind_run_with_the_next_trustee() {
    let _watch = watchdog();
    let seen = Rc::new(Cell::new(0));
    let leave_one = |panics: bool| {
        let trustees = one();
        let (t, seen) = (trustees.entrust(0u64), Rc::clone(&seen));
        t.apply_then(
            |_| (),
            move |()| {
                seen.set(seen.get() + 1);
                assert!(!panics, "a callback that was left behind");
            },
        );
        trustees.shutdown();
    };
    let other = one();
    let t = other.entrust(0u64);
    let forms: [&dyn Fn(&Trust<u64>); 6] = [
        &|t| t.apply(|n| *n += 1),
        &|t| t.try_apply(|n| *n += 1).unwrap(),
        &|t| t.post(|n| *n += 1),
        &|t| t.apply_then(|n| *n += 1, |()| ()),
        &|t| t.session().apply(|n| *n += 1),
        &|_| drop(other.entrust(0u64)),
    ];
    for (i, form) in forms.into_iter().enumerate() {
        // This thread is no client of `other` any more.
        drop(ClientGuard::new());
        leave_one(false);
        assert_eq!(seen.get(), 2 * i);
        form(&t);
        assert_eq!(seen.get(), 2 * i + 1);
        drop(ClientGuard::new());
        leave_one(true);
        // The call has done its work; then it raises the panic of the callback.
        assert_eq!(panic_of(|| form(&t)), "a callback that was left behind");
        assert_eq!(seen.get(), 2 * i + 2);
    }
    // For a session, opening it raises the panic; the last form makes another request.
    assert_eq!(t.apply(|n| *n), 2 * 4 + 1);
    assert_eq!(seen.get(), 12);
}

/// Thousands, one after the other and some at a time: their numbers are used again.
#[test]
fn promise_11_trustees_come_and_go() {
    let _watch = watchdog();
    let tally = Tally::new();
    let rounds = scaled(1_000);
    let mut kept = std::collections::VecDeque::new();
    for round in 0..rounds {
        let trustees = start(Trustees::dedicated(1 + (round % 3 == 0) as usize));
        let t = trustees.entrust((round, tally.token()));
        let token = tally.token();
        t.apply_then(
            |v| v.0,
            move |seen| {
                assert_eq!(seen, round);
                drop(token);
            },
        );
        assert_eq!(t.apply(|v| v.0), round);
        kept.push_back((trustees, t));
        if kept.len() > 5 {
            // Sometimes the handle outlives its trustee.
            let (trustees, t) = kept.pop_front().unwrap();
            if round % 2 == 0 {
                drop(trustees);
                assert!(t.try_apply(|v| v.0).is_err());
            } else {
                assert_eq!(t.apply(|v| v.0), round - 5);
            }
        }
    }
    drop(kept);
    barrier().unwrap();
    tally.assert_all_dropped(2 * rounds);
}
