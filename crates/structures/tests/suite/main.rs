//! What each structure promises, on hardware.
//!
//! `CORELAY_STRESS=10 cargo test …` runs ten times as many rounds and cases.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use proptest::test_runner::Config;

#[path = "../common/fine_sets.rs"]
mod fine_sets;
#[path = "../sharded/support.rs"]
mod support;

mod fine;
mod lockfree;
mod pool;
mod published;
mod seq;

/// The factor for rounds and cases that `CORELAY_STRESS` asks for: 1 unless it is set.
fn stress() -> usize {
    std::env::var("CORELAY_STRESS").map_or(1, |times| times.parse().unwrap())
}

/// `count` random cases of a property, or as many times more as [`stress`] says.
fn cases(count: usize) -> Config {
    Config::with_cases((count * stress()) as u32)
}

/// xorshift64, Marsaglia 2003.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
