//! A single `apply_then` travels in the mail line. Here each test's first one does: its thread has
//! nothing in flight and has not been busy. This file is about order and bounds;
//! `single_request_ends` about failures and ends.

use crate::support::{
    Gate, Rng, Tally, call_from_elsewhere, hold_up_from_elsewhere, one, panic_of, scaled, start,
    until, watchdog,
};
use crate::toy;
use corelay_delegate::{
    ClientGuard, Trust, Trustees, TryApplyThenError, TryPostError, barrier, poll,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use toy::Toy;

/// What callbacks say, in their order.
#[derive(Clone, Default)]
pub(crate) struct Said(Rc<RefCell<Vec<u64>>>);

impl Said {
    pub(crate) fn say(&self, n: u64) -> impl FnOnce(u64) + 'static {
        let said = self.clone();
        move |answer| {
            assert_eq!(answer, n);
            said.0.borrow_mut().push(n);
        }
    }

    #[track_caller]
    pub(crate) fn assert_is(&self, expected: &[u64]) {
        assert_eq!(*self.0.borrow(), expected);
    }
}

/// A request that notes that it has run, and says so.
pub(crate) fn note(n: u64) -> impl FnOnce(&mut Vec<u64>) -> u64 + Send + 'static {
    move |log| {
        log.push(n);
        n
    }
}

/// An object on each of two trustees. Those of the first are polled first.
pub(crate) fn two(window: usize) -> (Trustees, Trust<Vec<u64>>, Trust<Vec<u64>>) {
    let trustees = start(Trustees::dedicated(2).window(window));
    let (a, b) = (
        trustees.entrust_on(0, Vec::new()),
        trustees.entrust_on(1, Vec::new()),
    );
    (trustees, a, b)
}

// ---- order ----

/// Later requests of every kind, and in rings that grow right after the single one.
#[test]
fn promise_04_later_requests_run_after_a_single_one() {
    let _watch = watchdog();
    for (window, behind) in [(1, 1), (2, 1), (4, 3), (64, 40), (256, 200)] {
        for big in [false, true] {
            let trustees = start(Trustees::dedicated(1).window(window));
            let (t, said) = (trustees.entrust(Vec::new()), Said::default());
            for round in 0..3 {
                let held = hold_up_from_elsewhere(&t);
                let from = round * 1000;
                t.apply_then(note(from), said.say(from));
                let free_behind = behind.min(window as u64 - 1);
                let mut held = Some(held);
                for n in from + 1..=from + behind {
                    if n > from + free_behind {
                        held = None;
                    }
                    let ballast = [n; 22];
                    match n % 3 {
                        0 => t.post(move |log| log.push(n)),
                        _ if big => t.apply_then(
                            move |log| {
                                assert!(ballast.iter().all(|m| *m == n));
                                note(n)(log)
                            },
                            said.say(n),
                        ),
                        _ => t.apply_then(note(n), said.say(n)),
                    }
                }
                drop(held);
                assert_eq!(
                    t.apply(|log| log.len()),
                    ((round + 1) * (behind + 1)) as usize
                );
                // Everything is answered now, so the next request goes as a single one again.
                poll();
            }
            let expected: Vec<u64> = (0..3)
                .flat_map(|round| round * 1000..=round * 1000 + behind)
                .collect();
            assert_eq!(t.apply(|log| log.clone()), expected);
            let answered = |n: &u64| n.is_multiple_of(1000) || !n.is_multiple_of(3);
            said.assert_is(&expected.into_iter().filter(answered).collect::<Vec<_>>());
            trustees.shutdown();
        }
    }
}

/// No thread calls corelay any more, and the requests after the single one have not been published.
#[test]
fn promise_03_later_requests_run_without_their_client() {
    let _watch = watchdog();
    for spin in [Duration::ZERO, Duration::from_micros(100)] {
        let trustees = start(Trustees::dedicated(1).spin(spin));
        let t = trustees.entrust(Vec::new());
        for _ in 0..scaled(300) {
            let ran = Gate::new();
            let open = ran.clone();
            t.apply_then(note(1), |_| ());
            t.post(move |_| open.open());
            ran.wait();
            until(|| {
                poll();
                t.try_post(|_| ()).is_ok()
            });
            barrier().unwrap();
        }
    }
}

/// Callbacks run in order also if one of another trustee needs the line. This one needs it when
/// callbacks run that others have left.
#[test]
fn promise_04_callbacks_keep_their_order_when_one_needs_the_line() {
    let _watch = watchdog();
    let narrow = start(Trustees::dedicated(1).window(1));
    let wide = start(Trustees::dedicated(1).window(8));
    let (a, b) = (narrow.entrust(()), wide.entrust(Vec::new()));
    let said = Said::default();
    let held = hold_up_from_elsewhere(&b);
    b.apply_then(note(1), said.say(1));
    b.apply_then(note(2), said.say(2));
    drop(held);
    let (again, needs) = (a.clone(), b.clone());
    a.apply_then(
        |()| (),
        move |()| {
            again.post(|()| ());
            // No room: its callback is left for later.
            again.apply_then(
                |()| (),
                move |()| assert_eq!(needs.apply(|log| log.len()), 2),
            );
        },
    );
    // The first call has the request answered, the second reaps `a`'s callbacks and those that were
    // left.
    a.apply(|()| ());
    a.apply(|()| ());
    assert!(said.0.borrow().is_empty());
    // Reaps `b`'s callbacks, also if a trustee was slower than this thread.
    barrier().expect("nothing panics");
    said.assert_is(&[1, 2]);
}

/// A callback of another trustee calls while the single request's answer lies in the line, or is
/// still to come.
#[test]
fn promise_05_a_callback_calls_over_a_single_answer() {
    let _watch = watchdog();
    for answered in [true, false] {
        for window in [1, 4] {
            let (_trustees, a, b) = two(window);
            let (said, tally) = (Said::default(), Tally::new());
            let held = hold_up_from_elsewhere(&b);
            let (sent, token) = (tally.token(), tally.token());
            let later = said.say(1);
            b.apply_then(
                move |log| (note(1)(log), [7u64, 8], sent),
                move |(n, more, sent)| {
                    assert_eq!(more, [7, 8]);
                    drop((sent, token));
                    later(n);
                },
            );
            let mut held = Some(held);
            if answered {
                held = None;
                call_from_elsewhere(&b);
            }
            let (c, heard) = (b.clone(), said.clone());
            a.apply_then(
                |_| (),
                move |()| {
                    drop(held);
                    for n in 2..5 {
                        assert_eq!(c.apply(note(n)), n);
                        assert!(heard.0.borrow().is_empty(), "a callback inside a callback");
                    }
                },
            );
            // Nothing of `b` is reaped before `a` is.
            a.apply(|_| ());
            a.apply(|_| ());
            assert_eq!(b.apply(|log| log.clone()), [1, 2, 3, 4]);
            barrier().unwrap();
            said.assert_is(&[1]);
            tally.assert_all_dropped(2);
        }
    }
}

// ---- bounds ----

#[test]
fn promise_05_a_single_request_counts_in_the_window() {
    let _watch = watchdog();
    for window in [1usize, 2, 3, 8] {
        let (_trustees, a, b) = two(window);
        let said = Said::default();
        let held = hold_up_from_elsewhere(&b);
        let full = |b: &Trust<Vec<u64>>| {
            assert!(matches!(b.try_post(|_| ()), Err(TryPostError::Full(_))));
            let refused = b.try_apply_then(|_| 0, |_| ());
            assert!(matches!(refused, Err(TryApplyThenError::Full(..))));
        };
        b.try_apply_then(note(0), said.say(0)).unwrap();
        for n in 1..window as u64 {
            b.try_apply_then(note(n), said.say(n)).unwrap();
        }
        full(&b);
        // Inside a callback too, also when the answer is there but has not been taken.
        let inside = b.clone();
        a.apply_then(
            |_| (),
            move |()| {
                full(&inside);
                drop(held);
                call_from_elsewhere(&inside);
                full(&inside);
            },
        );
        a.apply(|_| ());
        a.apply(|_| ());
        barrier().unwrap();
        said.assert_is(&(0..window as u64).collect::<Vec<_>>());
        for _ in 0..window {
            b.try_post(|_| ())
                .unwrap_or_else(|_| panic!("there is room"));
        }
    }
}

/// A request that the line just holds, one that it just does not hold, and one without a size.
#[test]
fn promise_01_single_requests_of_every_size() {
    #[repr(align(32))]
    #[derive(Clone, Copy)]
    struct Wide(u64);

    fn go<const N: usize, const M: usize>(t: &Trust<Vec<u64>>) {
        let tally = Tally::new();
        let (sent, kept) = (tally.token(), tally.token());
        let (words, called) = ([3u64; N], Rc::new(Cell::new(false)));
        let note = Rc::clone(&called);
        t.apply_then(
            move |log| {
                log.push(words.iter().sum());
                (sent, [9u64; M])
            },
            move |(sent, nines)| {
                assert!(nines.iter().all(|n| *n == 9));
                drop((sent, kept));
                note.set(true);
            },
        );
        barrier().unwrap();
        assert!(called.get());
        assert_eq!(t.apply(|log| log.pop()), Some(3 * N as u64));
        tally.assert_all_dropped(2);
        poll();
    }

    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(Vec::new());
    go::<0, 0>(&t);
    go::<3, 3>(&t);
    go::<4, 0>(&t);
    go::<0, 4>(&t);
    go::<5, 5>(&t);
    go::<40, 40>(&t);
    let called = Rc::new(Cell::new(0));
    let note = Rc::clone(&called);
    // Over-aligned, so not in the line.
    let wide = Wide(5);
    t.apply_then(move |_| wide, move |wide| note.set(wide.0));
    barrier().unwrap();
    assert_eq!(called.get(), 5);
    // Nothing at all, not even in the callback.
    thread_local!(static SEEN: Cell<u64> = const { Cell::new(0) });
    t.apply_then(|_| (), |()| SEEN.set(SEEN.get() + 1));
    barrier().unwrap();
    assert_eq!(SEEN.get(), 1);
}

/// Both sides sleep until the single request is answered.
#[test]
fn promise_10_both_sides_sleep() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).spin(Duration::ZERO));
    let (t, said) = (trustees.entrust(Vec::new()), Said::default());
    for n in 0..10 {
        // Long enough for the trustee to have gone to sleep.
        thread::sleep(Duration::from_millis(2));
        let slow = move |log: &mut Vec<u64>| {
            thread::sleep(Duration::from_millis(5));
            note(n)(log)
        };
        t.apply_then(slow, said.say(n));
        match n % 3 {
            0 => barrier().unwrap(),
            1 => assert_eq!(t.apply(|log| log.len()), n as usize + 1),
            _ => {
                // After it, and unpublished.
                t.post(|_| ());
                barrier().unwrap();
            }
        }
    }
    barrier().unwrap();
    said.assert_is(&(0..10).collect::<Vec<_>>());
}

// ---- coroutines ----

/// The first of them goes as a single request, the others after it into the ring.
#[test]
fn promise_02_suspending_calls_after_a_single_one() {
    let _watch = watchdog();
    for (window, callers) in [(1, 1), (1, 3), (4, 3), (256, 8)] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let t = trustees.entrust(Vec::new());
        let (toy, tally) = (Toy::new(), Tally::new());
        for caller in 0..callers {
            let (t, bad, tally) = (t.clone(), trustees.entrust(()), tally.clone());
            toy.add(move || {
                for n in 0..20u64 {
                    let (token, mut frame) = (tally.token(), [0u64; 8]);
                    t.apply(|log| {
                        frame[7] = n;
                        log.push(caller * 100 + n);
                        drop(token);
                    });
                    assert_eq!(frame[7], n);
                    if n == 10 {
                        assert_eq!(panic_of(|| bad.apply(|()| panic!("lone"))), "lone");
                        bad.clear_poison();
                    }
                }
            });
            if callers == 1 {
                toy.run();
            }
        }
        toy.run();
        let log = t.apply(std::mem::take);
        for caller in 0..callers {
            let own: Vec<u64> = log.iter().copied().filter(|n| n / 100 == caller).collect();
            assert_eq!(own, (caller * 100..caller * 100 + 20).collect::<Vec<_>>());
        }
        tally.assert_all_dropped(callers * 20);
        barrier().expect("everybody has heard of his own failure");
    }
}

// ---- everything at once ----

/// The requests of clients to one trustee, over all its objects.
#[derive(Default)]
struct Ran {
    next: [AtomicU64; CLIENTS],
}

const CLIENTS: usize = 3;

impl Ran {
    fn take(&self, client: usize, n: u64) -> u64 {
        // Relaxed: only one trustee counts.
        let next = self.next[client].fetch_add(1, Ordering::Relaxed);
        assert_eq!(next, n, "client {client}: overtaken");
        n
    }
}

/// One client of one trustee: the number of its next request, of its next answer.
#[derive(Clone, Default)]
struct Line {
    asked: Rc<Cell<u64>>,
    /// The values that callbacks are still to bring, in order.
    awaited: Rc<RefCell<std::collections::VecDeque<u64>>>,
}

impl Line {
    fn ask(&self) -> u64 {
        self.asked.replace(self.asked.get() + 1)
    }

    fn await_answer(&self, n: u64) -> impl FnOnce(u64) + 'static {
        self.awaited.borrow_mut().push_back(n);
        let line = self.clone();
        move |answer| {
            assert_eq!(
                line.awaited.borrow_mut().pop_front(),
                Some(n),
                "callbacks: overtaken"
            );
            assert_eq!(answer, n);
        }
    }
}

/// Single requests, streams, calls and polls of several clients and trustees. Each trustee runs
/// each client's in order, and callbacks of one trustee come in order.
#[test]
fn stress_keeps_the_order() {
    let _watch = watchdog();
    for (window, batch, origin) in [(1, 1, 0), (2, 64, u32::MAX - 40), (5, 2, 7), (256, 64, 0)] {
        let trustees = start(
            Trustees::dedicated(2)
                .window(window)
                .batch(batch)
                .spin(Duration::from_micros(20))
                .origin(origin, origin),
        );
        let ran: Vec<Arc<Ran>> = (0..2).map(|_| Arc::default()).collect();
        let objects: Vec<Trust<Arc<Ran>>> = (0..4)
            .map(|i| trustees.entrust_on(i % 2, Arc::clone(&ran[i % 2])))
            .collect();
        thread::scope(|s| {
            for client in 0..CLIENTS {
                let objects = objects.clone();
                s.spawn(move || {
                    let _guard = ClientGuard::new();
                    let mut rng = Rng::new(client as u64 + 3);
                    let lines = [Line::default(), Line::default()];
                    for _ in 0..scaled(8_000) {
                        let i = rng.below(4) as usize;
                        let (t, line) = (&objects[i], &lines[i % 2]);
                        match rng.below(16) {
                            0..6 => {
                                let n = line.ask();
                                let other = objects[(i + 1) % 2].clone();
                                let calls = rng.below(4) == 0;
                                let then = line.await_answer(n);
                                t.apply_then(
                                    move |ran| ran.take(client, n),
                                    move |answer| {
                                        then(answer);
                                        if calls {
                                            // It may need the line that a single request's answer
                                            // lies in.
                                            assert_eq!(other.apply(|_| n), n);
                                        }
                                    },
                                );
                            }
                            6..8 => {
                                for _ in 0..rng.below(20) {
                                    let n = line.ask();
                                    t.post(move |ran| assert_eq!(ran.take(client, n), n));
                                }
                            }
                            8 => {
                                // Too large for the line, and rings grow after it.
                                let (n, ballast) = (line.ask(), [7u64; 20]);
                                t.apply_then(
                                    move |ran| ran.take(client, n) + ballast[19] - 7,
                                    line.await_answer(n),
                                );
                            }
                            9..11 => {
                                poll();
                                let n = line.ask();
                                let asked =
                                    t.try_apply_then(move |ran| ran.take(client, n), |_| ());
                                if asked.is_err() {
                                    // No room, so the number goes to the next one.
                                    line.asked.set(n);
                                }
                            }
                            11 => barrier().unwrap(),
                            _ => poll(),
                        }
                    }
                    barrier().unwrap();
                    assert!(lines.iter().all(|line| line.awaited.borrow().is_empty()));
                });
            }
        });
    }
}
