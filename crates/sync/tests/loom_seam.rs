//! What waiting stands on, under loom: tokens, sleepers, futexes and the barrier, every
//! interleaving (up to the preemption bound) with every permitted stale read.
//!
//! `RUSTFLAGS="--cfg corelay_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p corelay-sync
//! --profile model --test loom_seam`
//!
//! A lost wake-up is a deadlock, which loom reports. What a wake-up is to publish lies in
//! loom's `UnsafeCell`: whoever reads it too early is reported as a race.
#![cfg(corelay_loom)]

use corelay_sync::facade::atomic::{AtomicU32, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::wait::{Sleeper, Token, wait, wait_until};
use corelay_sync::{Futex, barrier};
use loom::sync::Arc;
use loom::thread;
use std::time::Instant;

/// At most two preemptions, where `LOOM_MAX_PREEMPTIONS` does not say.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(f);
}

/// What one thread leaves for another.
struct Parcel(UnsafeCell<u32>);

// SAFETY: loom checks that no two threads are in it at once.
unsafe impl Sync for Parcel {}

impl Parcel {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    fn put(&self, value: u32) {
        // SAFETY: loom checks that nobody else is in it.
        self.0.with_mut(|parcel| unsafe { *parcel = value });
    }
    fn get(&self) -> u32 {
        // SAFETY: loom checks that nobody writes it.
        self.0.with(|parcel| unsafe { *parcel })
    }
}

#[test]
fn a_token_hands_over_what_was_done_before() {
    model(|| {
        let shared = Arc::new((Token::new(), Parcel::new()));
        let notifier = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.1.put(7);
                shared.0.notify();
            }
        });
        wait(&shared.0);
        assert_eq!(shared.1.get(), 7);
        notifier.join().unwrap();
        assert!(shared.0.is_set());
    });
}

#[test]
fn either_of_two_notifiers_wakes() {
    model(|| {
        let shared = Arc::new((Token::new(), [AtomicU32::new(0), AtomicU32::new(0)]));
        let notifiers: Vec<_> = (0..2)
            .map(|i| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // Relaxed: the token publishes it.
                    shared.1[i].store(1, Ordering::Relaxed);
                    shared.0.notify();
                })
            })
            .collect();
        wait(&shared.0);
        // Relaxed: the token has published one of them at least.
        let done = shared.1.iter().any(|d| d.load(Ordering::Relaxed) == 1);
        assert!(done, "woken by nobody");
        for notifier in notifiers {
            notifier.join().unwrap();
        }
    });
}

/// Each takes what the notifier has left, and none waits for ever.
#[test]
fn two_waiters_on_one_token_are_both_woken() {
    model(|| {
        let shared = Arc::new((Token::new(), Parcel::new()));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    wait(&shared.0);
                    assert_eq!(shared.1.get(), 7);
                })
            })
            .collect();
        shared.1.put(7);
        shared.0.notify();
        for other in others {
            other.join().unwrap();
        }
    });
}

/// The one that gives up has the other's subscription in its hands meanwhile.
#[test]
fn a_waiter_that_gives_up_does_not_forget_the_other() {
    model(|| {
        let shared = Arc::new((Token::new(), Parcel::new()));
        let gives_up = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                if wait_until(&shared.0, Instant::now()) {
                    assert_eq!(shared.1.get(), 7);
                }
            }
        });
        let notifier = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.1.put(7);
                shared.0.notify();
            }
        });
        wait(&shared.0);
        assert_eq!(shared.1.get(), 7);
        gives_up.join().unwrap();
        notifier.join().unwrap();
    });
}

#[test]
fn two_waiters_give_up_at_once() {
    model(|| {
        let token = Arc::new(Token::new());
        let other = thread::spawn({
            let token = Arc::clone(&token);
            move || wait_until(&token, Instant::now())
        });
        assert!(!wait_until(&token, Instant::now()));
        assert!(!other.join().unwrap());
    });
}

/// Also one that does not look whether the token is set.
#[test]
fn a_subscription_that_comes_too_late_sees_what_was_done_before() {
    model(|| {
        let shared = Arc::new((Token::new(), Parcel::new()));
        let notifier = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.1.put(7);
                shared.0.notify();
            }
        });
        if !shared.0.subscribe(Sleeper::current().waker()) {
            assert_eq!(shared.1.get(), 7);
        }
        notifier.join().unwrap();
    });
}

/// A token on its waiter's stack, as its notifier knows it.
struct Lent(*mut Token);

// SAFETY: the notifier uses it for `notify` only.
unsafe impl Send for Lent {}

/// The waiter leaves the token behind as soon as it is set: another one stands there then,
/// and a notifier that is not done with the old one would be seen on it.
#[test]
fn a_token_may_go_as_soon_as_it_is_set() {
    model(|| {
        let memory = Box::into_raw(Box::new(Token::new()));
        let lent = Lent(memory);
        let notifier = thread::spawn(move || {
            let lent = lent;
            // SAFETY: the waiter keeps the token until it is set.
            unsafe { &*lent.0 }.notify();
        });
        // SAFETY: alive until the end of this model.
        wait(unsafe { &*memory });
        // SAFETY: set, so nobody else knows the old token any more.
        unsafe { *memory = Token::new() };
        notifier.join().unwrap();
        // SAFETY: from the box above.
        let token = unsafe { Box::from_raw(memory) };
        assert!(!token.is_set(), "the token that came after has been set");
    });
}

#[test]
fn a_sleeper_misses_no_event() {
    model(|| {
        let event = Arc::new(AtomicU32::new(0));
        let sleeper = Sleeper::current();
        let waker = thread::spawn({
            let (event, sleeper) = (Arc::clone(&event), std::sync::Arc::clone(&sleeper));
            move || {
                // Relaxed: for the barriers to order.
                event.store(1, Ordering::Relaxed);
                sleeper.wake_if_asleep();
            }
        });
        // Relaxed: as above.
        let happened = || event.load(Ordering::Relaxed) == 1;
        while !happened() {
            sleeper.sleep(None, happened);
        }
        waker.join().unwrap();
    });
}

#[test]
fn a_sleeper_misses_neither_of_two_events() {
    model(|| {
        let events = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let sleeper = Sleeper::current();
        let wakers: Vec<_> = (0..2)
            .map(|i| {
                let (events, sleeper) = (Arc::clone(&events), std::sync::Arc::clone(&sleeper));
                thread::spawn(move || {
                    // Relaxed: for the barriers to order.
                    events[i].store(1, Ordering::Relaxed);
                    sleeper.wake_if_asleep();
                })
            })
            .collect();
        for event in events.iter() {
            // Relaxed: as above.
            let happened = || event.load(Ordering::Relaxed) == 1;
            while !happened() {
                sleeper.sleep(None, happened);
            }
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

#[test]
fn a_futex_wakes_whoever_found_the_old_value() {
    model(|| {
        let shared = Arc::new((Futex::new(0), Parcel::new()));
        let changer = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.1.put(7);
                // Release: pairs with the Acquire below.
                shared.0.word().store(1, Ordering::Release);
                shared.0.wake_one();
            }
        });
        // Acquire: pairs with the Release above.
        while shared.0.word().load(Ordering::Acquire) == 0 {
            shared.0.wait(0, None);
        }
        assert_eq!(shared.1.get(), 7);
        changer.join().unwrap();
    });
}

#[test]
fn a_futex_wakes_all() {
    model(|| {
        let futex = Arc::new(Futex::new(0));
        let sleep = |futex: &Futex| {
            // Acquire: pairs with the Release below.
            while futex.word().load(Ordering::Acquire) == 0 {
                futex.wait(0, None);
            }
        };
        let sleepers: Vec<_> = (0..2)
            .map(|_| {
                let futex = Arc::clone(&futex);
                thread::spawn(move || sleep(&futex))
            })
            .collect();
        // Release: pairs with the Acquire above.
        futex.word().store(1, Ordering::Release);
        futex.wake_all();
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    });
}

/// Store buffering: each side writes its word and reads the other's.
#[test]
fn of_the_light_and_the_heavy_side_one_sees_the_other() {
    model(|| {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let frequent = thread::spawn({
            let words = Arc::clone(&words);
            move || {
                // Relaxed, here and below: for the barriers to order.
                words[0].store(1, Ordering::Relaxed);
                barrier::light();
                words[1].load(Ordering::Relaxed)
            }
        });
        words[1].store(1, Ordering::Relaxed);
        barrier::heavy();
        let rare = words[0].load(Ordering::Relaxed);
        let frequent = frequent.join().unwrap();
        assert!(rare + frequent > 0, "both have missed the other's write");
    });
}

/// And it carries what was written before.
#[test]
fn what_the_barrier_shows_comes_with_what_was_before() {
    model(|| {
        let words = Arc::new([0; 3].map(AtomicU32::new));
        let frequent = thread::spawn({
            let words = Arc::clone(&words);
            move || {
                // Relaxed, here and below: for the barriers to order.
                words[2].store(1, Ordering::Relaxed);
                words[0].store(1, Ordering::Relaxed);
                barrier::light();
                words[1].load(Ordering::Relaxed)
            }
        });
        words[1].store(1, Ordering::Relaxed);
        barrier::heavy();
        let before = words[2].load(Ordering::Relaxed);
        if frequent.join().unwrap() == 0 {
            assert_eq!(
                before, 1,
                "the light side came first, and its write is missing"
            );
        }
    });
}
