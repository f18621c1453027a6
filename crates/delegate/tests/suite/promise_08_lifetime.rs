//! Promise 8: An object is dropped, on its trustee, after everything accepted before its last handle
//! went away has run, in whichever client's ring.

use crate::support::{
    Gate, OnDrop, Rng, Tally, hold_up, one, panic_of, scaled, start, until, watchdog,
};
use corelay_delegate::{Trust, Trustees, barrier, poll};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Counts requests, and tells how many there had been when it was dropped.
struct Counter {
    count: u64,
    at_drop: Arc<AtomicU64>,
    trustee: thread::ThreadId,
}

const ALIVE: u64 = u64::MAX;

impl Drop for Counter {
    fn drop(&mut self) {
        assert_eq!(
            thread::current().id(),
            self.trustee,
            "dropped by its trustee"
        );
        let before = self.at_drop.swap(self.count, Ordering::Release);
        assert_eq!(before, ALIVE, "dropped once");
    }
}

fn counter(trustees: &Trustees) -> (Trust<Counter>, Arc<AtomicU64>) {
    let at_drop = Arc::new(AtomicU64::new(ALIVE));
    let note = Arc::clone(&at_drop);
    let handle = trustees.entrust_with(|| Counter {
        count: 0,
        at_drop: note,
        trustee: thread::current().id(),
    });
    (handle, at_drop)
}

fn wait_for(at_drop: &AtomicU64) -> u64 {
    until(|| at_drop.load(Ordering::Acquire) != ALIVE);
    at_drop.load(Ordering::Acquire)
}

#[test]
fn promise_08_dropped_after_what_was_accepted() {
    let _watch = watchdog();
    let trustees = one();
    for posts in (0..200).chain([1000]) {
        let (t, at_drop) = counter(&trustees);
        for i in 0..posts {
            if i % 3 == 0 {
                t.apply_then(|c| c.count += 1, |()| ());
            } else {
                t.post(|c| c.count += 1);
            }
        }
        drop(t);
        assert_eq!(wait_for(&at_drop), posts);
    }
    barrier().unwrap();
}

/// Posted here; the handle is dropped on another thread, which has sent nothing itself.
#[test]
fn promise_08_the_last_handle_goes_on_another_thread() {
    let _watch = watchdog();
    let trustees = one();
    let (send, receive) = std::sync::mpsc::channel::<Trust<Counter>>();
    let dropper = thread::spawn(move || {
        for t in receive {
            drop(t);
        }
    });
    for posts in 0..scaled(300) {
        let (t, at_drop) = counter(&trustees);
        for _ in 0..posts % 130 {
            t.post(|c| c.count += 1);
        }
        send.send(t).unwrap();
        // This client does nothing more for it.
        assert_eq!(wait_for(&at_drop), posts % 130);
    }
    drop(send);
    dropper.join().unwrap();
}

/// Every client posts and lets its handle go; any of them may be the last.
#[test]
fn promise_08_many_clients_let_go_at_once() {
    let _watch = watchdog();
    let trustees = one();
    for round in 0..scaled(60) {
        let (t, at_drop) = counter(&trustees);
        let clients = 2 + round % 6;
        let each = round % 50;
        thread::scope(|s| {
            for _ in 0..clients {
                let t = t.clone();
                s.spawn(move || {
                    for _ in 0..each {
                        t.post(|c| c.count += 1);
                    }
                    drop(t);
                });
            }
            drop(t);
        });
        assert_eq!(wait_for(&at_drop), clients * each);
    }
}

/// A handle goes round; each holder posts and passes it on.
#[test]
fn promise_08_a_handle_goes_round() {
    let _watch = watchdog();
    fn pass_on(t: Trust<Counter>, left: u64) {
        t.post(|c| c.count += 1);
        if left > 0 {
            thread::spawn(move || pass_on(t, left - 1)).join().unwrap();
        }
    }
    let trustees = one();
    let (t, at_drop) = counter(&trustees);
    pass_on(t, 30);
    assert_eq!(wait_for(&at_drop), 31);
}

#[test]
fn promise_08_the_last_handle_goes_inside_a_closure() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let others: Vec<Trust<u64>> = (0..2).map(|i| trustees.entrust_on(i, 0)).collect();
    for round in 0..scaled(100) {
        let other = &others[round as usize % 2];
        // Posted as the closure's capture, on the same trustee or another.
        let (t, at_drop) = counter(&trustees);
        (0..round % 70).for_each(|_| t.post(|c| c.count += 1));
        match round % 4 {
            0 => other.post(move |_| drop(t)),
            1 => other.apply(move |_| drop(t)),
            2 => other.apply_then(move |_| drop(t), |()| ()),
            // Inside a closure that is dropped unrun.
            _ => {
                let _ = panic_of(|| other.apply(|_| panic!("poison")));
                other.post(move |_| drop(t));
                assert_eq!(barrier().unwrap_err().count(), 1);
                other.clear_poison();
            }
        }
        assert_eq!(wait_for(&at_drop), round % 70);
    }
    barrier().unwrap();
}

/// A request on the object itself carries its last handle.
#[test]
fn promise_08_the_last_handle_goes_inside_the_objects_own_closure() {
    let _watch = watchdog();
    let trustees = one();
    for round in 0..scaled(100) {
        let (t, at_drop) = counter(&trustees);
        (0..round % 70).for_each(|_| t.post(|c| c.count += 1));
        let own = t.clone();
        let work = move |c: &mut Counter| {
            c.count += 1;
            drop(own);
            c.count += 1;
        };
        if round % 2 == 0 {
            t.post(work);
        } else {
            t.apply_then(work, |()| ());
        }
        t.post(|c| c.count += 1);
        drop(t);
        assert_eq!(wait_for(&at_drop), round % 70 + 3);
    }
    barrier().unwrap();
}

#[test]
fn promise_08_the_last_handle_goes_inside_a_callback() {
    let _watch = watchdog();
    for window in [1, 2, 256] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let other = trustees.entrust(0u64);
        for round in 0..scaled(50) {
            let (t, at_drop) = counter(&trustees);
            let (own, posts) = (t.clone(), round % 9);
            t.apply_then(
                |c| c.count += 1,
                move |()| {
                    // More than a small window: the object lives until all have run.
                    (0..posts).for_each(|_| own.post(|c| c.count += 1));
                    drop(own);
                },
            );
            drop(t);
            other.apply_then(|_| (), |()| ());
            barrier().unwrap();
            assert_eq!(wait_for(&at_drop), posts + 1);
        }
    }
}

/// Values that hold handles: dropping one lets go of the next.
#[test]
fn promise_08_the_last_handle_goes_inside_another_value() {
    let _watch = watchdog();
    struct Link {
        _next: Option<Trust<Link>>,
        _token: crate::support::Token,
    }
    let trustees = start(Trustees::dedicated(3));
    let tally = Tally::new();
    for length in [1, 2, 10, 200] {
        let before = tally.made();
        let mut first = None;
        for _ in 0..length {
            first = Some(trustees.entrust(Link {
                _next: first,
                _token: tally.token(),
            }));
        }
        drop(first);
        until(|| tally.dropped() == before + length);
    }
    // And once more at shutdown, with the first handle still out.
    let mut first = None;
    for _ in 0..10 {
        first = Some(trustees.entrust(Link {
            _next: first,
            _token: tally.token(),
        }));
    }
    trustees.shutdown();
    tally.assert_all_dropped(223);
    drop(first);
}

/// A value that holds a handle to itself lives until the trustee ends, and no longer.
#[test]
fn promise_08_cycles_end_with_their_trustee() {
    let _watch = watchdog();
    struct Cycle {
        own: Option<Trust<Cycle>>,
        _token: crate::support::Token,
    }
    let trustees = start(Trustees::dedicated(2));
    let tally = Tally::new();
    let objects: Vec<_> = (0..4)
        .map(|_| {
            trustees.entrust(Cycle {
                own: None,
                _token: tally.token(),
            })
        })
        .collect();
    for (i, t) in objects.iter().enumerate() {
        let next = objects[(i + 1) % 4].clone();
        t.apply(|cycle| cycle.own = Some(next));
    }
    drop(objects);
    assert_eq!(tally.dropped(), 0);
    trustees.shutdown();
    tally.assert_all_dropped(4);
}

/// To let go of a last handle does not wait, whatever the trustee does.
#[test]
fn promise_08_dropping_a_handle_does_not_wait() {
    let _watch = watchdog();
    let trustees = one();
    let busy = trustees.entrust(0u64);
    let objects: Vec<_> = (0..100).map(|_| counter(&trustees)).collect();
    let held = hold_up(&busy);
    let mut drops = Vec::new();
    for (t, at_drop) in objects {
        t.post(|c| c.count += 1);
        drop(t);
        drops.push(at_drop);
    }
    assert!(
        drops
            .iter()
            .all(|at_drop| at_drop.load(Ordering::Relaxed) == ALIVE)
    );
    drop(held);
    for at_drop in drops {
        assert_eq!(wait_for(&at_drop), 1);
    }
}

/// A sleeping trustee is woken for it.
#[test]
fn promise_08_a_sleeping_trustee_drops_too() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).spin(std::time::Duration::ZERO));
    for _ in 0..scaled(100) {
        let (t, at_drop) = counter(&trustees);
        let sleeps = trustees.metrics()[0].sleeps;
        until(|| trustees.metrics()[0].sleeps > sleeps || sleeps > 0);
        drop(t);
        assert_eq!(wait_for(&at_drop), 0);
    }
}

/// Handles may outlive their trustee: the value is gone by then, the memory goes with them.
#[test]
fn promise_08_handles_outlive_their_trustee() {
    let _watch = watchdog();
    let trustees = one();
    let (t, at_drop) = counter(&trustees);
    let handles: Vec<_> = (0..8).map(|_| t.clone()).collect();
    (0..10).for_each(|_| t.post(|c| c.count += 1));
    trustees.shutdown();
    assert_eq!(at_drop.load(Ordering::Acquire), 10);
    assert_eq!(format!("{t:?}").split(' ').next_back(), Some("trustee-0"));
    assert!(!t.is_poisoned());
    t.clear_poison();
    thread::scope(|s| {
        for handle in handles {
            s.spawn(move || drop(handle.clone()));
        }
    });
    assert!(t.try_apply(|c| c.count).is_err());
    drop(t);
    poll();
}

/// Many objects come and go while requests on them are under way.
#[test]
fn promise_08_objects_come_and_go() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let tally = Tally::new();
    let mut rng = Rng::new(8);
    let mut live: Vec<Trust<(u64, crate::support::Token)>> = Vec::new();
    let seen = Rc::new(Cell::new(0u64));
    let mut asked = 0;
    for _ in 0..scaled(3_000) {
        if live.len() < 20 || rng.below(3) == 0 {
            live.push(trustees.entrust((0, tally.token())));
        }
        let t = &live[rng.below(live.len() as u64) as usize];
        match rng.below(3) {
            0 => t.post(|v| v.0 += 1),
            1 => {
                let (seen, handle) = (Rc::clone(&seen), t.clone());
                asked += 1;
                t.apply_then(
                    |v| v.0 += 1,
                    move |()| {
                        drop(handle);
                        seen.set(seen.get() + 1);
                    },
                );
            }
            _ => drop(t.clone()),
        }
        if live.len() > 40 || rng.below(3) == 0 {
            live.swap_remove(rng.below(live.len() as u64) as usize);
        }
    }
    barrier().unwrap();
    assert_eq!(seen.get(), asked);
    drop(live);
    trustees.shutdown();
    tally.assert_all_dropped(tally.made());
}

/// The trustee runs the accepted requests of another client before it drops the object, although
/// that client is in the middle of a request of its own.
#[test]
fn promise_08_other_clients_may_be_waiting() {
    let _watch = watchdog();
    let trustees = one();
    let (t, at_drop) = counter(&trustees);
    let (entered, leave) = (Gate::new(), Gate::new());
    let open_at_the_end = OnDrop::new({
        let leave = leave.clone();
        move || leave.open()
    });
    thread::scope(|s| {
        s.spawn(|| {
            let (t, entered, leave) = (t.clone(), entered.clone(), leave.clone());
            t.post(|c| c.count += 1);
            t.apply(move |c| {
                c.count += 1;
                entered.open();
                leave.wait();
            });
        });
        entered.wait();
        (0..5).for_each(|_| t.post(|c| c.count += 1));
        let last = t.clone();
        s.spawn(move || drop(last));
        drop(open_at_the_end);
    });
    drop(t);
    assert_eq!(wait_for(&at_drop), 7);
}
