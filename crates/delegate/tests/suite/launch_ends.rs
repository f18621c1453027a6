//! Launched closures that end at a bad moment: by panics, in shutdowns, with destructors that call,
//! with handles dropped and callbacks pending.

use crate::promise_03_futures::block_on;
use crate::support::{Tally, panic_of, start, text_of, until, watchdog};
use crate::toy;
use corelay_delegate::{AsyncError, Builder, ClientGuard, Trust, Trustees, TryApplyError, barrier};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

fn hosted(n: usize) -> Builder {
    Trustees::dedicated(n).host(toy::host())
}

/// Runs a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The outcome of a `try_apply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Called {
    Well,
    Circular,
}

fn call(object: &Trust<u64>) -> Called {
    match object.try_apply(|n| *n += 1) {
        Ok(()) => Called::Well,
        Err(TryApplyError::Circular(_)) => Called::Circular,
        Err(other) => panic!("{other:?}"),
    }
}

/// While a launched closure unwinds, a destructor may call any trustee, its own too, which serves.
#[test]
fn a_destructor_calls_while_its_closure_unwinds() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = start(hosted(n));
        let on = |i| trustees.entrust_on(i, 0u64);
        let (t, own, other) = (on(0), on(0), on(n - 1));
        let said = Arc::new(Mutex::new(Vec::new()));
        let (inner, free, far, theirs) = (t.clone(), own.clone(), other.clone(), Arc::clone(&said));
        let launch = t.launch(move |_| {
            let _calls = OnDrop(move || {
                let mut said = theirs.lock().unwrap();
                // After its earlier requests.
                free.post(|n| *n += 10);
                said.push(free.apply(|n| *n) == 10);
                for i in 0..50 {
                    said.push(call(&far) == Called::Well);
                    free.apply_then(move |n| *n += 1, |()| ());
                    said.push(free.apply(|n| *n) == 11 + i);
                }
                // It holds this one itself.
                said.push(call(&inner) == Called::Circular);
                barrier().unwrap();
            });
            panic!("unwinds");
        });
        // Others are served meanwhile.
        for _ in 0..100 {
            own.apply(|_| ());
        }
        let failed: Result<(), AsyncError> = launch.join();
        assert!(matches!(failed, Err(AsyncError::Panicked(_))));
        let said = said.lock().unwrap();
        assert!(
            said.len() == 102 && said.iter().all(|&well| well),
            "{said:?}"
        );
        assert_eq!(own.apply(|n| *n), 60);
        assert!(t.is_poisoned());
    }
}

/// While a launched closure unwinds, a destructor may wait for objects that other closures hold, of its
/// own trustee and of another one: those go on meanwhile.
#[test]
fn a_destructor_waits_for_other_closures_of_its_trustee() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let on = |i| trustees.entrust_on(i, 0u64);
    let (t, held, far, step) = (on(0), on(0), on(1), Arc::new(AtomicU64::new(0)));
    let pause = on(1);
    let (my, waits) = (Arc::clone(&step), pause.clone());
    let holds = held.launch(move |_| {
        my.store(1, Ordering::Release);
        while my.load(Ordering::Acquire) < 2 {
            waits.apply(|_| ());
        }
    });
    // The other closure, on another trustee, waits for the object that this one holds.
    let (behind, my, waits) = (held.clone(), Arc::clone(&step), pause.clone());
    let far_off = far.launch(move |_| {
        while my.load(Ordering::Acquire) < 1 {
            waits.apply(|_| ());
        }
        call(&behind)
    });
    let (my, waits, here, there) = (Arc::clone(&step), pause.clone(), held.clone(), far.clone());
    let said = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&said);
    let launch = t.launch(move |_| {
        while my.load(Ordering::Acquire) < 1 {
            waits.apply(|_| ());
        }
        (0..200).for_each(|_| waits.apply(|_| ()));
        let _calls = OnDrop(move || {
            my.store(2, Ordering::Release);
            theirs.lock().unwrap().extend([call(&here), call(&there)]);
        });
        panic!("unwinds");
    });
    let failed: Result<(), AsyncError> = launch.join();
    assert!(matches!(failed, Err(AsyncError::Panicked(_))));
    holds.join().unwrap();
    assert_eq!(far_off.join().unwrap(), Called::Well);
    assert_eq!(*said.lock().unwrap(), [Called::Well, Called::Well]);
}

/// All forms of requests wait after a closure that panics: each reports it once, and no captures
/// are lost.
#[test]
fn a_panic_reaches_every_request_that_waits_for_it() {
    let _watch = watchdog();
    for n in [1, 2] {
        for window in [4, 256] {
            let trustees = start(hosted(n).window(window));
            let (t, pause) = (
                trustees.entrust_on(0, 0u64),
                trustees.entrust_on(n - 1, 0u64),
            );
            let (tally, go) = (Tally::new(), Arc::new(AtomicU64::new(0)));
            let (my, waits, token) = (Arc::clone(&go), pause.clone(), tally.token());
            let launch = t.launch(move |_| {
                let _token = token;
                while my.load(Ordering::Acquire) == 0 {
                    waits.apply(|_| ());
                }
                panic!("the first")
            });
            let callers: Vec<_> = (0..2)
                .map(|_| {
                    let (t, token) = (t.clone(), tally.token());
                    std::thread::spawn(move || t.try_apply(move |_| drop(token)))
                })
                .collect();
            let (post, then, called, asked, launched) = (
                tally.token(),
                tally.token(),
                tally.token(),
                tally.token(),
                tally.token(),
            );
            t.post(move |_| drop(post));
            t.apply_then(move |_| drop(then), move |()| drop(called));
            let asked = t.apply_async(move |_| drop(asked));
            let behind = t.launch(move |_| drop(launched));
            go.store(1, Ordering::Release);
            let failed: Result<(), AsyncError> = launch.join();
            assert!(matches!(failed, Err(AsyncError::Panicked(_))));
            assert!(matches!(block_on(asked), Err(AsyncError::Poisoned)));
            assert!(matches!(behind.join(), Err(AsyncError::Poisoned)));
            for caller in callers {
                let called = caller.join().unwrap();
                assert!(matches!(called, Err(TryApplyError::Poisoned)), "{called:?}");
            }
            assert_eq!(barrier().unwrap_err().count(), 2);
            tally.assert_all_dropped(8);
        }
    }
}

/// A result that nobody takes is dropped on the thread where its closure ended, and its destructor
/// may wait.
#[test]
fn a_result_that_nobody_takes_calls_as_it_is_dropped() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = start(hosted(n));
        let (t, other) = (
            trustees.entrust_on(0, 0u64),
            trustees.entrust_on(n - 1, 0u64),
        );
        for _ in 0..20 {
            let (far, near) = (other.clone(), t.clone());
            drop(t.launch(move |n| {
                *n += 1;
                OnDrop(move || {
                    far.apply(|n| *n += 1);
                    near.post(|n| *n += 1);
                })
            }));
            t.post(|n| *n += 1);
        }
        barrier().unwrap();
        until(|| t.apply(|n| *n) == 60);
        assert_eq!(other.apply(|n| *n), 20);
    }
}

/// A closure that drops the last handle of the object that it holds.
#[test]
fn a_last_handle_is_dropped_by_the_closure_that_holds_its_object() {
    let _watch = watchdog();
    for unwinds in [false, true] {
        let trustees = start(hosted(2));
        let (tally, other) = (Tally::new(), trustees.entrust_on(1, 0u64));
        let t = trustees.entrust_on(0, (tally.token(), 0u64));
        let (handle, far) = (t.clone(), other.clone());
        let launch = t.launch(move |(_, n)| {
            drop(handle);
            (0..50).for_each(|_| far.apply(|n| *n += 1));
            *n += 1;
            assert!(!unwinds, "unwinds");
            *n
        });
        drop(t);
        assert_eq!(launch.join().ok(), (!unwinds).then_some(1));
        until(|| tally.dropped() == 1);
        let free = trustees.entrust_on(0, 0u64);
        assert_eq!(free.apply(|n| *n), 0);
        trustees.shutdown();
        tally.assert_all_dropped(1);
    }
}

/// Callbacks of a closure that has ended run, also those that call, launch or panic; then its
/// channels go.
#[test]
fn a_closure_ends_with_callbacks_pending() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = start(hosted(n).window(8));
        let (t, other) = (
            trustees.entrust_on(0, 0u64),
            trustees.entrust_on(n - 1, 0u64),
        );
        let ran = Arc::new(AtomicU64::new(0));
        for _ in 0..30 {
            let (own, far, ran) = (t.clone(), other.clone(), Arc::clone(&ran));
            drop(t.launch(move |_| {
                for k in 0..4 {
                    let (own, far2, ran) = (own.clone(), far.clone(), Arc::clone(&ran));
                    far.apply_then(
                        |n| *n += 1,
                        move |()| {
                            ran.fetch_add(1, Ordering::Relaxed);
                            match k {
                                0 => far2.apply(|n| *n += 1),
                                1 => drop(own.launch(|n| *n += 1)),
                                2 => own.post(|n| *n += 1),
                                // The closure has ended.
                                _ => panic!("a callback's own, and nobody's"),
                            }
                        },
                    );
                }
            }));
        }
        barrier().unwrap();
        until(|| ran.load(Ordering::Relaxed) == 120);
        until(|| t.apply(|n| *n) == 60 && other.apply(|n| *n) == 150);
        drop(ClientGuard::new());
        trustees.shutdown();
    }
}

/// Nobody but the closure itself could let it go on.
#[test]
fn joining_a_launch_on_the_own_object_is_refused() {
    let _watch = watchdog();
    let trustees = start(hosted(1));
    let t = trustees.entrust(0u64).named("mine");
    // Not joined: it runs after the closure.
    let own = t.clone();
    t.launch(move |_| drop(own.launch(|n| *n += 1)))
        .join()
        .unwrap();
    until(|| t.apply(|n| *n) == 1);
    // Three deep, the innermost joined.
    let own = t.clone();
    let refused = t.launch(move |_| {
        let inner = own.clone();
        let middle = own.launch(move |_| inner.launch(|n| *n += 1).join().is_err());
        matches!(middle.join(), Err(AsyncError::Circular(_)))
    });
    assert!(refused.join().unwrap());
    let own = t.clone();
    let text = t.launch(move |_| panic_of(|| own.apply(|n| *n += 1)));
    assert!(
        text.join()
            .unwrap()
            .contains("\"mine\" (u64) -> \"mine\" (u64)")
    );
    barrier().unwrap();
}

/// Trustees are shut down while closures of theirs wait for each other's objects, some in rings.
#[test]
fn promise_11_shutdown_among_closures_that_call_each_other() {
    let _watch = watchdog();
    for round in 0..40u64 {
        let groups = [start(hosted(2)), start(hosted(1))];
        let objects: Arc<Vec<_>> = Arc::new(
            [(0, 0), (0, 1), (1, 0)]
                .map(|(group, i): (usize, usize)| groups[group].entrust_on(i, 0u64))
                .into(),
        );
        let tally = Tally::new();
        let handles: Vec<_> = (0..9usize)
            .map(|i| {
                let (all, token) = (Arc::clone(&objects), tally.token());
                objects[i % 3].launch(move |_| {
                    let _token = token;
                    for k in 0..round % 7 {
                        // Refused if it would close a ring, or comes too late.
                        let _ = all[(i + 1 + k as usize) % 3].try_apply(|n| *n += 1);
                    }
                })
            })
            .collect();
        let [first, second] = groups;
        let other = std::thread::spawn(move || second.shutdown());
        first.shutdown();
        other.join().unwrap();
        for handle in handles {
            handle.join().unwrap();
        }
        tally.assert_all_dropped(9);
    }
}

/// A closure shuts down trustees whose closures wait for the object that it holds: they are
/// refused.
#[test]
fn promise_11_a_closure_shuts_down_trustees_that_wait_for_it() {
    let _watch = watchdog();
    for calls_first in [false, true] {
        let (home, theirs) = (start(hosted(1)), start(hosted(1)));
        let (t, pause) = (home.entrust(0u64), home.entrust(0u64));
        let u = theirs.entrust(0u64);
        let (held, step) = (t.clone(), Arc::new(AtomicU64::new(0)));
        let (my, waits) = (Arc::clone(&step), pause.clone());
        let other = u.launch(move |_| {
            while my.load(Ordering::Acquire) == 0 {
                waits.apply(|_| ());
            }
            if !calls_first {
                (0..300).for_each(|_| waits.apply(|_| ()));
            }
            call(&held)
        });
        let (my, waits) = (Arc::clone(&step), pause.clone());
        let launch = t.launch(move |_| {
            my.store(1, Ordering::Release);
            if calls_first {
                (0..300).for_each(|_| waits.apply(|_| ()));
            }
            theirs.shutdown();
        });
        launch.join().unwrap();
        assert_eq!(other.join().unwrap(), Called::Circular);
        let said = Rc::new(Cell::new(0));
        let note = Rc::clone(&said);
        t.apply_then(|n| *n, move |n| note.set(n + 1));
        barrier().unwrap();
        assert_eq!(said.get(), 1);
    }
}

/// Two closures that shut down each other's trustees: one of them is refused.
#[test]
fn promise_11_closures_do_not_shut_down_each_other() {
    let _watch = watchdog();
    let groups = [start(hosted(1)), start(hosted(1))];
    let objects = [0, 1].map(|i: usize| groups[i].entrust(0u64));
    let pauses = [0, 1].map(|i: usize| groups[i].entrust(0u64));
    let begun = Arc::new(AtomicU64::new(0));
    let places = Arc::new(groups.map(|group| Mutex::new(Some(group))));
    let handles = [0, 1].map(|i: usize| {
        let (places, begun, pause) = (Arc::clone(&places), Arc::clone(&begun), pauses[i].clone());
        objects[i].launch(move |_| {
            begun.fetch_add(1, Ordering::AcqRel);
            while begun.load(Ordering::Acquire) < 2 {
                pause.apply(|_| ());
            }
            let other = places[1 - i].lock().unwrap().take().expect("there");
            other.shutdown();
        })
    });
    let ended = handles.map(|handle| match handle.join() {
        Ok(()) => None,
        Err(AsyncError::Panicked(payload)) => Some(text_of(&*payload)),
        Err(other) => panic!("{other}"),
    });
    // Or one has ended before the other began to wait.
    let refused: Vec<_> = ended.iter().flatten().collect();
    assert!(refused.len() <= 1, "{refused:?}");
    assert!(
        refused.iter().all(|text| text.contains("in a ring")),
        "{refused:?}"
    );
}
