//! Promise 4: Per client and trustee, requests run and callbacks come in the order of sending.

use crate::support::{Gate, Rng, one, scaled, start, watchdog};
use corelay_delegate::{Builder, ClientGuard, Trust, Trustees, barrier, poll};
use corelay_sync::{Issue, Session, Shared};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Numbers requests when they are sent, and checks their order when they run.
#[derive(Clone)]
struct Sequence {
    issued: Rc<Cell<u64>>,
    reaped: Rc<Cell<u64>>,
    ran: Arc<AtomicU64>,
}

impl Sequence {
    fn new() -> Self {
        Self {
            issued: Rc::new(Cell::new(0)),
            reaped: Rc::new(Cell::new(0)),
            ran: Arc::new(AtomicU64::new(0)),
        }
    }

    /// The next request's closure.
    fn next<const PAD: usize>(&self) -> impl FnOnce(&mut u64) -> u64 + Send + 'static {
        let number = self.issued.get();
        self.issued.set(number + 1);
        let (ran, padding) = (Arc::clone(&self.ran), [number; PAD]);
        move |n| {
            let before = ran.swap(number + 1, Ordering::Relaxed);
            assert_eq!(before, number, "requests of one client in issue order");
            assert!(padding.iter().all(|&p| p == number));
            *n += 1;
            number
        }
    }

    /// The callback for its answer.
    fn then(&self) -> impl FnOnce(u64) + 'static {
        let reaped = Rc::clone(&self.reaped);
        move |number| {
            assert!(reaped.get() <= number, "callbacks in issue order");
            reaped.set(number + 1);
        }
    }
}

/// The closure `f`, without its answer.
fn quiet(
    f: impl FnOnce(&mut u64) -> u64 + Send + 'static,
) -> impl FnOnce(&mut u64) + Send + 'static {
    move |n| {
        f(n);
    }
}

/// A random request of any form and length on any of the objects.
fn step(rng: &mut Rng, objects: &[Trust<u64>], sequence: &Sequence) {
    let t = &objects[rng.below(objects.len() as u64) as usize];
    match rng.below(14) {
        0 => t.apply(quiet(sequence.next::<0>())),
        1 => assert!(t.apply(sequence.next::<40>()) < sequence.issued.get()),
        2 => assert!(t.session().apply(sequence.next::<1>()) < sequence.issued.get()),
        3 | 4 => t.apply_then(sequence.next::<0>(), sequence.then()),
        5 => t.apply_then(sequence.next::<5>(), sequence.then()),
        6 => t.apply_then(sequence.next::<22>(), sequence.then()),
        7 => t.session().issue(sequence.next::<2>(), sequence.then()),
        8 | 9 => {
            t.post(quiet(sequence.next::<0>()));
        }
        10 => {
            t.post(quiet(sequence.next::<20>()));
        }
        11 => {
            let mut f = quiet(sequence.next::<3>());
            while let Err(error) = t.try_post(f) {
                let corelay_delegate::TryPostError::Full(back) = error else {
                    panic!("{error}")
                };
                f = back;
                thread::yield_now();
            }
        }
        12 => poll(),
        _ => assert!(t.try_apply(sequence.next::<8>()).is_ok()),
    }
}

fn mixed_forms_keep_their_order(builder: Builder, clients: u64, steps: u64) {
    let trustees = start(builder);
    let objects: Vec<Trust<u64>> = (0..3).map(|_| trustees.entrust_on(0, 0)).collect();
    let total = AtomicU64::new(0);
    thread::scope(|s| {
        for client in 0..clients {
            let (objects, total) = (&objects, &total);
            s.spawn(move || {
                let _client = ClientGuard::new();
                let sequence = Sequence::new();
                let mut rng = Rng::new(client + 1);
                for _ in 0..steps {
                    step(&mut rng, objects, &sequence);
                }
                barrier().unwrap();
                assert_eq!(sequence.ran.load(Ordering::Relaxed), sequence.issued.get());
                total.fetch_add(sequence.issued.get(), Ordering::Relaxed);
            });
        }
    });
    let ran: u64 = objects.iter().map(|t| t.apply(|n| *n)).sum();
    assert_eq!(ran, total.load(Ordering::Relaxed));
}

#[test]
fn promise_04_fifo_per_client_and_trustee() {
    let _watch = watchdog();
    mixed_forms_keep_their_order(Trustees::dedicated(1), 4, scaled(5_000));
}

#[test]
fn promise_04_fifo_in_every_window() {
    let _watch = watchdog();
    for window in [1, 2, 3, 4, 5, 7, 8, 16, 31, 64] {
        mixed_forms_keep_their_order(Trustees::dedicated(1).window(window), 2, scaled(800));
    }
}

#[test]
fn promise_04_fifo_in_every_batch_and_ring() {
    let _watch = watchdog();
    for batch in [1, 2, 5, 65_536] {
        for ring in [512, 1024, 1 << 20] {
            let builder = Trustees::dedicated(1)
                .batch(batch)
                .ring_bytes(ring)
                .window(4096);
            mixed_forms_keep_their_order(builder, 2, scaled(800));
        }
    }
}

#[test]
fn promise_04_fifo_through_sleeps() {
    let _watch = watchdog();
    mixed_forms_keep_their_order(
        Trustees::dedicated(1).spin(Duration::ZERO),
        3,
        scaled(1_500),
    );
}

/// A mail call runs after all earlier requests of its client.
#[test]
fn promise_04_apply_sees_what_was_posted() {
    let _watch = watchdog();
    let trustees = one();
    let objects: Vec<Trust<u64>> = (0..4).map(|_| trustees.entrust(0)).collect();
    for round in 1..=scaled(300) {
        for t in &objects {
            for _ in 0..round % 70 {
                t.post(|n| *n += 1);
            }
        }
        let expected: u64 = (1..=round).map(|r| r % 70).sum();
        for t in &objects {
            assert_eq!(t.apply(|n| *n), expected);
        }
    }
}

/// The first callback finds the window full when it posts for the second time; a callback
/// that could run meanwhile must not overtake it.
#[test]
fn promise_04_a_request_that_waits_is_not_overtaken_by_a_later_callback() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2).batch(1));
    let t = trustees.entrust(Vec::new());
    let gate = Gate::new();
    let (open, a, b) = (gate.clone(), t.clone(), t.clone());
    t.apply_then(
        |_| (),
        move |()| {
            a.post(|log| log.push("first"));
            open.open();
            a.post(|log| log.push("second"));
        },
    );
    t.apply_then(
        move |_| gate.wait(),
        move |()| b.post(|log| log.push("third")),
    );
    barrier().unwrap();
    assert_eq!(t.apply(std::mem::take), ["first", "second", "third"]);
}

/// The same with a call of the callback's own.
#[test]
fn promise_04_a_request_that_waits_is_not_overtaken_by_apply() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2).batch(1));
    let t = trustees.entrust(Vec::new());
    let a = t.clone();
    let (first, second) = (Gate::new(), Gate::new());
    let (wait_first, open_second) = (first.clone(), second.clone());
    t.apply_then(
        move |_| wait_first.wait(),
        move |()| {
            a.post(|log| log.push(0));
            open_second.open();
            a.post(|log| log.push(1));
            a.apply(|log| log.push(2));
        },
    );
    t.apply_then(move |_| second.wait(), |()| ());
    first.open();
    barrier().unwrap();
    assert_eq!(t.apply(std::mem::take), [0, 1, 2]);
}

/// Callbacks make requests in turn, in windows of any size. Only they number their requests: a
/// request from outside may run callbacks, and so be overtaken, before its call returns.
#[test]
fn promise_04_fifo_with_callbacks_that_make_requests() {
    let _watch = watchdog();
    fn issue(t: &Trust<u64>, sequence: &Sequence, rng: &Rc<Cell<Rng>>, left: u64) {
        if left == 0 {
            return;
        }
        let mut r = rng.get();
        let kind = r.below(6);
        rng.set(r);
        let (t2, sequence2, rng2) = (t.clone(), sequence.clone(), Rc::clone(rng));
        let on = move |_| issue(&t2, &sequence2, &rng2, left - 1);
        match kind {
            0 | 1 => t.apply_then(sequence.next::<0>(), on),
            2 => t.apply_then(sequence.next::<20>(), on),
            3 => {
                t.post(quiet(sequence.next::<1>()));
                t.apply_then(sequence.next::<0>(), on);
            }
            4 => {
                t.apply(quiet(sequence.next::<2>()));
                t.apply_then(sequence.next::<1>(), on);
            }
            _ => {
                t.post(quiet(sequence.next::<12>()));
                t.apply_then(sequence.next::<3>(), on);
            }
        }
    }
    for window in [4, 6, 9, 17, 64] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let t = trustees.entrust(0u64);
        let sequence = Sequence::new();
        let rng = Rc::new(Cell::new(Rng::new(window as u64)));
        // So many chains at a time that their requests do not all find room, yet fit the
        // window and the queue together.
        for _ in 0..scaled(20) {
            for _ in 0..window / 2 {
                let (t2, sequence, rng) = (t.clone(), sequence.clone(), Rc::clone(&rng));
                t.apply_then(|_| (), move |()| issue(&t2, &sequence, &rng, 12));
            }
            barrier().unwrap();
        }
        assert_eq!(t.apply(|n| *n), sequence.issued.get());
    }
}

/// Nothing is promised across trustees but that every request arrives.
#[test]
fn promise_04_each_trustee_by_itself() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(3));
    let objects: Vec<_> = (0..3)
        .map(|i| (trustees.entrust_on(i, 0u64), Sequence::new()))
        .collect();
    let mut rng = Rng::new(3);
    for _ in 0..scaled(4_000) {
        let (t, sequence) = &objects[rng.below(3) as usize];
        step(&mut rng, std::slice::from_ref(t), sequence);
    }
    barrier().unwrap();
    for (t, sequence) in &objects {
        assert_eq!(t.apply(|n| *n), sequence.issued.get());
    }
}

/// Requests to one trustee are not ordered with those to another: a later request runs first there.
#[test]
fn promise_04_no_order_across_trustees() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (one, other) = (trustees.entrust_on(0, ()), trustees.entrust_on(1, ()));
    let gate = Gate::new();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let log = |what: &'static str| {
        let ran = Arc::clone(&ran);
        move |(): &mut ()| ran.lock().unwrap().push(what)
    };
    let closed = gate.clone();
    one.post(move |()| closed.wait());
    one.post(log("issued first"));
    other.apply(log("issued second"));
    gate.open();
    barrier().unwrap();
    assert_eq!(*ran.lock().unwrap(), ["issued second", "issued first"]);
}
