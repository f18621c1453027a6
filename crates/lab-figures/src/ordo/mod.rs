//! The figures of the slides on Ordo: offsets between clocks (O1), time stamps (O11), read-log-update
//! (O5), how much the boundary matters (O10), and logs merged at read (O8).
//!
//! Their machines have 32 to 256 cores. Where a shared clock is contended, which two threads hardly
//! do, each core's own wins; here that is told by the slope from one thread to the most. The offsets
//! (their first table, and a backup slide) are of the machine itself: no contenders, no lines.

pub(super) mod boundary;
pub(super) mod offsets;
pub(super) mod oplog;
pub(super) mod rlu;
pub(super) mod timestamping;

use super::declare::{Line, Panel};
use super::size::Size;
use corelay_lab_bench::ordered::method;
use corelay_lab_bench::ordered::spec::{Bench, Scale, Spec};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity;
use corelay_lab_report::words::{code, count, times};

/// What fewer CPUs than the source's leave out.
const FEWER: &str = "the axis of threads ends where the CPUs do, and few threads do not contend for a \
                     shared clock; what tells is the slope.";

/// From so many CPUs on there is a line to speak of.
const WHOLE: usize = 4;

/// Some methods over threads.
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
        Line::new(method, threads.map(cell))
    };
    Panel {
        key,
        title,
        axis: Axis::linear("threads"),
        quantities,
        lines: methods.iter().map(line).collect(),
    }
}

/// By how much a line grows from one thread to the most, and how many these are.
fn slope(m: &Measured<'_>, panel: &str, line: &str) -> Option<(f64, f64)> {
    let (most, last) = m.last(panel, line)?;
    let first = m.mops(panel, line, 1.0).filter(|_| most > 1.0)?;
    Some((most, last / first))
}

/// Slopes of some lines in a sentence.
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

/// The throughput of one line by that of another, at the most threads that both have.
fn against(m: &Measured<'_>, panel: &str, line: &str, other: &str) -> Option<String> {
    let (most, mops) = m.last(panel, line)?;
    let ratio = mops / m.mops(panel, other, most)?;
    Some(format!(
        "{} on {}",
        times(ratio),
        count(most as u64, "thread", "threads")
    ))
}
