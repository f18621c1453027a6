//! The promises of `Logical` under loom.
//!
//! `RUSTFLAGS="--cfg corelay_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p corelay-clock
//! --release --test loom_logical`

#![cfg(corelay_loom)]

use corelay_clock::{Clock, Logical, SkewedBuilder, Time};
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// One thread stores, draws and publishes. A reader whose time is later sees the store, whether or
/// not it sees the publication.
fn a_later_reader_sees<C: Clock + 'static>(clock: impl Fn() -> C + Sync + Send + 'static) {
    loom::model(move || {
        let shared = Arc::new((clock(), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (clock, pending, published) = &*shared;
                // Relaxed: the clock must order this.
                pending.store(1, Ordering::Relaxed);
                let time = clock.commit_time(Time::ZERO);
                // Relaxed: the clock must order this.
                published.store(time.raw(), Ordering::Relaxed);
                time
            }
        });
        let (clock, pending, _) = &*shared;
        // A first reading, so that a clock with a boundary can draw a time beyond it.
        clock.now();
        let read = clock.read_time();
        // Relaxed: the clock must order this.
        let seen = pending.load(Ordering::Relaxed);
        let written = writer.join().unwrap();
        assert!(
            seen == 1 || !clock.is_before(written, read),
            "a reader at {read:?} missed what was announced before {written:?}"
        );
    });
}

#[test]
fn a_reader_of_a_later_time_sees_what_was_announced() {
    a_later_reader_sees(Logical::new);
}

#[test]
fn a_skewed_clocks_later_reader_sees_what_was_announced() {
    a_later_reader_sees(|| {
        SkewedBuilder {
            skew: 0,
            step: 1,
            boundary: 1,
            delay: 1,
        }
        .build()
    });
}

/// Two writers of one word, each with a floor of the time that it overwrites: the later time sees
/// the earlier store, and no two times are equal.
#[test]
fn commits_are_in_one_order_and_see_each_other() {
    loom::model(|| {
        let shared = Arc::new((Logical::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let commit = |clock: &Logical, mine: &AtomicU64, other: &AtomicU64| {
            // Relaxed, both: the clock must order them.
            mine.store(1, Ordering::Relaxed);
            let time = clock.commit_time(Time::ZERO);
            (time, other.load(Ordering::Relaxed))
        };
        let writer = thread::spawn({
            let shared = Arc::clone(&shared);
            move || commit(&shared.0, &shared.1, &shared.2)
        });
        let (mine, saw_theirs) = commit(&shared.0, &shared.2, &shared.1);
        let (theirs, saw_mine) = writer.join().unwrap();
        assert_ne!(mine, theirs);
        assert!(if mine < theirs { saw_mine } else { saw_theirs } == 1);
    });
}
