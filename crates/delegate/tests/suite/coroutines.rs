//! The promises hold for calls that suspend a coroutine instead of their thread.

use crate::support::{Gate, Tally, hold_up, one, panic_of, start, text_of, watchdog};
use crate::toy;
use corelay_delegate::{Poisoned, Trustees, TryApplyError, barrier};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use toy::Toy;

/// Several calls of one kind lie in the ring; the first panics, so the others are refused,
/// although they are run together.
#[test]
fn promise_06_poison_stops_the_rest_of_a_batch() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let (toy, outcomes) = (Toy::new(), Rc::new(RefCell::new(Vec::new())));
    let held = Rc::new(Cell::new(Some(hold_up(&t))));
    for i in 0..6 {
        let (t, outcomes) = (t.clone(), Rc::clone(&outcomes));
        toy.add(move || {
            let call = || {
                t.try_apply(move |n| {
                    *n += 1;
                    assert!(i != 0, "the first");
                })
            };
            let outcome = match catch_unwind(AssertUnwindSafe(call)) {
                Ok(Ok(())) => String::from("done"),
                Ok(Err(TryApplyError::Poisoned)) => String::from("poisoned"),
                Ok(Err(error)) => panic!("{error}"),
                Err(payload) => text_of(&*payload),
            };
            outcomes.borrow_mut().push((i, outcome));
        });
    }
    // All requests have been sent when this one runs.
    toy.add(move || drop(held.take()));
    toy.run();
    let mut outcomes = outcomes.take();
    outcomes.sort();
    assert_eq!(outcomes[0], (0, String::from("the first")));
    for (i, outcome) in &outcomes[1..] {
        assert_eq!(outcome, "poisoned", "call {i}");
    }
    assert!(t.is_poisoned());
    t.clear_poison();
    assert_eq!(t.apply(|n| *n), 1);
    barrier().expect("everybody has heard of his own failure");
}

/// Closures are dropped once, whether they run, panic, or are refused.
#[test]
fn promise_02_coroutines_borrow_and_drop_once() {
    let _watch = watchdog();
    for window in [1, 3, 256] {
        let trustees = start(Trustees::dedicated(2).window(window));
        let objects = [trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64)];
        let (toy, tally) = (Toy::new(), Tally::new());
        let rounds = 30;
        for i in 0..8 {
            let (objects, tally) = (objects.clone(), tally.clone());
            toy.add(move || {
                for round in 0..rounds {
                    let t = &objects[(i + round) % 2];
                    let (token, answer) = (tally.token(), tally.token());
                    let mut frame = [0u64; 30];
                    let back = t.apply(|n| {
                        *n += 1;
                        frame[29] = *n;
                        drop(token);
                        answer
                    });
                    assert!(frame[29] > 0);
                    drop(back);
                    let token = tally.token();
                    t.apply_then(|n| *n += 1, move |()| drop(token));
                }
            });
        }
        toy.run();
        barrier().unwrap();
        let total: u64 = objects.iter().map(|t| t.apply(|n| *n)).sum();
        assert_eq!(total, 2 * 8 * rounds as u64);
        tally.assert_all_dropped(3 * 8 * rounds as u64);
    }
}

/// Calls of coroutines that reach a trustee that ends come back, or have run.
#[test]
fn promise_11_coroutines_and_shutdown() {
    let _watch = watchdog();
    for ahead in [0, 1, 5] {
        let trustees = one();
        let t = trustees.entrust(0u64);
        let (toy, ran) = (Toy::new(), Rc::new(Cell::new(0u64)));
        let closed = Rc::new(Cell::new(0u64));
        for _ in 0..ahead {
            let (t, ran) = (t.clone(), Rc::clone(&ran));
            toy.add(move || {
                t.apply(|n| *n += 1);
                ran.set(ran.get() + 1);
            });
        }
        toy.add(move || drop(trustees));
        for _ in 0..5 {
            let (t, closed) = (t.clone(), Rc::clone(&closed));
            toy.add(move || {
                match t.try_apply(|n| *n += 1) {
                    Err(TryApplyError::Closed(f)) => f(&mut 0),
                    other => panic!("{other:?}"),
                }
                assert!(panic_of(|| t.apply(|n| *n)).contains("shut down"));
                closed.set(closed.get() + 1);
            });
        }
        toy.run();
        assert_eq!((ran.get(), closed.get()), (ahead, 5));
        barrier().unwrap();
    }
}

/// Calls of coroutines find poison that was there before.
#[test]
fn promise_06_coroutines_are_told_of_poison() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let _ = panic_of(|| t.apply(|_| panic!("poison")));
    let (toy, tally, told) = (Toy::new(), Tally::new(), Rc::new(Cell::new(0)));
    let gate = Gate::new();
    for _ in 0..5 {
        let (t, token, told) = (t.clone(), tally.token(), Rc::clone(&told));
        let gate = gate.clone();
        toy.add(move || {
            let unrun = move |_: &mut u64| {
                gate.open();
                drop(token);
            };
            assert!(matches!(t.try_apply(unrun), Err(TryApplyError::Poisoned)));
            let payload = catch_unwind(AssertUnwindSafe(|| t.apply(|_| ()))).unwrap_err();
            assert!(payload.is::<Poisoned>() || text_of(&*payload).contains("poisoned"));
            told.set(told.get() + 1);
        });
    }
    toy.run();
    assert_eq!(told.get(), 5);
    assert!(panic_of(|| t.apply(|_| ())).contains("poisoned"));
    tally.assert_all_dropped(5);
    barrier().expect("everybody has heard of his own failure");
}
