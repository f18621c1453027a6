//! Promise 5: A window per client and trustee; nothing grows beyond it, and `try_*` gives back.

use crate::support::{
    Gate, Tally, hold_up, one, panic_of, scaled, settle, start, watchdog, with_stack_of,
};
use corelay_delegate::{Trust, Trustees, TryApplyThenError, TryPostError, barrier, poll};
use corelay_sync::{Issue, Shared};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

#[test]
fn promise_05_a_window_takes_so_many_requests() {
    let _watch = watchdog();
    for window in (1..=30).chain([64, 100, 256, 1000, 5000]) {
        let trustees = start(Trustees::dedicated(1).window(window).ring_bytes(1 << 20));
        let t = trustees.entrust(0u64);
        let tally = Tally::new();
        let held = hold_up(&t);
        let mut taken = 1;
        let back = loop {
            let token = tally.token();
            let error = match t.try_post(move |n| {
                *n += 1;
                drop(token);
            }) {
                Ok(()) => {
                    taken += 1;
                    continue;
                }
                Err(error) => error,
            };
            assert_eq!(error.to_string(), "the window is full");
            let TryPostError::Full(back) = error else {
                panic!("{error}")
            };
            break back;
        };
        // For the last eighth of a large window the rings do not grow.
        assert!(taken <= window, "{taken} of {window}");
        assert!(
            taken == window || window > 16 && taken > window * 3 / 4,
            "{taken} of {window}"
        );
        assert_eq!(tally.dropped(), 0);
        // The closure that came back is whole.
        let mut here = 0;
        back(&mut here);
        assert_eq!((here, tally.dropped()), (1, 1));
        drop(held);
        barrier().unwrap();
        assert_eq!(t.apply(|n| *n), taken as u64 - 1);
        tally.assert_all_dropped(taken as u64);
    }
}

#[test]
fn promise_05_try_apply_then_gives_both_back() {
    let _watch = watchdog();
    for window in [1, 2, 5, 29] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let t = trustees.entrust(0u64);
        let tally = Tally::new();
        let held = hold_up(&t);
        let called = Rc::new(Cell::new(0u64));
        let mut taken = 0u64;
        loop {
            let (request, answer, called) = (tally.token(), tally.token(), Rc::clone(&called));
            let result = t.try_apply_then(
                move |n| {
                    *n += 1;
                    drop(request);
                    *n
                },
                move |n| {
                    called.set(called.get() + n);
                    drop(answer);
                },
            );
            match result {
                Ok(()) => taken += 1,
                Err(TryApplyThenError::Full(f, then)) => {
                    then(f(&mut 999));
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!((taken, called.get()), (window as u64 - 1, 1000));
        drop(held);
        barrier().unwrap();
        assert_eq!(called.get(), 1000 + taken * (taken + 1) / 2);
        tally.assert_all_dropped(2 * (taken + 1));
    }
}

/// A limit in bytes besides the one in requests, and requests that hardly fit.
#[test]
fn promise_05_bytes_are_limited_too() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).ring_bytes(512));
    let t = trustees.entrust(0u64);
    let held = hold_up(&t);
    let big = [1u64; 25]; // The longest that travels in the ring: 27 words of 64.
    let mut taken = 0;
    while t.try_post(move |n| *n += big.iter().sum::<u64>()).is_ok() {
        taken += 1;
    }
    assert!((1..=2).contains(&taken), "{taken}");
    drop(held);
    for _ in 0..100 {
        t.post(move |n| *n += big.iter().sum::<u64>());
    }
    barrier().unwrap();
    assert_eq!(t.apply(|n| *n), (100 + taken) * 25);
}

/// The plain forms wait when the `try_` forms would give back, and callbacks run meanwhile.
#[test]
fn promise_05_a_full_window_waits_and_reaps() {
    let _watch = watchdog();
    for window in [1, 2, 3, 16, 300] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let t = trustees.entrust(0u64);
        let seen = Rc::new(Cell::new(0u64));
        let requests = window as u64 * 20 + 7;
        for i in 0..requests {
            let note = Rc::clone(&seen);
            t.apply_then(|n| *n += 1, move |()| note.set(note.get() + 1));
            assert!(
                i < seen.get() + window as u64,
                "no more than a window is outstanding"
            );
        }
        barrier().unwrap();
        assert_eq!((seen.get(), t.apply(|n| *n)), (requests, requests));
    }
}

/// A callback makes many times the requests that the window holds. It can make no room, so a
/// request that finds none is executed before its call returns.
#[test]
fn promise_05_callbacks_that_send_more_than_the_window() {
    let _watch = watchdog();
    for window in [1usize, 2, 5, 40] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let t = trustees.entrust(Vec::new());
        let inner = t.clone();
        let posts = 10 * window + 10;
        for callback in 0..3 {
            let inner = inner.clone();
            t.apply_then(
                |_| (),
                move |()| {
                    for i in 0..posts {
                        inner.post(move |log| log.push((callback, i)));
                    }
                    assert_eq!(inner.apply(|log| log.len()), (callback + 1) * posts);
                },
            );
        }
        barrier().unwrap();
        let expected: Vec<_> = (0..3)
            .flat_map(|c| (0..posts).map(move |i| (c, i)))
            .collect();
        assert_eq!(t.apply(std::mem::take), expected);
    }
}

/// The same with callbacks in turn: those that find no room are left for later, up to a window of
/// them.
#[test]
fn promise_05_apply_then_panics_naming_the_call_when_too_many_callbacks_are_left() {
    let _watch = watchdog();
    for window in [1usize, 2, 7, 50] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let t = trustees.entrust(0u64);
        let tally = Tally::new();
        let (issued, called) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
        let (inner, tokens) = (t.clone(), tally.clone());
        let (count, calls) = (Rc::clone(&issued), Rc::clone(&called));
        t.apply_then(
            |_| (),
            move |()| {
                for _ in 0..10 * window {
                    let (token, other, calls) = (tokens.token(), tokens.token(), calls.clone());
                    inner.apply_then(
                        move |n| {
                            *n += 1;
                            drop(token);
                        },
                        move |()| {
                            calls.set(calls.get() + 1);
                            drop(other);
                        },
                    );
                    count.set(count.get() + 1);
                }
            },
        );
        let text = panic_of(barrier);
        assert!(text.contains("Trust::apply_then of "), "{text}");
        assert!(
            text.contains("promise_05_apply_then_panics"),
            "names the closure: {text}"
        );
        assert!(
            text.contains("promise_05_bounded.rs:"),
            "names the place: {text}"
        );
        assert!(text.contains("inside a callback"), "{text}");
        // Those that were accepted run; the one refused was dropped.
        barrier().unwrap();
        let issued = issued.get();
        assert_eq!((t.apply(|n| *n), called.get()), (issued, issued));
        assert!(
            (window as u64..=2 * window as u64).contains(&issued),
            "{issued} of {window}"
        );
        tally.assert_all_dropped(2 * (issued + 1));
    }
}

/// The failure of a request that a callback has made without room is reported too.
#[test]
fn promise_05_failures_of_requests_without_room_are_reported() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(1));
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let (inner, token) = (t.clone(), tally.token());
    t.apply_then(
        |_| (),
        move |()| {
            inner.apply_then(|_| (), |()| ()); // Fills the window until its callback has run.
            inner.post(|_| panic!("in a post"));
            inner.apply_then(|n| *n += 1, move |()| drop(token)); // Reaches a poisoned object.
            inner.clear_poison();
            inner.post(|n| *n += 10);
        },
    );
    let error = barrier().unwrap_err();
    assert_eq!((error.count(), error.message()), (2, "in a post"));
    tally.assert_all_dropped(1);
    barrier().unwrap();
    assert_eq!(t.apply(|n| *n), 10);
}

#[test]
fn promise_05_try_forms_give_back_inside_a_callback() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(3));
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let (inner, tokens) = (t.clone(), tally.clone());
    let taken = Rc::new(Cell::new(0));
    let count = Rc::clone(&taken);
    let gate = Gate::new();
    t.apply_then(
        |_| (),
        move |()| {
            let held = gate.clone();
            inner.post(move |_| held.wait());
            loop {
                let token = tokens.token();
                match inner.try_post(move |_| drop(token)) {
                    Ok(()) => count.set(count.get() + 1),
                    Err(TryPostError::Full(f)) => break f(&mut 0),
                    Err(error) => panic!("{error}"),
                }
            }
            let (token, other) = (tokens.token(), tokens.token());
            match inner.try_apply_then(move |_| drop(token), move |()| drop(other)) {
                Err(TryApplyThenError::Full(f, then)) => then(f(&mut 0)),
                other => panic!("{other:?}"),
            }
            gate.open();
        },
    );
    barrier().unwrap();
    assert_eq!(taken.get(), 2);
    tally.assert_all_dropped(2 + 1 + 2);
}

/// The callback runs while a request waits for room, and finds none itself. A look at the tail in
/// between must not make the waiting one wait for ever.
#[test]
fn promise_05_a_request_waits_although_its_callbacks_look_at_the_tail() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2).batch(1));
    let t = trustees.entrust(0u64);
    let (issued, gate) = (Gate::new(), Gate::new());
    let (wait, open, inner) = (issued.clone(), gate.clone(), t.clone());
    let full = Rc::new(Cell::new(false));
    let was_full = Rc::clone(&full);
    t.apply_then(
        move |n| {
            wait.wait();
            *n += 1;
        },
        move |()| {
            open.open();
            inner.post(|n| *n += 10);
            inner.apply(|_| ());
            // All has been executed, but the second callback still takes its room.
            let result = inner.try_post(|n| *n += 1000);
            was_full.set(matches!(result, Err(TryPostError::Full(_))));
        },
    );
    t.apply_then(
        move |n| {
            gate.wait();
            *n += 1;
        },
        |()| (),
    );
    issued.open();
    t.post(|n| *n += 100);
    barrier().unwrap();
    assert!(full.get());
    assert_eq!(t.apply(|n| *n), 112);
}

/// The same after the callback has shut the trustee down.
#[test]
fn promise_05_a_request_waits_although_the_trustee_ends_meanwhile() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2).batch(1));
    let t = trustees.entrust(0u64);
    let (issued, gate) = (Gate::new(), Gate::new());
    let (wait, open, inner) = (issued.clone(), gate.clone(), t.clone());
    t.apply_then(
        move |_| wait.wait(),
        move |()| {
            open.open();
            inner.post(|n| *n += 10);
            trustees.shutdown();
            assert!(inner.try_post(|n| *n += 1000).is_err());
        },
    );
    t.apply_then(move |_| gate.wait(), |()| ());
    issued.open();
    let text = panic_of(|| t.post(|n| *n += 100));
    assert!(
        text.contains("Trust::post") && text.contains("shut down"),
        "{text}"
    );
    barrier().unwrap();
}

/// Leaves three long requests executed and not reaped. The first one's callback sends a fourth: the
/// rings would have to grow for it, but that would fill the window.
fn grow_in_vain(spin: Duration, then: impl FnOnce(Trustees)) {
    let trustees = start(Trustees::dedicated(1).window(3).spin(spin));
    let t = trustees.entrust(0u64);
    let (gate, ran) = (Gate::new(), Gate::new());
    let (held, open, inner) = (gate.clone(), ran.clone(), t.clone());
    let (long, shorter) = ([1u64; 25], [1u64; 24]); // The second with a gate at its side.
    t.apply_then(
        move |_| held.wait(),
        move |()| {
            let _ = inner.try_post(move |n| *n += long[24]);
        },
    );
    t.apply_then(move |n| *n += long[24], |()| ());
    t.apply_then(
        move |n| {
            *n += shorter[23];
            open.open();
        },
        |()| (),
    );
    gate.open();
    settle(&t, &ran);
    then(trustees);
}

#[test]
fn promise_05_rings_that_grow_in_vain_while_the_trustee_sleeps() {
    let _watch = watchdog();
    grow_in_vain(Duration::ZERO, |_trustees| {
        // Nothing depends on it, but by then it does sleep.
        std::thread::sleep(Duration::from_millis(20));
        poll();
        barrier().unwrap();
    });
}

#[test]
fn promise_05_rings_that_grow_in_vain_after_shutdown() {
    let _watch = watchdog();
    grow_in_vain(Duration::from_micros(100), |trustees| {
        trustees.shutdown();
        poll();
        barrier().unwrap();
    });
}

/// A chain of callbacks, each sending the next request: the stack must not grow with it.
#[test]
fn promise_05_no_recursion_grows_with_a_chain_of_callbacks() {
    let _watch = watchdog();
    fn chain(t: &Trust<u64>, left: u64) {
        if left > 0 {
            let again = t.clone();
            t.apply_then(|n| *n += 1, move |()| chain(&again, left - 1));
        }
    }
    for window in [1, 2, 256] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let t = trustees.entrust(0u64);
        let length = scaled(2_000);
        with_stack_of(128 << 10, || {
            chain(&t, length);
            barrier().unwrap();
        });
        assert_eq!(t.apply(|n| *n), length);
    }
}

/// The same over two trustees, so that a barrier has to go round.
#[test]
fn promise_05_chains_over_two_trustees() {
    let _watch = watchdog();
    fn chain(here: &Trust<u64>, there: &Trust<u64>, left: u64) {
        if left > 0 {
            let (here2, there2) = (here.clone(), there.clone());
            here.apply_then(|n| *n += 1, move |()| chain(&there2, &here2, left - 1));
        }
    }
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let length = scaled(1_000) | 1;
    chain(&a, &b, length);
    barrier().unwrap();
    assert_eq!(
        (a.apply(|n| *n), b.apply(|n| *n)),
        (length / 2 + 1, length / 2)
    );
}

/// At a thread's end its callbacks may send requests to trustees it has no client for any more.
#[test]
fn promise_05_no_recursion_grows_at_the_end_of_a_thread() {
    let _watch = watchdog();
    fn chain(t: &Trust<u64>, left: u64) {
        if left > 0 {
            let again = t.clone();
            t.apply_then(|n| *n += 1, move |()| chain(&again, left - 1));
        }
    }
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let c = b.clone();
    let length = scaled(2_000);
    let small = std::thread::Builder::new().stack_size(128 << 10);
    let client = move || a.apply_then(|_| (), move |()| chain(&c, length));
    small.spawn(client).unwrap().join().unwrap();
    assert_eq!(b.apply(|n| *n), length);
}

/// Inside a callback `apply` is allowed; it starts no further callback while it waits.
#[test]
fn promise_05_apply_in_a_callback_starts_no_other() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let depth = Rc::new(Cell::new(0));
    let runs = Rc::new(Cell::new(0));
    for round in 0..scaled(300) {
        for t in [&a, &b] {
            let (depth, runs) = (Rc::clone(&depth), Rc::clone(&runs));
            let (a, b) = (a.clone(), b.clone());
            t.apply_then(
                |n| *n += 1,
                move |()| {
                    assert_eq!(depth.replace(1), 0, "a callback inside a callback");
                    a.apply(|n| *n += 1);
                    b.apply(|n| *n += 1);
                    if round % 3 == 0 {
                        a.post(|n| *n += 1);
                    }
                    assert!(a.try_apply(|n| *n += 1).is_ok());
                    runs.set(runs.get() + 1);
                    depth.set(0);
                },
            );
        }
        if round % 50 == 0 {
            poll();
        }
    }
    barrier().unwrap();
    assert_eq!(runs.get(), 2 * scaled(300));
}

#[test]
fn promise_05_poll_and_barrier_are_refused_inside_a_callback() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let texts = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&texts);
    t.apply_then(
        |_| (),
        move |()| {
            log.borrow_mut().push(panic_of(poll));
            log.borrow_mut().push(panic_of(barrier));
        },
    );
    t.apply_then(|n| *n += 1, |()| ());
    barrier().unwrap();
    let texts = texts.borrow();
    assert!(texts[0].contains("poll inside a callback"), "{texts:?}");
    assert!(texts[1].contains("barrier inside a callback"), "{texts:?}");
}

/// The same for a session, whose `reap` and `barrier` are the same by another name.
#[test]
fn promise_05_a_sessions_reap_and_barrier_are_refused_inside_a_callback() {
    let _watch = watchdog();
    let trustees = one();
    let t: &'static Trust<u64> = Box::leak(Box::new(trustees.entrust(0)));
    let depth = Rc::new(Cell::new(0));
    for what in ["reap", "barrier"] {
        let (mut outer, mut inner) = (t.session(), t.session());
        let (texts, deep) = (Rc::new(RefCell::new(String::new())), Rc::clone(&depth));
        let note = Rc::clone(&texts);
        outer.issue(
            |n| *n += 1,
            move |()| {
                let _deeper = crate::support::OnDrop::new({
                    let deep = Rc::clone(&deep);
                    deep.set(deep.get() + 1);
                    move || deep.set(deep.get() - 1)
                });
                *note.borrow_mut() = panic_of(|| match what {
                    "reap" => inner.reap(),
                    _ => inner.barrier(),
                });
            },
        );
        for _ in 0..3 {
            let depth = Rc::clone(&depth);
            outer.issue(|n| *n += 1, move |()| assert_eq!(depth.get(), 0));
        }
        outer.barrier();
        let text = texts.borrow().clone();
        assert!(
            text.contains(what) && text.contains("inside a callback"),
            "{text}"
        );
    }
    // SAFETY: the box was leaked above, and every session is gone.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(t).cast_mut()) });
}
