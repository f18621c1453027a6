//! A small algorithm on a clock, under random schedules.
//!
//! `RUSTFLAGS="--cfg corelay_shuttle" cargo test -p corelay-clock --release --test shuttle_clock`

#![cfg(corelay_shuttle)]

#[path = "../../sync/tests/schedules/mod.rs"]
mod schedules;
mod versioned;

use corelay_clock::{Logical, SkewedBuilder};
use schedules::model;
use versioned::{Draws, torn};

/// A clock that is off, but by no more than it says.
const WITHIN: SkewedBuilder = SkewedBuilder {
    skew: 8,
    step: 3,
    boundary: 11,
    delay: 4,
};

/// Schedules per test, unless the environment says otherwise.
const SCHEDULES: usize = 3_000;

fn check(body: impl Fn() + Send + Sync + 'static) {
    model(SCHEDULES, body);
}

#[test]
fn an_announced_commit_is_never_seen_by_halves() {
    check(|| assert_eq!(torn(Logical::new(), Draws::AfterItHasAnnounced, 3, 2), 0));
    check(|| assert_eq!(torn(WITHIN.build(), Draws::AfterItHasAnnounced, 3, 8), 0));
}

#[test]
#[should_panic(expected = "seen by halves")]
fn a_commit_that_draws_first_is_seen_by_halves() {
    check(|| {
        let torn = torn(Logical::new(), Draws::WithoutAnnouncing, 3, 2);
        assert_eq!(torn, 0, "seen by halves");
    });
}

#[test]
#[should_panic(expected = "seen by halves")]
fn delayed_clocks_show_announced_commits_whole() {
    check(|| {
        let delayed = SkewedBuilder {
            delay: 20,
            ..WITHIN
        };
        let torn = torn(delayed.build(), Draws::WithoutAnnouncing, 3, 30);
        assert_eq!(torn, 0, "seen by halves");
    });
}

#[test]
#[should_panic(expected = "seen by halves")]
fn a_clock_that_is_off_by_more_than_it_says_is_found() {
    check(|| {
        let beyond = SkewedBuilder { skew: 60, ..WITHIN };
        let torn = torn(beyond.build(), Draws::AfterItHasAnnounced, 3, 8);
        assert_eq!(torn, 0, "seen by halves");
    });
}
