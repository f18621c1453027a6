//! Closures that wait on their trustee: on a toy scheduler of coroutines.

use crate::support::{Gate, Tally, panic_of, start, text_of, until, watchdog};
use crate::toy;
use corelay_delegate::{
    AsyncError, Builder, CircularWait, ClientGuard, Poisoned, Trust, Trustees, TryApplyError,
    TryLaunchError, barrier, poll,
};
use corelay_sync::{Issue, Session, Shared};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

fn hosted(n: usize) -> Builder {
    Trustees::dedicated(n).host(toy::host)
}

/// A launched closure waits until it is opened, others run meanwhile.
#[derive(Clone)]
struct Door(Trust<bool>);

impl Door {
    fn new(trustees: &Trustees) -> Self {
        Self(trustees.entrust_on(trustees.len() - 1, false))
    }

    fn open(&self) {
        self.0.apply(|open| *open = true);
    }

    /// In a launched closure.
    fn wait(&self) {
        while !self.0.apply(|open| *open) {}
    }
}

#[test]
fn a_closure_waits_and_others_are_served() {
    let _watch = watchdog();
    for n in [1, 2] {
        let trustees = start(hosted(n));
        let (a, b) = (trustees.entrust_on(0, 1u64), trustees.entrust_on(0, 10u64));
        let door = Door::new(&trustees);
        let theirs = door.clone();
        let launch = a.launch(move |a| {
            theirs.wait();
            *a += 1;
            *a
        });
        for i in 0..100 {
            assert_eq!(
                b.apply(|b| {
                    *b += 1;
                    *b
                }),
                11 + i
            );
        }
        door.open();
        assert_eq!(launch.join().unwrap(), 2);
        assert_eq!(a.apply(|a| *a), 2);
        barrier().unwrap();
    }
}
