//! The primitives of waiting under loom: tokens, sleepers, futexes and the barrier, every
//! interleaving (up to the preemption bound) with every permitted stale read.
//!
//! `RUSTFLAGS="--cfg corelay_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p corelay-sync --profile
//! model --test loom_seam`
//!
//! A lost wake-up is a deadlock, which loom reports. The data that a wake-up must publish lies in
//! loom's `UnsafeCell`: a thread that reads it too early is reported as a race.

use corelay_sync::facade::atomic::{AtomicU32, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::wait::{Sleeper, Token, wait, wait_until};
use corelay_sync::{Futex, barrier};
use loom::sync::Arc;
use loom::thread;
use std::time::Instant;

/// At most two preemptions, unless `LOOM_MAX_PREEMPTIONS` says otherwise.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(f);
}

/// Data that one thread leaves for another.
struct Parcel(UnsafeCell<u32>);

// SAFETY: loom checks that no two threads access it at once.
unsafe impl Sync for Parcel {}

impl Parcel {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    fn put(&self, value: u32) {
        // SAFETY: loom checks that no other thread accesses it.
        self.0.with_mut(|parcel| unsafe { *parcel = value });
    }
    fn get(&self) -> u32 {
        // SAFETY: loom checks that no thread writes it.
        self.0.with(|parcel| unsafe { *parcel })
    }
}

#[test]
fn a_set_token_publishes_earlier_writes() {
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

/// The waiter that gives up holds the other's subscription meanwhile.
#[test]
fn a_waiter_that_gives_up_keeps_the_others_subscribed() {
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

/// Also a subscriber that does not check whether the token is set.
#[test]
fn a_late_subscription_sees_earlier_writes() {
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

/// The notifier's pointer to a token on its waiter's stack.
struct Lent(*mut Token);

// SAFETY: the notifier only calls `notify` on it.
unsafe impl Send for Lent {}

/// The waiter overwrites the token with another one as soon as it is set. A notifier that still
/// touches the old one would be seen on the new one.
#[test]
fn a_token_may_be_freed_once_it_is_set() {
    model(|| {
        let memory = Box::into_raw(Box::new(Token::new()));
        let lent = Lent(memory);
        let notifier = thread::spawn(move || {
            let lent = lent;
            // SAFETY: the waiter keeps the token until it is set.
            unsafe { &*lent.0 }.notify();
        });
        // SAFETY: it is freed only at the end of this model.
        wait(unsafe { &*memory });
        // SAFETY: the old token is set, so no other thread uses it any more.
        unsafe { *memory = Token::new() };
        notifier.join().unwrap();
        // SAFETY: it comes from the box above, and no other thread uses it any more.
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
                // Relaxed: the barriers order it.
                event.store(1, Ordering::Relaxed);
                sleeper.wake_if_asleep();
            }
        });
        // Relaxed: the barriers order it.
        let happened = || event.load(Ordering::Relaxed) == 1;
        while !happened() {
            sleeper.sleep(None, happened);
        }
        waker.join().unwrap();
    });
}

/// Makes each event happen on a thread of its own, which then wakes the sleeper.
fn wake_by_each(
    events: &Arc<[AtomicU32; 2]>,
    sleeper: &std::sync::Arc<Sleeper>,
) -> Vec<thread::JoinHandle<()>> {
    let waker = |i: usize| {
        let (events, sleeper) = (Arc::clone(events), std::sync::Arc::clone(sleeper));
        thread::spawn(move || {
            // Relaxed: the barriers order it.
            events[i].store(1, Ordering::Relaxed);
            sleeper.wake_if_asleep();
        })
    };
    (0..2).map(waker).collect()
}

#[test]
fn a_sleeper_misses_neither_of_two_events() {
    model(|| {
        let events = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let sleeper = Sleeper::current();
        let wakers = wake_by_each(&events, &sleeper);
        for event in events.iter() {
            // Relaxed: the barriers order it.
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

/// A thread that sleeps in an event loop, where the alarm wakes it. Each ring is taken, so that it
/// does not wake the thread again and again.
#[test]
fn a_sleeper_in_an_event_loop_misses_no_event() {
    model(|| {
        let events = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let sleeper = Sleeper::current();
        let wakers = wake_by_each(&events, &sleeper);
        for event in events.iter() {
            // Relaxed: the barriers order it.
            let happened = || event.load(Ordering::Relaxed) == 1;
            while !happened() {
                if sleeper.begin_sleep(happened).unwrap() {
                    sleeper.wait_in_loop();
                    sleeper.end_sleep();
                }
            }
        }
        for waker in wakers {
            waker.join().unwrap();
        }
        // The next wait would find a ring that nobody has taken.
        if sleeper.begin_sleep(|| false).unwrap() {
            sleeper.end_sleep();
        }
        assert!(!sleeper.has_rung());
    });
}

/// A thread that is about to sleep in its event loop sleeps for something else before. Whoever wakes
/// it from that does not ring for the other event.
#[test]
fn a_sleep_on_the_way_to_the_event_loop_rings() {
    model(|| {
        let event = Arc::new(AtomicU32::new(0));
        let sleeper = Sleeper::current();
        assert!(sleeper.begin_sleep(|| false).unwrap());
        let waker = thread::spawn({
            let (event, sleeper) = (Arc::clone(&event), std::sync::Arc::clone(&sleeper));
            move || {
                // Relaxed: the barriers order it.
                event.store(1, Ordering::Relaxed);
                sleeper.wake_if_asleep();
            }
        });
        // Relaxed: the barriers order it.
        sleeper.sleep(None, || event.load(Ordering::Relaxed) == 1);
        sleeper.wait_in_loop();
        sleeper.end_sleep();
        waker.join().unwrap();
        assert!(!sleeper.has_rung());
    });
}

#[test]
fn a_futex_wakes_a_waiter_that_found_the_old_value() {
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
fn the_light_or_the_heavy_side_sees_the_other() {
    model(|| {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let frequent = thread::spawn({
            let words = Arc::clone(&words);
            move || {
                // Relaxed, here and below: the barriers order it.
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

/// The barrier also carries what was written before.
#[test]
fn the_barrier_carries_earlier_writes() {
    model(|| {
        let words = Arc::new([0; 3].map(AtomicU32::new));
        let frequent = thread::spawn({
            let words = Arc::clone(&words);
            move || {
                // Relaxed, here and below: the barriers order it.
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
