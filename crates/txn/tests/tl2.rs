//! The promises of transactions on threads and fibres, under each clock.
//!
//! `CORELAY_STRESS=100 cargo test …` reads a hundred times as often.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "tl2/alternatives.rs"]
mod alternatives;
#[path = "tl2/memory.rs"]
mod memory;
#[path = "tl2/message.rs"]
mod message;
#[path = "tl2/panics.rs"]
mod panics;
#[path = "tl2/progress.rs"]
mod progress;
#[path = "../../fibre/tests/promise/mod.rs"]
mod promise;
#[path = "tl2/sleep.rs"]
mod sleep;
#[path = "tl2/snapshots.rs"]
mod snapshots;

use corelay_clock::{Skewed, SkewedBuilder};
use message::message;

/// `n` times the factor in `CORELAY_STRESS` (1 unless set).
fn scaled(n: u64) -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((n as f64 * factor) as u64).max(1)
}

fn skewed(skew: u64, boundary: u64, delay: u64) -> Skewed {
    SkewedBuilder {
        skew,
        step: 2,
        boundary,
        delay,
    }
    .build()
}
