//! The freeing of values, and operations that take no memory.

use super::scaled;
use corelay_txn::tl2::{Stm, TVar, Value, atomically};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

/// A value that counts its living instances.
mod live {
    use super::*;

    pub(super) static LIVE: AtomicI64 = AtomicI64::new(0);

    pub(super) struct Live(pub(super) u64);
    impl Live {
        pub(super) fn new(n: u64) -> Self {
            LIVE.fetch_add(1, Ordering::Relaxed);
            Self(n)
        }
    }
    impl Clone for Live {
        fn clone(&self) -> Self {
            Self::new(self.0)
        }
    }
    impl Drop for Live {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
    impl Value for Live {}
}

#[test]
fn boxes_are_freed() {
    use live::{LIVE, Live};
    let vars: Vec<TVar<Live>> = (0..4).map(|n| TVar::new(Live::new(n))).collect();
    let most = AtomicI64::new(0);
    let each = scaled(50_000);
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                for i in 0..each as usize {
                    let caught = catch_unwind(AssertUnwindSafe(|| {
                        atomically(|tx| {
                            let n = tx.read(&vars[i % 4])?.0;
                            tx.write(&vars[(i + 1) % 4], Live::new(n))?;
                            // Written twice, and taken back.
                            tx.write(&vars[(i + 1) % 4], Live::new(n + 1))?;
                            tx.or_else(
                                |tx| {
                                    tx.write(&vars[(i + 1) % 4], Live::new(0))?;
                                    tx.retry()
                                },
                                |_| Ok(()),
                            )?;
                            if i % 1_000 == 0 {
                                std::panic::resume_unwind(Box::new("over"));
                            }
                            Ok(())
                        });
                    }));
                    assert_eq!(caught.is_err(), i % 1_000 == 0);
                    most.fetch_max(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
                }
            });
        }
    });
    let most = most.into_inner();
    // Nothing is freed while a thread that is reading a box does not run, so the bound is wide.
    assert!(
        most < each as i64 * 3 / 2,
        "{most} live at once, of {} written: they are not freed on the way",
        2 * each
    );
    drop(vars);
    for _ in 0..10_000 {
        crossbeam_epoch::pin().flush();
        if LIVE.load(Ordering::Relaxed) == 0 {
            return;
        }
        thread::yield_now();
    }
    panic!("{} were never freed", LIVE.load(Ordering::Relaxed));
}

#[test]
fn nodes_live_as_long_as_they_are_read() {
    struct Node {
        value: u64,
        next: TVar<Option<Arc<Node>>>,
    }
    let head: TVar<Option<Arc<Node>>> = TVar::new(None);
    let stm: Stm = Stm::default();
    thread::scope(|s| {
        s.spawn(|| {
            for value in 0..scaled(5_000) {
                stm.atomically(|tx| {
                    let old = tx.read(&head)?;
                    // Two nodes at most, both of one value or neighbours.
                    let next = old.map(|node| {
                        Arc::new(Node {
                            value: node.value,
                            next: TVar::new(None),
                        })
                    });
                    tx.write(
                        &head,
                        Some(Arc::new(Node {
                            value: value + 1,
                            next: TVar::new(next),
                        })),
                    )
                });
            }
        });
        for _ in 0..scaled(5_000) {
            stm.atomically(|tx| {
                let mut at = tx.read(&head)?;
                let mut last = None;
                while let Some(node) = at {
                    let node = tx.keep(node);
                    assert!(last.is_none_or(|last| last == node.value + 1));
                    last = Some(node.value);
                    at = tx.read(&node.next)?;
                }
                Ok(())
            });
        }
    });
}

/// Memory is bounded by the number of variables, not of reads.
#[test]
fn reading_one_variable_for_ever_takes_no_memory() {
    let (x, y) = (TVar::new(1_u64), TVar::new(2_u64));
    let sum = atomically(|tx| {
        let mut sum = 0;
        for _ in 0..100_000 {
            sum += tx.read(&x)? + tx.read(&y)?;
        }
        assert!(format!("{tx:?}").len() < 2_000_000);
        Ok(sum)
    });
    assert_eq!(sum, 300_000);
}
