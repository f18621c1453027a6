//! Gepard over fibres per client thread: how many waiting fibres does a client need, and when do
//! they cost more than they bring?
//!
//! The thesis prints where Gepard's throughput peaks; callbacks on the same lines, which need no
//! fibres, stand beside it.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::{Size, named};
use corelay_lab_measure::method::Method;
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::plot::significant;
use corelay_lab_report::words::{code, count, times};

const GEPARD: &str = "gepard";
const CHANNEL: &str = "trust-fibre";
const CALLBACKS: &str = "async-lines:4-direct";

pub(super) const FIGURE: Figure = Figure {
    name: "gepard",
    title: "How many fibres does a client need that waits for answers?",
    source: Source::Thesis("Asynchronous Delegation"),
    whole: 4,
    fewer: "one client asks one server, whose four lines are all that its fibres share; with more \
            servers more fibres have a line.",
    panels,
    printed: &[Printed {
        what: "Gepard's throughput is highest with",
        there: "64 fibres per thread",
        here: |m| {
            let (fibres, mops) = m.peak("fibres", GEPARD)?;
            let fibres = count(fibres as u64, "fibre", "fibres");
            Some(format!("{fibres}, {} Mops", significant(mops)))
        },
        drawn: Drawn::At {
            panel: "fibres",
            x: 64.0,
            label: "thesis: the peak",
        },
    }],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let numbers = || {
        (0..=8)
            .step_by(if size.short { 2 } else { 1 })
            .map(|shift| 1_u64 << shift)
    };
    let servers = size.usual_servers();
    let line = |label: &str, way: &dyn Fn(u64) -> Method| {
        let cells = numbers().map(|n| size.cell_per_server(n as f64, way(n), servers));
        FigureLine::new(label, cells)
    };
    let of = |name: &str, fibres: u64| named(&format!("{name}:{fibres}"));
    vec![Panel {
        key: "fibres",
        title: "Over fibres per client thread",
        axis: Axis::log("fibres per client thread"),
        quantities: &[Throughput],
        lines: vec![
            line(GEPARD, &|fibres| of(GEPARD, fibres)),
            line(CHANNEL, &|fibres| of(CHANNEL, fibres)),
            line(CALLBACKS, &|_| lines::direct(4)),
        ],
    }]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let peaks = [GEPARD, CHANNEL].map(|line| m.peak("fibres", line));
    let [Some((fibres, gepard)), Some((on_channel, channel))] = peaks else {
        return Vec::new();
    };
    let mut said = vec![format!(
        "{} does most with {}, {} with {}: {} and {} Mops.",
        code(GEPARD),
        count(fibres as u64, "fibre", "fibres"),
        code(CHANNEL),
        on_channel,
        significant(gepard),
        significant(channel)
    )];
    if let Some((_, callbacks)) = m.peak("fibres", CALLBACKS) {
        said.push(format!(
            "Callbacks on four lines, which are not switched to, reach {} of Gepard's most. (They have \
             no fibres; their line is measured again at each point.)",
            times(callbacks / gepard)
        ));
    }
    said
}
