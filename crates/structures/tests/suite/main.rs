//! What each structure promises, on hardware.
//!
//! `CORELAY_STRESS=10 cargo test …` runs ten times as many rounds and cases.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use proptest::test_runner::Config;

mod lockfree;
mod pool;
mod seq;

/// The factor for rounds and cases that `CORELAY_STRESS` asks for: 1 unless it is set.
fn stress() -> usize {
    std::env::var("CORELAY_STRESS").map_or(1, |times| times.parse().unwrap())
}

/// `count` random cases of a property, or as many times more as [`stress`] says.
fn cases(count: usize) -> Config {
    Config::with_cases((count * stress()) as u32)
}
