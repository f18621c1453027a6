//! The slides' last one, "comparing parallelism", measured.
//!
//! | | locking | delegation |
//! |---|---|---|
//! | critical section | #locks | #servers |
//! | communication latency | #locks | #clients |
//!
//! The first panel has long critical sections, so that their parallelism decides: as many run at once
//! as there are locks, or servers. The second panel has one lock or server and the shortest critical
//! section, so that communication decides: a lock is handed over once at a time, while the requests
//! of all clients travel at once.

use super::declare::{Cell, Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::Size;
use corelay_lab_measure::method::Method;
use corelay_lab_measure::method::literature::{blocking, ffwd};
use corelay_lab_measure::method::lock;
use corelay_lab_measure::workload::root;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::plot::significant;
use corelay_lab_report::words::{count, times};

const LOCK: &str = "mutex";
const DELEGATION: &str = "ffwd";
const SECTIONS: &str = "sections";
const CLIENTS: &str = "clients";

/// Square roots of a long critical section: 64 take 800 to 1,200 cycles, 13 to 19 each on current cores.
const ROOTS: u32 = 64;

pub(super) const FIGURE: Figure = Figure {
    name: "parallelism",
    title: "What runs in parallel: the sections, or their communication?",
    source: Source::Ffwd("comparing parallelism"),
    whole: 4,
    fewer: "one server and one client are all that two threads can be, so delegation has one point in \
            each picture, and only locks show what more of them do.",
    panels,
    printed: &[
        Printed {
            what: "parallelism of critical sections",
            there: "locking: #locks; delegation: #servers",
            here: |m| grown(m, SECTIONS),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "parallelism of communication",
            there: "locking: #locks (here one); delegation: #clients",
            here: |m| grown(m, CLIENTS),
            drawn: Drawn::Nowhere,
        },
    ],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let slowed = |cell| Cell {
        workload: root::NAME,
        ..cell
    };
    let section = |n: usize, method: Method| slowed(size.cell(n as f64, method, n, n as u64));
    let servers = size
        .threads_from(1)
        .into_iter()
        .filter(|&n| n < size.threads);
    let sections = vec![
        FigureLine::new(
            LOCK,
            size.threads_from(1)
                .into_iter()
                .map(|n| section(n, lock::rooted::<ROOTS>())),
        ),
        FigureLine::new(
            DELEGATION,
            servers.map(|n| section(n, blocking::rooted::<ROOTS>())),
        ),
    ];
    let locked = |n: usize| size.cell_of(n, n as f64, lock::mutex(), 1, 1);
    let served = |n: usize| size.cell_of(n, (n - 1) as f64, ffwd(), 1, 1);
    let clients = vec![
        FigureLine::new(LOCK, size.threads_from(1).into_iter().map(locked)),
        FigureLine::new(DELEGATION, size.threads_from(2).into_iter().map(served)),
    ];
    vec![
        Panel {
            key: SECTIONS,
            title: "Over locks or servers, all threads, long critical sections",
            axis: Axis::log("locks or servers"),
            quantities: &[Throughput],
            lines: sections,
        },
        Panel {
            key: CLIENTS,
            title: "Over clients, one lock or server, the shortest critical section",
            axis: Axis::linear("threads that make requests"),
            quantities: &[Throughput],
            lines: clients,
        },
    ]
}

/// Returns how much a line gains from its first point to its last: (from, to, ratio); `None` if it
/// has one point.
fn gain(m: &Measured<'_>, panel: &str, line: &str) -> Option<(f64, f64, f64)> {
    let points = m.throughput(panel, line);
    let ((from, few), (to, many)) = (points.first()?, points.last()?);
    (to > from).then(|| (*from, *to, many / few))
}

/// Says what each way gains over a panel.
fn grown(m: &Measured<'_>, panel: &str) -> Option<String> {
    let of = |line: &str| match gain(m, panel, line) {
        Some((from, to, ratio)) => format!("{line}: {} from {from} to {to}", times(ratio)),
        None => format!("{line}: one point"),
    };
    m.panel(panel)?;
    Some(format!("{}; {}", of(LOCK), of(DELEGATION)))
}

/// Says whether `n` times the locks, servers or clients brought at least half of `n` times as much.
fn follows(who: &str, (from, to, ratio): (f64, f64, f64)) -> String {
    let more = to / from;
    let verb = if ratio >= more / 2.0 {
        "follows"
    } else {
        "does not follow"
    };
    format!(
        "{} as many {who} give {}: the throughput {verb}",
        times(more),
        times(ratio)
    )
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let rows = [
        (SECTIONS, LOCK, "locks", "With long sections"),
        (SECTIONS, DELEGATION, "servers", "With long sections"),
        (
            CLIENTS,
            LOCK,
            "threads at one lock",
            "With the shortest section",
        ),
        (
            CLIENTS,
            DELEGATION,
            "clients of one server",
            "With the shortest section",
        ),
    ];
    for (panel, line, who, when) in rows {
        if let Some(gain) = gain(m, panel, line) {
            said.push(format!("{when}, {}.", follows(who, gain)));
        }
    }
    if let (Some((clients, served)), Some((threads, locked))) =
        (m.last(CLIENTS, DELEGATION), m.last(CLIENTS, LOCK))
    {
        said.push(format!(
            "One server answers {} with {} Mops; one mutex gives {} among {}.",
            count(clients as u64, "client", "clients"),
            significant(served),
            significant(locked),
            count(threads as u64, "thread", "threads")
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_judged_by_what_it_could_be() {
        let grows = follows("servers", (1.0, 8.0, 7.0)).replace('\u{a0}', " ");
        assert!(grows.contains("8.0 × as many servers give 7.0 ×: the throughput follows"));
        assert!(follows("clients", (1.0, 8.0, 1.1)).contains("does not follow"));
    }
}
