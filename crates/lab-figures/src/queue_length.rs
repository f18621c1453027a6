//! The length of the pending queue (D4), with 16 request lines. The thesis says that short queues
//! cannot fill the lines, and that more than twice the lines gains nothing.
//!
//! The thesis has servers on the axis and a line for each length. Here lengths are on the axis
//! and each number of servers has a line, so that one server makes a picture, too.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::{Size, usual_servers};
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{Batch, Throughput};
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::words::{count, times};

const LINES: usize = 16;

/// Lengths of queues. The thesis has the powers of two.
pub(super) const LENGTHS: [usize; 8] = [2, 4, 8, 16, 24, 32, 48, 64];

pub(super) const FIGURE: Figure = Figure {
    name: "queue-length",
    title: "How long should the queue of pending requests be?",
    source: Source::Thesis("Hurry Up and Wait: The Pending Request Queue"),
    whole: 3,
    fewer: "with one server and one client there is one line, for one server.",
    panels,
    printed: &[
        Printed {
            what: "lengths 2 to 8 with 16 request lines",
            there: "“poor performance”: they cannot fill the lines",
            here: |m| {
                let (_, top) = m.peak("length", &usual(m)?)?;
                let eight = m.mops("length", &usual(m)?, 8.0)?;
                Some(format!("8 has {} of the best", times(eight / top)))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "length after which little is gained",
            there: "32, twice the request lines",
            here: |m| {
                let (x, _) = m.knee("length", &usual(m)?)?;
                Some(format!(
                    "{x}, {} the request lines",
                    times(x / LINES as f64)
                ))
            },
            drawn: Drawn::At {
                panel: "length",
                x: 32.0,
                label: "thesis: 32",
            },
        },
    ],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let mut servers = vec![1, size.usual_servers(), size.threads / 2, size.threads - 1];
    servers.sort_unstable();
    servers.dedup();
    let line = |n: usize| {
        let cell =
            |&length: &usize| size.cell_per_server(length as f64, lines::queue(LINES, length), n);
        FigureLine::new(label(n), LENGTHS.iter().map(cell))
    };
    vec![Panel {
        key: "length",
        title: "16 request lines for each pair",
        axis: Axis::log("length of the pending queue"),
        quantities: &[Throughput, Batch],
        lines: servers.into_iter().map(line).collect(),
    }]
}

fn label(servers: usize) -> String {
    count(servers as u64, "server", "servers")
}

/// Returns the label of the line with the thesis's share of servers, 16 of 56.
fn usual(m: &Measured<'_>) -> Option<String> {
    let threads = m.outcome().results.runs.first()?.params.threads;
    Some(label(usual_servers(threads)))
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let sentence = || {
        let line = usual(m)?;
        let (knee, mops) = m.knee("length", &line)?;
        let (short, few) = *m.throughput("length", &line).first()?;
        let batch = |x| Some(significant(m.at("length", &line, x, Batch)?));
        Some(format!(
            "With {line} the knee is at {}: {} Mops, against {} at {short}. A pass with work finds \
             {} requests at the knee and {} at {short}, of {LINES} that the lines can carry.",
            grouped(knee as u64),
            significant(mops),
            significant(few),
            batch(knee)?,
            batch(short)?,
        ))
    };
    sentence().into_iter().collect()
}
