//! The ways of a request on which hostile code runs.

use crate::stage::{Hostile, Stage};
use corelay_delegate::{ClientGuard, Trustees, barrier, poll};
use corelay_sync::{Issue, Session, Shared};
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

/// Rounds of an act: as many requests fill the smallest window.
const ROUNDS: u32 = 4;

/// A name and the function to run.
type Act = (&'static str, fn(&Stage));

pub(crate) const ACTS: &[Act] = &[
    ("captures", captures),
    ("results", results),
    ("callbacks", callbacks),
    ("payloads of closures", payloads),
    ("payloads of many closures", many_payloads),
    ("payloads of callbacks", payloads_of_callbacks),
    ("requests to a poisoned object", poisoned),
    ("wakers", wakers),
    ("futures that are dropped", dropped_futures),
    ("objects", objects),
    ("closed trustees", closed),
    ("sessions", sessions),
    ("nested requests", nested),
    ("the thread's end", end_of_thread),
    ("large values", large),
];

pub(crate) const LAUNCHES: &[Act] = &[("launches", launches)];

/// Runs `call` and drops its panic, as hostile as that is.
fn tolerate(call: impl FnOnce()) {
    drop(catch_unwind(AssertUnwindSafe(call)));
}

/// Waits for everything, whatever the barrier reports.
fn settle() {
    for _ in 0..100 {
        match catch_unwind(barrier) {
            Ok(Ok(())) => return,
            Ok(Err(report)) => drop(report),
            Err(payload) => drop(payload),
        }
    }
    panic!("barriers report without end");
}

fn both(stage: &Stage, act: impl Fn(&corelay_delegate::Trust<u64>)) {
    for _ in 0..ROUNDS {
        act(&stage.near);
        act(&stage.far);
    }
    settle();
}

fn captures(stage: &Stage) {
    both(stage, |t| {
        let (a, b, c, d) = (
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
        );
        tolerate(|| t.post(move |_| drop(a)));
        tolerate(|| t.apply(move |_| drop(b)));
        tolerate(|| t.apply_then(move |_| drop(c), |()| ()));
        tolerate(|| drop(t.apply_async(move |_| drop(d))));
        let e = stage.hostile();
        tolerate(|| drop(t.try_post(move |_| drop(e))));
    });
}

fn results(stage: &Stage) {
    both(stage, |t| {
        let (a, b) = (stage.hostile(), stage.hostile());
        tolerate(|| drop(t.apply(move |_| a)));
        tolerate(|| t.apply_then(move |_| b, drop));
    });
}

fn callbacks(stage: &Stage) {
    both(stage, |t| {
        let (other, capture) = (stage.clone(), stage.hostile());
        tolerate(|| {
            t.apply_then(
                |_| (),
                move |()| {
                    other.misbehave();
                    drop(capture);
                },
            );
        });
        tolerate(poll);
    });
}

fn payloads(stage: &Stage) {
    both(stage, |t| {
        let (a, b, c, d) = (
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
        );
        tolerate(|| t.apply(move |_| panic_any(a)));
        t.clear_poison();
        tolerate(|| t.post(move |_| panic_any(b)));
        t.clear_poison();
        tolerate(|| t.apply_then(move |_| panic_any(c), |()| ()));
        t.clear_poison();
        tolerate(|| {
            drop(block_on(
                t.apply_async(move |_| panic_any(d)),
                Waker::noop(),
            ))
        });
        t.clear_poison();
        drop(catch_unwind(barrier));
    });
}

/// All but the first payload are dropped by corelay, not by a barrier's caller.
fn many_payloads(stage: &Stage) {
    both(stage, |t| {
        for _ in 0..3 {
            let (payload, other) = (stage.hostile(), stage.hostile());
            tolerate(|| t.post(move |_| panic_any(payload)));
            t.clear_poison();
            tolerate(|| t.apply_then(move |_| panic_any(other), |()| ()));
            t.clear_poison();
        }
    });
    both(stage, |t| {
        let payload = stage.hostile();
        tolerate(|| t.post(move |_| panic_any(payload)));
        t.clear_poison();
    });
    // Nobody asks for these.
    for t in [&stage.near, &stage.far] {
        for _ in 0..3 {
            let payload = stage.hostile();
            tolerate(|| t.post(move |_| panic_any(payload)));
            t.clear_poison();
        }
    }
    drop(ClientGuard::new());
}

fn payloads_of_callbacks(stage: &Stage) {
    both(stage, |t| {
        for _ in 0..3 {
            let payload = stage.hostile();
            tolerate(|| t.apply_then(|_| (), move |()| panic_any(payload)));
        }
        tolerate(poll);
    });
}

fn poisoned(stage: &Stage) {
    both(stage, |t| {
        tolerate(|| t.apply(|_| panic_any(())));
        let (a, b, c, d) = (
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
        );
        tolerate(|| t.post(move |_| drop(a)));
        tolerate(|| t.apply(move |_| drop(b)));
        tolerate(|| t.apply_then(move |_| drop(c), |()| ()));
        tolerate(|| drop(block_on(t.apply_async(move |_| drop(d)), Waker::noop())));
        drop(catch_unwind(barrier));
        t.clear_poison();
    });
}

/// Polls with `first`, then with a waker that does nothing.
fn block_on<O>(future: impl Future<Output = O>, first: &Waker) -> O {
    let mut future = pin!(future);
    let mut waker = first;
    loop {
        match future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => waker = Waker::noop(),
        }
        tolerate(poll);
        std::thread::yield_now();
    }
}

fn wakers(stage: &Stage) {
    both(stage, |t| {
        let waker = Waker::from(Arc::new(stage.hostile()));
        tolerate(|| drop(block_on(t.apply_async(|n| *n), &waker)));
        // Woken by the trustee, or dropped by it.
        let mut future = pin!(t.apply_async(|n| *n));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        drop((waker, polled));
        tolerate(|| t.apply(|_| ()));
    });
}

fn dropped_futures(stage: &Stage) {
    both(stage, |t| {
        let (a, b) = (stage.hostile(), stage.hostile());
        tolerate(|| drop(t.apply_async(move |_| a)));
        tolerate(|| drop(t.apply_async(move |_| -> u64 { panic_any(b) })));
        t.clear_poison();
    });
}

fn objects(stage: &Stage) {
    let trustees = Trustees::dedicated(1).start().expect("a thread");
    for _ in 0..ROUNDS {
        let (object, other) = (stage.hostile(), stage.clone());
        tolerate(|| trustees.entrust(object).post(|_| ()));
        tolerate(|| {
            let built = trustees.entrust_with(move || {
                other.misbehave();
                other.hostile()
            });
            drop(built);
        });
        let builder = stage.hostile();
        tolerate(|| drop(trustees.entrust_with(move || -> u64 { panic_any(builder) })));
    }
    settle();
}

fn closed(stage: &Stage) {
    let trustees = Trustees::dedicated(1).start().expect("a thread");
    let t = trustees.entrust(0u64);
    t.apply_then(|_| (), |()| ());
    trustees.shutdown();
    for _ in 0..ROUNDS {
        let (a, b, c, d) = (
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
        );
        tolerate(|| t.post(move |_| drop(a)));
        tolerate(|| t.apply(move |_| drop(b)));
        tolerate(|| t.apply_then(move |_| (), move |()| drop(c)));
        tolerate(|| drop(t.apply_async(move |_| drop(d))));
    }
    settle();
}

fn sessions(stage: &Stage) {
    for t in [&stage.near, &stage.far] {
        for _ in 0..ROUNDS {
            let (a, b, c) = (stage.hostile(), stage.hostile(), stage.hostile());
            tolerate(|| {
                let mut session = t.session();
                session.issue(move |_| drop(a), move |()| drop(b));
                // Its client is retired, and the session goes on with it.
                drop(ClientGuard::new());
                session.issue(move |_| panic_any(c), |()| ());
                session.reap();
                session.barrier();
                session.apply(|_| ());
            });
            t.clear_poison();
        }
    }
    settle();
}

fn nested(stage: &Stage) {
    both(stage, |t| {
        let other = stage.clone();
        tolerate(|| t.post(move |_| other.misbehave()));
        let other = stage.clone();
        tolerate(|| {
            t.post(move |_| {
                let (a, b, c) = (other.hostile(), other.hostile(), other.hostile());
                let (near, far) = (other.near.clone(), other.far.clone());
                tolerate(|| near.apply_then(move |_| a, drop));
                tolerate(|| far.apply_then(|_| (), move |()| panic_any(b)));
                tolerate(|| far.post(move |_| panic_any(c)));
            });
        });
        stage.near.clear_poison();
        stage.far.clear_poison();
        tolerate(|| t.apply(|_| ()));
    });
}

/// Sets its flag when the thread-locals that were used later have been dropped.
struct Ended(Arc<AtomicBool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

thread_local! {
    static ENDED: RefCell<Option<Ended>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<Hostile>> = const { RefCell::new(None) };
}

fn end_of_thread(stage: &Stage) {
    for first_a_client in [false, true] {
        let (stage, ended) = (stage.clone(), Arc::<AtomicBool>::default());
        let says = Ended(Arc::clone(&ended));
        std::thread::spawn(move || {
            ENDED.set(Some(says));
            if first_a_client {
                stage.near.post(|_| ());
            }
            LATE.set(Some(stage.hostile()));
            let (a, b, other) = (stage.hostile(), stage.hostile(), stage.clone());
            tolerate(|| stage.near.apply_then(|_| (), move |()| drop(a)));
            tolerate(|| stage.far.apply_then(|_| (), move |()| panic_any(b)));
            tolerate(|| stage.far.apply_then(|_| (), move |()| other.misbehave()));
        });
        // Not joined: a member serves while it waits.
        while !ended.load(Ordering::Acquire) {
            tolerate(poll);
            std::thread::yield_now();
        }
    }
}

fn large(stage: &Stage) {
    both(stage, |t| {
        let (a, b) = (stage.hostile(), stage.hostile());
        let (ballast, more) = ([1u64; 100], [2u64; 100]);
        tolerate(|| {
            t.apply_then(
                move |n| {
                    *n += ballast[3];
                    (a, more)
                },
                move |(a, more)| {
                    assert_eq!(more[7], 2);
                    drop((a, b));
                },
            );
        });
        let payload = stage.hostile();
        tolerate(|| {
            t.apply_then(
                move |n| {
                    *n += ballast[3];
                    panic_any(payload)
                },
                move |()| assert_eq!(more[7], 2),
            );
        });
        t.clear_poison();
    });
}

fn launches(stage: &Stage) {
    both(stage, |t| {
        let (a, b, c, other) = (
            stage.hostile(),
            stage.hostile(),
            stage.hostile(),
            stage.clone(),
        );
        tolerate(|| drop(t.launch(move |_| a).join()));
        tolerate(|| drop(t.launch(move |_| -> u64 { panic_any(b) })));
        t.clear_poison();
        tolerate(|| drop(t.launch(move |_| drop(c))));
        tolerate(|| drop(t.launch(move |_| other.misbehave())));
        tolerate(|| t.apply(|_| ()));
        t.clear_poison();
    });
}
