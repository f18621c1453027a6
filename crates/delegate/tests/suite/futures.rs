//! The promises after the third, for futures: their order, their window, panics, nested calls and
//! shutdown.

use crate::promise_03_futures::{Counting, block_on, poll_with};
use crate::support::{
    Gate, OnDrop, Rng, Tally, hold_up, one, scaled, start, text_of, until, watchdog,
};
use corelay_delegate::{
    ApplyFuture, AsyncError, ClientGuard, Trustees, TryApplyAsyncError, barrier, poll,
};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Wake, Waker};
use std::thread;

#[test]
fn promise_04_futures_keep_the_order_of_all_requests() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(32));
    let log = trustees.entrust(Vec::new());
    let (mut futures, n) = (Vec::new(), scaled(3_000));
    for i in 0..n {
        let push = move |log: &mut Vec<u64>| {
            log.push(i);
            log.len() as u64
        };
        match i % 5 {
            0 => log.post(move |log| log.push(i)),
            1 => log.apply_then(push, |_| ()),
            2 => assert_eq!(log.apply(push), i + 1),
            _ => futures.push((i, log.apply_async(push))),
        }
    }
    for (i, future) in futures {
        assert_eq!(block_on(future).unwrap(), i + 1);
    }
    barrier().unwrap();
    assert!(log.apply(|log| log.iter().copied().eq(0..n)));
}

#[test]
fn promise_05_a_full_window_waits_or_gives_back() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(4));
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let held = hold_up(&t);
    let mut futures = Vec::new();
    let add = |t: &corelay_delegate::Trust<u64>| {
        let token = tally.token();
        t.try_apply_async(move |n| {
            drop(token);
            *n += 1;
            *n
        })
    };
    let refused = loop {
        match add(&t) {
            Ok(future) => futures.push(future),
            Err(TryApplyAsyncError::Full(f)) => break f,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!((futures.len(), tally.dropped()), (3, 0));
    drop(held);
    // Waits for room, without a poll of the futures.
    futures.push(t.apply_async(refused));
    let results: Vec<_> = futures
        .into_iter()
        .map(|future| block_on(future).unwrap())
        .collect();
    assert_eq!(results, [1, 2, 3, 4]);
    tally.assert_all_dropped(4);
    // A thread may keep any number of futures: the window counts requests.
    let many: Vec<_> = (0..1_000).map(|i| t.apply_async(move |_| i)).collect();
    let mut many = many.into_iter().map(|future| block_on(future).unwrap());
    assert!(many.by_ref().eq(0..1_000));
}

#[test]
fn promise_05_a_callback_may_ask_for_futures() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2));
    let t = trustees.entrust(0u64);
    let futures = Rc::new(Cell::new(Vec::new()));
    let (kept, handle) = (Rc::clone(&futures), t.clone());
    t.apply_then(
        |_| (),
        move |()| {
            // More than the window takes: the later ones wait for their own answers.
            let asked = (0..6).map(|i| {
                handle.apply_async(move |n| {
                    *n += 1;
                    assert!(i < 5, "the sixth");
                    *n
                })
            });
            kept.set(asked.collect());
        },
    );
    barrier().unwrap();
    let results: Vec<_> = futures.take().into_iter().map(block_on).collect();
    for (i, result) in (1..).zip(&results[..5]) {
        assert_eq!(*result.as_ref().unwrap(), i);
    }
    let Err(AsyncError::Panicked(payload)) = &results[5] else {
        panic!("{:?}", results[5])
    };
    assert_eq!(text_of(&**payload), "the sixth");
    // The future has reported it, and no barrier does.
    barrier().unwrap();
}

#[test]
fn promise_06_a_panic_reaches_the_future_alone() {
    let _watch = watchdog();
    let trustees = one();
    let (t, other) = (trustees.entrust(0u64), trustees.entrust(0u64));
    let tally = Tally::new();
    let held = hold_up(&t);
    let called = Rc::new(Cell::new(0));
    let before = t.apply_async(|n| *n);
    let token = tally.token();
    let panics = t.apply_async(move |_| -> [u64; 3] {
        let _token = token;
        panic!("a message")
    });
    let token = tally.token();
    let poisoned = t.apply_async(move |_| drop(token));
    let note = Rc::clone(&called);
    other.apply_then(|_| 5, move |n| note.set(n));
    let fine = other.apply_async(|n| *n + 1);
    drop(held);
    assert_eq!(block_on(before).unwrap(), 0);
    let Err(AsyncError::Panicked(payload)) = block_on(panics) else {
        panic!("it panics")
    };
    assert_eq!(text_of(&*payload), "a message");
    let poisoned = block_on(poisoned);
    assert!(matches!(poisoned, Err(AsyncError::Poisoned)));
    assert_eq!(poisoned.unwrap_err().to_string(), "the object is poisoned");
    assert_eq!(block_on(fine).unwrap(), 1);
    // The futures have reported; the callbacks of others are not taken for theirs.
    barrier().unwrap();
    assert_eq!(called.get(), 5);
    tally.assert_all_dropped(2);
    assert!(t.is_poisoned());
    t.clear_poison();
    assert_eq!(block_on(t.apply_async(|n| *n)).unwrap(), 0);
    assert_eq!(trustees.shutdown()[0].panics, 1);
}

#[test]
fn promise_06_faults_of_others_are_still_reported() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let held = hold_up(&t);
    let lost = t.apply_async(|_| panic!("told to the future"));
    t.post(|_| ());
    t.apply_then(|_| (), |()| panic!("the request was refused"));
    let refused = t.apply_async(|_| ());
    drop(held);
    let failed = barrier().unwrap_err();
    assert_eq!(
        (failed.count(), failed.message()),
        (2, "the object is poisoned")
    );
    let text = block_on(lost).unwrap_err().to_string();
    assert_eq!(text, "the closure panicked: told to the future");
    assert!(block_on(refused).is_err());
}

#[test]
fn promise_06_panics_of_wakers_and_results_harm_nobody() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("in wake");
        }
    }
    /// A waker that is woken without harm, but whose destructor panics.
    struct BadDrop;
    impl Wake for BadDrop {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for BadDrop {
        fn drop(&mut self) {
            panic!("in the waker's drop");
        }
    }

    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let held = hold_up(&t);
    let ask = || t.apply_async(|n| std::mem::replace(n, *n + 1));
    let (mut first, mut second) = (ask(), ask());
    assert!(poll_with(&mut first, &Waker::from(Arc::new(Bad))).is_pending());
    assert!(poll_with(&mut second, &Waker::from(Arc::new(BadDrop))).is_pending());
    // A result that nobody wants, whose destructor panics; and a payload of that kind.
    drop(t.apply_async(|_| OnDrop::new(|| panic!("in the result's drop"))));
    let third = ask();
    drop(held);
    assert_eq!(block_on(third).unwrap(), 2);
    assert_eq!(block_on(first).unwrap(), 0);
    assert_eq!(block_on(second).unwrap(), 1);
    assert!(!t.is_poisoned());
    barrier().unwrap();
    assert_eq!(trustees.shutdown()[0].panics, 3);
}

#[test]
fn promise_07_apply_async_is_refused_inside_a_closure() {
    let _watch = watchdog();
    let trustees = one();
    let (a, b) = (trustees.entrust(0u64), trustees.entrust(0u64));
    let inner = b.clone();
    let tally = Tally::new();
    let token = tally.token();
    let given_back = a.apply_async(move |_| {
        let f = move |_: &mut u64| drop(token);
        match inner.try_apply_async(f) {
            Err(TryApplyAsyncError::Nested(f)) => f(&mut 0),
            other => panic!("{other:?}"),
        }
    });
    block_on(given_back).unwrap();
    tally.assert_all_dropped(1);
    let inner = b.clone();
    let text = block_on(a.apply_async(move |_| drop(inner.apply_async(|n| *n))))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("Trust::apply_async") && text.contains("is a leaf"),
        "{text}"
    );
}

#[test]
fn promise_11_pending_futures_complete_at_shutdown() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let (begun, gate) = (Gate::new(), Gate::new());
    let (begin, wait) = (begun.clone(), gate.clone());
    let first = t.apply_async(move |_| {
        begin.open();
        wait.wait();
    });
    let mut rest: Vec<_> = (0..100).map(|_| t.apply_async(|n| *n)).collect();
    let (counting, waker) = Counting::new();
    assert!(poll_with(&mut rest[0], &waker).is_pending());
    begun.wait();
    // Before the trustee is asked to end, or while it waits to be.
    let opener = thread::spawn(move || gate.open());
    trustees.shutdown();
    opener.join().unwrap();
    assert_eq!(counting.woken(), 1);
    block_on(first).unwrap();
    for future in rest {
        assert_eq!(block_on(future).unwrap(), 0);
    }
    let tally = Tally::new();
    let token = tally.token();
    match t.try_apply_async(move |_| drop(token)) {
        Err(TryApplyAsyncError::Closed(f)) => f(&mut 0),
        other => panic!("{other:?}"),
    }
    tally.assert_all_dropped(1);
    let token = tally.token();
    let closed = block_on(t.apply_async(move |_| drop(token))).unwrap_err();
    assert!(matches!(closed, AsyncError::Closed));
    assert_eq!(closed.to_string(), "the trustee has been shut down");
    tally.assert_all_dropped(2);
}

#[test]
fn promise_11_refused_closures_are_given_back() {
    let _watch = watchdog();
    let tally = Tally::new();
    for _ in 0..scaled(100) {
        let trustees = one();
        let t = trustees.entrust(0u64);
        let ran = Arc::new(AtomicU64::new(0));
        let asker = {
            let (ran, tally) = (Arc::clone(&ran), tally.clone());
            thread::spawn(move || {
                let mut accepted = 0;
                loop {
                    let (ran, token) = (Arc::clone(&ran), tally.token());
                    let asked = t.try_apply_async(move |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                        token
                    });
                    match asked {
                        Ok(future) if accepted % 3 == 0 => drop(future),
                        Ok(future) => drop(block_on(future).unwrap()),
                        Err(TryApplyAsyncError::Full(_)) => {
                            poll();
                            continue;
                        }
                        Err(TryApplyAsyncError::Closed(_)) => return accepted,
                        Err(other) => panic!("{other}"),
                    }
                    accepted += 1;
                }
            })
        };
        until(|| ran.load(Ordering::Relaxed) > 10);
        trustees.shutdown();
        assert_eq!(asker.join().unwrap(), ran.load(Ordering::Relaxed));
        assert_eq!(tally.made(), tally.dropped());
    }
}

/// Whether a future that has not given its result waits for room.
fn is_unsent<R>(future: &ApplyFuture<R>) -> bool {
    format!("{future:?}").contains("is_sent: false")
}

/// Futures of many threads, awaited, dropped, polled and dropped, or given to other threads, with
/// two trustees.
#[test]
fn stress_futures() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2).window(64));
    let objects = [trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64)];
    let tally = Tally::new();
    let (give, given) = mpsc::channel();
    let taker = thread::spawn(move || {
        let mut taken = 0;
        for (i, future) in given {
            assert_eq!(
                block_on::<Result<(u64, _, [u64; 4]), _>>(future).unwrap().0,
                i
            );
            taken += 1;
        }
        taken
    });
    let asker = |seed: u64| {
        let (objects, tally, give) = (&objects, &tally, give.clone());
        move || {
            let _guard = ClientGuard::new();
            let mut rng = Rng::new(seed);
            let (mut flying, mut given, mut lost) = (Vec::new(), 0, 0);
            for i in 0..scaled(5_000) {
                let t = &objects[rng.below(2) as usize];
                let token = tally.token();
                if rng.below(4) == 0 {
                    let future = t.apply_async(move |n| {
                        *n += 1;
                        (i, token, [i; 4])
                    });
                    given += 1;
                    give.send((i, future)).unwrap();
                    continue;
                }
                flying.push((
                    i,
                    t.apply_async(move |n| {
                        *n += 1;
                        drop(token);
                        i
                    }),
                ));
                while flying.len() as u64 > rng.below(100) {
                    let at = rng.below(flying.len() as u64) as usize;
                    let (i, mut future) = flying.swap_remove(at);
                    match rng.below(4) {
                        // Without room a future that is dropped has never run its closure.
                        0 => lost += u64::from(is_unsent(&future)),
                        1 => {
                            let polled = poll_with(&mut future, &Counting::new().1);
                            lost += u64::from(polled.is_pending() && is_unsent(&future));
                        }
                        2 => {
                            let _ = poll_with(&mut future, &Counting::new().1)
                                .map(|result| assert_eq!(result.unwrap(), i))
                                .is_pending()
                                .then(|| assert_eq!(block_on(future).unwrap(), i));
                        }
                        _ => assert_eq!(block_on(future).unwrap(), i),
                    }
                }
            }
            for (_, future) in flying {
                lost += u64::from(is_unsent(&future));
            }
            barrier().unwrap();
            (given, lost)
        }
    };
    let (mut asked, mut lost) = (0, 0);
    thread::scope(|s| {
        let askers: Vec<_> = (1..=4).map(|seed| s.spawn(asker(seed))).collect();
        for asker in askers {
            let (given, unsent) = asker.join().unwrap();
            asked += given;
            lost += unsent;
        }
    });
    drop(give);
    assert_eq!(taker.join().unwrap(), asked);
    assert_eq!(
        objects.iter().map(|t| t.apply(|n| *n)).sum::<u64>(),
        4 * scaled(5_000) - lost
    );
    tally.assert_all_dropped(4 * scaled(5_000));
}
