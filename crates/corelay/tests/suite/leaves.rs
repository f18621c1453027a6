//! A delegated closure may not wait for a lock of corelay either (promise 7). Locks and delegation
//! know each other only here, where both meet.

use corelay::locks::{
    Adaptive, CcSynch, Clh, DsmSynch, FlatCombining, Mcs, ParkingLot, StdMutex, Tas, Ticket, Ttas,
};
use corelay::{Session, Shared, Trustees};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The panic of `f`, as text.
#[track_caller]
fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("no panic"),
        Err(payload) => *payload.downcast().expect("the panic has a text"),
    }
}

/// Calls `f` while another thread holds the lock.
pub(crate) fn while_held<L: Shared + Sync, R>(lock: &L, f: impl FnOnce() -> R) -> R {
    let (tell, told) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    thread::scope(|s| {
        s.spawn(move || {
            lock.session().apply(move |_| {
                tell.send(()).unwrap();
                let _ = left.recv();
            });
        });
        told.recv().unwrap();
        let result = f();
        drop(leave);
        result
    })
}

/// Waiting for a lock is refused; taking a free lock is no wait.
fn refused_by<L: Shared<Value = u64> + Sync>(lock: L) {
    let trustees = Trustees::dedicated(1).start().expect("there are threads");
    let t = trustees.entrust(0u64);
    let (text, line) = while_held(&lock, || {
        t.apply(|_| {
            let line = line!() + 1;
            let text = panic_of(|| lock.session().apply(|n| *n += 1));
            (text, line)
        })
    });
    let place = format!(" at {}:{line}:", file!());
    assert!(text.starts_with("corelay: waiting for a"), "{text}");
    assert!(text.contains(&place), "{place} in {text}");
    assert!(
        text.contains("leaves::refused_by<") && text.contains("{{closure}}"),
        "what runs: {text}"
    );
    assert_eq!(t.apply(|_| lock.session().apply(|n| *n)), 0);
    // An uncaught refusal poisons the object, and the lock is free for everybody.
    let text = while_held(&lock, || {
        panic_of(|| t.apply(|_| lock.session().apply(|n| *n += 1)))
    });
    assert!(text.contains("this code may not wait"), "{text}");
    assert!(t.is_poisoned());
    t.clear_poison();
    t.apply(|_| lock.session().apply(|n| *n += 1));
    assert_eq!(lock.session().apply(|n| *n), 1);
}

#[test]
fn promise_07_waiting_for_a_lock_is_refused() {
    // A lock that waited would wait for ever; the test ends then, too.
    let (alive, over) = mpsc::channel::<()>();
    thread::spawn(move || {
        if over.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a delegated closure waits for a lock");
            std::process::abort();
        }
    });
    refused_by(StdMutex::new(0));
    refused_by(ParkingLot::new(0));
    refused_by(Tas::new(0));
    refused_by(Ttas::new(0));
    refused_by(Ticket::new(0));
    refused_by(Mcs::new(0));
    refused_by(Clh::new(0));
    refused_by(CcSynch::new(0));
    refused_by(DsmSynch::new(0));
    refused_by(FlatCombining::new(0));
    refused_by(Adaptive::new(0));
    drop(alive);
}
