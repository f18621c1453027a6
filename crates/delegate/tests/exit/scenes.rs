//! Places that `exit` is called from.

use crate::runner::Scene;
use crate::toy;
use corelay_delegate::{ClientGuard, Trust, Trustees, barrier, poll};
use corelay_sync::{Issue, Shared};
use std::cell::RefCell;
use std::panic::panic_any;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};
use std::{future::Future, pin::pin};

const CODE: i32 = 37;

pub(crate) const ALL: &[Scene] = &[
    ("in a callback", || asks(callback_exits), CODE),
    (
        "in a callback of a thread",
        || on_thread(|| asks(callback_exits)),
        CODE,
    ),
    ("in a closure", || asks(closure_exits), CODE),
    (
        "in a closure that a thread waits for",
        || asks(awaited_closure_exits),
        CODE,
    ),
    ("in a nested callback", nested_callback_exits, CODE),
    (
        "in the destructor of a payload",
        || asks(payload_exits),
        CODE,
    ),
    ("in the destructor of an object", object_exits, CODE),
    ("in a waker", || asks(waker_exits), CODE),
    ("in a member's function", member_exits, CODE),
    (
        "in a closure that a member serves",
        served_closure_exits,
        CODE,
    ),
    ("in a launched closure", launched_closure_exits, CODE),
    (
        "of main while a closure blocks",
        || asks(main_exits_beside_a_block),
        CODE,
    ),
    (
        "of a thread while a closure blocks",
        || on_thread(|| asks(main_exits_beside_a_block)),
        CODE,
    ),
    (
        "by the end of main while a closure blocks",
        || asks(block),
        0,
    ),
    (
        "with a session in a thread-local",
        || asks(session_stays),
        CODE,
    ),
    ("in a destructor of a thread-local", destructor_exits, CODE),
    (
        "after the callbacks of a thread that ended",
        thread_ends,
        CODE,
    ),
];

/// A program that keeps its trustees to its end, as in a `static`.
fn asks(act: fn(Trust<u64>)) {
    let trustees = Trustees::dedicated(2).start().expect("threads");
    let (t, other) = (trustees.entrust(0), trustees.entrust_on(1, 0));
    std::mem::forget(trustees);
    other.post(|n| *n += 1);
    act(t);
}

fn on_thread(act: fn()) {
    std::thread::spawn(act).join().expect("it ends the process");
}

fn callback_exits(t: Trust<u64>) {
    t.apply_then(|_| (), |()| exit(CODE));
    loop {
        poll();
    }
}

fn closure_exits(t: Trust<u64>) {
    t.post(|_| exit(CODE));
    std::thread::sleep(std::time::Duration::MAX);
}

fn awaited_closure_exits(t: Trust<u64>) {
    t.apply(|_| exit(CODE));
}

fn nested_callback_exits() {
    let trustees = Trustees::dedicated(2).start().expect("threads");
    let (from, to) = (trustees.entrust_on(0, ()), trustees.entrust_on(1, ()));
    from.post(move |()| to.apply_then(|()| (), |()| exit(CODE)));
    std::thread::sleep(std::time::Duration::MAX);
}

/// A value whose destructor exits.
struct Exits;

impl Drop for Exits {
    fn drop(&mut self) {
        exit(CODE);
    }
}

impl Wake for Exits {
    fn wake(self: Arc<Self>) {
        exit(CODE);
    }
}

fn payload_exits(t: Trust<u64>) {
    // The first payload is kept for the next barrier, the second one is dropped at once.
    t.post(|_| panic_any(()));
    while t.try_apply(|_| ()).is_err() {
        t.clear_poison();
    }
    t.post(|_| panic_any(Exits));
    std::thread::sleep(std::time::Duration::MAX);
}

fn object_exits() {
    let trustees = Trustees::dedicated(1).start().expect("a thread");
    drop(trustees.entrust(Exits));
    std::thread::sleep(std::time::Duration::MAX);
}

fn waker_exits(t: Trust<u64>) {
    let waker = Waker::from(Arc::new(Exits));
    let mut future =
        pin!(t.apply_async(|_| std::thread::sleep(std::time::Duration::from_millis(20))));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    std::thread::sleep(std::time::Duration::MAX);
}

fn member_exits() {
    let team = Trustees::flat(2).start().expect("threads");
    let objects = team.entrust_all([0u64; 2]);
    team.run(|me| {
        objects.iter().for_each(|t| t.post(|n| *n += 1));
        if me.number() == 0 {
            exit(CODE);
        }
    });
}

fn served_closure_exits() {
    let team = Trustees::flat(2).start().expect("threads");
    let objects = team.entrust_all([0u64; 2]);
    team.run(|me| objects[1 - me.number()].apply(|_| exit(CODE)));
}

fn launched_closure_exits() {
    let trustees = Trustees::dedicated(1)
        .host(toy::host())
        .start()
        .expect("a thread");
    let others = Trustees::dedicated(1).start().expect("a thread");
    let (t, other) = (trustees.entrust(0), others.entrust(0));
    let launch = t.launch(move |_| {
        other.apply_then(|n: &mut u64| *n += 1, |()| ());
        other.apply(|_| ());
        exit(CODE);
    });
    drop(launch.join());
}

fn block(t: Trust<u64>) {
    t.apply_then(|_| std::thread::sleep(std::time::Duration::MAX), |()| ());
    t.post(|_| ());
}

fn main_exits_beside_a_block(t: Trust<u64>) {
    block(t);
    exit(CODE);
}

fn session_stays(t: Trust<u64>) {
    thread_local! {
        static KEPT: RefCell<Vec<Box<dyn std::any::Any>>> = const { RefCell::new(Vec::new()) };
    }
    let t: &'static Trust<u64> = Box::leak(Box::new(t));
    let mut session = t.session();
    session.issue(|_| std::thread::sleep(std::time::Duration::MAX), |()| ());
    KEPT.with(|kept| {
        kept.borrow_mut().push(Box::new(session));
        kept.borrow_mut().push(Box::new(ClientGuard::new()));
    });
    exit(CODE);
}

fn destructor_exits() {
    thread_local! {
        static LATE: RefCell<Option<Exits>> = const { RefCell::new(None) };
    }
    on_thread(|| {
        LATE.set(Some(Exits));
        asks(|t| t.post(|_| ()));
    });
}

/// A thread that ends by itself waits for its answers and runs its callbacks, as ever.
fn thread_ends() {
    static RUN: AtomicU32 = AtomicU32::new(0);
    on_thread(|| {
        asks(|t| {
            for _ in 0..100 {
                let rest = || std::thread::sleep(std::time::Duration::from_micros(100));
                t.apply_then(
                    move |_| rest(),
                    |()| {
                        RUN.fetch_add(1, Ordering::Relaxed);
                    },
                );
            }
        });
    });
    assert_eq!(RUN.load(Ordering::Relaxed), 100);
    barrier().expect("nothing panics");
    exit(CODE);
}
