//! Closures that wait on their trustee, in fibres. Delegation and fibres know each other only here,
//! where both meet.

use crate::promise;
use corelay::fibre::{self, Mutex, Semaphore, StackSize, sleep, yield_now};
use corelay::{AsyncError, CircularWait, Trust, Trustees, TryApplyError, barrier};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) fn hosted(n: usize) -> Trustees {
    // SAFETY: the tests wait nowhere inside a thread-local's initialiser, destructor or scope.
    let host = unsafe { fibre::host() };
    let builder = Trustees::dedicated(n).host(host);
    builder.start().expect("there are threads")
}

/// A launched closure sleeps; others are served, and the trustee sleeps, too, when there is nothing
/// to do.
#[test]
fn a_closure_sleeps_and_its_trustee_too() {
    let trustees = hosted(1);
    let (a, b) = (trustees.entrust(1u64), trustees.entrust(0u64));
    let nap = Duration::from_millis(300);
    let begun = Instant::now();
    let launch = a.launch(move |a| {
        sleep(nap).unwrap();
        *a += 1;
        *a
    });
    for i in 1..=1000 {
        assert_eq!(
            b.apply(|b| {
                *b += 1;
                *b
            }),
            i
        );
    }
    std::thread::sleep(nap / 2);
    let sleeps = trustees.metrics()[0].sleeps;
    assert!(
        sleeps > 0,
        "an idle trustee sleeps, whatever its closures do"
    );
    // A request wakes the trustee, while its fibre sleeps on.
    b.apply(|b| *b += 1);
    assert_eq!(launch.join().unwrap(), 2);
    assert!(begun.elapsed() >= nap);
    // The deadline passes while the trustee sleeps: its fibre wakes it.
    let launch = a.launch(move |a| {
        sleep(nap).unwrap();
        *a
    });
    assert_eq!(launch.join().unwrap(), 2);
    // The same holds for a fibre of another cluster.
    let cluster = promise::cluster(1);
    let theirs = a.clone();
    let joined = cluster.spawn(move || {
        theirs
            .launch(|a| {
                yield_now();
                *a
            })
            .join()
            .unwrap()
    });
    assert_eq!(joined.join().unwrap(), 2);
}

/// Fibre locks, channels and fibres of its own inside a launched closure.
#[test]
fn a_closure_uses_what_fibres_use() {
    let trustees = hosted(2);
    let objects: Vec<Trust<u64>> = (0..4).map(|i| trustees.entrust_on(i % 2, 0)).collect();
    let free = [trustees.entrust_on(1, 0u64), trustees.entrust_on(0, 0u64)];
    let shared = Arc::new((Mutex::new(0u64), Semaphore::new(0)));
    let launches: Vec<_> = objects
        .iter()
        .enumerate()
        .map(|(i, object)| {
            let (shared, other) = (Arc::clone(&shared), free[i % 2].clone());
            object.launch(move |mine| {
                let (lock, go) = &*shared;
                go.acquire();
                for _ in 0..50 {
                    let mut guard = lock.lock();
                    *guard += 1;
                    yield_now();
                }
                let (sender, receiver) = fibre::channel(1);
                let helper = fibre::spawn(move || {
                    for k in 0..20u64 {
                        sender.send(k).unwrap();
                    }
                    // This is a fibre, not a launched closure: it has a client for each call.
                    other.post(|n| *n += 1);
                    other.apply(|n| *n += 1);
                    7
                });
                *mine += receiver.iter().sum::<u64>();
                *mine += helper.join().unwrap();
                *mine
            })
        })
        .collect();
    for _ in 0..4 {
        shared.1.release();
    }
    for launch in launches {
        let n = launch.join().unwrap();
        assert_eq!(n, 190 + 7);
    }
    barrier().unwrap();
    assert_eq!(*shared.0.lock(), 200);
    for object in &objects {
        assert_eq!(object.apply(|n| *n), 197);
    }
    assert_eq!(free.map(|object| object.apply(|n| *n)), [4, 4]);
}

/// Each closure asks for the next one's object while it holds its own.
#[test]
fn rings_are_refused_and_named() {
    for n in 1..=3 {
        let trustees = hosted(n);
        let objects: Vec<_> = (0..3)
            .map(|i| {
                trustees
                    .entrust_on(i % n, i as u64)
                    .named(["red", "green", "blue"][i])
            })
            .collect();
        let all_begun = Arc::new(fibre::Barrier::new(3));
        let launches: Vec<_> = (0..3)
            .map(|i| {
                let (next, all_begun) = (objects[(i + 1) % 3].clone(), Arc::clone(&all_begun));
                objects[i].launch(move |_| {
                    all_begun.wait();
                    match next.try_apply(|n| *n) {
                        Err(TryApplyError::Circular(ring)) => Some(ring),
                        other => {
                            other.unwrap();
                            None
                        }
                    }
                })
            })
            .collect();
        let rings: Vec<Option<CircularWait>> = launches
            .into_iter()
            .map(|launch| launch.join().unwrap())
            .collect();
        let refused: Vec<_> = rings.iter().flatten().collect();
        assert_eq!(refused.len(), 1, "{rings:?}");
        let text = refused[0].to_string();
        for name in ["red", "green", "blue"] {
            assert!(text.contains(&format!("\"{name}\" (u64)")), "{text}");
        }
    }
    // An uncaught panic ends the closure, and reaches whoever launched it.
    let trustees = hosted(1);
    let t = trustees.entrust(0u64);
    let own = t.clone();
    match t.launch(move |_| own.apply(|n| *n)).join() {
        Err(AsyncError::Panicked(payload)) => {
            let text = payload.downcast::<String>().unwrap();
            assert!(text.contains("in a ring: u64 -> u64"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(t.is_poisoned());
}

/// Fibres of a cluster, threads and launched closures use the same objects.
#[test]
fn everything_at_once() {
    let trustees = hosted(2);
    let cluster = promise::cluster(1);
    let objects: Vec<Trust<u64>> = (0..4).map(|i| trustees.entrust_on(i % 2, 0)).collect();
    let asked = Arc::new(AtomicU64::new(0));
    let add = |asked: &AtomicU64| asked.fetch_add(1, Ordering::Relaxed);
    let fibres: Vec<_> = (0..40usize)
        .map(|i| {
            let (objects, asked) = (objects.clone(), Arc::clone(&asked));
            cluster.spawn(move || {
                for k in 0..20 {
                    let object = &objects[(i + k) % 4];
                    add(&asked);
                    if (i + k) % 5 == 0 {
                        // The request goes to an object with a larger number, so there is no ring.
                        let larger = objects.get((i + k) % 4 + 1).cloned();
                        let theirs = Arc::clone(&asked);
                        let launch = object.launch(move |n| {
                            yield_now();
                            *n += 1;
                            if let Some(larger) = larger {
                                theirs.fetch_add(1, Ordering::Relaxed);
                                larger.apply(|n| *n += 1);
                            }
                        });
                        if k % 2 == 0 {
                            launch.join().unwrap();
                        }
                    } else {
                        object.apply(|n| *n += 1);
                    }
                }
            })
        })
        .collect();
    for k in 0..200 {
        add(&asked);
        objects[k % 4].apply(|n| *n += 1);
    }
    fibres.into_iter().for_each(|fibre| fibre.join().unwrap());
    cluster.spawn(|| barrier().unwrap()).join().unwrap();
    barrier().unwrap();
    let sum: u64 = objects.iter().map(|object| object.apply(|n| *n)).sum();
    assert_eq!(sum, asked.load(Ordering::Relaxed));
}

/// A trustee is shut down while closures wait: they end first.
#[test]
fn shutdown_waits_for_closures_that_sleep() {
    let trustees = hosted(2);
    let ended = Arc::new(AtomicU64::new(0));
    for i in 0..10 {
        let t = trustees.entrust(0u64);
        let ended = Arc::clone(&ended);
        drop(t.launch(move |_| {
            sleep(Duration::from_millis(i)).unwrap();
            ended.fetch_add(1, Ordering::Relaxed);
        }));
    }
    trustees.shutdown();
    assert_eq!(ended.load(Ordering::Relaxed), 10);
}

/// The stacks of launched closures are as large as the trustee says; captures need no room there.
#[test]
fn large_captures_and_results_of_fibres_and_launches() {
    const BYTES: usize = 1 << 20;
    fn ends(bytes: &[u8; BYTES]) -> (u8, u8) {
        (bytes[0], bytes[BYTES - 1])
    }
    fn ask() {
        let usual = hosted(1);
        let t = usual.entrust([1; BYTES]);
        let captured = [2; BYTES];
        let launch = t.launch(move |own| (ends(own), ends(&captured)));
        assert_eq!(launch.join().unwrap(), ((1, 1), (2, 2)));
        // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
        let host = unsafe { fibre::host() };
        let roomy = Trustees::dedicated(1).stack_size(16 * BYTES).host(host);
        let roomy = roomy.start().expect("there are threads");
        let made = roomy.entrust(3).launch(|n| [*n; BYTES]);
        assert_eq!(ends(&made.join().unwrap()), (3, 3));
        // This runs on a fibre whose stack has room for what it asks.
        let cluster = promise::cluster(1);
        let size = StackSize::new(64 * BYTES).unwrap();
        let fibre = cluster.fibre().stack_size(size).spawn(move || {
            let captured = [4; BYTES];
            let seen = t.apply(move |own| {
                *own = captured;
                ends(own)
            });
            let result = roomy.entrust([5; BYTES]).apply(|own| *own);
            (seen, ends(&result))
        });
        assert_eq!(fibre.unwrap().join().unwrap(), ((4, 4), (5, 5)));
    }
    // The size of the asking fibre's stack does not matter.
    let thread = std::thread::Builder::new().stack_size(64 * BYTES);
    thread.spawn(ask).unwrap().join().unwrap();
}

/// A closure panics, and its destructor calls another object of its own trustee, and one of another
/// trustee: both answer, and the panic reaches the handle.
#[test]
fn a_destructor_calls_its_own_trustee_while_its_closure_unwinds() {
    struct InDrop<F: FnMut()>(F);
    impl<F: FnMut()> Drop for InDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let trustees = hosted(2);
    let object = trustees.entrust_on(0, 0u64);
    let others = [trustees.entrust_on(0, 1u64), trustees.entrust_on(1, 1u64)];
    for _ in 0..10 {
        let object = trustees.entrust_on(0, 0u64);
        let theirs = others.clone();
        let launch = object.launch(move |_| {
            let _in_drop = InDrop(|| {
                for other in &theirs {
                    other.apply(|n| *n += 1);
                }
            });
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(matches!(launch.join(), Err(AsyncError::Panicked(_))));
    }
    assert_eq!(others.map(|other| other.apply(|n| *n)), [11, 11]);
    assert_eq!(object.apply(|n| *n), 0);
}
