//! Values whose drop panics.
//!
//! It is a test program of its own, and runs one test at a time: any thread of the process may free
//! what another has replaced, and the panic happens there.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "tl2/message.rs"]
mod message;

use corelay_txn::tl2::{Stm, TVar, Value};
use message::message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Boxed values whose drop may panic. A value that is made once and dropped twice would be freed
/// twice.
mod loud {
    use super::*;
    use std::collections::HashSet;

    /// The number of living values, and of drops that are going to panic.
    #[derive(Default)]
    pub(super) struct Watch {
        live: Mutex<HashSet<u64>>,
        next: AtomicU64,
        pub(super) loud: AtomicI64,
    }

    impl Watch {
        pub(super) fn make(self: &Arc<Self>) -> Loud {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            self.live.lock().unwrap().insert(id);
            Loud {
                id,
                by: Arc::clone(self),
            }
        }

        pub(super) fn lives(&self, id: u64) -> bool {
            self.live.lock().unwrap().contains(&id)
        }
    }

    pub(super) struct Loud {
        pub(super) id: u64,
        by: Arc<Watch>,
    }

    impl Clone for Loud {
        /// A copy of the value that does not count as a living one.
        fn clone(&self) -> Self {
            Self {
                id: self.id | SEEN,
                by: Arc::clone(&self.by),
            }
        }
    }

    pub(super) const SEEN: u64 = 1 << 63;

    impl Drop for Loud {
        fn drop(&mut self) {
            if self.id & SEEN != 0 {
                return;
            }
            let lived = self.by.live.lock().unwrap().remove(&self.id);
            if !lived {
                eprintln!("{} was dropped twice", self.id);
                std::process::abort();
            }
            if !thread::panicking() && self.by.loud.fetch_sub(1, Ordering::Relaxed) > 0 {
                std::panic::resume_unwind(Box::new("loud"));
            }
        }
    }

    impl Value for Loud {}
}

/// A failed attempt drops its writes once, even if a drop panics.
#[test]
fn a_panic_of_a_drop_drops_nothing_twice() {
    let _alone = one_at_a_time();
    let watch = Arc::new(loud::Watch::default());
    let (x, y, z) = (
        TVar::new(watch.make()),
        TVar::new(watch.make()),
        TVar::new(0_u64),
    );
    let stm: Stm = Stm::default();
    let said = message(catch_unwind(AssertUnwindSafe(|| {
        stm.atomically(|tx| {
            tx.write(&x, watch.make())?;
            tx.write(&y, watch.make())?;
            tx.read(&z)?;
            thread::scope(|s| {
                s.spawn(|| stm.atomically(|tx| tx.update(&z, |z| z + 1)));
            });
            watch.loud.store(1, Ordering::Relaxed);
            tx.update(&z, |z| z + 1)
        });
    })));
    assert_eq!((&*said, z.load()), ("loud", 1));
    assert!(watch.lives(x.load().id & !loud::SEEN));
    // The thread's log is usable again.
    stm.atomically(|tx| tx.write(&x, watch.make()));
}

/// A commit may free what other threads have replaced, and that may panic. The values that it has
/// written belong to the variables by then, or to nobody.
#[test]
fn a_panic_of_others_garbage_frees_no_held_value() {
    let _alone = one_at_a_time();
    let watch = Arc::new(loud::Watch::default());
    let x = TVar::new(watch.make());
    let stm: Stm = Stm::default();
    let mut panics = 0;
    for round in 0..20_000 {
        if round % 1_000 == 999 {
            watch.loud.store(1, Ordering::Relaxed);
        }
        let written = catch_unwind(AssertUnwindSafe(|| {
            stm.atomically(|tx| tx.write(&x, watch.make()));
        }));
        panics += u32::from(written.is_err());
        let now = x.load().id;
        assert!(now & loud::SEEN != 0 && watch.lives(now & !loud::SEEN));
    }
    assert!(panics > 0, "nothing was freed on the way");
    watch.loud.store(0, Ordering::Relaxed);
}
