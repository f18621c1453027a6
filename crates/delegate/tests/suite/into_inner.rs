//! Values that are taken back from their trustees, and handles that keep none alive.

use crate::support::{Gate, OnDrop, Tally, hold_up, hold_up_from_elsewhere, one, start, watchdog};
use corelay_delegate::{IntoInnerError, Trust, Trustees, TryPostError, Weak, barrier};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn the_value_comes_after_all_accepted_requests_of_all_threads() {
    let _watchdog = watchdog();
    let trustees = one();
    for round in 0..200 {
        let hits = trustees.entrust(Vec::new());
        std::thread::scope(|s| {
            for thread in 0..3 {
                let hits = hits.clone();
                s.spawn(move || {
                    for i in 0..round {
                        hits.post(move |hits| hits.push((thread, i)));
                    }
                });
            }
        });
        let hits = Trust::into_inner(hits).expect("the last handle");
        assert_eq!(hits.len(), 3 * round);
        for thread in 0..3 {
            let of_thread = hits.iter().filter(|&&(of, _)| of == thread);
            assert!(of_thread.map(|&(_, i)| i).eq(0..round), "in their order");
        }
    }
}

#[test]
fn requests_that_wait_behind_a_long_one_run_before_the_value_comes() {
    let _watchdog = watchdog();
    let trustees = one();
    let (hits, other) = (trustees.entrust(0), trustees.entrust(()));
    let held = hold_up_from_elsewhere(&other);
    hits.post(|hits| *hits += 1);
    std::thread::scope(|s| {
        let taker = s.spawn(move || Trust::into_inner(hits));
        drop(held);
        assert_eq!(taker.join().unwrap().unwrap(), 1);
    });
}

#[test]
fn exactly_one_of_several_threads_gets_the_value_and_nothing_is_dropped_twice() {
    let _watchdog = watchdog();
    let (trustees, tally) = (start(Trustees::dedicated(2)), Tally::new());
    for _ in 0..300 {
        let value = trustees.entrust(tally.token());
        let got = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for _ in 0..3 {
                let value = value.clone();
                s.spawn(|| match Trust::into_inner(value) {
                    Ok(_token) => {
                        got.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(IntoInnerError::Shared) => {}
                    Err(other) => panic!("{other}"),
                });
            }
            drop(value);
        });
        // The last handle may have been the one that was dropped.
        assert!(got.into_inner() <= 1);
    }
    trustees.shutdown();
    tally.assert_all_dropped(300);
}

#[test]
fn a_shared_value_stays_and_the_handle_goes() {
    let trustees = one();
    let hits = trustees.entrust(1);
    let other = hits.clone();
    assert!(matches!(
        Trust::into_inner(other),
        Err(IntoInnerError::Shared)
    ));
    assert_eq!(Trust::into_inner(hits).unwrap(), 1);
}

#[test]
fn a_poisoned_value_comes_as_an_error_and_a_cleared_one_does_not() {
    let trustees = one();
    for clear in [false, true] {
        let stock = trustees.entrust(3);
        stock.post(|stock| {
            *stock = 4;
            panic!("dropped a crate");
        });
        assert_eq!(barrier().unwrap_err().count(), 1);
        if clear {
            stock.clear_poison();
        }
        match Trust::into_inner(stock) {
            Ok(4) => assert!(clear),
            Err(IntoInnerError::Poisoned(4)) => assert!(!clear),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(trustees.entrust(5).apply(|n| *n), 5);
}

#[test]
fn after_a_shutdown_the_value_is_gone() {
    let (trustees, tally) = (one(), Tally::new());
    let value = trustees.entrust(tally.token());
    trustees.shutdown();
    tally.assert_all_dropped(1);
    assert!(matches!(
        Trust::into_inner(value),
        Err(IntoInnerError::Closed)
    ));
}

#[test]
fn a_shutdown_at_the_same_time_loses_no_value_silently() {
    let _watchdog = watchdog();
    let tally = Tally::new();
    for _ in 0..300 {
        let trustees = one();
        let value = trustees.entrust(tally.token());
        std::thread::scope(|s| {
            s.spawn(|| match Trust::into_inner(value) {
                Ok(_) | Err(IntoInnerError::Closed) => {}
                Err(other) => panic!("{other}"),
            });
            trustees.shutdown();
        });
    }
    tally.assert_all_dropped(300);
}

#[test]
fn where_nothing_may_wait_the_handle_comes_back() {
    let _watchdog = watchdog();
    let trustees = one();
    let (outer, inner) = (trustees.entrust(()), trustees.entrust(7));
    let inner = outer.apply(|()| match Trust::into_inner(inner) {
        Err(IntoInnerError::Nested(inner)) => inner,
        other => panic!("{other:?}"),
    });
    // A callback of a trustee's own request runs on its thread, which would wait for itself.
    let (answers, theirs) = (Arc::new(Mutex::new(None)), outer.clone());
    let (gate, note) = (Gate::new(), Arc::clone(&answers));
    let open = gate.clone();
    outer.post(move |()| {
        theirs.apply_then(
            |()| (),
            move |()| {
                *note.lock().unwrap() = Some(Trust::into_inner(inner).map_err(|e| e.to_string()));
                open.open();
            },
        );
    });
    gate.wait();
    let answer = answers.lock().unwrap().take();
    let refusal = "called inside a delegated closure, where nothing may wait";
    assert_eq!(answer, Some(Err(String::from(refusal))));
    // In a destructor on a trustee, too.
    let nested = trustees.entrust(8);
    let probe = trustees.entrust(OnDrop::new(move || {
        assert!(matches!(
            Trust::into_inner(nested),
            Err(IntoInnerError::Nested(_))
        ));
    }));
    drop(probe);
    trustees.shutdown();
}

#[test]
fn a_member_takes_back_its_own_values_and_others() {
    let _watchdog = watchdog();
    let run = Trustees::flat(2).run(|member| {
        for i in 0..100 {
            let mine = member.entrust(i);
            mine.post(|mine| *mine += 1);
            assert_eq!(Trust::into_inner(mine).unwrap(), i + 1);
        }
    });
    run.unwrap();
}

#[test]
fn a_value_without_bytes_and_a_large_one_come_back() {
    let trustees = one();
    assert!(Trust::into_inner(trustees.entrust(())).is_ok());
    let large = trustees.entrust([7u8; 100_000]);
    large.post(|large| large[99_999] = 8);
    let large = Trust::into_inner(large).unwrap();
    assert_eq!((large[0], large[99_999]), (7, 8));
}

#[test]
fn a_weak_handle_gives_a_handle_as_long_as_there_is_one() {
    let (trustees, tally) = (one(), Tally::new());
    let value = trustees.entrust(tally.token());
    let weak: Weak<_> = Trust::downgrade(&value);
    let second = weak.clone();
    assert!(weak.ptr_eq(&second));
    let again = weak.upgrade().expect("there is a handle");
    assert!(Trust::ptr_eq(&again, &value));
    drop(value);
    assert!(second.upgrade().is_some(), "`again` is left");
    drop(again);
    assert!(weak.upgrade().is_none() && second.upgrade().is_none());
    trustees.shutdown();
    tally.assert_all_dropped(1);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_weak_handle_does_not_keep_the_value_from_being_taken_back() {
    let trustees = one();
    let value = trustees.entrust(String::from("here"));
    let weak = Trust::downgrade(&value);
    assert_eq!(Trust::into_inner(value).unwrap(), "here");
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_weak_handle_survives_its_trustee() {
    let trustees = one();
    let value = trustees.entrust(1);
    let weak = Trust::downgrade(&value);
    trustees.shutdown();
    let again = weak.upgrade().expect("a handle is left");
    assert!(matches!(
        again.try_post(|_| ()),
        Err(TryPostError::Closed(_))
    ));
    drop((value, again));
    assert!(weak.upgrade().is_none());
}

#[test]
fn threads_that_upgrade_and_drop_lose_and_double_nothing() {
    let _watchdog = watchdog();
    let (trustees, tally) = (one(), Tally::new());
    for _ in 0..300 {
        let value = trustees.entrust(tally.token());
        let weak = Trust::downgrade(&value);
        std::thread::scope(|s| {
            for _ in 0..2 {
                let weak = weak.clone();
                s.spawn(move || {
                    while let Some(value) = weak.upgrade() {
                        value.post(|_| ());
                        drop(weak.clone());
                    }
                });
            }
            let _held = hold_up(&value);
            drop(value);
        });
    }
    trustees.shutdown();
    tally.assert_all_dropped(300);
}
