//! Delegated calls from coroutines: one waits, others run.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "../../sync/tests/toy/mod.rs"]
mod toy;

use corelay_delegate::Trustees;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use toy::Toy;

#[test]
fn apply_in_a_coroutine_lets_others_run() {
    let trustees = Trustees::dedicated(1).start().unwrap();
    let value = trustees.entrust(0u64);
    let toy = Toy::new();
    let (inside, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for _ in 0..8 {
        let (value, inside, most) = (value.clone(), Rc::clone(&inside), Rc::clone(&most));
        toy.add(move || {
            for _ in 0..200 {
                inside.set(inside.get() + 1);
                most.set(most.get().max(inside.get()));
                let borrowed = 1;
                value.apply(|v| *v += borrowed);
                inside.set(inside.get() - 1);
            }
        });
    }
    toy.run();
    assert_eq!(value.apply(|v| *v), 1600);
    assert!(toy.suspensions.get() > 0, "somebody was suspended");
    assert!(most.get() > 1, "several calls were in flight on one thread");
}

#[test]
fn panics_and_poison_reach_the_coroutine() {
    let trustees = Trustees::dedicated(1).start().unwrap();
    let value = trustees.entrust(0u64);
    let toy = Toy::new();
    let checked = Rc::new(Cell::new(false));
    let seen = Rc::clone(&checked);
    toy.add(move || {
        let panicked = catch_unwind(AssertUnwindSafe(|| value.apply(|_| panic!("inside"))));
        assert_eq!(
            *panicked.unwrap_err().downcast_ref::<&str>().unwrap(),
            "inside"
        );
        assert!(value.is_poisoned());
        assert!(matches!(
            value.try_apply(|v| *v),
            Err(corelay_delegate::TryApplyError::Poisoned)
        ));
        value.clear_poison();
        assert_eq!(value.apply(|v| *v), 0);
        seen.set(true);
    });
    toy.run();
    assert!(checked.get());
    let _ = corelay_delegate::barrier();
}

#[test]
fn a_full_window_of_coroutines_makes_progress() {
    let trustees = Trustees::dedicated(1).window(2).start().unwrap();
    let value = trustees.entrust(0u64);
    let toy = Toy::new();
    for _ in 0..50 {
        let value = value.clone();
        toy.add(move || value.apply(|v| *v += 1));
    }
    toy.run();
    assert_eq!(value.apply(|v| *v), 50);
}
