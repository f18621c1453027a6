//! The time that read-log-update spends on its parts (O5): where the slides say that it "still
//! suffers from object copy and its locking".

use super::over_threads;
use crate::declare::Panel;
use crate::size::Size;
use corelay_lab_bench::ordered::spec::Bench;
use corelay_lab_measure::schema::TimeOfParts;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::figure::stack::Stack;
use corelay_lab_report::plot::{percent, significant};
use corelay_lab_report::words::{and, code, count, times};

/// The methods that take the time of their parts, each with the one that does not.
const METHODS: [(&str, &str); 2] = [
    ("rlu-logical-timed", "rlu-logical"),
    ("rlu-ordo-timed", "rlu-ordo"),
];

/// A panel of timed methods, and the panel with the same workload, untimed.
pub(super) struct Pair {
    /// The key of the timed panel.
    pub(super) timed: &'static str,
    /// The key of the untimed panel.
    pub(super) plain: &'static str,
}

/// The names of the parts, and of what is left.
const KINDS: [&str; 5] = ["copying", "locking", "ordering", "waiting", "the rest"];

/// Makes a panel of the timed methods over threads.
pub(super) fn panel(key: &'static str, title: &'static str, size: &Size, bench: Bench) -> Panel {
    let methods = METHODS.map(|(timed, _)| timed);
    over_threads(key, title, size, bench, &methods, &[Throughput])
}

/// The values of the four parts, and of what is left of the whole.
fn values(parts: TimeOfParts) -> [f64; 5] {
    parts.with_rest().map(|ticks| ticks as f64)
}

/// The shares of the parts in a thread's time, at the most threads, and their number.
fn shares(m: &Measured<'_>, panel: &str, line: &str) -> Option<([f64; 5], f64)> {
    let (threads, _) = m.last(panel, line)?;
    let values = values(m.parts(panel, line, threads)?);
    let whole: f64 = values.iter().sum();
    (whole > 0.0).then(|| (values.map(|value| value / whole), threads))
}

/// A thread's time for an operation in nanoseconds, at the most threads.
fn ns(m: &Measured<'_>, panel: &str, line: &str) -> Option<f64> {
    let (threads, mops) = m.last(panel, line)?;
    Some(1e3 / mops * threads)
}

/// Makes a bar for each timed method of each panel.
pub(super) fn stacks(m: &Measured<'_>, pairs: &[Pair]) -> Vec<Stack> {
    let mut most = 0;
    let mut bars = Vec::new();
    for Pair { timed, .. } in pairs {
        let updates = timed.trim_start_matches(|c: char| !c.is_ascii_digit());
        for (line, _) in METHODS {
            let Some(((shares, threads), ns)) = shares(m, timed, line).zip(ns(m, timed, line))
            else {
                continue;
            };
            most = threads as u64;
            let name = format!("{}, {updates} %", line.trim_end_matches("-timed"));
            bars.push((name, shares.map(|share| share * ns).into()));
        }
    }
    if bars.is_empty() {
        return Vec::new();
    }
    vec![Stack {
        title: format!(
            "Where the time of read-log-update goes: a hash table, by updates, on {}",
            count(most, "thread", "threads")
        ),
        label: "ns of a thread per operation".to_owned(),
        kinds: KINDS.map(str::to_owned).into(),
        bars,
    }]
}

/// The sentences that define the parts and the rest.
const MEANING: &str = "The time of parts: copying is that of objects into the log and back; locking \
     is that of records and locks, of what an abort undoes, and of waits for locks; ordering is \
     that of announcing a commit, drawing its time and telling it to sessions; waiting is that for \
     readers, looks included. The rest is the walk, memory, and the time that each section begins \
     with, which is as short as one reading of the counter. The readings between parts are in the rest, \
     too.";

/// Describes the parts of each panel, and the cost of measuring them.
pub(super) fn words(m: &Measured<'_>, pairs: &[Pair]) -> Vec<String> {
    let said: Vec<String> = pairs.iter().filter_map(|pair| of_panel(m, pair)).collect();
    let meaning = (!said.is_empty()).then(|| MEANING.to_owned());
    said.into_iter().chain(meaning).collect()
}

fn of_panel(m: &Measured<'_>, Pair { timed, plain }: &Pair) -> Option<String> {
    let title = &m.panel(timed)?.title;
    let [(logical, _), (ordo, untimed)] = METHODS;
    let (shares_of_ordo, threads) = shares(m, timed, ordo)?;
    let mut said = format!(
        "{title}, on {}: {}",
        count(threads as u64, "thread", "threads"),
        parts(shares_of_ordo, "on Ordo"),
    );
    if let Some((shares, _)) = shares(m, timed, logical) {
        said += &format!("; {}", parts(shares, "on one clock"));
    }
    said += &format!(". {}", verdict(shares_of_ordo));
    let ordering = |line| Some(shares(m, timed, line)?.0[2] * ns(m, timed, line)?);
    if let (Some(one), Some(own)) = (ordering(logical), ordering(ordo)) {
        said += &format!(
            " Being ordered takes {} ns an operation on one clock and {} on Ordo.",
            significant(one),
            significant(own)
        );
    }
    let longer = ns(m, timed, ordo).zip(m.mops(plain, untimed, threads));
    if let Some((ns, mops)) = longer {
        said += &format!(
            " Taking these times makes an operation of {} {} as long.",
            code(untimed),
            times(ns * mops / 1e3 / threads)
        );
    }
    Some(said)
}

/// Names the shares of the parts.
fn parts(shares: [f64; 5], on: &str) -> String {
    let named = KINDS.iter().zip(shares);
    let named: Vec<String> = named
        .map(|(kind, share)| format!("{kind} takes {}", percent(share)))
        .collect();
    format!("{on} {}", and(&named))
}

/// Compares copying and locking, which the slides name, with the two other parts.
fn verdict([copying, locking, ordering, waiting, _]: [f64; 5]) -> String {
    let named = copying + locking;
    let largest = ordering.max(waiting);
    if named >= largest {
        let more = if copying >= locking {
            "copying"
        } else {
            "locking"
        };
        return format!(
            "As on the slides, copying and locking come before the two others; {more} is the larger."
        );
    }
    let (other, what) = match waiting >= ordering {
        true => (
            "waiting for readers",
            "their sections have to end before copies are copied back",
        ),
        false => (
            "being ordered",
            "that is what a clock of each core is to save",
        ),
    };
    format!("Other than on the slides, {other} takes more than copying and locking: {what}.")
}
