//! Closures over two values of one trustee.

use crate::promise_03_futures::block_on;
use crate::support::{Gate, OnDrop, Tally, hold_up, one, panic_of, scaled, start, until, watchdog};
use corelay_delegate::{AsyncError, Poisoned, Trustees, TryApplyError, Zip, ZipError, barrier};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn every_call_sees_both_values_and_keeps_its_order() {
    let trustees = one();
    let (log, count) = (trustees.entrust(Vec::new()), trustees.entrust(0));
    let both = log.zip(&count).unwrap();
    let answers = Rc::new(Cell::new(0));
    let note = Rc::clone(&answers);
    let push = |log: &mut Vec<i32>, count: &mut i32| {
        *count += 1;
        log.push(*count);
        *count
    };
    both.post(move |log, count| {
        push(log, count);
    });
    both.apply_then(push, move |n| note.set(n));
    log.post(|log| log.push(-1));
    let future = both.apply_async(push);
    assert_eq!(both.apply(push), 4);
    assert_eq!(both.try_apply(push).unwrap(), 5);
    assert_eq!(block_on(future).unwrap(), 3);
    barrier().unwrap();
    assert_eq!(answers.get(), 2);
    assert_eq!(log.apply(|log| log.clone()), [1, 2, -1, 3, 4, 5]);
    let borrowed = String::from("borrowed");
    assert_eq!(both.apply(|log, _| log.len() + borrowed.len()), 6 + 8);
    assert!(!both.clone().is_poisoned());
}

#[test]
fn values_that_one_closure_cannot_have_are_refused_by_name() {
    let trustees = start(Trustees::dedicated(2));
    let (here, there) = (trustees.entrust_on(0, 1), trustees.entrust_on(1, 2));
    let refusal = here.zip(&there).unwrap_err();
    let names = (String::from("trustee-0"), String::from("trustee-1"));
    assert_eq!(refusal, ZipError::Apart(names.0, names.1));
    assert!(refusal.to_string().contains("trustee-0 and trustee-1"));
    assert_eq!(here.zip(&here.clone()).unwrap_err(), ZipError::Same);
    // One trustee of other trustees with the same name.
    let others = start(Trustees::dedicated(1));
    assert!(here.zip(&others.entrust(3)).is_err());
}

#[test]
fn a_panic_poisons_both_values() {
    let trustees = one();
    let (a, b) = (trustees.entrust(1), trustees.entrust(2));
    let both = a.zip(&b).unwrap();
    assert_eq!(panic_of(|| both.apply(|_, _| panic!("halfway"))), "halfway");
    assert!(a.is_poisoned() && b.is_poisoned() && both.is_poisoned());
    until(|| trustees.metrics()[0].panics == 1);
    assert!(matches!(
        both.try_apply(|_, _| ()),
        Err(TryApplyError::Poisoned)
    ));
    a.clear_poison();
    b.clear_poison();
    assert_eq!(both.apply(|a, b| *a + *b), 3);
}

#[test]
fn a_poisoned_second_value_refuses_the_closure_and_leaves_the_first_as_it_is() {
    let _watchdog = watchdog();
    let (trustees, tally) = (one(), Tally::new());
    let (a, b) = (trustees.entrust(1), trustees.entrust(2));
    let both = a.zip(&b).unwrap();
    b.post(|_| panic!("the second"));
    assert_eq!(barrier().unwrap_err().message(), "the second");
    let token = tally.token();
    both.post(move |_, _| drop(token));
    assert!(barrier().unwrap_err().into_first().is::<Poisoned>());
    assert!(matches!(
        both.try_apply(|_, _| ()),
        Err(TryApplyError::Poisoned)
    ));
    assert!(panic_of(|| both.apply(|_, _| ())).contains("poisoned"));
    assert!(matches!(
        block_on(both.apply_async(|_, _| ())),
        Err(AsyncError::Poisoned)
    ));
    // A capture whose destructor panics then is contained.
    let bomb = OnDrop::new(|| panic!("a capture"));
    both.post(move |_, _| {
        let _bomb = bomb;
    });
    assert!(barrier().unwrap_err().into_first().is::<Poisoned>());
    assert!(!a.is_poisoned());
    assert_eq!(a.apply(|a| *a), 1);
    tally.assert_all_dropped(1);
}

#[test]
fn what_cannot_run_comes_back() {
    let trustees = one();
    let (a, b) = (trustees.entrust(1), trustees.entrust(2));
    let both = a.zip(&b).unwrap();
    let theirs = both.clone();
    let nested = a.apply(move |_| match theirs.try_apply(|a, b| *a + *b) {
        Err(TryApplyError::Nested(f)) => f(&mut 3, &mut 4),
        other => panic!("{other:?}"),
    });
    assert_eq!(nested, 7);
    trustees.shutdown();
    match both.try_apply(|a, b| *a + *b) {
        Err(TryApplyError::Closed(f)) => assert_eq!(f(&mut 5, &mut 6), 11),
        other => panic!("{other:?}"),
    }
}

/// A value, and whether it has been dropped.
fn watched() -> (OnDrop<impl FnOnce() + Send>, Arc<AtomicBool>) {
    let is_gone = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&is_gone);
    let value = OnDrop::new(move || note.store(true, Ordering::Relaxed));
    (value, is_gone)
}

#[test]
fn the_second_value_lives_until_the_closure_has_run() {
    let _watchdog = watchdog();
    let trustees = start(Trustees::dedicated(2).window(4));
    let there = trustees.entrust_on(1, ());
    let a = trustees.entrust_on(0, 0);
    for _ in 0..scaled(100) {
        // Sent inside closures of another trustee, whose window is full: some wait there, while the
        // last handle that anybody else has goes.
        let (value, is_gone) = watched();
        let both: Zip<_, _> = a.zip(&trustees.entrust_on(0, value)).unwrap();
        let held = hold_up(&a);
        let done = Gate::new();
        for last in [false, true] {
            let (both, is_gone) = (both.clone(), Arc::clone(&is_gone));
            let done = done.clone();
            there.apply(move |()| {
                for i in 1..=4 {
                    let done = (last && i == 4).then(|| done.clone());
                    let is_gone = Arc::clone(&is_gone);
                    both.post(move |a, _| {
                        assert!(!is_gone.load(Ordering::Relaxed));
                        *a += 1;
                        done.inspect(Gate::open);
                    });
                }
            });
        }
        drop(both);
        drop(held);
        done.wait();
        // Futures that wait for room, too.
        let (value, is_gone) = watched();
        let both = a.zip(&trustees.entrust_on(0, value)).unwrap();
        let held = hold_up(&a);
        let send = |_| {
            let is_gone = Arc::clone(&is_gone);
            both.apply_async(move |a, _| {
                assert!(!is_gone.load(Ordering::Relaxed));
                *a += 1;
            })
        };
        let futures: Vec<_> = (0..8).map(send).collect();
        drop((both, held));
        for future in futures {
            block_on(future).unwrap();
        }
    }
    assert_eq!(a.apply(|a| *a), scaled(100) * 16);
}

#[test]
fn a_member_uses_two_values_of_its_own_and_of_others() {
    let _watchdog = watchdog();
    let (send, receive) = std::sync::mpsc::channel();
    let receive = std::sync::Mutex::new(receive);
    let run = Trustees::flat(2).run(|me| {
        let (a, b) = (me.entrust(1), me.entrust(2));
        let both = a.zip(&b).unwrap();
        assert_eq!(both.apply(|a, b| std::mem::replace(a, *b)), 1);
        send.send(both).unwrap();
        let theirs = receive.lock().unwrap().recv().unwrap();
        theirs.post(|a, b| *b = *a);
        assert_eq!(theirs.apply(|a, b| (*a, *b)), (2, 2));
    });
    run.unwrap();
}

#[test]
fn messages_name_the_users_closure() {
    let trustees = one();
    let (hits, other) = (trustees.entrust(0), trustees.entrust(0));
    let both = hits.zip(&other).unwrap();
    trustees.shutdown();
    let message = panic_of(|| both.post(|_, _| ()));
    assert!(
        message.contains("messages_name_the_users_closure"),
        "{message}"
    );
    let message = panic_of(|| both.apply(|_, _| ()));
    assert!(
        message.contains("messages_name_the_users_closure"),
        "{message}"
    );
}
