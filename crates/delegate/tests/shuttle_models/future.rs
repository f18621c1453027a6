//! Futures under shuttle: random schedules of whole programs, in which several threads make
//! requests, await, drop, and hand futures on. `channel` says how to run it.

use crate::schedules::model;
use corelay_delegate::{ApplyFuture, AsyncError, ClientGuard, Trustees, TryApplyAsyncError};
use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

/// Schedules per test, unless the environment says.
const SCHEDULES: usize = 2_000;

/// Counts drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn futures_are_awaited_dropped_and_handed_on() {
    const ASKERS: u64 = 3;
    const FUTURES: u64 = 5;
    model(SCHEDULES, || {
        let trustees = Trustees::dedicated(1).window(2).start().unwrap();
        let value = trustees.entrust(0u64);
        let drops = Arc::new(AtomicUsize::new(0));
        let handed: Arc<Mutex<Vec<(u64, ApplyFuture<_>)>>> = Arc::default();
        let askers: Vec<_> = (0..ASKERS)
            .map(|asker| {
                let (value, drops, handed) = (value.clone(), drops.clone(), handed.clone());
                thread::spawn(move || {
                    let _guard = ClientGuard::new();
                    for i in 0..FUTURES {
                        let counted = Counted(drops.clone());
                        let kind = (asker + i) % 4;
                        // Without room a future that is dropped has never run its closure.
                        let is_kept = kind == 0 || kind == 3;
                        let mut future = value.apply_async(move |n| {
                            *n += u64::from(is_kept);
                            (i, counted)
                        });
                        match kind {
                            0 => assert_eq!(block_on(future).unwrap().0, i),
                            1 => drop(future),
                            2 => {
                                let mut context = Context::from_waker(Waker::noop());
                                drop(Pin::new(&mut future).poll(&mut context));
                            }
                            _ => handed.lock().unwrap().push((i, future)),
                        }
                    }
                })
            })
            .collect();
        for asker in askers {
            asker.join().unwrap();
        }
        for (i, future) in std::mem::take(&mut *handed.lock().unwrap()) {
            assert_eq!(block_on(future).unwrap().0, i);
        }
        let all = (ASKERS * FUTURES) as usize;
        assert_eq!(drops.load(Ordering::SeqCst), all);
        let kept = (0..ASKERS).flat_map(|asker| (0..FUTURES).map(move |i| (asker + i) % 4));
        let kept = kept.filter(|kind| *kind == 0 || *kind == 3).count();
        assert_eq!(value.apply(|n| *n), kept as u64);
        drop(value);
        drop(ClientGuard::new());
        trustees.shutdown();
    });
}

#[test]
fn panics_reach_their_futures() {
    model(SCHEDULES, || {
        let trustees = Trustees::dedicated(1).window(4).start().unwrap();
        let value = trustees.entrust(0u64);
        let fine = value.apply_async(|n| *n);
        let panics = value.apply_async(|_| std::panic::resume_unwind(Box::new("on purpose")));
        let refused = value.apply_async(|n| *n);
        assert_eq!(block_on(fine).unwrap(), 0);
        let panics: Result<(), _> = block_on(panics);
        assert!(matches!(panics, Err(AsyncError::Panicked(_))));
        assert!(matches!(block_on(refused), Err(AsyncError::Poisoned)));
        corelay_delegate::barrier().unwrap();
        drop(value);
        drop(ClientGuard::new());
        trustees.shutdown();
    });
}

#[test]
fn shutdown_completes_what_was_accepted() {
    model(SCHEDULES, || {
        let trustees = Trustees::dedicated(1).window(2).start().unwrap();
        let value = trustees.entrust(0u64);
        let askers: Vec<_> = (0..2)
            .map(|_| {
                let value = value.clone();
                thread::spawn(move || {
                    let _guard = ClientGuard::new();
                    for i in 0..4 {
                        match value.try_apply_async(move |_| i) {
                            Ok(future) => assert_eq!(block_on(future).unwrap(), i),
                            Err(TryApplyAsyncError::Closed(_)) => return,
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        trustees.shutdown();
        for asker in askers {
            asker.join().unwrap();
        }
        drop(value);
        drop(ClientGuard::new());
    });
}
