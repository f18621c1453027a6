//! Read-log-update on every clock: what sections see, what an abort leaves, what is freed.
//!
//! `CORELAY_STRESS=100 cargo test …` reads a hundred times as often.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "rlu/fibres.rs"]
mod fibres;
#[path = "rlu/histories.rs"]
mod histories;
#[path = "rlu/memory.rs"]
mod memory;
#[path = "rlu/progress.rs"]
mod progress;
#[path = "rlu/sections.rs"]
mod sections;
#[path = "rlu/snapshots.rs"]
mod snapshots;
#[path = "rlu/structures.rs"]
mod structures;

use corelay_clock::{Clock, Logical, Ordo, Skewed, SkewedBuilder};

/// `n` times what `CORELAY_STRESS` asks for (1 unless set).
fn scaled(n: u64) -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((n as f64 * factor) as u64).max(1)
}

/// Numbers without pattern; never 0.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) % n
    }
}

/// Runs a test body on every clock that must pass.
trait Body {
    fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C);
}

/// A generous boundary for a machine whose counters agree: 10 µs at 1 GHz would do too, but the
/// smaller it is the more is seen.
const TICKS: u64 = 400;

fn on_every_clock(body: &impl Body) {
    body.run("logical", Logical::new);
    if corelay_sync::counter::usable() {
        body.run("ordo", || Ordo::with_boundary(TICKS));
    }
    for (skew, step, boundary, delay) in
        [(0, 1, 0, 0), (0, 1, 0, 40), (30, 5, 35, 0), (30, 5, 35, 60)]
    {
        let with = SkewedBuilder {
            skew,
            step,
            boundary,
            delay,
        };
        body.run(&format!("{with:?}"), || skewed(with));
    }
}

fn skewed(with: SkewedBuilder) -> Skewed {
    with.build()
}
