//! Time stamps: each core's own clock against increments of a shared counter (O11).

use super::{CPUS_FOR_A_LINE, ON_FEWER_CPUS, against, over_threads, slopes, units};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::ordered::spec::Bench;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::quantity::Quantity::{PerThread, Throughput, Uncertain};
use corelay_lab_report::plot::{percent, significant};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{code, count, times};

const THREADS: &str = "threads";

/// The methods compared, the most important last. The guide says how each draws a time stamp.
const METHODS: [&str; 7] = [
    "clock-gettime",
    "cas",
    "logical",
    "fetch-add",
    "ordo-after",
    "ordo",
    "ordo-now",
];

/// The draws of each class of algorithms in the slides, those that wait last.
const DRAWS: [&str; 6] = [NOW, COMPARED, "ordo", "ordo-update", "ordo-after", CERTAIN];

const NOW: &str = "ordo-now";
/// A stamp of an algorithm that compares, and defers or reverts: `get_time` and `cmp_time`.
const COMPARED: &str = "ordo-cmp";
/// A stamp that is certainly newer than another core's: `new_time`.
const CERTAIN: &str = "ordo-after-other";

const CLASSES: &str = "classes";

pub(crate) const FIGURE: Figure = Figure {
    name: "timestamping",
    title: "How many new times can be drawn in a second?",
    source: Source::Ordo("Timestamping with Ordo"),
    least: 1,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[Printed {
        what: "Ordo against atomic increments",
        there: "17.4 to 285.5 times faster, on all cores of four machines",
        here: |m| against(m, THREADS, "ordo-now", "fetch-add"),
        drawn: Drawn::Nowhere,
    }],
    tables: |m| table(m).into_iter().collect(),
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, methods, quantities| {
        over_threads(key, title, size, Bench::Timestamp, methods, quantities)
    };
    vec![
        panel(
            THREADS,
            "New times, over threads",
            &METHODS,
            &[PerThread, Throughput],
        ),
        panel(
            CLASSES,
            "What an algorithm draws: by comparison, or certainly later",
            &DRAWS,
            &[PerThread, Uncertain],
        ),
    ]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let slopes = slopes(m, THREADS, &["fetch-add", "cas", "ordo", "ordo-now"]);
    let slopes = slopes.map(|slopes| format!("Throughput grows {slopes}."));
    let commit = against(m, THREADS, "ordo", "fetch-add").map(|by| {
        format!(
            "{} waits until the thread's earlier stores can be seen, as a commit has to, and draws \
             {by} what {} does.",
            code("ordo"),
            code("fetch-add")
        )
    });
    let said = [slopes, commit, classes(m), units::meaning(m)];
    said.into_iter().flatten().collect()
}

/// Makes the table of a thread's time for a stamp, at the most threads, in nanoseconds, in ticks, and
/// in cycles if a core's rate is known.
fn table(m: &Measured<'_>) -> Option<Grid> {
    let (threads, _) = m.last(THREADS, NOW)?;
    let units = units::of(m);
    let row = |panel: &'static str, line: &str| {
        let ns = 1e3 / m.at(panel, line, threads, PerThread)?;
        let units = [units.ticks(ns), units.cycles(ns)];
        let cells = [line.to_owned(), significant(ns)].into_iter();
        Some(cells.chain(units.into_iter().flatten()).collect())
    };
    let (ticks, cycles) = (units.ticks_per_ns, units.core_ghz);
    let mut head = vec!["method".to_owned(), "ns".to_owned()];
    head.extend(ticks.map(|_| "ticks of the counter".to_owned()));
    head.extend(cycles.map(|_| units.cycles_head()));
    let only_there = DRAWS.iter().filter(|line| !METHODS.contains(line));
    let rows = METHODS.iter().map(|line| row(THREADS, line));
    let rows = rows.chain(only_there.map(|line| row(CLASSES, line)));
    Some(Grid {
        title: format!(
            "What a stamp takes a thread, with {}",
            count(threads as u64, "thread", "threads")
        ),
        head,
        rows: rows.flatten().collect(),
    })
}

/// Compares a stamp that has to be certainly newer than another core's with the mere draw, and with
/// the draw and comparison of an algorithm that defers or reverts.
fn classes(m: &Measured<'_>) -> Option<String> {
    let (threads, _) = m.last(CLASSES, NOW)?;
    let ns = |line| Some(1e3 / m.at(CLASSES, line, threads, PerThread)?);
    let (now, compared, certain) = (ns(NOW)?, ns(COMPARED)?, ns(CERTAIN)?);
    let open = m.at(CLASSES, COMPARED, threads, Uncertain).unwrap_or(0.0);
    let verdict = match certain > compared {
        true => {
            "So it pays to compare, and to defer or revert where the order is open, as long as that \
             costs less than the difference."
        }
        false => "So here nothing is saved by comparing instead.",
    };
    Some(format!(
        "On {} a stamp that is certainly newer than the latest of any core ({}) takes a thread {} ns, \
         {} the {} ns of the mere draw ({}). That is what the slides call physical timestamping. In \
         physical to logical timestamping a time is drawn and compared ({}): {} ns, and the clock left \
         the order open in {} of the comparisons with the thread's own last time. {verdict}",
        count(threads as u64, "thread", "threads"),
        code(CERTAIN),
        significant(certain),
        times(certain / now),
        significant(now),
        code(NOW),
        code(COMPARED),
        significant(compared),
        percent(open / 1e3),
    ))
}
