//! Fast and slow delegated functions (D10): a fetch and add, and a fetch and square root. A
//! slower function needs more servers until the clients are the limit.
//!
//! With one server, its work per operation is varied instead. Up to the equilibrium the client is
//! the limit, and more work costs nothing; beyond it the server is.

use super::declare::{Cell, Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::Size;
use corelay_lab_measure::method::Method;
use corelay_lab_measure::method::literature::lines;
use corelay_lab_measure::method::literature::lines::rooted;
use corelay_lab_measure::workload::root;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{Saturation, Throughput};
use corelay_lab_report::plot::{percent, significant};
use corelay_lab_report::words::count;

const ADD: &str = "add";
const ROOT: &str = "square root";
const ROOTS_16: &str = "16 square roots";
const WORK: &str = "16 lines, queue of 32";

pub(super) const FIGURE: Figure = Figure {
    name: "fast-slow",
    title: "Does a slower function need more servers?",
    source: Source::Thesis("Client and Server Production Rates"),
    whole: 4,
    fewer: "with one server and one client the peak over servers cannot move; over the work per \
            operation the same equilibrium can be seen.",
    panels,
    printed: &[Printed {
        what: "servers at the highest throughput",
        there: "more for the square root than for the addition",
        here: |m| {
            // A single point is no peak.
            let peak = |line| {
                let places = m.throughput("servers", line).len();
                m.peak("servers", line).filter(|_| places > 1)
            };
            let (add, root) = (peak(ADD)?.0, peak(ROOT)?.0);
            Some(format!(
                "{add} for the addition, {root} for the square root"
            ))
        },
        drawn: Drawn::Nowhere,
    }],
    words,
    ..Figure::PLAIN
};

type Slower = fn(Method) -> Method;

/// Numbers of square roots, and the wrapper that adds them to an operation.
const ROOTS: [(u32, Slower); 8] = [
    (1, rooted::<1>),
    (2, rooted::<2>),
    (4, rooted::<4>),
    (8, rooted::<8>),
    (16, rooted::<16>),
    (32, rooted::<32>),
    (64, rooted::<64>),
    (128, rooted::<128>),
];

/// Makes the points of `way` over the work per operation.
pub(super) fn by_roots(size: &Size, way: Method, servers: usize) -> Vec<Cell> {
    let cell =
        |(roots, slower): (u32, Slower)| slowed(size.cell_per_server(roots, slower(way), servers));
    ROOTS.map(cell).into()
}

/// Returns the axis of [`by_roots`].
pub(super) fn work_axis() -> Axis {
    Axis::log("square roots per operation")
}

fn slowed(cell: Cell) -> Cell {
    Cell {
        workload: root::NAME,
        ..cell
    }
}

fn panels(size: &Size) -> Vec<Panel> {
    let way = lines::queue(16, 32);
    let by_servers = |label, slower: Option<Slower>| {
        let cell = |n: usize| match slower {
            None => size.cell_per_server(n as f64, way, n),
            Some(slower) => slowed(size.cell_per_server(n as f64, slower(way), n)),
        };
        FigureLine::new(label, size.servers().into_iter().map(cell))
    };
    let servers = size.usual_servers();
    // The addition's level, drawn through two points, for comparison.
    let ends = [1, ROOTS[ROOTS.len() - 1].0];
    let add = ends.map(|x| size.cell_per_server(x, way, servers));
    vec![
        Panel {
            key: "servers",
            title: "Over servers",
            axis: Axis::linear("servers"),
            quantities: &[Throughput, Saturation],
            lines: vec![
                by_servers(ADD, None),
                by_servers(ROOT, Some(rooted::<1>)),
                by_servers(ROOTS_16, Some(rooted::<16>)),
            ],
        },
        Panel {
            key: "work",
            title: "Over work per operation",
            axis: work_axis(),
            quantities: &[Throughput, Saturation],
            lines: vec![
                FigureLine::new(ADD, add),
                FigureLine::new(WORK, by_roots(size, way, servers)),
            ],
        },
    ]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let points = m.throughput("work", WORK);
    if let (Some((_, light)), Some((most, heavy))) = (points.first(), points.last()) {
        // The last point that is as good as the first; the equilibrium lies after it.
        let as_good = points.iter().take_while(|(_, mops)| *mops >= 0.9 * light);
        let free = as_good.last().map_or(1.0, |(x, _)| *x);
        said.push(format!(
            "Up to {} the work costs less than a tenth of the throughput, so something else is \
             the limit there. With {most} it is {} Mops instead of {}.",
            count(free as u64, "square root", "square roots"),
            significant(*heavy),
            significant(*light)
        ));
        if let (Some(a), Some(b)) = (
            m.at("work", WORK, 1.0, Saturation),
            m.at("work", WORK, *most, Saturation),
        ) {
            said.push(format!(
                "{} of the server's passes found work at one root, {} at {most}: {}.",
                percent(a),
                percent(b),
                if b > a {
                    "with more work the server is the limit, as in the source's model"
                } else {
                    "the server still spent passes waiting for its client, which does not happen \
                     if the client has a CPU to itself"
                }
            ));
        }
    }
    said
}
