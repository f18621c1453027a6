//! What each way to read the time costs, alone on a thread.
//!
//! All take turns in short batches; of each the batch of the middle counts, as on a machine that
//! moves. A result is waited for as little as the way itself waits, so a way without order may
//! overlap with the next read of the same.

use crate::measure::stats;
use corelay::clock::{Clock, Logical, Ordo, Time};
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// Reads of a batch.
const BATCH: u64 = 1_000;
const ROUNDS: usize = 101;

/// One way to read the time.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Which: an instruction, a call.
    pub way: &'static str,
    /// What it is for, in a clause.
    pub what: &'static str,
    /// Median, in nanoseconds.
    pub ns: f64,
    /// First and third quartile, in nanoseconds.
    pub quartiles_ns: (f64, f64),
}

type Way<'a> = (&'static str, &'static str, Box<dyn Fn() -> f64 + 'a>);

/// Measures them on this thread, within half a second; those of `Ordo` where there is one.
pub fn costs(ordo: Option<&Ordo>) -> Vec<Cost> {
    let (counter, logical, start) = (AtomicU64::new(0), Logical::new(), Instant::now());
    let mut ways: Vec<Way<'_>> = instructions();
    ways.push(way(
        "Instant::now",
        "the system's monotonic clock (clock_gettime)",
        move || start.elapsed().subsec_nanos().into(),
    ));
    // Relaxed: nothing is ordered by it.
    let add = || counter.fetch_add(1, Ordering::Relaxed);
    ways.push(way("fetch_add", "a shared counter, alone with it", add));
    if let Some(ordo) = ordo {
        ways.push(way("Ordo::now", "in no order", || ordo.now().raw()));
        let read = || ordo.read_time().raw();
        ways.push(way("Ordo::read_time", "later loads wait for it", read));
        let commit = || ordo.commit_time(Time::ZERO).raw();
        ways.push(way("Ordo::commit_time", "waits for earlier stores", commit));
        let announced = || ordo.announced_time(Time::ZERO).raw();
        let what = "the same behind a locked announcement, alone";
        ways.push(way("Ordo::announced_time", what, announced));
        let ticks = corelay_sync::ticks;
        ways.push(way("ticks", "a full fence, for recorded histories", ticks));
    }
    let read = || logical.read_time().raw();
    ways.push(way("Logical::read_time", "alone with it", read));
    let commit = || logical.commit_time(Time::ZERO).raw();
    ways.push(way("Logical::commit_time", "alone with it", commit));
    measured(&ways)
}

fn way<'a>(name: &'static str, what: &'static str, read: impl Fn() -> u64 + 'a) -> Way<'a> {
    let batch = move || {
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(read());
        }
        start.elapsed().as_nanos() as f64 / BATCH as f64
    };
    (name, what, Box::new(batch))
}

fn measured(ways: &[Way<'_>]) -> Vec<Cost> {
    let mut samples = vec![Vec::new(); ways.len()];
    for round in 0..=ROUNDS {
        for ((.., batch), samples) in ways.iter().zip(&mut samples) {
            let ns = batch();
            // The first round warms up.
            if round > 0 {
                samples.push(ns);
            }
        }
    }
    let cost = |(&(way, what, _), samples): (&Way<'_>, &Vec<f64>)| {
        let quantile = |q| stats::quantile(samples, q).expect("there were rounds");
        Cost {
            way,
            what,
            ns: quantile(0.5),
            quartiles_ns: (quantile(0.25), quantile(0.75)),
        }
    };
    ways.iter().zip(&samples).map(cost).collect()
}

#[cfg(target_arch = "x86_64")]
fn instructions<'a>() -> Vec<Way<'a>> {
    use super::instructions::{lfence_rdtsc, rdtsc, rdtscp};
    vec![
        way("rdtsc", "the instruction alone", rdtsc),
        way("lfence; rdtsc", "behind earlier loads", lfence_rdtsc),
        way("rdtscp", "behind earlier loads", rdtscp),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn instructions<'a>() -> Vec<Way<'a>> {
    let read = corelay_sync::counter::read;
    match corelay_sync::counter::usable() {
        true => vec![way("counter", "the instruction, behind earlier ones", read)],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_costs_something() {
        let ordo = Ordo::try_with_boundary(100).ok();
        let costs = costs(ordo.as_ref());
        assert!(costs.len() >= 4);
        for cost in costs {
            let (low, high) = cost.quartiles_ns;
            assert!(0.0 < low && low <= cost.ns && cost.ns <= high, "{cost:?}");
        }
    }
}
