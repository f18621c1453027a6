//! The figures of the slides on Ordo: offsets between clocks (O1), time stamps (O11),
//! read-log-update (O5), the size of the boundary (O10), databases (O7), and logs merged at read
//! (O8).
//!
//! The slides' machines have 32 to 256 cores. Each core's own clock wins if a shared clock is
//! contended, which two threads hardly do; here the slope from one thread to the most shows it.
//! The offsets (the slides' first table, and a backup slide) are of the machine itself, so that
//! figure has no contenders and no lines.

pub(super) mod boundary;
mod classes;
pub(super) mod database;
pub(super) mod offsets;
pub(super) mod oplog;
mod parts;
pub(super) mod rlu;
pub(super) mod timestamping;
mod units;

use super::declare::{FigureLine, Panel};
use super::size::Size;
use corelay_lab_bench::ordered::method;
use corelay_lab_bench::ordered::spec::{Bench, Scale, Spec};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity;
use corelay_lab_report::words::{code, count, times};

/// A sentence on what the figures lose on a machine with few CPUs.
const ON_FEWER_CPUS: &str = "the axis of threads ends where the CPUs do, and few threads do not \
                             contend for a shared clock; look at the slope.";

/// CPUs that a line over threads needs.
const CPUS_FOR_A_LINE: usize = 4;

/// Adds what is true of the structures to what was measured of them, if anything was.
fn with_classes(said: Vec<String>, classes: &[&str]) -> Vec<String> {
    let classes = classes.iter().filter(|_| !said.is_empty());
    let classes: Vec<String> = classes.map(|&class| class.to_owned()).collect();
    said.into_iter().chain(classes).collect()
}

/// Makes a panel of some methods over threads.
fn over_threads(
    key: &'static str,
    title: &'static str,
    size: &Size,
    bench: Bench,
    methods: &[&'static str],
    quantities: &'static [Quantity],
) -> Panel {
    let scale = Scale::ONE;
    let line = |&method: &&'static str| {
        let known = method::named(bench, method);
        let least = known.map_or(1, |known| known.least_threads(1));
        let threads = size.threads_from(least).into_iter();
        let cell = |n: usize| size.ordered(n as f64, Spec { bench, scale }, method, n);
        FigureLine::new(method, threads.map(cell))
    };
    Panel {
        key,
        title,
        axis: Axis::linear("threads"),
        quantities,
        lines: methods.iter().map(line).collect(),
    }
}

/// Returns a line's largest number of threads, and its throughput there over that on one thread.
fn slope(m: &Measured<'_>, panel: &str, line: &str) -> Option<(f64, f64)> {
    let (most, last) = m.last(panel, line)?;
    let first = m.mops(panel, line, 1.0).filter(|_| most > 1.0)?;
    Some((most, last / first))
}

/// Describes how much some lines grow from one thread to the most.
fn slopes(m: &Measured<'_>, panel: &str, lines: &[&str]) -> Option<String> {
    let of = |line: &&str| {
        let (most, slope) = slope(m, panel, line)?;
        Some((most, format!("{} {}", code(line), times(slope))))
    };
    let of: Vec<(f64, String)> = lines.iter().filter_map(of).collect();
    let (most, _) = *of.first()?;
    let said: Vec<String> = of.into_iter().map(|(_, said)| said).collect();
    let threads = count(most as u64, "thread", "threads");
    Some(format!(
        "from 1 to {threads}: {}",
        corelay_lab_report::words::and(&said)
    ))
}

/// Returns the ratio of one line's throughput to another's, at the most threads that both have.
fn against(m: &Measured<'_>, panel: &str, line: &str, other: &str) -> Option<String> {
    let (most, mops) = m.last(panel, line)?;
    let ratio = mops / m.mops(panel, other, most)?;
    Some(format!(
        "{} on {}",
        times(ratio),
        count(most as u64, "thread", "threads")
    ))
}
