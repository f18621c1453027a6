//! Failures of threads that end before they ask for them.

use crate::support::{Gate, OnDrop, one, start, watchdog};
use corelay_delegate::{ClientGuard, Trustees, barrier};
use std::panic::resume_unwind;

#[test]
fn failures_of_threads_that_have_ended_are_kept_for_whoever_asks() {
    let _watchdog = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let objects = [trustees.entrust_on(0, 0), trustees.entrust_on(1, 0)];
    std::thread::scope(|s| {
        for object in &objects {
            s.spawn(|| {
                let _client = ClientGuard::new();
                object.post(|_| panic!("unheard"));
                object.post(|_| ());
            });
        }
    });
    let failures = trustees.failures().unwrap_err();
    assert_eq!((failures.count(), failures.message()), (4, "unheard"));
    assert!(trustees.failures().is_ok());
    // What a barrier has reported is not kept.
    std::thread::scope(|s| {
        s.spawn(|| {
            objects[0].post(|_| ());
            assert_eq!(barrier().unwrap_err().count(), 1);
            drop(ClientGuard::new());
        });
    });
    assert!(trustees.failures().is_ok());
}

#[test]
fn a_payload_that_nobody_asks_for_is_dropped_where_it_may_call_corelay() {
    let _watchdog = watchdog();
    let others = one();
    let heard = others.entrust(0);
    for ends_first in [false, true] {
        let trustees = one();
        let object = trustees.entrust(());
        let theirs = heard.clone();
        let payload = OnDrop::new(move || theirs.post(|heard| *heard += 1));
        let (sent, go) = (Gate::new(), Gate::new());
        let (send, wait) = (sent.clone(), go.clone());
        let thread = std::thread::spawn(move || {
            object.post(move |()| resume_unwind(Box::new(payload)));
            send.open();
            wait.wait();
        });
        sent.wait();
        if ends_first {
            trustees.shutdown();
            go.open();
            thread.join().unwrap();
        } else {
            go.open();
            thread.join().unwrap();
            trustees.shutdown();
        }
    }
    assert_eq!(heard.apply(|heard| *heard), 2);
}
