//! Cancellation ends every wait.

mod common;
mod promise;

use common::{KINDS, Kind};
use corelay_fibre::{
    BinarySemaphore, Cancelled, Cluster, Interrupted, JoinHandle, Semaphore, current, is_cancelled,
    park, sleep, yield_now,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(1_000);

/// Fibres that wait in every way there is.
fn waiters(kind: Kind, cluster: &Cluster, permits: &Arc<Semaphore>) -> Vec<JoinHandle<()>> {
    let (first, second) = (permits.clone(), permits.clone());
    let sitter = kind.spawn(cluster, park);
    vec![
        kind.spawn(cluster, park),
        kind.spawn(cluster, || BinarySemaphore::new(false).wait()),
        kind.spawn(cluster, move || first.acquire()),
        kind.spawn(cluster, move || {
            let why = second.acquire_until(Instant::now() + LONG).unwrap_err();
            assert_eq!(why, Interrupted::Cancelled);
            park();
        }),
        kind.spawn(cluster, || {
            assert_eq!(sleep(LONG), Err(Interrupted::Cancelled));
            assert!(is_cancelled());
            // Every wait from now on.
            assert_eq!(sleep(LONG), Err(Interrupted::Cancelled));
            park();
        }),
        kind.spawn(cluster, move || {
            // One that waits for another; which is let go.
            struct Cancel(corelay_fibre::Fibre);
            impl Drop for Cancel {
                fn drop(&mut self) {
                    self.0.cancel();
                }
            }
            let _cancel = Cancel(sitter.fibre().clone());
            let _ = sitter.join();
        }),
    ]
}

#[test]
fn a_wait_of_any_kind_ends() {
    for kind in KINDS {
        let cluster = promise::cluster(2);
        let permits = Arc::new(Semaphore::new(0));
        for round in 0..100 {
            let waiters = waiters(kind, &cluster, &permits);
            for waiter in &waiters {
                // At once, while they begin, or when they wait.
                if round % 2 == 0 {
                    std::thread::yield_now();
                }
                waiter.fibre().cancel();
            }
            for waiter in waiters {
                assert!(waiter.join().unwrap_err().is::<Cancelled>());
            }
            // No waiter is left that would take it.
            permits.release();
            assert!(permits.try_acquire());
        }
    }
}

/// A time that no clock can say is waited for, too.
#[test]
fn a_sleep_without_an_end() {
    let cluster = promise::cluster(1);
    let sleeper = cluster.spawn(|| sleep(Duration::MAX));
    for _ in 0..10 {
        std::thread::yield_now();
    }
    sleeper.fibre().cancel();
    assert_eq!(sleeper.join().unwrap(), Err(Interrupted::Cancelled));
}

#[test]
fn one_that_does_not_wait_goes_on() {
    let cluster = promise::cluster(1);
    let busy = cluster.spawn(|| {
        current().unwrap().cancel();
        for _ in 0..10 {
            yield_now();
        }
        assert!(is_cancelled());
        7
    });
    let fibre = busy.fibre().clone();
    assert_eq!(busy.join().unwrap(), 7);
    // After its end it is nothing.
    fibre.cancel();
    fibre.unpark();
}
