//! The shared counter behind `ticks` under loom.
//!
//! `RUSTFLAGS="--cfg corelay_loom" LOOM_MAX_PREEMPTIONS=2 cargo test -p corelay-sync
//! --release --test loom_ticks`

#![cfg(corelay_loom)]

use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::{TickSource, ticks, ticks_source};
use loom::sync::Arc;
use loom::thread;

/// What stands before a stamp is seen by what stands behind a greater one.
#[test]
fn a_greater_stamp_sees_what_a_smaller_one_follows() {
    loom::model(|| {
        let word = Arc::new(AtomicU64::new(0));
        let writer = thread::spawn({
            let word = Arc::clone(&word);
            move || {
                // Relaxed: it is for the stamps to order this.
                word.store(1, Ordering::Relaxed);
                ticks()
            }
        });
        let begin = ticks();
        // Relaxed: as above.
        let seen = word.load(Ordering::Relaxed);
        let written = writer.join().unwrap();
        assert_ne!(written, begin);
        assert!(
            seen == 1 || begin < written,
            "stamp {begin} missed what {written} follows"
        );
    });
}

#[test]
fn models_say_that_they_use_the_shared_counter() {
    assert!(matches!(ticks_source(), TickSource::SharedCounter { .. }));
}
