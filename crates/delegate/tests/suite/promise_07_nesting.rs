//! Promise 7: `post` and `apply_then` inside a delegated closure are sent when it has ended.

use crate::support::{OnDrop, Tally, one, panic_of, scaled, start, until, watchdog};
use corelay_delegate::{Trust, Trustees, TryApplyThenError, TryPostError, barrier};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

/// An object's requests come in the order in which a closure made them, whichever trustee owns it.
#[test]
fn promise_07_nested_requests_run_in_order_after_the_closure() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let outer = trustees.entrust_on(0, Vec::new());
    for inner in [
        outer.clone(),
        trustees.entrust_on(0, Vec::new()),
        trustees.entrust_on(1, Vec::new()),
    ] {
        let (target, handle) = (inner.clone(), outer.clone());
        let log = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::clone(&log);
        outer.apply(move |mine: &mut Vec<u32>| {
            for i in 0..20 {
                target.post(move |log| log.push(2 * i));
                let answers = Arc::clone(&answers);
                target.apply_then(
                    move |log| {
                        log.push(2 * i + 1);
                        log.len()
                    },
                    move |len| answers.lock().unwrap().push(len),
                );
            }
            assert!(mine.is_empty(), "not before the closure has ended");
            drop(handle);
        });
        until(|| log.lock().unwrap().len() == 20);
        assert_eq!(inner.apply(std::mem::take), (0..40).collect::<Vec<_>>());
        assert_eq!(
            *log.lock().unwrap(),
            (1..=20).map(|i| 2 * i).collect::<Vec<_>>()
        );
    }
}

/// The callback runs on the trustee's own thread, and is a leaf there, whose requests go on.
#[test]
fn promise_07_callbacks_of_nested_requests_are_leaves_on_the_trustee() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    for target in [a.clone(), b.clone()] {
        let seen = Arc::new(Mutex::new(None));
        let (note, back) = (Arc::clone(&seen), a.clone());
        let home = a.apply(move |_| {
            target.apply_then(
                |n| *n += 1,
                move |()| {
                    let text = panic_of(|| back.apply(|n| *n));
                    back.post(|n| *n += 100);
                    let here = thread::current().id();
                    *note.lock().unwrap() = Some((here, text));
                },
            );
            thread::current().id()
        });
        until(|| seen.lock().unwrap().is_some());
        let (here, text) = seen.lock().unwrap().take().unwrap();
        assert_eq!(here, home);
        assert!(text.contains("a callback on a trustee's thread"), "{text}");
    }
    until(|| a.apply(|n| *n) == 201);
    assert_eq!(b.apply(|n| *n), 1);
}

/// The queue holds as many requests as the window; further ones come back, or panic by name.
#[test]
fn promise_07_a_full_queue_gives_back() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2).window(4));
    let tally = Tally::new();
    for number in 0..2 {
        let (outer, inner) = (
            trustees.entrust_on(0, 0u64),
            trustees.entrust_on(number, 0u64),
        );
        let (handle, tokens) = (inner.clone(), tally.clone());
        let text = outer.apply(move |_| {
            for _ in 0..4 {
                let token = tokens.token();
                handle.post(move |n| {
                    *n += 1;
                    drop(token);
                });
            }
            let token = tokens.token();
            match handle.try_post(move |n| {
                *n += 10;
                drop(token);
            }) {
                Err(TryPostError::Full(f)) => f(&mut 0),
                other => panic!("{other:?}"),
            }
            match handle.try_apply_then(|n| *n, |_| unreachable!("not taken")) {
                Err(TryApplyThenError::Full(..)) => {}
                other => panic!("{other:?}"),
            }
            panic_of(|| handle.post(|n| *n += 100))
        });
        assert!(
            text.contains("Trust::post of") && text.contains("promise_07_nesting.rs:"),
            "{text}"
        );
        until(|| inner.apply(|n| *n) == 4);
        // There is room again.
        let handle = inner.clone();
        outer.apply(move |_| handle.post(|n| *n += 1));
        until(|| inner.apply(|n| *n) == 5);
    }
    tally.assert_all_dropped(10);
}

/// Each request of a chain makes one on the other trustee, and every window is full: nobody
/// waits for anybody.
#[test]
fn promise_07_trustees_that_post_into_full_windows_do_not_hang() {
    let _watch = watchdog();
    fn bounce(n: &mut u64, here: Trust<u64>, there: Trust<u64>, left: u64) {
        *n += 1;
        if left > 0 {
            let (back, on) = (here, there.clone());
            there.post(move |n| bounce(n, on, back, left - 1));
        }
    }
    for window in [1, 2, 7] {
        let trustees = start(Trustees::dedicated(2).window(window));
        let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
        let (chains, length) = (scaled(50), 40);
        thread::scope(|s| {
            for (here, there) in [(&a, &b), (&b, &a)] {
                s.spawn(move || {
                    for _ in 0..chains {
                        let (to, from) = (here.clone(), there.clone());
                        here.post(move |n| bounce(n, to, from, length));
                    }
                    // A queue that was full when a closure came has refused by a panic.
                    let _ = barrier();
                    here.clear_poison();
                });
            }
        });
        // A request that found both the window and the queue full ended its chain.
        let bound = 2 * chains * (length + 1);
        let mut last = u64::MAX;
        until(|| {
            a.clear_poison();
            b.clear_poison();
            let now = a.try_apply(|n| *n).unwrap_or(0) + b.try_apply(|n| *n).unwrap_or(0);
            thread::sleep(std::time::Duration::from_millis(5));
            std::mem::replace(&mut last, now) == now
        });
        assert!(last > 0 && last <= bound, "{last} of {bound}");
        if window == 7 {
            // Longer chains than windows, fewer at once: none is refused.
            let total = Arc::new(AtomicU64::new(0));
            let log = Arc::clone(&total);
            let before = a.apply(|n| *n) + b.apply(|n| *n);
            let (to, from) = (a.clone(), b.clone());
            a.post(move |n| {
                bounce(n, to, from, 1000);
                // Relaxed: read after the chain's end by its sum.
                log.fetch_add(1, Ordering::Relaxed);
            });
            until(|| a.apply(|n| *n) + b.apply(|n| *n) == before + 1001);
            assert_eq!(total.load(Ordering::Relaxed), 1);
        }
    }
}

/// Accepted requests run also when the trustees end at once, or the callback panics.
#[test]
fn promise_07_nested_requests_and_the_end() {
    let _watch = watchdog();
    for _ in 0..scaled(50) {
        let trustees = start(Trustees::dedicated(1));
        let tally = Tally::new();
        let (a, b) = (trustees.entrust(0u64), trustees.entrust(0u64));
        let tokens = tally.clone();
        let ran = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&ran);
        a.post(move |_| {
            for _ in 0..100 {
                let (token, count) = (tokens.token(), Arc::clone(&count));
                b.post(move |_| {
                    // Relaxed: read after the trustee has been joined.
                    count.fetch_add(1, Ordering::Relaxed);
                    drop(token);
                });
            }
        });
        trustees.shutdown();
        assert_eq!(ran.load(Ordering::Relaxed), 100);
        tally.assert_all_dropped(100);
    }
    // Two trustees, each with requests for the other: run or dropped, and both end.
    for _ in 0..scaled(50) {
        let trustees = start(Trustees::dedicated(2).window(8));
        let tally = Tally::new();
        let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
        for (here, there) in [(&a, &b), (&b, &a)] {
            for _ in 0..8 {
                let (there, token) = (there.clone(), tally.token());
                here.post(move |_| {
                    there.apply_then(move |_| drop(token), |()| ());
                });
            }
        }
        trustees.shutdown();
        tally.assert_all_dropped(16);
    }
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    for target in [a.clone(), b.clone()] {
        a.apply(move |_| target.apply_then(|_| (), |()| panic!("in a callback")));
    }
    let c = b.clone();
    a.apply(move |_| c.post(|_| panic!("in a closure")));
    until(|| b.is_poisoned());
    assert!(!a.is_poisoned());
    drop((a, b));
    let panics: u64 = trustees.shutdown().iter().map(|m| m.panics).sum();
    assert_eq!(panics, 3);
}

/// The destructor of a value may post too, as long as there is a trustee to post to.
#[test]
fn promise_07_destructors_may_post() {
    let _watch = watchdog();
    let trustees = one();
    let inner = trustees.entrust(0u64);
    let values: Vec<_> = (0..2)
        .map(|_| {
            let handle = inner.clone();
            trustees.entrust(OnDrop::new(move || {
                let _ = handle.try_post(|n| *n += 1);
            }))
        })
        .collect();
    let mut values = values.into_iter();
    drop(values.next());
    until(|| inner.apply(|n| *n) == 1);
    // This one is dropped at the end, when no value lives any more.
    let last = values.next();
    trustees.shutdown();
    drop(last);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new("a destructor's own"));
    }
}

/// Waits when it is dropped, which is refused.
struct Waits(Trust<u64>);

impl Drop for Waits {
    fn drop(&mut self) {
        panic_of(|| self.0.apply(|n| *n));
    }
}

/// A request that cannot run is dropped on the trustee: a leaf whose panics end there.
#[test]
fn promise_07_destructors_of_refused_requests_are_leaves() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let outer = trustees.entrust_on(0, 0u64);
    let ended = start(Trustees::dedicated(1));
    let late = ended.entrust(0u64);
    let poisoned = [0, 1].map(|number| {
        let bad = trustees.entrust_on(number, 0u64);
        bad.post(|_| resume_unwind(Box::new("bad")));
        bad
    });
    assert_eq!(barrier().unwrap_err().count(), 2);
    for to in [&poisoned[0], &poisoned[1], &late] {
        let (to, handle) = (to.clone(), outer.clone());
        outer.apply(move |_| {
            let (bomb, waits) = (Bomb, Waits(handle.clone()));
            let _ = to.try_post(move |_| drop((bomb, waits)));
            let (bomb, waits) = (Bomb, Waits(handle));
            let _ = to.try_apply_then(|_| (), move |()| drop((bomb, waits)));
        });
        assert_eq!(outer.apply(|n| *n), 0);
    }
    ended.shutdown();
}

/// A callback is a leaf also if it runs because its own trustee has ended and another one gets a
/// request.
#[test]
fn promise_07_callbacks_of_trustees_that_have_ended_are_leaves() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (outer, other) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let ending = start(Trustees::dedicated(1));
    let asked = ending.entrust(0u64);
    let (note, noted) = channel();
    let ((begin, begun), (go, gone)) = (channel(), channel());
    let back = outer.clone();
    outer.post(move |_| {
        let text = move || panic_of(|| back.apply(|n| *n));
        asked.apply_then(|n| *n += 1, move |()| note.send(text()).unwrap());
    });
    let handle = other.clone();
    outer.post(move |_| {
        begin.send(()).unwrap();
        gone.recv().unwrap();
        handle.post(|n| *n += 1);
    });
    begun.recv().unwrap();
    // The answer comes while the second closure waits.
    ending.shutdown();
    go.send(()).unwrap();
    let text = noted.recv().unwrap();
    assert!(text.contains("a callback on a trustee's thread"), "{text}");
}

/// The callbacks that a trustee has run make room for later ones.
#[test]
fn promise_07_nested_requests_never_run_out_of_room() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (from, to) = (trustees.entrust_on(0, ()), trustees.entrust_on(1, 0u64));
    let answered = Arc::new(AtomicU64::new(0));
    for round in 1..=scaled(1000) {
        let (to, count) = (to.clone(), Arc::clone(&answered));
        from.post(move |()| {
            to.apply_then(
                |n| *n += 1,
                move |()| {
                    count.fetch_add(1, Ordering::Relaxed);
                },
            );
        });
        // No more of them than a queue of nested requests holds, however slow the other one is.
        if round % 8 == 0 {
            until(|| answered.load(Ordering::Relaxed) == round);
        }
    }
    until(|| answered.load(Ordering::Relaxed) == scaled(1000));
    assert_eq!(to.apply(|n| *n), scaled(1000));
}
