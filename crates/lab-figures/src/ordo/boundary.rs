//! The boundary multiplied by 1/8 to 8 (O10). Below 1 nothing is correct any more, and the figure
//! says so wherever such a point stands.

use super::{classes, units, with_classes};
use crate::declare::{Cell, Drawn, Figure, FigureLine, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::ordered::clocks;
use corelay_lab_bench::ordered::spec::{Bench, Scale, Spec};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{Throughput, Uncertain};
use corelay_lab_report::plot::significant;
use corelay_lab_report::words::{and, count, times};

const LIST: &str = "rlu-list";
const TRANSFER: &str = "stm-transfer";
const RMAP: &str = "oplog-rmap";

/// The sentence on the cost of the boundary for each class of algorithms.
const OF_ALL: &str = "Read-log-update and TL2 pay for a wider boundary only where a comparison is left open: they \
     are what the slides call physical to logical timestamping. OpLog is what they call physical \
     timestamping, and pays in each update.";

/// The label of the mark at × 1 in each picture.
const MARK: &str = "to the left: no longer correct";

const fn mark(panel: &'static str, what: &'static str, there: &'static str) -> Printed {
    Printed {
        what,
        there,
        here: |m| spread(m, LIST),
        drawn: Drawn::At {
            panel,
            x: 1.0,
            label: MARK,
        },
    }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "boundary",
    title: "How much does the boundary matter?",
    source: Source::Ordo("Sensitivity of ORDO_BOUNDARY"),
    least: 2,
    whole: 4,
    fewer: "a second socket is missing, where the boundary is larger.",
    panels,
    unavailable,
    printed: &[
        mark(
            LIST,
            "boundary × 1/8 to × 8, RLU, throughput relative to × 1",
            "between 0.92 and 1.08, on one core, one socket and eight",
        ),
        Printed {
            what: "the boundary from × 1/8 to × 8, in cycles",
            there: "“Cycles increases from 32.2–18K on Xeon machine”",
            here: |m| {
                let (low, high) = swept_ns(m)?;
                let units = units::of(m);
                let ticks = [units.ticks(low)?, units.ticks(high)?];
                let cycles = units.cycles(low).zip(units.cycles(high));
                let cycles = cycles.map_or(String::new(), |(low, high)| {
                    format!(", {low} to {high} {}", units.cycles_head())
                });
                Some(format!(
                    "{} to {} ticks of the counter{cycles}",
                    ticks[0], ticks[1]
                ))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "the same, TL2",
            there: "not shown",
            here: |m| spread(m, TRANSFER),
            ..mark(TRANSFER, "", "")
        },
        Printed {
            what: "the same, Oplog",
            there: "not shown",
            here: |m| spread(m, RMAP),
            ..mark(RMAP, "", "")
        },
    ],
    words,
    ..Figure::PLAIN
};

fn unavailable() -> Option<String> {
    clocks::ordo(Scale::ONE).err()
}

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, bench, method: &'static str| Panel {
        key,
        title,
        axis: Axis::log("boundary, by what was measured"),
        quantities: &[Throughput, Uncertain],
        lines: lines(size, bench, method),
    };
    let list = Bench::List {
        size: 256,
        updates: 20,
    };
    let transfer = Bench::Transfer { variables: 1024 };
    let rmap = Bench::Rmap {
        pages: 1024,
        reads_every: 10_000,
    };
    vec![
        panel(LIST, "RLU: a list of 256, 20 % updates", list, "rlu-ordo"),
        panel(
            TRANSFER,
            "TL2: transfers among 1,024 variables",
            transfer,
            "tl2-ordo",
        ),
        panel(RMAP, "Oplog: a read per 10,000 updates", rmap, "oplog-ordo"),
    ]
}

/// Returns a line for one thread, one for a socket if there are several, and one for all threads.
fn lines(size: &Size, bench: Bench, method: &'static str) -> Vec<FigureLine> {
    let line = |label: String, cell: &dyn Fn(Scale) -> Option<Cell>| {
        let cells: Option<Vec<Cell>> = Scale::SWEEP.iter().map(|&scale| cell(scale)).collect();
        cells.map(|cells| FigureLine::new(label, cells))
    };
    let of_threads = |threads: usize| {
        let label = count(threads as u64, "thread", "threads");
        line(label, &|scale| {
            Some(size.ordered(scale.factor(), Spec { bench, scale }, method, threads))
        })
    };
    let threads = size.socket.unwrap_or(0) as u64;
    let label = format!("one socket, {}", count(threads, "thread", "threads"));
    let of_socket = line(label, &|scale| {
        size.ordered_on_socket(scale.factor(), Spec { bench, scale }, method)
    });
    let lines = [of_threads(1), of_socket, of_threads(size.threads)];
    lines.into_iter().flatten().collect()
}

/// Returns the smallest and the largest boundary of the sweep, in nanoseconds.
fn swept_ns(m: &Measured<'_>) -> Option<(f64, f64)> {
    let runs = m.outcome().results.runs.iter();
    let swept: Vec<f64> = runs
        .filter_map(|run| run.params.extra.boundary_ns)
        .collect();
    let low = swept.iter().copied().min_by(f64::total_cmp)?;
    Some((low, swept.iter().copied().max_by(f64::total_cmp)?))
}

/// Returns the smallest and the largest value of each line, relative to that at × 1.
fn spread(m: &Measured<'_>, panel: &str) -> Option<String> {
    let of = |line: &String| {
        let one = m.mops(panel, line, 1.0)?;
        let all = m.throughput(panel, line).into_iter();
        let by = all.map(|(_, mops)| mops / one);
        let (low, high) = by.fold((1.0_f64, 1.0_f64), |(low, high), by| {
            (low.min(by), high.max(by))
        });
        let (low, high) = (significant(low), significant(high));
        Some(format!("{low} to {high} ({line})"))
    };
    let lines = &m.panel(panel)?.lines;
    let of: Vec<String> = lines.iter().filter_map(of).collect();
    (!of.is_empty()).then(|| and(&of))
}

/// Reports the measured boundary, and the cost of eight times as much.
fn words(m: &Measured<'_>) -> Vec<String> {
    let is_one = |x: f64| x == 1.0;
    let ns = m.panels().iter().find_map(|panel| {
        let line = panel.lines.last()?;
        let runs = m.runs(&panel.key, line);
        let (_, run) = runs.into_iter().find(|(x, _)| is_one(*x))?;
        run.params.extra.boundary_ns
    });
    let boundary = ns.map(|ns| {
        format!(
            "The boundary measured here, with its margin, is {} ns{}.",
            significant(ns),
            units::of(m).beside(ns)
        )
    });
    let cost = |panel: &corelay_lab_report::figure::outcome::Drawing| {
        let line = panel.lines.last()?;
        let one = m.mops(&panel.key, line, 1.0)?;
        let eight = m.mops(&panel.key, line, 8.0)?;
        Some(format!(
            "{}, {line}: eight times the boundary leaves {} of the throughput.",
            panel.title,
            times(eight / one)
        ))
    };
    let costs = m.panels().iter().filter_map(cost);
    let said = boundary.into_iter().chain(units::meaning(m)).chain(costs);
    let said = said.collect();
    with_classes(said, &[OF_ALL, classes::TL2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_a_line_where_there_are_several() {
        let labels = |cpus| {
            let lines = lines(
                &Size::test(cpus),
                Bench::Transfer { variables: 8 },
                "tl2-ordo",
            );
            lines.into_iter().map(|line| line.label).collect::<Vec<_>>()
        };
        assert_eq!(labels(2), ["1 thread", "2 threads"]);
        assert_eq!(
            labels(8),
            ["1 thread", "one socket, 4 threads", "8 threads"]
        );
    }
}
