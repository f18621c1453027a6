//! A single `apply_then`, as in `single_request`, with failures and ends: of its closure, its
//! callback or a destructor; of its object, its thread or its trustee.

use crate::single_request::{Said, note, two};
use crate::support::{
    Gate, OnDrop, Tally, call_from_elsewhere, hold_up_from_elsewhere, one, panic_of, scaled, until,
    watchdog,
};
use corelay_delegate::{
    ClientGuard, TryApplyError, TryApplyThenError, TryPostError, barrier, poll,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

// ---- faults ----

/// The first failure is the single request's, although later requests were refused, and reported
/// so, before the client looked.
#[test]
fn promise_06_the_single_requests_failure_comes_first() {
    let _watch = watchdog();
    for earlier in [false, true] {
        let trustees = one();
        let (t, other) = (trustees.entrust(()), trustees.entrust(()));
        let tally = Tally::new();
        if earlier {
            other.post(|()| panic!("earlier"));
            until(|| other.is_poisoned());
            other.clear_poison();
            call_from_elsewhere(&t);
            let _ = other.try_apply(|()| ());
            poll();
        }
        let held = hold_up_from_elsewhere(&t);
        let (called, refused) = (tally.token(), tally.token());
        t.apply_then(|()| panic!("lone"), move |()| drop(called));
        t.post(move |()| drop(refused));
        drop(held);
        until(|| tally.dropped() > 0);
        call_from_elsewhere(&other);
        let failed = barrier().unwrap_err();
        let first = if earlier { "earlier" } else { "lone" };
        assert_eq!(failed.message(), first);
        assert_eq!(failed.count(), 2 + u64::from(earlier));
        tally.assert_all_dropped(2);
        assert!(t.is_poisoned());
        // A single request that reaches poison.
        t.apply_then(|()| (), |()| panic!("refused"));
        let failed = barrier().unwrap_err();
        assert_eq!(
            (failed.count(), failed.message()),
            (1, "the object is poisoned")
        );
        t.clear_poison();
        let seen = Rc::new(Cell::new(false));
        let said = Rc::clone(&seen);
        t.apply_then(|()| (), move |()| said.set(true));
        barrier().unwrap();
        assert!(seen.get());
    }
}

/// A callback that is dropped because its single request has failed is dropped by its own
/// client's reaping, not inside a callback that happens to need the line.
#[test]
fn promise_06_a_failed_requests_callback_is_dropped_in_turn() {
    let _watch = watchdog();
    let (trustees, a, b) = two(4);
    let bad = trustees.entrust_on(1, ());
    let held = hold_up_from_elsewhere(&b);
    let bomb = OnDrop::new(|| panic!("in the destructor"));
    bad.apply_then(|()| panic!("lone"), move |()| drop(bomb));
    drop(held);
    let (needs, went_on) = (b.clone(), Rc::new(Cell::new(false)));
    let note = Rc::clone(&went_on);
    a.apply_then(
        |_| (),
        move |()| {
            assert_eq!(needs.apply(|log| log.len()), 0);
            note.set(true);
        },
    );
    a.apply(|_| ());
    a.apply(|_| ());
    assert!(went_on.get(), "the callback's own call has its answer");
    assert_eq!(panic_of(poll), "in the destructor");
    let failed = barrier().unwrap_err();
    assert_eq!((failed.count(), failed.message()), (1, "lone"));
}

/// Panics of destructors of the closure, of the result, and of the callback itself.
#[test]
fn promise_06_destructors_that_panic() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(());
    // A capture's, on the trustee: the request has failed.
    let bomb = OnDrop::new(|| panic!("capture"));
    t.apply_then(move |()| drop(bomb), |()| ());
    assert_eq!(barrier().unwrap_err().message(), "capture");
    // The same with a request that is refused.
    let bomb = OnDrop::new(|| panic!("refused"));
    t.apply_then(move |()| drop(bomb), |()| ());
    assert_eq!(barrier().unwrap_err().message(), "refused");
    t.clear_poison();
    // The result's, in the callback.
    t.apply_then(|()| OnDrop::new(|| panic!("result")), drop);
    assert_eq!(panic_of(barrier), "result");
    t.apply_then(|()| (), |()| panic!("callback"));
    assert_eq!(panic_of(barrier), "callback");
    // The destructor of a failed request's callback.
    let bomb = OnDrop::new(|| panic!("dropped callback"));
    t.apply_then(|()| panic!("failed"), move |()| drop(bomb));
    assert_eq!(panic_of(barrier), "dropped callback");
    assert_eq!(barrier().unwrap_err().message(), "failed");
    t.clear_poison();
    assert_eq!(t.apply(|()| 5), 5);
    barrier().unwrap();
}

#[test]
fn promise_07_a_single_closure_is_a_leaf() {
    let _watch = watchdog();
    let trustees = one();
    let (t, inner) = (trustees.entrust(()), trustees.entrust(()));
    t.apply_then(
        move |()| matches!(inner.try_apply(|()| ()), Err(TryApplyError::Nested(_))),
        |refused| assert!(refused),
    );
    barrier().unwrap();
    let inner = trustees.entrust(());
    t.apply_then(move |()| inner.apply(|()| ()), |()| ());
    let failed = barrier().unwrap_err();
    assert!(
        failed
            .message()
            .contains("promise_07_a_single_closure_is_a_leaf")
    );
}

// ---- ends ----

#[test]
fn promise_08_an_object_outlives_its_single_request() {
    let _watch = watchdog();
    let trustees = one();
    for _ in 0..scaled(200) {
        let tally = Tally::new();
        let t = trustees.entrust(tally.token());
        let (seen, said) = (tally.clone(), Rc::new(Cell::new(1)));
        let note = Rc::clone(&said);
        t.apply_then(move |_| seen.dropped(), move |dropped| note.set(dropped));
        drop(t);
        barrier().unwrap();
        assert_eq!(said.get(), 0);
        until(|| tally.dropped() == 1);
    }
}

#[test]
fn promise_09_a_thread_ends_with_a_single_request() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(Vec::new());
    for guarded in [true, false] {
        for behind in [0, 1, 100] {
            let held = hold_up_from_elsewhere(&t);
            let (u, called) = (t.clone(), Arc::new(AtomicU64::new(0)));
            let (count, begun) = (Arc::clone(&called), Gate::new());
            let begin = begun.clone();
            let thread = thread::spawn(move || {
                let _guard = guarded.then(ClientGuard::new);
                for n in 0..=behind {
                    let count = Arc::clone(&count);
                    u.apply_then(note(n), move |m| {
                        assert_eq!(count.fetch_add(1, Ordering::Relaxed), m);
                    });
                }
                begin.open();
            });
            begun.wait();
            drop(held);
            thread.join().unwrap();
            assert_eq!(called.load(Ordering::Relaxed), behind + 1);
            assert_eq!(
                t.apply(std::mem::take),
                (0..=behind).collect::<Vec<_>>(),
                "guarded: {guarded}"
            );
        }
    }
}

/// A temporary client: the destructor of a thread-local value makes a request, before or after the
/// thread's own clients have gone.
#[test]
fn promise_09_a_single_request_from_a_destructor() {
    thread_local!(static LAST: RefCell<Option<OnDrop<Box<dyn FnOnce()>>>> = const { RefCell::new(None) });

    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(Vec::new());
    for client_first in [true, false] {
        let called = Arc::new(AtomicU64::new(0));
        let (u, count) = (t.clone(), Arc::clone(&called));
        thread::spawn(move || {
            let call = {
                let u = u.clone();
                move || {
                    for n in 1..4 {
                        let count = Arc::clone(&count);
                        u.apply_then(note(n), move |n| {
                            count.fetch_add(n, Ordering::Relaxed);
                        });
                    }
                }
            };
            if client_first {
                u.post(|_| ());
            }
            LAST.set(Some(OnDrop::new(Box::new(call))));
            u.post(|_| ());
        })
        .join()
        .unwrap();
        assert_eq!(called.load(Ordering::Relaxed), 6);
        assert_eq!(t.apply(std::mem::take), [1, 2, 3]);
    }
}

/// The client of a trustee that has ended stays until its single answer has been taken, although
/// other clients are made meanwhile.
#[test]
fn promise_11_an_answer_outlives_its_trustee() {
    let _watch = watchdog();
    for behind in [0, 1, 5] {
        let (trustees, said) = (one(), Said::default());
        let t = trustees.entrust(Vec::new());
        let held = hold_up_from_elsewhere(&t);
        t.apply_then(note(0), said.say(0));
        for n in 1..=behind {
            t.apply_then(note(n), said.say(n));
        }
        drop(held);
        trustees.shutdown();
        // New clients sweep old ones.
        for _ in 0..3 {
            let other = one();
            other.entrust(()).apply(|()| ());
        }
        let mut ran = Vec::new();
        let refused = t.try_apply_then(|_| 0, move |n| ran.push(n));
        assert!(matches!(refused, Err(TryApplyThenError::Closed(..))));
        barrier().unwrap();
        said.assert_is(&(0..=behind).collect::<Vec<_>>());
    }
}

/// Against a trustee that ends, every request runs and is answered, or comes back whole.
#[test]
fn promise_11_single_requests_run_or_are_given_back() {
    let _watch = watchdog();
    for round in 0..scaled(400) {
        let trustees = one();
        let (t, tally) = (trustees.entrust(0u64), Tally::new());
        let (ready, ran) = (Gate::new(), Arc::new(AtomicU64::new(0)));
        let (made, begin) = (tally.clone(), ready.clone());
        let count = Arc::clone(&ran);
        let client = thread::spawn(move || {
            let mut accepted = 0;
            let called = Rc::new(Cell::new(0));
            if round % 2 == 0 {
                // A client that is known already.
                t.apply(|_| ());
            }
            begin.open();
            for _ in 0..round % 7 * 5 {
                std::hint::spin_loop();
            }
            loop {
                let (count, sent) = (Arc::clone(&count), made.token());
                let (kept, note) = (made.token(), Rc::clone(&called));
                let request = move |n: &mut u64| {
                    *n += 1;
                    count.fetch_add(1, Ordering::Relaxed);
                    drop(sent);
                    *n
                };
                let then = move |_| {
                    note.set(note.get() + 1);
                    drop(kept);
                };
                match t.try_apply_then(request, then) {
                    Ok(()) => accepted += 1,
                    Err(TryApplyThenError::Closed(f, then)) => {
                        // Whole, so that they can be run here.
                        then(f(&mut 0));
                        break;
                    }
                    Err(other) => panic!("{other}"),
                }
                match t.try_post(|_| ()) {
                    Ok(()) | Err(TryPostError::Closed(_)) => {}
                    Err(other) => panic!("{other}"),
                }
                // The next request goes as a single one then.
                barrier().unwrap();
                poll();
            }
            barrier().unwrap();
            assert_eq!(called.get(), accepted + 1);
            accepted
        });
        ready.wait();
        trustees.shutdown();
        let accepted = client.join().unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), accepted + 1);
        tally.assert_all_dropped(2 * (accepted + 1));
    }
}
