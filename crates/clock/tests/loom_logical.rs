//! The promises of `Logical` under loom.
//!
//! `RUSTFLAGS="--cfg corelay_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p corelay-clock
//! --release --test loom_logical`

#![cfg(corelay_loom)]

use corelay_clock::{Clock, Logical, SkewedBuilder, Time};
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// Stored, drawn, published; a reader whose time is later sees what was stored, whether or not it
/// sees what was published.
fn a_later_reader_sees<C: Clock + 'static>(clock: impl Fn() -> C + Sync + Send + 'static) {
    loom::model(move || {
        let shared = Arc::new((clock(), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (clock, pending, published) = &*shared;
                // Relaxed: it is for the clock to order this.
                pending.store(1, Ordering::Relaxed);
                let time = clock.commit_time(Time::ZERO);
                // Relaxed: as above.
                published.store(time.raw(), Ordering::Relaxed);
                time
            }
        });
        let (clock, pending, _) = &*shared;
        // So that by a clock with a boundary there can be a time beyond it.
        clock.now();
        let read = clock.read_time();
        // Relaxed: as above.
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
fn so_it_does_by_a_skewed_clock() {
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

/// Two writers of one word, each beyond what it overwrites: the later time sees the earlier
/// store, and no two times are equal.
#[test]
fn commits_are_in_one_order_and_see_each_other() {
    loom::model(|| {
        let shared = Arc::new((Logical::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let commit = |clock: &Logical, mine: &AtomicU64, other: &AtomicU64| {
            // Relaxed, both: it is for the clock to order them.
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
