//! What the adaptive lock promises beyond `Shared`: guards, poisoning, nesting, and both ways in at
//! once.

use corelay_locks::{Adaptive, AdaptiveGuard};
use corelay_sync::wait::{Sleeper, Source, on_thread, register};
use corelay_sync::{Session, Shared};
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, TryLockError};
use std::thread;
use std::time::Duration;

/// The text of the panic in `f`.
fn panic_of(f: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(f).unwrap_err();
    match panic.downcast() {
        Ok(text) => *text,
        Err(panic) => panic.downcast::<&str>().unwrap().to_string(),
    }
}

#[test]
fn it_is_made_in_a_constant_and_from_a_value() {
    static LOCK: Adaptive<u64> = Adaptive::new(3);
    assert_eq!(*LOCK.lock().unwrap(), 3);
    assert_eq!(Adaptive::from(4).into_inner().unwrap(), 4);
    assert_eq!(Adaptive::<u64>::default().into_inner().unwrap(), 0);
    let mut lock = Adaptive::new(5);
    *lock.get_mut().unwrap() += 1;
    assert_eq!(lock.into_inner().unwrap(), 6);
}

#[test]
fn a_value_may_have_no_size_of_its_own() {
    let lock: Arc<Adaptive<[u64]>> = Arc::new(Adaptive::new([1, 2, 3]));
    assert_eq!(lock.apply(|values| values.iter().sum::<u64>()), 6);
    lock.lock().unwrap()[0] = 4;
    assert_eq!(lock.lock().unwrap().len(), 3);
}

#[test]
fn it_is_shown_as_std_shows_its_mutex() {
    let lock = Adaptive::new(7);
    assert_eq!(
        format!("{lock:?}"),
        "Adaptive { data: 7, poisoned: false, .. }"
    );
    let guard = lock.lock().unwrap();
    assert_eq!(format!("{guard:?} {guard}"), "7 7");
    let text = "Adaptive { data: <locked>, poisoned: false, .. }";
    assert_eq!(format!("{lock:?}"), text);
}

/// As of `std::sync::Mutex`: a value need not be `Sync`, and a guard is as `Sync` as its value.
#[test]
fn lock_and_guard_are_shared_as_those_of_std_are() {
    fn is_send_and_sync<T: Send + Sync + ?Sized>() {}
    fn is_sync<T: Sync>() {}
    is_send_and_sync::<Adaptive<Cell<u64>>>();
    is_send_and_sync::<Adaptive<dyn Send>>();
    is_sync::<AdaptiveGuard<'_, u64>>();
}

#[test]
fn a_forgotten_guard_keeps_the_lock() {
    let mut lock = Adaptive::new(1);
    std::mem::forget(lock.lock().unwrap());
    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)));
    assert!(panic_of(|| drop(lock.lock())).contains("has a guard of that lock"));
    *lock.get_mut().unwrap() += 1;
    assert_eq!(lock.into_inner().unwrap(), 2);
}

/// The result is dropped by the caller, after the lock has been left.
#[test]
fn a_result_may_use_the_lock_when_dropped() {
    struct Result<'a>(&'a Adaptive<u64>);
    impl Drop for Result<'_> {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let lock = Adaptive::new(0);
    let holds = Barrier::new(2);
    drop(lock.apply(|_| Result(&lock)));
    thread::scope(|s| {
        s.spawn(|| {
            let _guard = lock.lock().unwrap();
            holds.wait();
            thread::sleep(Duration::from_millis(10));
        });
        holds.wait();
        drop(lock.apply(|_| Result(&lock)));
    });
    assert_eq!(lock.into_inner().unwrap(), 2);
}

#[test]
fn try_lock_finds_it_free_or_held() {
    let lock = Adaptive::new(0);
    let guard = lock.try_lock().unwrap();
    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)));
    drop(guard);
    lock.apply(|_| assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock))));
    assert!(lock.try_lock().is_ok());
}

#[test]
fn a_guard_poisons_if_its_thread_panics() {
    let lock = Adaptive::new(0);
    let poison = || {
        let mut guard = lock.lock().unwrap();
        *guard = 1;
        resume_unwind(Box::new(()));
    };
    assert!(catch_unwind(poison).is_err());
    assert!(lock.is_poisoned());
    assert_eq!(*lock.lock().unwrap_err().into_inner(), 1);
    assert!(matches!(lock.try_lock(), Err(TryLockError::Poisoned(_))));
    assert!(panic_of(|| lock.apply(|_| unreachable!())).contains("is poisoned"));
    // A session ignores the mark, as those of all locks do.
    lock.session().apply(|n| *n += 1);
    lock.clear_poison();
    assert_eq!(lock.apply(|n| *n), 2);
}

#[test]
fn a_closure_that_panics_poisons() {
    let lock = Adaptive::new(0);
    let text = panic_of(|| lock.apply(|_| resume_unwind(Box::new(String::from("half way")))));
    assert_eq!(text, "half way");
    assert!(lock.is_poisoned() && lock.into_inner().is_err());
}

/// A destructor that runs because of another panic uses the lock: that panic is not the section's.
#[test]
fn a_guard_taken_while_the_thread_unwinds_does_not_poison() {
    struct InDrop<'a>(&'a Adaptive<u64>);
    impl Drop for InDrop<'_> {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
            self.0.apply(|n| *n += 1);
        }
    }
    let lock = Adaptive::new(0);
    let unwinds = || {
        let _in_drop = InDrop(&lock);
        resume_unwind(Box::new(()));
    };
    assert!(catch_unwind(unwinds).is_err());
    assert_eq!(lock.into_inner().unwrap(), 2);
}

#[test]
fn nesting_on_one_lock_is_refused() {
    let lock = Adaptive::new(0);
    let guard = lock.lock().unwrap();
    let line = line!() + 1;
    let text = panic_of(|| drop(lock.lock()));
    assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
    assert!(text.contains("has a guard of that lock"), "{text}");
    let text = panic_of(|| lock.apply(|n| *n += 1));
    assert!(text.contains("has a guard of that lock"), "{text}");
    drop(guard);
    let text = panic_of(|| lock.apply(|_| drop(lock.lock())));
    assert!(text.ends_with("this code may not wait"), "{text}");
    lock.clear_poison();
    assert_eq!(lock.apply(|n| *n), 0);
}

/// A guard of another thread is waited for, and not taken for one's own.
#[test]
fn a_guard_may_be_held_for_long() {
    let lock = Adaptive::new(0);
    let holds = Barrier::new(5);
    thread::scope(|s| {
        s.spawn(|| {
            let mut guard = lock.lock().unwrap();
            holds.wait();
            thread::sleep(Duration::from_millis(50));
            *guard += 1;
        });
        for by_guard in [true, false, true, false] {
            let (lock, holds) = (&lock, &holds);
            s.spawn(move || {
                holds.wait();
                if by_guard {
                    *lock.lock().unwrap() += 1;
                } else {
                    lock.apply(|n| *n += 1);
                }
            });
        }
    });
    assert_eq!(lock.into_inner().unwrap(), 5);
}

/// A closure runs on the thread that holds the lock, while its caller waits.
#[test]
fn closures_are_combined() {
    let lock = Adaptive::new(());
    let elsewhere = AtomicBool::new(false);
    let holds = Barrier::new(2);
    thread::scope(|s| {
        s.spawn(|| {
            let _guard = lock.lock().unwrap();
            holds.wait();
            thread::sleep(Duration::from_millis(50));
        });
        holds.wait();
        let caller = thread::current().id();
        let runs = lock.apply(|()| thread::current().id());
        elsewhere.store(runs != caller, Ordering::Relaxed);
    });
    assert!(elsewhere.into_inner());
}

/// A thread ends, has no [`Sleeper`] any more, and a destructor of its thread-locals waits for a guard.
#[test]
fn a_late_destructor_waits_for_a_guard() {
    struct AtExit(Arc<Adaptive<u64>>);
    impl Drop for AtExit {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    thread_local! {
        static EARLY: RefCell<Option<AtExit>> = const { RefCell::new(None) };
    }
    let lock = Arc::new(Adaptive::new(0));
    let guard = lock.lock().unwrap();
    let at_exit = AtExit(Arc::clone(&lock));
    let thread = thread::spawn(|| {
        EARLY.set(Some(at_exit));
        // The thread-local that was used last is destroyed first.
        drop(Sleeper::current());
    });
    thread::sleep(Duration::from_millis(10));
    drop(guard);
    thread.join().unwrap();
    assert_eq!(*lock.lock().unwrap(), 1);
}

/// A source with one callback, which waits for the lock.
struct Callback {
    lock: Arc<Adaptive<u64>>,
    begins: Arc<Barrier>,
    has_run: Cell<bool>,
}

impl Source for Callback {
    fn poll(&self) -> bool {
        if !self.has_run.replace(true) {
            let _blocks = on_thread();
            self.begins.wait();
            *self.lock.lock().unwrap() += 1;
        }
        false
    }
}

/// A thread that waits polls its sources, and a callback there waits for the same lock. The outer wait
/// is woken first, but goes on only after the callback has ended.
#[test]
fn a_callback_waits_for_the_lock_that_its_thread_waits_for() {
    let lock = Arc::new(Adaptive::new(0));
    let begins = Arc::new(Barrier::new(2));
    let guard = lock.lock().unwrap();
    let waiter = thread::spawn({
        let (lock, begins) = (Arc::clone(&lock), Arc::clone(&begins));
        move || {
            let callback = Rc::new(Callback {
                lock: Arc::clone(&lock),
                begins,
                has_run: Cell::new(false),
            });
            let _registration = register(&callback);
            *lock.lock().unwrap() += 1;
        }
    });
    begins.wait();
    thread::sleep(Duration::from_millis(50));
    drop(guard);
    waiter.join().unwrap();
    assert_eq!(*lock.lock().unwrap(), 2);
}

fn stress() -> u64 {
    std::env::var("CORELAY_STRESS").map_or(1, |text| text.parse().unwrap())
}

/// Both ways in, from more threads than CPUs, with sections that are left in the middle by a yield
/// now and then; some panic.
#[test]
fn guards_and_closures_at_once() {
    const THREADS: u64 = 6;
    let times = 2_000 * stress();
    let lock = Adaptive::new((false, 0_u64));
    let panics = AtomicU64::new(0);
    let add = |(inside, n): &mut (bool, u64), turn: u64| {
        assert!(!*inside, "two threads inside");
        *inside = true;
        if turn.is_multiple_of(64) {
            thread::yield_now();
        }
        *inside = false;
        *n += 1;
        if turn % 100 == 99 {
            // It unwinds without the panic hook, so nothing is printed.
            resume_unwind(Box::new(turn));
        }
    };
    thread::scope(|s| {
        for thread in 0..THREADS {
            let (lock, panics) = (&lock, &panics);
            s.spawn(move || {
                for turn in 0..times {
                    let result = catch_unwind(|| {
                        if (turn / 16 + thread).is_multiple_of(2) {
                            let guard = lock.lock();
                            let mut guard: AdaptiveGuard<'_, _> =
                                guard.unwrap_or_else(|poisoned| poisoned.into_inner());
                            add(&mut guard, turn);
                        } else {
                            lock.session().apply(|value| add(value, turn));
                        }
                    });
                    if let Err(panic) = result {
                        assert_eq!(panic.downcast_ref(), Some(&turn), "one's own");
                        panics.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (_, n) = lock.into_inner().unwrap_err().into_inner();
    assert_eq!(n, THREADS * times);
    assert_eq!(panics.into_inner(), THREADS * (times / 100));
}

/// Threads come and go; the record of a thread that has ended is in no list.
#[test]
fn threads_end_after_they_have_waited() {
    let lock = Adaptive::new(0);
    for _ in 0..100 * stress() {
        thread::scope(|s| {
            let holds = lock.lock().unwrap();
            for by_guard in [false, true, false] {
                let lock = &lock;
                s.spawn(move || {
                    if by_guard {
                        *lock.lock().unwrap() += 1;
                    } else {
                        lock.apply(|n| *n += 1);
                    }
                });
            }
            thread::yield_now();
            drop(holds);
        });
    }
    assert_eq!(lock.into_inner().unwrap(), 300 * stress());
}
