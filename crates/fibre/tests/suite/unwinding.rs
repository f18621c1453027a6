//! Destructors that wait while their fibre unwinds, by a panic or a cancellation.

use crate::common::KINDS;
use crate::promise;
use corelay_fibre::{
    Barrier, BinarySemaphore, Cancelled, Condvar, Fibre, Interrupted, JoinHandle, Mutex, RecvError,
    RecvUntilError, Semaphore, SendError, SendUntilError, channel, current, park, scope, sleep,
    yield_now,
};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::panicking;
use std::time::{Duration, Instant};

/// The ways in which a fibre ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Panic,
    Cancellation,
}

const ENDS: [End; 2] = [End::Panic, End::Cancellation];

/// A value that runs its closure when it is dropped.
struct InDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for InDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Ends the fibre that runs here, in the given way.
fn unwind(end: End) -> ! {
    match end {
        End::Panic => resume_unwind(Box::new(7)),
        End::Cancellation => {
            current().unwrap().cancel();
            park();
            unreachable!("the park unwinds")
        }
    }
}

fn assert_ended(fibre: JoinHandle<()>, end: End) {
    let payload = fibre.join().unwrap_err();
    match end {
        End::Panic => assert_eq!(payload.downcast_ref(), Some(&7)),
        End::Cancellation => assert!(payload.is::<Cancelled>()),
    }
}

/// A processor on which a destructor waits, until another fibre there wakes it.
fn attack(
    begin: impl Fn() + Send + Clone + 'static,
    in_drop: impl Fn() + Send + Clone + 'static,
    let_go: impl Fn(Fibre) + Send + Clone + 'static,
) {
    for kind in KINDS {
        for (end, processors) in ENDS.into_iter().flat_map(|end| [(end, 1), (end, 2)]) {
            let cluster = promise::cluster(processors);
            let has_begun = Arc::new(AtomicBool::new(false));
            let unwinds = Arc::new(AtomicBool::new(false));
            let helper_waits = Arc::new(BinarySemaphore::new(false));
            let helper = kind.spawn(&cluster, {
                let (has_begun, unwinds) = (has_begun.clone(), unwinds.clone());
                let (begin, let_go) = (begin.clone(), let_go.clone());
                let helper_waits = helper_waits.clone();
                move || {
                    begin();
                    has_begun.store(true, Ordering::Release);
                    helper_waits.wait();
                    while !unwinds.load(Ordering::Acquire) {
                        yield_now();
                    }
                    // The fibre that unwinds has stopped, or is about to.
                    for _ in 0..10 {
                        yield_now();
                    }
                    assert!(!panicking());
                    move |fibre| let_go(fibre)
                }
            });
            while !has_begun.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let goes_on = Arc::new(AtomicBool::new(false));
            let fibre = kind.spawn(&cluster, {
                let (in_drop, unwinds, goes_on) =
                    (in_drop.clone(), unwinds.clone(), goes_on.clone());
                move || {
                    let _in_drop = InDrop(|| {
                        assert!(panicking());
                        unwinds.store(true, Ordering::Release);
                        in_drop();
                        assert!(panicking());
                        goes_on.store(true, Ordering::Release);
                    });
                    helper_waits.post();
                    unwind(end);
                }
            });
            let waiting = fibre.fibre().clone();
            let last = kind.spawn(&cluster, move || helper.join().unwrap()(waiting));
            last.join().unwrap();
            assert_ended(fibre, end);
            assert!(
                goes_on.load(Ordering::Acquire),
                "{kind:?} {end:?} {processors}"
            );
            // No processor keeps anything of the panic.
            for _ in 0..2 * processors {
                kind.spawn(&cluster, || assert!(!panicking()))
                    .join()
                    .unwrap();
            }
        }
    }
}

#[test]
fn a_mutex_that_another_fibre_of_the_processor_holds() {
    let mutex = Arc::new(Mutex::new(0));
    let held = Arc::new(Semaphore::new(0));
    let free = Arc::new(Semaphore::new(0));
    let (holder, waiter) = (mutex.clone(), mutex);
    let (is_held, is_freed) = (held.clone(), free.clone());
    attack(
        move || {
            let (mutex, held, free) = (holder.clone(), held.clone(), free.clone());
            drop(corelay_fibre::spawn(move || {
                let _guard = mutex.lock();
                held.release();
                free.acquire();
            }));
            is_held.acquire();
        },
        move || *waiter.lock() += 1,
        move |_| is_freed.release(),
    );
}

#[test]
fn a_semaphore() {
    let permits = Arc::new(Semaphore::new(0));
    let (waiter, other) = (permits.clone(), permits);
    attack(|| (), move || waiter.acquire(), move |_| other.release());
}

#[test]
fn a_binary_semaphore() {
    let post = Arc::new(BinarySemaphore::new(false));
    let (waiter, other) = (post.clone(), post);
    attack(|| (), move || waiter.wait(), move |_| other.post());
}

#[test]
fn a_barrier() {
    let barrier = Arc::new(Barrier::new(2));
    let (waiter, other) = (barrier.clone(), barrier);
    attack(
        || (),
        move || {
            waiter.wait();
        },
        move |_| {
            other.wait();
        },
    );
}

#[test]
fn a_condition() {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let (waiter, other) = (shared.clone(), shared);
    attack(
        || (),
        move || *waiter.1.wait_while(waiter.0.lock(), |is_set| !*is_set) = false,
        move |_| {
            *other.0.lock() = true;
            other.1.notify_all();
        },
    );
}

#[test]
fn a_park() {
    let is_set = Arc::new(AtomicBool::new(false));
    let (waiter, other) = (is_set.clone(), is_set);
    attack(
        || (),
        move || {
            while !waiter.swap(false, Ordering::AcqRel) {
                park();
            }
        },
        move |fibre| {
            other.store(true, Ordering::Release);
            fibre.unpark();
        },
    );
}

#[test]
fn a_yield() {
    let is_set = Arc::new(AtomicBool::new(false));
    let (waiter, other) = (is_set.clone(), is_set);
    attack(
        || (),
        move || {
            while !waiter.swap(false, Ordering::AcqRel) {
                yield_now();
            }
        },
        move |_| other.store(true, Ordering::Release),
    );
}

#[test]
fn a_join_and_a_scope() {
    let permits = Arc::new(Semaphore::new(0));
    let (waiter, other) = (permits.clone(), permits);
    attack(
        || (),
        move || {
            let (first, second) = (waiter.clone(), waiter.clone());
            corelay_fibre::spawn(move || first.acquire())
                .join()
                .unwrap();
            scope(|s| drop(s.spawn(move || second.acquire())));
        },
        move |_| other.release_many(2),
    );
}

#[test]
fn a_token_of_the_seam() {
    use corelay_sync::wait::{Token, wait};
    let token = Arc::new(std::sync::Mutex::new(Arc::new(Token::new())));
    let (waiter, other) = (token.clone(), token);
    attack(
        || (),
        move || {
            let token = waiter.lock().unwrap().clone();
            wait(&token);
            *waiter.lock().unwrap() = Arc::new(Token::new());
        },
        move |_| other.lock().unwrap().notify(),
    );
}

/// A call that has an error for unwinding does not wait.
#[test]
fn calls_with_an_error_return_it() {
    for kind in KINDS {
        for end in ENDS {
            let cluster = promise::cluster(1);
            let told = Arc::new(AtomicU32::new(0));
            let fibre = kind.spawn(&cluster, {
                let told = told.clone();
                move || {
                    let (sender, _receiver) = channel(1);
                    sender.send("first").unwrap();
                    let (_empty, nothing) = channel::<()>(1);
                    let mutex = Mutex::new(());
                    let _guard = mutex.lock();
                    let late = Instant::now() + Duration::from_secs(1_000);
                    let unwinding = Interrupted::Unwinding;
                    let _in_drop = InDrop(|| {
                        let interrupted = SendUntilError::Interrupted("third", unwinding);
                        assert_eq!(sender.send("second"), Err(SendError("second")));
                        assert_eq!(sender.send_until("third", late), Err(interrupted));
                        assert_eq!(nothing.recv(), Err(RecvError));
                        let interrupted = RecvUntilError::Interrupted(unwinding);
                        assert_eq!(nothing.recv_until(late), Err(interrupted));
                        assert_eq!(sleep(Duration::from_secs(1_000)), Err(unwinding));
                        assert_eq!(mutex.lock_until(late).err(), Some(unwinding));
                        assert_eq!(Semaphore::new(0).acquire_until(late), Err(unwinding));
                        assert_eq!(Barrier::new(2).wait_until(late), Err(unwinding));
                        let free = Mutex::new(());
                        let (_guard, ended) = Condvar::new().wait_until(free.lock(), late);
                        assert_eq!(ended, Err(unwinding));
                        told.fetch_add(1, Ordering::Relaxed);
                    });
                    unwind(end);
                }
            });
            assert_ended(fibre, end);
            assert_eq!(told.load(Ordering::Relaxed), 1);
        }
    }
}

/// Other fibres of the thread see no panic meanwhile: a lock that nobody has panicked under is not
/// poisoned, and one that somebody has panicked under is.
#[test]
fn other_fibres_do_not_see_the_panic() {
    let cluster = promise::cluster(1);
    let go_on = Arc::new(Semaphore::new(0));
    let fibre = cluster.spawn({
        let go_on = go_on.clone();
        move || {
            let _in_drop = InDrop(|| go_on.acquire());
            panic_any(7);
        }
    });
    let other = cluster.spawn(move || {
        let (fine, poisoned) = (std::sync::Mutex::new(1), std::sync::Mutex::new(2));
        drop(fine.lock());
        assert!(!fine.is_poisoned());
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _guard = poisoned.lock();
            panic_any(8);
        }));
        assert!(caught.is_err() && poisoned.is_poisoned() && !panicking());
        go_on.release();
    });
    other.join().unwrap();
    assert_eq!(fibre.join().unwrap_err().downcast_ref(), Some(&7));
}

/// Many destructors wait at the same time, and fibres that may migrate continue anywhere.
#[test]
fn many_at_once() {
    for kind in KINDS {
        let cluster = promise::cluster(2);
        let mutex = Arc::new(Mutex::new(0));
        let fibres: Vec<_> = (0..100)
            .map(|i| {
                let mutex = mutex.clone();
                kind.spawn(&cluster, move || {
                    let _in_drop = InDrop(|| {
                        let mut n = mutex.lock();
                        yield_now();
                        *n += 1;
                        assert!(panicking());
                    });
                    unwind(ENDS[i % 2]);
                })
            })
            .collect();
        for (i, fibre) in fibres.into_iter().enumerate() {
            assert_ended(fibre, ENDS[i % 2]);
        }
        assert_eq!(*mutex.lock(), 100);
        for _ in 0..100 {
            kind.spawn(&cluster, || assert!(!panicking()))
                .join()
                .unwrap();
        }
    }
}

/// A cancellation does not end the wait of a destructor: it would be a second panic.
#[test]
fn a_cancellation_meanwhile_changes_nothing() {
    let cluster = promise::cluster(1);
    let permits = Arc::new(Semaphore::new(0));
    let waits = Arc::new(AtomicBool::new(false));
    let fibre = cluster.spawn({
        let (permits, waits) = (permits.clone(), waits.clone());
        move || {
            let _in_drop = InDrop(|| {
                waits.store(true, Ordering::Release);
                permits.acquire();
            });
            unwind(End::Panic);
        }
    });
    while !waits.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    fibre.fibre().cancel();
    assert!(!fibre.is_finished());
    permits.release();
    assert_ended(fibre, End::Panic);
}
