//! The adaptive lock on fibres, which it knows by the waiting seam alone.

use crate::promise;
use corelay::Trustees;
use corelay::fibre::{Cancelled, JoinHandle, State, yield_now};
use corelay::locks::Adaptive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// More fibres than processors hold guards over waits, and have closures run, beside threads.
#[test]
fn fibres_and_threads_use_one_lock() {
    for processors in [1, 2] {
        let lock = Arc::new(Adaptive::new(0));
        let cluster = promise::cluster(processors);
        let add = |lock: &Adaptive<u64>, yields: fn()| {
            for turn in 0..200 {
                if turn % 2 == 0 {
                    let mut n = lock.lock().unwrap();
                    let before = *n;
                    yields();
                    *n = before + 1;
                } else {
                    lock.apply(|n| *n += 1);
                }
            }
        };
        let fibres: Vec<JoinHandle<()>> = (0..8)
            .map(|_| {
                let lock = Arc::clone(&lock);
                cluster.spawn(move || add(&lock, yield_now))
            })
            .collect();
        thread::scope(|s| {
            s.spawn(|| add(&lock, thread::yield_now));
            s.spawn(|| add(&lock, thread::yield_now));
        });
        fibres.into_iter().for_each(|fibre| fibre.join().unwrap());
        assert_eq!(*lock.lock().unwrap(), 10 * 200);
    }
}

/// A guard of another fibre on the same thread is waited for; one's own is refused.
#[test]
fn a_fibre_knows_its_own_guard() {
    let lock = Arc::new(Adaptive::new(0));
    let cluster = promise::cluster(1);
    let fibre = || {
        let lock = Arc::clone(&lock);
        cluster.spawn(move || {
            let mut n = lock.lock().unwrap();
            yield_now();
            let nested = catch_unwind(AssertUnwindSafe(|| drop(lock.lock())));
            let text = nested.unwrap_err().downcast::<String>().unwrap();
            assert!(text.contains("has a guard of that lock"), "{text}");
            *n += 1;
        })
    };
    let fibres = [fibre(), fibre(), fibre()];
    fibres.into_iter().for_each(|fibre| fibre.join().unwrap());
    assert_eq!(*lock.lock().unwrap(), 3);
}

#[test]
fn a_cancelled_fibre_stops_waiting_for_a_guard() {
    let lock = Arc::new(Adaptive::new(0));
    let cluster = promise::cluster(1);
    for _ in 0..100 {
        let guard = lock.lock().unwrap();
        let waiters = [(); 3].map(|()| {
            let lock = Arc::clone(&lock);
            cluster.spawn(move || *lock.lock().unwrap() += 1)
        });
        while !waiters
            .iter()
            .all(|w| !w.is_finished() && is_waiting(&cluster))
        {
            thread::yield_now();
        }
        let [first, second, third] = waiters;
        // One gives up before the lock is left, and one at about the same time.
        first.fibre().cancel();
        assert!(first.join().unwrap_err().is::<Cancelled>());
        drop(guard);
        second.fibre().cancel();
        if let Err(why) = second.join() {
            assert!(why.is::<Cancelled>());
        }
        third.join().unwrap();
    }
    // A panic would have poisoned it: nobody has been cancelled under a guard.
    assert!((100..=200).contains(&*lock.lock().unwrap()));
}

/// Whether all fibres of the cluster wait for the lock, as its dump shows it.
fn is_waiting(cluster: &corelay::fibre::Cluster) -> bool {
    let fibres = cluster.dump().fibres;
    !fibres.is_empty()
        && fibres.iter().all(|fibre| {
            matches!(fibre.state, State::Waiting { call, .. } if call.contains("`Adaptive`"))
        })
}

/// A closure that a trustee runs may enter a free lock, and is refused a taken one.
#[test]
fn a_delegated_closure_does_not_wait_for_it() {
    let lock = Arc::new(Adaptive::new(0));
    let trustees = Trustees::dedicated(1).start().expect("there are threads");
    let value = trustees.entrust(0);
    let theirs = Arc::clone(&lock);
    value.apply(move |_| *theirs.lock().unwrap() += 1);
    let guard = lock.lock().unwrap();
    assert_eq!(*guard, 1);
    let theirs = Arc::clone(&lock);
    let refused = catch_unwind(AssertUnwindSafe(|| {
        value.apply(move |_| *theirs.lock().unwrap() += 1);
    }));
    let text = refused.unwrap_err().downcast::<String>().unwrap();
    assert!(text.ends_with("this code may not wait"), "{text}");
}

/// A thread that waits runs its callbacks, one of which waits for the same lock. If the outer wait is
/// woken first, it goes on only after the callback has ended.
#[test]
fn a_callback_waits_for_the_lock_that_its_thread_waits_for() {
    const MOMENT: Duration = Duration::from_millis(50);
    let lock = Arc::new(Adaptive::new(0));
    let trustees = Trustees::dedicated(1).start().expect("there are threads");
    let value = trustees.entrust(0);
    let guard = lock.lock().unwrap();
    let (begins, begun) = mpsc::channel();
    let waiter = thread::spawn({
        let lock = Arc::clone(&lock);
        move || {
            let theirs = Arc::clone(&lock);
            let add = move |()| {
                begins.send(()).expect("the test waits for it");
                *theirs.lock().unwrap() += 1;
            };
            value.apply_then(|_| thread::sleep(MOMENT), add);
            *lock.lock().unwrap() += 1;
        }
    });
    begun.recv().unwrap();
    thread::sleep(MOMENT);
    drop(guard);
    waiter.join().unwrap();
    assert_eq!(*lock.lock().unwrap(), 2);
}
