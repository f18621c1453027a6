//! Delegation from fibres. The two crates know each other only here, where both meet.

use crate::promise;
use corelay::fibre::{
    Cancelled, Cluster, Interrupted, JoinHandle, State, is_cancelled, sleep, yield_now,
};
use corelay::{Poisoned, Trust, Trustees, TryApplyError, barrier, poll};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

fn trustees(window: usize) -> Trustees {
    let builder = Trustees::dedicated(1).window(window);
    builder.start().expect("there are threads")
}

fn cluster(processors: usize) -> Cluster {
    promise::cluster(processors)
}

/// Starts `f` in a fibre, which may migrate or may not.
pub(crate) fn spawn<R: Send + 'static>(
    cluster: &Cluster,
    is_migrating: bool,
    f: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let mut builder = cluster.fibre();
    if is_migrating {
        // SAFETY: the tests that ask for a migrating fibre hold nothing over a wait that must stay
        // on its thread.
        builder = unsafe { builder.migrating() };
    }
    builder.spawn(f).expect("there is memory")
}

/// Keeps the trustee of `trust` busy until the sender is dropped or sends.
fn keep_busy(trust: &Trust<u64>) -> mpsc::Sender<()> {
    let (go_on, wait) = mpsc::channel();
    trust.post(move |_| {
        let _ = wait.recv();
    });
    go_on
}

#[test]
fn fibres_call_and_borrow() {
    for (is_migrating, processors) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        let trustees = trustees(256);
        let sum = trustees.entrust(0u64);
        let cluster = cluster(processors);
        let fibres: Vec<_> = (0..64u64)
            .map(|i| {
                let sum = sum.clone();
                spawn(&cluster, is_migrating, move || {
                    let mut mine = 0;
                    for k in 0..200 {
                        let (by, mine) = (i + k, &mut mine);
                        sum.apply(|sum| {
                            *sum += by;
                            *mine += by;
                        });
                    }
                    mine
                })
            })
            .collect();
        let mine: u64 = fibres.into_iter().map(|fibre| fibre.join().unwrap()).sum();
        assert_eq!(sum.apply(|sum| *sum), mine);
    }
}

#[test]
fn others_run_while_a_fibre_waits_for_its_answer() {
    let trustees = trustees(256);
    let value = trustees.entrust(0u64);
    let cluster = cluster(1);
    let go_on = keep_busy(&value);
    let asked = Arc::new(AtomicBool::new(false));
    let (theirs, value2) = (Arc::clone(&asked), value.clone());
    let waits = cluster.spawn(move || {
        theirs.store(true, Ordering::Release);
        value2.apply(|value| *value)
    });
    // There is one processor, so this runs only when the first fibre has been suspended.
    let runs = cluster.spawn(move || {
        while !asked.load(Ordering::Acquire) {
            yield_now();
        }
        drop(go_on);
    });
    runs.join().unwrap();
    assert_eq!(waits.join().unwrap(), 0);
    poll();
}

#[test]
fn large_captures_and_results_stay_in_the_frame() {
    let trustees = trustees(256);
    let value = trustees.entrust(1u64);
    let cluster = cluster(1);
    let alive = Arc::new(());
    let fibres: Vec<_> = (0..20u64)
        .map(|i| {
            let (value, alive) = (value.clone(), Arc::clone(&alive));
            cluster.spawn(move || {
                let words = [i; 60];
                let (back, kept) = value.apply(move |value| {
                    *value += 1;
                    (words.map(|word| word + 1), alive)
                });
                drop(kept);
                assert_eq!(back, [i + 1; 60]);
                // Closures with no captures, and with one that is aligned to more than a word.
                value.apply(|_| ());
                #[repr(align(32))]
                struct Wide(u8);
                let wide = Wide(7);
                assert_eq!(value.apply(move |_| Wide(wide.0 + 1)).0, 8);
            })
        })
        .collect();
    fibres.into_iter().for_each(|fibre| fibre.join().unwrap());
    assert_eq!(
        Arc::strong_count(&alive),
        1,
        "each closure was dropped once"
    );
    assert_eq!(value.apply(|value| *value), 21);
}

#[test]
fn a_panic_reaches_its_fibre_and_poisons() {
    let trustees = trustees(256);
    let value = trustees.entrust(0u64);
    let cluster = cluster(1);
    let alive = Arc::new(());
    for is_large in [false, true] {
        let theirs = Arc::clone(&alive);
        let other = value.clone();
        let fibre = cluster.spawn(move || {
            if is_large {
                let words = [1u64; 60];
                value_of_panic(&other, move || drop((theirs, words)));
            } else {
                value_of_panic(&other, move || drop(theirs));
            }
            // Requests are refused from now on, and the closure is dropped.
            match other.try_apply(|value| *value) {
                Err(TryApplyError::Poisoned) => {}
                other => panic!("{other:?}"),
            }
            let text = catch_unwind(AssertUnwindSafe(|| other.apply(|value| *value)));
            assert_eq!(
                *text.unwrap_err().downcast::<String>().unwrap(),
                Poisoned.to_string()
            );
            other.clear_poison();
            assert_eq!(other.apply(|value| *value), 0);
            // Nobody catches this panic.
            other.apply(|_| panic!("to its join"))
        });
        let payload = fibre.join().unwrap_err();
        assert_eq!(*payload.downcast::<&str>().unwrap(), "to its join");
        value.clear_poison();
    }
    assert_eq!(Arc::strong_count(&alive), 1);
    // A panic that its call has reported is not reported by a barrier.
    assert!(cluster.spawn(|| barrier().is_ok()).join().unwrap());
}

fn value_of_panic(value: &Trust<u64>, then: impl FnOnce() + Send) {
    let payload = catch_unwind(AssertUnwindSafe(|| {
        value.apply(|_| {
            then();
            panic!("inside")
        })
    }));
    assert_eq!(*payload.unwrap_err().downcast::<&str>().unwrap(), "inside");
}

#[test]
fn promise_02_a_cancelled_fibre_stays_in_its_call() {
    for is_migrating in [false, true] {
        let trustees = trustees(256);
        let value = trustees.entrust(0u64);
        let cluster = cluster(1);
        let go_on = keep_busy(&value);
        let (tell, told) = mpsc::channel();
        let theirs = value.clone();
        let fibre = spawn(&cluster, is_migrating, move || {
            let mut borrowed = 0;
            tell.send(()).unwrap();
            theirs.apply(|value| {
                *value += 1;
                borrowed = *value;
            });
            // The fibre has waited for the answer, and learns of the cancellation at its next wait.
            assert!(is_cancelled());
            assert_eq!(borrowed, 1);
            assert_eq!(
                sleep(Duration::from_secs(1000)),
                Err(Interrupted::Cancelled)
            );
            // Calls still work now.
            assert_eq!(theirs.apply(|value| *value), 1);
            corelay::fibre::park();
            unreachable!("a park unwinds");
        });
        told.recv().unwrap();
        // The processor has switched away from the fibre when it runs another.
        cluster.spawn(|| ()).join().unwrap();
        fibre.fibre().cancel();
        assert!(!fibre.is_finished());
        let seat = &cluster.dump().fibres[0];
        let State::Waiting { call, at, .. } = seat.state else {
            panic!("{seat:?}");
        };
        assert_eq!((call, at.file()), ("a delegated call", file!()));
        drop(go_on);
        let payload = fibre.join().map(|()| "ended").unwrap_err();
        assert!(payload.is::<Cancelled>());
    }
}

#[test]
fn callbacks_do_not_switch() {
    let trustees = trustees(8);
    let value = trustees.entrust(0u64);
    let cluster = cluster(1);
    static INSIDE: AtomicBool = AtomicBool::new(false);
    let ran = Arc::new(AtomicU64::new(0));
    let fibres: Vec<_> = (0..32u64)
        .map(|i| {
            let (value, ran) = (value.clone(), Arc::clone(&ran));
            cluster.spawn(move || {
                for _ in 0..50 {
                    assert!(!INSIDE.load(Ordering::Relaxed), "a callback was left");
                    let (inner, ran) = (value.clone(), Arc::clone(&ran));
                    value.apply_then(
                        |value| *value += 1,
                        move |()| {
                            assert!(!INSIDE.swap(true, Ordering::Relaxed));
                            // A wait in here blocks the thread.
                            inner.apply(|value| *value += 1);
                            yield_now();
                            ran.fetch_add(1, Ordering::Relaxed);
                            INSIDE.store(false, Ordering::Relaxed);
                        },
                    );
                    value.apply(|value| *value += 1);
                    if i % 8 == 0 {
                        value.post(|value| *value += 1);
                        assert!(barrier().is_ok());
                    }
                }
            })
        })
        .collect();
    fibres.into_iter().for_each(|fibre| fibre.join().unwrap());
    cluster.spawn(|| barrier().unwrap()).join().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 32 * 50);
    assert_eq!(value.apply(|value| *value), 32 * 50 * 3 + 4 * 50);
}

#[test]
fn a_fibres_callbacks_run_on_its_thread_whoever_reaps() {
    let trustees = trustees(256);
    let value = trustees.entrust(0u64);
    let cluster = cluster(1);
    let theirs = value.clone();
    // A fibre that stays may hold what is not Send, and so may its callbacks.
    let fibre = cluster.spawn(move || {
        let seen = Rc::new(Cell::new(0));
        let note = Rc::clone(&seen);
        theirs.apply_then(|value| *value + 1, move |n| note.set(n));
        while seen.get() == 0 {
            yield_now();
        }
        seen.get()
    });
    let other = cluster.spawn(move || (0..100).map(|_| value.apply(|value| *value)).sum::<u64>());
    assert_eq!(fibre.join().unwrap(), 1);
    assert_eq!(other.join().unwrap(), 0);
}

#[test]
fn more_fibres_than_the_window_holds() {
    for window in [1, 2, 7] {
        let trustees = trustees(window);
        let value = trustees.entrust(0u64);
        let cluster = cluster(1);
        let fibres: Vec<_> = (0..100)
            .map(|_| {
                let value = value.clone();
                cluster.spawn(move || (0..20).for_each(|_| value.apply(|value| *value += 1)))
            })
            .collect();
        fibres.into_iter().for_each(|fibre| fibre.join().unwrap());
        assert_eq!(value.apply(|value| *value), 2000);
    }
}

#[test]
fn a_cluster_ends_behind_its_requests() {
    let trustees = trustees(256);
    let value = trustees.entrust(0u64);
    let go_on = keep_busy(&value);
    let cluster = cluster(2);
    let done = Arc::new(AtomicU64::new(0));
    for _ in 0..40 {
        let (value, done) = (value.clone(), Arc::clone(&done));
        // Nobody joins these fibres.
        drop(cluster.spawn(move || {
            value.post(|value| *value += 1);
            value.apply(|value| *value += 1);
            let after = Arc::clone(&done);
            value.apply_then(
                |value| *value += 1,
                move |()| {
                    after.fetch_add(1, Ordering::Relaxed);
                },
            );
            done.fetch_add(1, Ordering::Relaxed);
        }));
    }
    drop(go_on);
    drop(cluster);
    // The callbacks have run, too, for the cluster's threads have ended.
    assert_eq!(done.load(Ordering::Relaxed), 80);
    assert_eq!(value.apply(|value| *value), 120);
}

#[test]
fn a_trustee_that_ends_leaves_no_fibre_behind() {
    for _ in 0..20 {
        let trustees = trustees(256);
        let value = trustees.entrust(0u64);
        let cluster = cluster(1);
        let executed = Arc::new(AtomicU64::new(0));
        let fibres: Vec<_> = (0..16)
            .map(|_| {
                let (value, executed) = (value.clone(), Arc::clone(&executed));
                cluster.spawn(move || {
                    let mut ran = 0u64;
                    loop {
                        let (by, executed) = (Box::new(1), &executed);
                        match value.try_apply(move |value| {
                            executed.fetch_add(1, Ordering::Relaxed);
                            *value += *by;
                            *by
                        }) {
                            Ok(by) => ran += by,
                            // A closure that did not run comes back.
                            Err(TryApplyError::Closed(f)) => return (ran, f(&mut 1)),
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(2));
        trustees.shutdown();
        let mut ran = 0;
        for fibre in fibres {
            let (mine, back) = fibre.join().unwrap();
            assert_eq!(back, 1);
            // A closure that came back was run by its fibre.
            ran += mine + back;
        }
        let executed = executed.load(Ordering::Relaxed);
        assert_eq!(
            ran, executed,
            "what was accepted was executed, and answered"
        );
    }
}

#[test]
fn everything_at_once() {
    let trustees = trustees(32);
    let objects: Vec<_> = (0..4).map(|_| trustees.entrust(0u64)).collect();
    let cluster = cluster(2);
    let alive = Arc::new(());
    let mut expected = 0;
    let mut fibres = Vec::new();
    for i in 0..2000usize {
        let (object, alive) = (objects[i % 4].clone(), Arc::clone(&alive));
        let fibre = spawn(&cluster, i % 2 == 0, move || {
            for k in 0..10 {
                let theirs = Arc::clone(&alive);
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    object.apply(move |value| {
                        let _theirs = theirs;
                        *value += 1;
                        assert!(k != 5 || i % 7 != 0, "now and then");
                    });
                }));
                if i % 7 == 0 {
                    object.clear_poison();
                }
                if i % 3 == 0 {
                    yield_now();
                }
            }
        });
        if i % 11 == 0 {
            fibre.fibre().cancel();
        }
        fibres.push(fibre);
        expected += 10;
    }
    for fibre in fibres {
        // A fibre that was cancelled while it yielded has ended by that, or well.
        if let Err(payload) = fibre.join() {
            assert!(payload.is::<Cancelled>());
        }
    }
    drop(cluster);
    assert_eq!(Arc::strong_count(&alive), 1, "nothing was lost");
    let ran: u64 = objects
        .iter()
        .map(|object| {
            object.clear_poison();
            object.apply(|value| *value)
        })
        .sum();
    assert!(ran <= expected && ran > 0);
}

/// A value that runs its closure when it is dropped.
pub(crate) struct InDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for InDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A call in the destructor of a fibre that unwinds: others run until the answer comes, which one
/// of them asks for, and a dump names the call.
#[test]
fn others_run_while_a_destructor_waits_for_its_answer() {
    for is_migrating in [false, true] {
        let trustees = trustees(256);
        let value = trustees.entrust(0u64);
        let cluster = cluster(1);
        let go_on = keep_busy(&value);
        let theirs = value.clone();
        let fibre = spawn(&cluster, is_migrating, move || {
            let _in_drop = InDrop(|| {
                assert!(std::thread::panicking());
                assert_eq!(theirs.apply(|value| std::mem::replace(value, 7)), 0);
                assert!(std::thread::panicking());
            });
            std::panic::resume_unwind(Box::new(3));
        });
        let (call, at) = loop {
            let dump = cluster.dump();
            if let Some(State::Waiting { call, at, .. }) = dump.fibres.first().map(|f| f.state) {
                break (call, at.file());
            }
            std::thread::yield_now();
        };
        assert_eq!((call, at), ("a delegated call", file!()));
        let other = spawn(&cluster, is_migrating, move || {
            assert!(!std::thread::panicking());
            drop(go_on);
        });
        other.join().unwrap();
        assert_eq!(fibre.join().unwrap_err().downcast_ref(), Some(&3));
        assert_eq!(value.apply(|value| *value), 7);
    }
}
