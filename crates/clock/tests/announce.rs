//! The rule on hardware: by any clock, a commit that is announced before its time is drawn is never
//! seen by halves. A commit that draws first is, and the clock for tests shows it.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod versioned;

use corelay_clock::{Logical, Ordo, SkewedBuilder};
use versioned::{Draws, torn};

const WITHIN: SkewedBuilder = SkewedBuilder {
    skew: 80,
    step: 30,
    boundary: 110,
    delay: 40,
};

/// Readers read until they see the commit.
const UNTIL_SEEN: usize = usize::MAX;

#[test]
fn an_announced_commit_is_never_seen_by_halves() {
    let ordo = Ordo::calibrate().ok();
    for _ in 0..100 {
        let rule = Draws::AfterItHasAnnounced;
        assert_eq!(torn(Logical::new(), rule, 2, UNTIL_SEEN), 0);
        assert_eq!(torn(WITHIN.build(), rule, 2, UNTIL_SEEN), 0);
        if let Some(clock) = &ordo {
            let clock = Ordo::with_boundary(corelay_clock::Clock::boundary(clock));
            assert_eq!(torn(clock, rule, 2, UNTIL_SEEN), 0);
        }
    }
}

/// Runs until a torn read is seen: a reader has to come between a draw and its publication.
#[test]
fn a_commit_that_draws_first_is_seen_by_halves() {
    let delayed = SkewedBuilder {
        delay: 2_000,
        ..WITHIN
    };
    while torn(delayed.build(), Draws::WithoutAnnouncing, 2, UNTIL_SEEN) == 0 {}
}
