//! The mutex, the condition and the barrier under loom, with threads as waiters: every interleaving of
//! the shipped source (up to the preemption bound) with every permitted stale read.
//!
//! `RUSTFLAGS="--cfg corelay_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p corelay-fibre
//! --profile model --test loom_mutex`

use corelay_fibre::{Barrier, Condvar, Mutex};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::time::Instant;

/// The value, the wait queue and its nodes are loom cells: an entry that is not ordered after the
/// last leaving is reported as a race.
fn count(threads: usize, times: usize) {
    loom::model(move || {
        let mutex = Arc::new(Mutex::new(0));
        let work = move |mutex: &Mutex<usize>| {
            for _ in 0..times {
                *mutex.lock() += 1;
            }
        };
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let mutex = Arc::clone(&mutex);
                thread::spawn(move || work(&mutex))
            })
            .collect();
        work(&mutex);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(mutex.try_lock().as_deref(), Some(&(threads * times)));
    });
}

#[test]
fn two_threads() {
    count(2, 1);
}

#[test]
fn two_threads_twice() {
    count(2, 2);
}

/// A waiter is overtaken, goes back, and is handed the mutex.
#[test]
#[ignore = "long"]
fn three_threads() {
    count(3, 1);
}

/// A waiter times out while the mutex is left: it has the mutex or has not, and the mutex is free
/// in the end.
#[test]
fn timed_out() {
    loom::model(|| {
        let mutex = Arc::new(Mutex::new(0));
        let guard = mutex.lock();
        let other = thread::spawn({
            let mutex = Arc::clone(&mutex);
            move || {
                let past = Instant::now();
                mutex.lock_until(past).map(|mut value| *value += 1).is_ok()
            }
        });
        drop(guard);
        let entered = other.join().unwrap();
        assert_eq!(mutex.try_lock().as_deref(), Some(&i32::from(entered)));
    });
}

/// A waiter is notified whenever it begins to wait.
#[test]
fn no_notification_is_lost() {
    loom::model(|| {
        let door = Arc::new((Mutex::new(false), Condvar::new()));
        let other = thread::spawn({
            let door = Arc::clone(&door);
            move || {
                *door.0.lock() = true;
                door.1.notify_one();
            }
        });
        let is_open = door.1.wait_while(door.0.lock(), |is_open| !*is_open);
        assert!(*is_open);
        drop(is_open);
        other.join().unwrap();
    });
}

/// A waiter that times out has been notified, or leaves the notification to others.
#[test]
fn notified_or_timed_out() {
    loom::model(|| {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                *shared.0.lock() += 1;
                shared.1.notify_all();
            }
        });
        let (mut guard, end) = shared.1.wait_until(shared.0.lock(), Instant::now());
        // This notification comes after the waiter's own step.
        assert!(end.is_err() || *guard == 1);
        *guard += 1;
        drop(guard);
        other.join().unwrap();
        assert_eq!(shared.0.try_lock().as_deref(), Some(&2));
    });
}

/// Two rounds: the first is over before anybody arrives for the second.
#[test]
fn a_barrier_twice() {
    loom::model(|| {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0)));
        let meet = |shared: &(Barrier, AtomicUsize)| {
            let lead = |round: usize| {
                shared.1.fetch_add(1, Ordering::Relaxed);
                let leads = shared.0.wait();
                assert!(shared.1.load(Ordering::Relaxed) >= 2 * round);
                usize::from(leads)
            };
            lead(1) + lead(2)
        };
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || meet(&shared)
        });
        let leads = meet(&shared);
        assert_eq!(leads + other.join().unwrap(), 2);
    });
}
