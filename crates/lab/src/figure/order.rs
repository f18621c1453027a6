//! What order costs (D14): one request line keeps a client's requests in order, 16 do not, and
//! corelay's own channel keeps it with many requests on their way.

use super::declare::{Axis, Drawn, Figure, Line, Panel, Printed, Source};
use super::measured::Measured;
use super::quantity::Quantity::{Batch, Throughput};
use super::size::{Size, named};
use crate::method::literature::lines;
use crate::plot::significant;
use crate::report::words::times;

const ONE: &str = "1 line (in order)";
const ONE_DIRECT: &str = "1 line, direct (in order)";
const SIXTEEN: &str = "16 lines (any order)";
const OURS: &str = "trust-then";

pub(super) const FIGURE: Figure = Figure {
    name: "order",
    title: "What does it cost that a client's requests keep their order?",
    source: Source::Thesis("Ordering Guarantees"),
    panels,
    printed: &[Printed {
        what: "one line against 16",
        there: "“detrimental impacts to overall throughput”",
        here: |m| Some(format!("{} of the throughput", times(cost(m)?))),
        drawn: Drawn::Nowhere,
    }],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let vars: &[u64] = if size.short {
        &[1, 1 << 10]
    } else {
        &[1, 1 << 5, 1 << 10, 1 << 15]
    };
    let line = |label, way| {
        let cell = |&vars: &u64| size.cell(vars as f64, way, size.usual_servers(), vars);
        Line::new(label, vars.iter().map(cell))
    };
    vec![Panel {
        key: "vars",
        title: "Over variables",
        axis: Axis::vars(),
        quantities: &[Throughput, Batch],
        lines: vec![
            line(ONE_DIRECT, lines::direct(1)),
            line(ONE, lines::queue(1, 2)),
            line(SIXTEEN, lines::queue(16, 32)),
            line(OURS, named(OURS)),
        ],
    }]
}

fn cost(m: &Measured<'_>) -> Option<f64> {
    Some(m.mops("vars", ONE, 1024.0)? / m.mops("vars", SIXTEEN, 1024.0)?)
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let at = |line| m.mops("vars", line, 1024.0);
    if let (Some(one), Some(sixteen), Some(ours)) = (at(ONE), at(SIXTEEN), at(OURS)) {
        said.push(format!(
            "Order by one line costs {} of the throughput: {} Mops instead of {}, since each \
             request waits for the answer of the one before.",
            crate::plot::percent((1.0 - one / sixteen).max(0.0)),
            significant(one),
            significant(sixteen)
        ));
        if ours > one {
            said.push(format!(
                "corelay's channel is a ring, which keeps the order of a client's requests with many \
                 of them on their way: {} Mops. It is the single line that costs, not the order.",
                significant(ours)
            ));
        }
    }
    said.push(
        "`corelay lab order` shows the overtaking itself: with one line there is none.".to_owned(),
    );
    said
}
