//! `exit` ends the process with its code, even on a fibre.

#[path = "../../fibre/tests/promise/mod.rs"]
mod promise;
#[path = "../../delegate/tests/exit/runner.rs"]
mod runner;
#[path = "../../delegate/tests/watch/mod.rs"]
#[allow(dead_code, reason = "each test file uses a part")]
mod watch;

use corelay::fibre::{BinarySemaphore, Cluster, park, sleep, yield_now};
use corelay::{Trust, Trustees, poll};
use std::cell::RefCell;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CODE: i32 = 37;

const SCENES: &[runner::Scene] = &[
    ("in a fibre", || on_fibre(|_| exit(CODE)), CODE),
    (
        "in a callback on a fibre",
        || on_fibre(callback_exits),
        CODE,
    ),
    (
        "in a closure that a fibre waits for",
        || on_fibre(closure_exits),
        CODE,
    ),
    (
        "in a destructor during a panic",
        || on_fibre(destructor_exits),
        CODE,
    ),
    ("in a fibre that is cancelled", cancelled_exits, CODE),
    ("in a launched closure", launch_exits, CODE),
    ("of main beside fibres that run and wait", main_exits, CODE),
    (
        "by the end of main beside fibres that run and wait",
        leave_fibres,
        0,
    ),
    ("with a fibre's value in a thread-local", local_exits, CODE),
];

fn main() {
    runner::run(SCENES);
}

/// A cluster in which one fibre spins, one waits for ever and one sleeps.
fn busy() -> &'static Cluster {
    static SPINS: AtomicBool = AtomicBool::new(false);
    let cluster: &'static Cluster = Box::leak(Box::new(promise::cluster(3)));
    drop(cluster.spawn(|| {
        SPINS.store(true, Ordering::Relaxed);
        loop {
            std::hint::spin_loop();
        }
    }));
    // Enqueued after a fibre that has made a request, it would keep that fibre's answer from its
    // processor.
    while !SPINS.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    drop(cluster.spawn(park));
    drop(cluster.spawn(|| sleep(Duration::MAX)));
    let seat = Arc::new(BinarySemaphore::new(false));
    drop(cluster.spawn(move || seat.wait()));
    cluster
}

/// Runs `f` on a fibre, with an object whose trustee is kept until the end of the process.
fn on_fibre(f: fn(Trust<u64>)) {
    let trustees = Trustees::dedicated(1).start().expect("a thread");
    let t = trustees.entrust(0);
    std::mem::forget(trustees);
    drop(busy().spawn(move || f(t)).join());
}

fn callback_exits(t: Trust<u64>) {
    t.apply_then(|n| *n += 1, |()| exit(CODE));
    loop {
        poll();
        yield_now();
    }
}

fn closure_exits(t: Trust<u64>) {
    t.apply(|_| exit(CODE));
}

/// A value whose destructor exits.
struct Exits;

impl Drop for Exits {
    fn drop(&mut self) {
        exit(CODE);
    }
}

fn destructor_exits(t: Trust<u64>) {
    let _exits = Exits;
    t.post(|n| *n += 1);
    panic!("on purpose");
}

fn cancelled_exits() {
    let fibre = busy().spawn(|| {
        let _exits = Exits;
        sleep(Duration::MAX).expect("it is cancelled");
    });
    fibre.fibre().cancel();
    drop(fibre.join());
}

fn launch_exits() {
    // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
    let host = unsafe { corelay::fibre::host() };
    let trustees = Trustees::dedicated(1).host(host).start().expect("a thread");
    let t = trustees.entrust(0u64);
    drop(
        t.launch(|_| {
            sleep(Duration::from_millis(1)).expect("nobody cancels it");
            exit(CODE)
        })
        .join(),
    );
}

fn leave_fibres() {
    busy();
}

fn main_exits() {
    busy();
    exit(CODE);
}

fn local_exits() {
    thread_local! {
        static KEPT: RefCell<Option<Arc<BinarySemaphore>>> = const { RefCell::new(None) };
    }
    on_fibre(|t| {
        KEPT.set(Some(Arc::new(BinarySemaphore::new(false))));
        t.apply_then(|_| std::thread::sleep(Duration::MAX), |()| ());
        exit(CODE);
    });
}
