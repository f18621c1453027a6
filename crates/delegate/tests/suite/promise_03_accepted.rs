//! Promise 3: Accepted means executed, even if the client never calls corelay again.

use crate::support::{Gate, Tally, one, scaled, start, until, watchdog};
use corelay_delegate::{ClientGuard, Trustees, barrier, poll};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The numbers of requests that a client has made when it goes away: around every multiple of a
/// batch, and each little number.
const COUNTS: [u64; 18] = [
    1, 2, 3, 4, 5, 6, 7, 8, 15, 33, 63, 64, 65, 66, 127, 128, 129, 200,
];

#[test]
fn promise_03_accepted_means_executed_though_the_client_blocks_in_read() {
    let _watch = watchdog();
    for spin in [
        Duration::ZERO,
        Duration::from_micros(100),
        Duration::from_secs(3600),
    ] {
        let trustees = start(Trustees::dedicated(1).spin(spin));
        let t = trustees.entrust(0u64);
        for _ in 0..scaled(3) {
            for count in COUNTS {
                let (mut pipe, mut other_end) = std::io::pipe().unwrap();
                let (ran, called) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
                let (seen, t, back) = (Arc::clone(&ran), t.clone(), Arc::clone(&called));
                let client = thread::spawn(move || {
                    for i in 0..count {
                        let (ran, called) = (Arc::clone(&ran), Arc::clone(&called));
                        let work = move |n: &mut u64| {
                            *n += 1;
                            ran.fetch_add(1, Ordering::Relaxed);
                        };
                        if i % 3 == 0 {
                            t.apply_then(work, move |()| {
                                called.fetch_add(1, Ordering::Relaxed);
                            });
                        } else {
                            t.post(work);
                        }
                    }
                    // For good, as far as the requests are concerned.
                    pipe.read_exact(&mut [0]).unwrap();
                });
                until(|| seen.load(Ordering::Relaxed) == count);
                other_end.write_all(&[1]).unwrap();
                client.join().unwrap();
                assert_eq!(back.load(Ordering::Relaxed), count.div_ceil(3));
            }
        }
    }
}

#[test]
fn promise_03_accepted_means_executed_though_the_client_parks() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    for count in COUNTS {
        let ran = Arc::new(AtomicU64::new(0));
        let main = thread::current();
        for i in 0..count {
            let (ran, main) = (Arc::clone(&ran), main.clone());
            t.post(move |_| {
                ran.fetch_add(1, Ordering::Relaxed);
                if i + 1 == count {
                    main.unpark();
                }
            });
        }
        while ran.load(Ordering::Relaxed) < count {
            thread::park();
        }
    }
}

#[test]
fn promise_03_accepted_means_executed_though_the_client_ends() {
    let _watch = watchdog();
    let trustees = one();
    let tally = Tally::new();
    let t = trustees.entrust(0u64);
    let mut expected = 0;
    for count in COUNTS {
        let (client, counts) = (t.clone(), tally.clone());
        thread::spawn(move || {
            for _ in 0..count {
                let token = counts.token();
                client.post(move |n| {
                    *n += 1;
                    drop(token);
                });
            }
        })
        .join()
        .unwrap();
        expected += count;
        tally.assert_all_dropped(expected);
    }
    assert_eq!(t.apply(|n| *n), expected);
}

/// A client that is busy publishes its requests together, and an idle trustee looks for those that
/// are not published. A trustee that always has something to do must look too.
#[test]
fn promise_03_a_busy_trustee_runs_what_was_not_published() {
    let _watch = watchdog();
    const ENOUGH: u64 = 20_000;
    let trustees = one();
    let t = trustees.entrust(0u64);
    for posts in (1..12).chain(90..110) {
        // The main thread keeps the trustee busy without a gap: each of its closures waits
        // until the next one has been published.
        let issued = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let ran = Arc::new(AtomicU64::new(0));
        let (begin, end) = (Gate::new(), Gate::new());
        thread::scope(|s| {
            s.spawn(|| {
                let _client = ClientGuard::new();
                t.apply(|_| ());
                begin.wait();
                for _ in 0..posts {
                    let ran = Arc::clone(&ran);
                    t.post(move |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                    });
                }
                end.wait();
            });
            let mut closures = 0;
            while ran.load(Ordering::Relaxed) < posts && closures < ENOUGH {
                closures += 1;
                let (issued_by_now, stop) = (Arc::clone(&issued), Arc::clone(&stop));
                t.post(move |_| {
                    while issued_by_now.load(Ordering::Acquire) <= closures
                        && !stop.load(Ordering::Acquire)
                    {
                        thread::yield_now();
                    }
                });
                poll(); // Publishes.
                issued.store(closures, Ordering::Release);
                if closures == 3 {
                    begin.open();
                }
                if ran.load(Ordering::Relaxed) == 0 {
                    // On one CPU the other client has to get there first.
                    thread::yield_now();
                }
            }
            let ran = ran.load(Ordering::Relaxed);
            stop.store(true, Ordering::Release);
            barrier().unwrap();
            end.open();
            assert_eq!(
                ran, posts,
                "run while {closures} closures of another client ran"
            );
        });
    }
}

#[test]
fn promise_03_only_callbacks_wait_for_their_client() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    let ran = Gate::new();
    let open = ran.clone();
    let token = tally.token();
    t.apply_then(move |_| open.open(), move |()| drop(token));
    ran.wait();
    thread::yield_now();
    assert_eq!(tally.dropped(), 0, "no call of corelay, no callback");
    barrier().unwrap();
    tally.assert_all_dropped(1);
}

/// The first stated limit: on a poisoned object the closure is dropped unrun.
#[test]
fn promise_03_a_poisoned_object_answers_without_running() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    t.post(|_| panic!("poison"));
    let ran = Arc::new(AtomicBool::new(false));
    for _ in 0..10 {
        let (ran, token) = (Arc::clone(&ran), tally.token());
        t.post(move |_| {
            ran.store(true, Ordering::Relaxed);
            drop(token);
        });
    }
    assert_eq!(barrier().unwrap_err().count(), 11);
    tally.assert_all_dropped(10);
    assert!(!ran.load(Ordering::Relaxed));
}
