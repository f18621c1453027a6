//! The cost of order (D14): one request line keeps a client's requests in order, 16 do not.
//! corelay's own channel keeps the order with many requests in flight.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::{Size, named};
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{Batch, Throughput};
use corelay_lab_report::plot::significant;
use corelay_lab_report::words::times;

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
        FigureLine::new(label, vars.iter().map(cell))
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

/// Describes the cost of one line against 16, from the throughput of both in Mops.
fn price(one: f64, sixteen: f64) -> String {
    let (one_mops, sixteen_mops) = (significant(one), significant(sixteen));
    if one < sixteen {
        let share = corelay_lab_report::plot::percent(1.0 - one / sixteen);
        format!(
            "Order by one line costs {share} of the throughput: {one_mops} Mops instead of \
             {sixteen_mops}, since each request waits for the answer of the one before."
        )
    } else {
        format!(
            "Order by one line costs nothing here: {one_mops} Mops, where 16 lines have \
             {sixteen_mops}."
        )
    }
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let at = |line| m.mops("vars", line, 1024.0);
    if let (Some(one), Some(sixteen), Some(ours)) = (at(ONE), at(SIXTEEN), at(OURS)) {
        said.push(price(one, sixteen));
        if ours > one {
            said.push(format!(
                "corelay's channel is a ring, which keeps the order of a client's requests with many \
                 of them in flight: {} Mops. The cost is that of the single line, not of the order.",
                significant(ours)
            ));
        }
    }
    said.push(
        "`corelay lab order` shows the overtaking itself: with one line there is none.".to_owned(),
    );
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_costs_nothing_if_one_line_is_not_slower() {
        let slower = price(2.0, 8.0);
        assert!(
            slower.contains("costs 75") && slower.contains("waits"),
            "{slower}"
        );
        for one in [8.0, 9.0] {
            let same = price(one, 8.0);
            assert!(
                same.contains("nothing") && !same.contains("waits") && !same.contains('%'),
                "{same}"
            );
        }
    }
}
