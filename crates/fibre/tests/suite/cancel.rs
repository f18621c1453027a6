//! Cancellation ends every wait.

use crate::common::{KINDS, Kind};
use crate::promise;
use corelay_fibre::{
    BinarySemaphore, Cancelled, Cluster, Condvar, Fibre, Interrupted, JoinHandle, Mutex, Semaphore,
    State, current, is_cancelled, park, sleep, yield_now,
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
            // The cancellation ends every wait from now on.
            assert_eq!(sleep(LONG), Err(Interrupted::Cancelled));
            park();
        }),
        kind.spawn(cluster, move || {
            // This one waits for another fibre, which is woken then.
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
                // Cancelled at once, while they begin, or when they wait.
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

/// A sleep until a time that no clock can express can be cancelled, too.
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
fn a_fibre_that_does_not_wait_goes_on() {
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
    // After the fibre's end a cancellation does nothing.
    fibre.cancel();
    fibre.unpark();
}

/// A notified fibre waits for its mutex again, and gets it even if it is cancelled meanwhile.
#[test]
fn a_condition_that_is_cancelled_as_it_locks_again_has_the_mutex() {
    let cluster = promise::cluster(1);
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let waiter = cluster.spawn({
        let shared = shared.clone();
        move || {
            let (mut n, ended) = shared.1.wait_until(shared.0.lock(), Instant::now() + LONG);
            *n += 1;
            (*n, ended)
        }
    });
    let waits_in = |call| {
        while !matches!(cluster.dump().fibres[0].state, State::Waiting { call: c, .. } if c == call)
        {
            std::thread::yield_now();
        }
    };
    waits_in("Condvar::wait_until");
    let mut guard = shared.0.lock();
    shared.1.notify_one();
    // It goes on, finds the mutex held, and waits for it, which cannot be told apart from here.
    for _ in 0..100 {
        let before = cluster.counters().switches;
        drop(cluster.spawn(|| ()).join());
        assert!(cluster.counters().switches > before);
    }
    waiter.fibre().cancel();
    for _ in 0..100 {
        cluster.spawn(|| ()).join().unwrap();
    }
    assert!(
        !waiter.is_finished(),
        "it has a guard of a mutex that is held"
    );
    *guard += 1;
    drop(guard);
    assert_eq!(waiter.join().unwrap(), (2, Ok(())));
}

#[test]
fn many_are_cancelled_at_once() {
    for kind in KINDS {
        let cluster = promise::cluster(2);
        for round in 0..10 {
            let sitters: Vec<_> = (0..150).map(|_| kind.spawn(&cluster, park)).collect();
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            // Some of them are cancelled twice.
            let all = sitters.iter().chain(&sitters[..10]);
            Fibre::cancel_all(all.map(|sitter| sitter.fibre()));
            for sitter in sitters {
                assert!(sitter.join().unwrap_err().is::<Cancelled>());
            }
        }
        Fibre::cancel_all([]);
    }
}
