//! Promise 10: An idle trustee sleeps, and every kind of news wakes it.

use crate::support::{Gate, Tally, one, scaled, start, until, watchdog};
use crate::toy;
use corelay_delegate::{Trust, Trustees, barrier};
use corelay_sync::{Issue, Session, Shared};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Trustees that sleep at once, and ones that spin a while first.
fn sleepy(n: usize) -> Trustees {
    start(Trustees::dedicated(n).spin(Duration::ZERO))
}

/// Waits until the only trustee has gone to sleep once more. The news that woke it last must have
/// been served.
fn asleep(trustees: &Trustees, since: u64) {
    until(|| trustees.metrics()[0].sleeps > since);
}

#[test]
fn promise_10_an_idle_trustee_sleeps() {
    let _watch = watchdog();
    for trustees in [sleepy(1), one()] {
        asleep(&trustees, 0);
        let before = trustees.metrics()[0];
        thread::sleep(Duration::from_millis(50));
        // Nothing has happened: no wake-up, not one more look around.
        assert_eq!(trustees.metrics()[0], before);
        let t = trustees.entrust(1u64);
        asleep(&trustees, before.sleeps);
        assert_eq!(t.apply(|n| *n), 1);
    }
}

/// Every kind of news wakes a trustee that sleeps.
#[test]
fn promise_10_every_request_wakes_a_sleeping_trustee() {
    let _watch = watchdog();
    let trustees = sleepy(1);
    let t = trustees.entrust(0u64);
    let ran = Arc::new(AtomicU64::new(0));
    let tally = Tally::new();
    let mut session = t.session();
    for round in 0..scaled(40) {
        for form in 0..10 {
            let sleeps = trustees.metrics()[0].sleeps;
            let expected = ran.load(Ordering::Relaxed) + 1;
            let count = Arc::clone(&ran);
            let work = move |_: &mut u64| {
                count.fetch_add(1, Ordering::Relaxed);
            };
            match form {
                0 => t.post(work),
                1 => t.apply_then(work, |()| ()),
                2 => t.apply(work),
                3 => assert!(t.try_post(work).is_ok()),
                4 => assert!(t.try_apply_then(work, |()| ()).is_ok()),
                5 => assert!(t.try_apply(work).is_ok()),
                6 => session.issue(work, |()| ()),
                7 => session.apply(work),
                8 => drop(trustees.entrust_with(|| work(&mut 0))),
                _ => {
                    // A new client, its request and its leave.
                    let t = t.clone();
                    thread::spawn(move || t.post(work)).join().unwrap();
                }
            }
            // The plain forms are not reaped here: the requests run by themselves.
            until(|| ran.load(Ordering::Relaxed) == expected);
            asleep(&trustees, sleeps);
        }
        // The last handle of a value.
        let sleeps = trustees.metrics()[0].sleeps;
        let dropped = tally.dropped();
        let value = trustees.entrust(tally.token());
        asleep(&trustees, sleeps);
        drop(value);
        until(|| tally.dropped() == dropped + 1);
        assert_eq!(dropped, round);
    }
    barrier().unwrap();
    drop(session);
    asleep(&trustees, 0);
    trustees.shutdown();
}

/// Several clients at once on the edge of sleep: nothing is stranded.
#[test]
fn promise_10_nothing_is_stranded_on_the_edge_of_sleep() {
    let _watch = watchdog();
    for spin in [Duration::ZERO, Duration::from_micros(5)] {
        let trustees = start(Trustees::dedicated(1).spin(spin));
        let t = trustees.entrust(0u64);
        let each = scaled(2_000);
        thread::scope(|s| {
            for client in 0..3 {
                let t = &t;
                s.spawn(move || {
                    let ran = Arc::new(AtomicU64::new(0));
                    for i in 1..=each {
                        let count = Arc::clone(&ran);
                        t.post(move |n| {
                            *n += 1;
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                        if i % (7 + client) == 0 {
                            // However it was published: it runs without another call.
                            until(|| ran.load(Ordering::Relaxed) == i);
                        }
                    }
                    until(|| ran.load(Ordering::Relaxed) == each);
                });
            }
        });
        assert_eq!(t.apply(|n| *n), 3 * each);
    }
}

/// A client sleeps too when it has to wait for long, and is woken: for a call, for room, and
/// in a barrier.
#[test]
fn promise_10_waiting_clients_sleep_and_wake() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2));
    let t = trustees.entrust(0u64);
    let nap = |n: &mut u64| {
        thread::sleep(Duration::from_millis(3));
        *n += 1;
    };
    for _ in 0..scaled(5) {
        t.apply(nap);
        for _ in 0..5 {
            t.post(nap);
        }
        for _ in 0..3 {
            t.apply_then(nap, |()| ());
        }
        barrier().unwrap();
    }
    assert_eq!(t.apply(|n| *n), scaled(5) * 9);
}

/// Two trustees in turn, both asleep in between.
#[test]
fn promise_10_sleepers_take_turns() {
    let _watch = watchdog();
    let trustees = sleepy(2);
    let objects = [trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64)];
    for i in 0..scaled(500) {
        let t = &objects[(i % 2) as usize];
        assert_eq!(
            t.apply(|n| {
                *n += 1;
                *n
            }),
            i / 2 + 1
        );
    }
}

/// The window of the trustees below. The test itself makes three requests at a time.
const WINDOW: usize = 4;

/// Two trustees, plain and with a host: the second one runs a closure until the gate opens.
fn blocked(each: impl Fn(&Trustees, [Trust<u64>; 2], &Gate)) {
    for builder in [
        Trustees::dedicated(2),
        Trustees::dedicated(2).host(toy::host()),
    ] {
        let trustees = start(builder.spin(Duration::ZERO).window(WINDOW));
        let objects = [trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64)];
        let (gate, begun) = (Gate::new(), Gate::new());
        let (opens, begins) = (gate.clone(), begun.clone());
        objects[1].post(move |_| {
            begins.open();
            opens.wait();
        });
        begun.wait();
        each(&trustees, objects, &gate);
    }
}

/// The first trustee sleeps, and does not wake up though it waits for another one.
fn sleeps_on(trustees: &Trustees, since: u64) {
    until(|| trustees.metrics()[0].sleeps > since);
    let before = trustees.metrics()[0];
    thread::sleep(Duration::from_millis(20));
    assert_eq!(trustees.metrics()[0], before);
}

#[test]
fn promise_10_a_trustee_sleeps_until_its_closures_are_answered() {
    let _watch = watchdog();
    blocked(|trustees, [here, there], gate| {
        let (begun, go, heard) = (Gate::new(), Gate::new(), Gate::new());
        let (begins, goes, hears) = (begun.clone(), go.clone(), heard.clone());
        let asked = there.clone();
        here.post(move |_| {
            begins.open();
            goes.wait();
            asked.apply_then(
                |n| {
                    *n += 1;
                    *n
                },
                move |one| {
                    assert_eq!(one, 1);
                    hears.open();
                },
            );
        });
        begun.wait();
        let slept = trustees.metrics()[0].sleeps;
        go.open();
        sleeps_on(trustees, slept);
        gate.open();
        // The first trustee gets no other request.
        heard.wait();
    });
}

#[test]
fn promise_10_a_trustee_sleeps_until_its_closures_requests_find_room() {
    let _watch = watchdog();
    blocked(|trustees, [here, there], gate| {
        let (ran, all) = (Arc::new(AtomicU64::new(0)), 2 * WINDOW as u64);
        let ask = |form| {
            let (there, ran) = (there.clone(), Arc::clone(&ran));
            here.post(move |_| {
                // As many as the window has room for, or the queue.
                for _ in 0..WINDOW {
                    let ran = Arc::clone(&ran);
                    let count = move |_: &mut u64| {
                        ran.fetch_add(1, Ordering::Relaxed);
                    };
                    match form {
                        0 => there.post(count),
                        _ => there.apply_then(count, |()| ()),
                    }
                }
            });
        };
        for forms in [[0, 0], [1, 1], [0, 1], [1, 0]] {
            let before = ran.load(Ordering::Relaxed);
            let (begun, go) = (Gate::new(), Gate::new());
            let (begins, goes) = (begun.clone(), go.clone());
            here.post(move |_| {
                begins.open();
                goes.wait();
            });
            begun.wait();
            let slept = trustees.metrics()[0].sleeps;
            forms.into_iter().for_each(ask);
            go.open();
            if before == 0 {
                sleeps_on(trustees, slept);
                gate.open();
            }
            // The first trustee gets no other request.
            until(|| ran.load(Ordering::Relaxed) == before + all);
        }
    });
}

#[test]
fn promise_10_metrics_count() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    for _ in 0..100 {
        t.post(|n| *n += 1);
    }
    barrier().unwrap();
    let _ = t.apply(|n| *n);
    drop(t);
    let [metrics] = trustees.shutdown().try_into().unwrap();
    // Entrusting is a request too. 100 posts fit the first rings only when they are reaped in time,
    // so ring growth may be among the batches, not among the requests.
    assert_eq!((metrics.requests, metrics.panics), (102, 0));
    assert!((3..=110).contains(&metrics.batches), "{metrics:?}");
    assert!(metrics.passes >= metrics.passes_with_work, "{metrics:?}");
    assert!(metrics.passes_with_work >= 3, "{metrics:?}");
}
