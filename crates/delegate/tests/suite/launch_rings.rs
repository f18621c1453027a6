//! Launched closures that wait for each other: each ring is refused and named, and nothing else is.

use crate::support::{start, until, watchdog};
use crate::toy;
use corelay_delegate::{
    AsyncError, BarrierError, Builder, CircularWait, LaunchHandle, Trust, Trustees, TryApplyError,
    barrier,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

fn hosted(n: usize) -> Builder {
    Trustees::dedicated(n).host(toy::host())
}

/// Closures say how far they have come, and wait for each other without holding anything.
#[derive(Clone)]
struct Steps {
    step: Arc<AtomicU32>,
    pause: Trust<()>,
}

impl Steps {
    fn new(trustees: &Trustees) -> Self {
        Self {
            step: Arc::default(),
            pause: trustees.entrust_on(trustees.len() - 1, ()),
        }
    }

    fn reach(&self, step: u32) {
        self.step.fetch_max(step, Ordering::AcqRel);
    }

    fn await_step(&self, step: u32) {
        while self.step.load(Ordering::Acquire) < step {
            self.pause();
        }
    }

    /// Lets other threads come to their waits. No test needs it to be long enough.
    fn let_others_wait(&self) {
        (0..300).for_each(|_| self.pause());
    }

    fn pause(&self) {
        self.pause.apply(|()| ());
    }
}

fn is_circular<T>(result: &Result<T, AsyncError>) -> bool {
    matches!(result, Err(AsyncError::Circular(_)))
}

fn circular(result: Result<(), BarrierError>) -> Option<CircularWait> {
    let ring = result.err()?.into_first().downcast::<CircularWait>();
    Some(*ring.expect("nothing else goes wrong"))
}

fn refused<R, F>(result: Result<R, TryApplyError<F>>) -> bool {
    match result {
        Ok(_) => false,
        Err(TryApplyError::Circular(_)) => true,
        Err(other) => panic!("{other:?}"),
    }
}

/// A closure that does not wait for its requests is in no ring: a request that waits for it runs
/// when it has ended.
#[test]
fn a_request_that_nobody_waits_for_closes_no_ring() {
    let _watch = watchdog();
    for kind in 0..4 {
        let trustees = start(hosted(3));
        let steps = Steps::new(&trustees);
        let (a, b) = (trustees.entrust_on(0, 0u32), trustees.entrust_on(1, 0u32));
        let (theirs, my) = (a.clone(), steps.clone());
        let waits = b.launch(move |_| {
            my.reach(1);
            my.await_step(2);
            my.let_others_wait();
            refused(theirs.try_apply(|n| *n += 1))
        });
        let (other, my) = (b.clone(), steps.clone());
        let asks = a.launch(move |_| {
            my.await_step(1);
            match kind {
                0 => other.apply_then(|n| *n += 1, |()| ()),
                1 => other.post(|n| *n += 1),
                2 => drop(other.apply_async(|n| *n += 1)),
                _ => drop(other.launch(|n| *n += 1)),
            }
            my.reach(2);
            (0..3).for_each(|_| my.let_others_wait());
        });
        asks.join().unwrap();
        assert!(!waits.join().unwrap(), "kind {kind}");
        barrier().unwrap();
        // The closure that asked has ended, and so has its request when its trustees have.
        until(|| b.apply(|n| *n) == 1);
        assert_eq!(a.apply(|n| *n), 1);
    }
}

/// An answer to another request of the closure does not hide its wait.
#[test]
fn an_answer_meanwhile_hides_no_ring() {
    let _watch = watchdog();
    for _ in 0..5 {
        let trustees = start(hosted(4));
        let steps = Steps::new(&trustees);
        let on = |i| trustees.entrust_on(i, 0u32);
        let (a, b, c) = (on(0), on(1), on(2));
        let my = steps.clone();
        let meanwhile = b.launch(move |_| {
            my.reach(1);
            my.await_step(3);
        });
        let (theirs, my) = (a.clone(), steps.clone());
        let second = c.launch(move |_| {
            my.await_step(2);
            my.let_others_wait();
            my.reach(3);
            my.let_others_wait();
            refused(theirs.try_apply(|n| *n += 1))
        });
        let my = steps.clone();
        let (b, c) = (b.clone(), c.clone());
        let first = a.launch(move |_| {
            my.await_step(1);
            b.apply_then(|n| *n += 1, |()| ());
            my.reach(2);
            refused(c.try_apply(|n| *n += 1))
        });
        meanwhile.join().unwrap();
        let refusals = [first.join().unwrap(), second.join().unwrap()];
        assert_eq!(refusals.iter().filter(|&&refused| refused).count(), 1);
    }
}

/// Reports name each waiting closure and its object while there is no ring.
#[test]
fn a_report_names_what_is_held_and_waited_for() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let steps = Steps::new(&trustees);
    let a = trustees.entrust_on(0, 0u32).named("a");
    let b = trustees.entrust_on(1, 0u8).named("b");
    let my = steps.clone();
    let holds = b.launch(move |_| {
        my.reach(1);
        my.await_step(2);
    });
    let (other, my) = (b.clone(), steps.clone());
    let waits = a.launch(move |_| {
        my.await_step(1);
        other.post(|n| *n += 1);
        barrier().unwrap();
    });
    let held = |i: usize| trustees.report().trustees[i].held.clone();
    until(|| held(0).iter().any(|held| !held.waits_for.is_empty()));
    let (of_a, of_b) = (&held(0)[0], &held(1)[0]);
    assert_eq!(
        (&*of_a.name, &of_a.waits_for[0][..]),
        ("\"a\" (u32)", "\"b\" (u8)")
    );
    assert_eq!((&*of_b.name, of_b.waits_for.len()), ("\"b\" (u8)", 0));
    let report = trustees.report();
    assert!(
        report
            .to_string()
            .contains("\"a\" (u32), waits for \"b\" (u8)"),
        "{report}"
    );
    assert!(report.to_json().contains("waits_for"));
    steps.reach(2);
    holds.join().unwrap();
    waits.join().unwrap();
    until(|| held(0).is_empty() && held(1).is_empty());
}

/// Builds a ring. The closure that holds `a` waits by `wait` for the request that it has made to
/// `b` by `ask`; the one that holds `b` calls `a`, before that or after it.
fn ring_by(window: usize, ask: fn(&Trust<u32>), wait: fn(&Trust<u32>) -> Option<CircularWait>) {
    for calls_first in [false, true] {
        for trustee in [0, 1] {
            let trustees = start(hosted(3).window(window));
            let steps = Steps::new(&trustees);
            let a = trustees.entrust_on(0, 0u32).named("a");
            let b = trustees.entrust_on(trustee, 0u32).named("b");
            let (theirs, my) = (a.clone(), steps.clone());
            let second = b.launch(move |_| {
                my.reach(1);
                my.await_step(2);
                if !calls_first {
                    my.let_others_wait();
                }
                my.reach(3);
                refused(theirs.try_apply(|n| *n += 1))
            });
            let (other, my) = (b.clone(), steps.clone());
            let first = a.launch(move |_| {
                my.await_step(1);
                ask(&other);
                my.reach(2);
                if calls_first {
                    my.await_step(3);
                    my.let_others_wait();
                }
                wait(&other)
            });
            let ring = first.join().unwrap();
            let was_refused = second.join().unwrap();
            assert_ne!(ring.is_some(), was_refused, "one of them is refused");
            if let Some(ring) = ring {
                let names: Vec<_> = ring.objects().collect();
                assert_eq!(names, ["\"a\" (u32)", "\"b\" (u32)"]);
            }
            barrier().unwrap();
        }
    }
}

#[test]
fn rings_through_barriers_are_refused() {
    let _watch = watchdog();
    let wait = |_: &Trust<u32>| circular(barrier());
    ring_by(256, |b| b.post(|n| *n += 1), wait);
    ring_by(256, |b| b.apply_then(|n| *n += 1, |()| ()), wait);
}

#[test]
fn rings_through_full_windows_are_refused() {
    let _watch = watchdog();
    let wait = |b: &Trust<u32>| {
        (0..6).for_each(|_| b.post(|n| *n += 1));
        // The barrier reports the request that was refused to break the ring.
        circular(barrier())
    };
    ring_by(4, |_| (), wait);
}

/// A closure that waits at a barrier for a closure that it has launched itself.
#[test]
fn rings_through_launches_are_refused() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = start(hosted(n));
        let a = trustees.entrust_on(0, 0u32).named("a");
        let b = trustees.entrust_on(n - 1, 0u32).named("b");
        // A launch on the value that the closure holds.
        let own = a.clone();
        let launch = a.launch(move |_| {
            let inner = own.launch(|n| *n += 1);
            barrier().expect("the handle has heard of it");
            is_circular(&inner.join())
        });
        assert!(launch.join().unwrap());
        // A launch on another value, which calls the value that the closure holds: before the
        // barrier, and during it.
        for first in [false, true] {
            let steps = Steps::new(&trustees);
            let (own, other, my) = (a.clone(), b.clone(), steps.clone());
            let launch = a.launch(move |_| {
                let step = my.clone();
                let inner = other.launch(move |_| {
                    step.reach(1);
                    if !first {
                        step.let_others_wait();
                    }
                    refused(own.try_apply(|n| *n += 1))
                });
                if first {
                    my.await_step(1);
                    my.let_others_wait();
                }
                barrier().expect("the inner one has heard of it");
                inner.join().unwrap()
            });
            assert!(launch.join().unwrap());
        }
        assert_eq!((a.apply(|n| *n), b.apply(|n| *n)), (0, 0));
    }
}

/// No closure waits for an object: two join each other's launch, and one joins the closure that
/// waits for it at a barrier.
#[test]
fn rings_through_joins_alone_are_refused() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = start(hosted(n));
        let on = |i| trustees.entrust_on(i, 0u32);
        let (objects, steps) = ([on(0), on(n - 1)], Steps::new(&trustees));
        let handles: Arc<[Mutex<Option<LaunchHandle<u32>>>; 2]> = Arc::default();
        let (said, told) = channel();
        for (i, object) in objects.iter().enumerate() {
            let (theirs, my, said) = (Arc::clone(&handles), steps.clone(), said.clone());
            let launch = object.launch(move |_| {
                my.await_step(1);
                let other = theirs[1 - i].lock().unwrap().take();
                let joined = other.expect("put there").join();
                said.send(is_circular(&joined)).unwrap();
                7
            });
            *handles[i].lock().unwrap() = Some(launch);
        }
        steps.reach(1);
        let refusals: Vec<bool> = told.iter().take(2).collect();
        assert_eq!(refusals.iter().filter(|&&refused| refused).count(), 1);
        barrier().unwrap();

        let (a, b) = (&objects[0], objects[1].clone());
        let handle: Arc<Mutex<Option<LaunchHandle<u32>>>> = Arc::default();
        let (theirs, said, my) = (Arc::clone(&handle), said.clone(), Steps::new(&trustees));
        let steps = my.clone();
        let launch = a.launch(move |_| {
            drop(b.launch(move |_| {
                my.await_step(1);
                let outer = theirs.lock().unwrap().take();
                let joined = outer.expect("put there").join();
                said.send(is_circular(&joined)).unwrap();
            }));
            barrier().unwrap();
            0
        });
        *handle.lock().unwrap() = Some(launch);
        steps.reach(1);
        assert!(
            told.recv().unwrap(),
            "its join is refused, before or behind the barrier"
        );
        barrier().unwrap();
    }
}
