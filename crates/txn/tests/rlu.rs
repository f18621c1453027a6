//! Read-log-update on every clock: the snapshots of sections, the effects of an abort, and the
//! freeing of objects.
//!
//! `CORELAY_STRESS=100 cargo test …` reads a hundred times as often.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "rlu/fibres.rs"]
mod fibres;
#[path = "rlu/histories.rs"]
mod histories;
#[path = "rlu/numbers.rs"]
mod numbers;
#[path = "rlu/panics.rs"]
mod panics;
#[path = "rlu/progress.rs"]
mod progress;
#[path = "../../fibre/tests/promise/mod.rs"]
mod promise;
#[path = "rlu/sections.rs"]
mod sections;
#[path = "rlu/snapshots.rs"]
mod snapshots;
#[path = "rlu/structures.rs"]
mod structures;
#[path = "rlu/timed.rs"]
mod timed;

use corelay_clock::{Clock, Logical, Ordo, Skewed, SkewedBuilder, Timed};
use numbers::{Random, scaled};

/// Runs a test body on every clock that must pass.
trait Body {
    fn run<C: Clock + 'static>(&self, name: &str, make: impl Fn() -> C);
}

/// A generous boundary for a machine whose counters agree. 10 µs at 1 GHz would do too, but a
/// smaller one detects more.
const TICKS: u64 = 400;

fn on_every_clock(body: &impl Body) {
    body.run("logical", Logical::new);
    if corelay_sync::counter::usable() {
        body.run("ordo", || Ordo::with_boundary(TICKS));
        body.run("timed", || Timed::new(Logical::new()).unwrap());
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
