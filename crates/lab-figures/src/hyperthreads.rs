//! Server and client as hyperthreads of one core, as in the thesis's runs ("each delegation server
//! shares, as a hyperthread, a core with a delegation client"), against two cores and two sockets.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::Size;
use corelay_lab_measure::method::literature::{ffwd, lines};
use corelay_lab_measure::method::{Method, trust};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::plot::significant;
use corelay_lab_report::words::times;
use corelay_topology::Topology;

/// The labels of the placements, as [`Size::pairs`] has them.
pub(super) const ONE_CORE: &str = "one core";
pub(super) const TWO_CORES: &str = "two cores";
pub(super) const TWO_SOCKETS: &str = "two sockets";

pub(super) const FIGURE: Figure = Figure {
    name: "hyperthreads",
    title: "Should server and client be hyperthreads of one core?",
    source: Source::Thesis("Performance Under Contention"),
    unavailable: || unavailable(&Topology::current()),
    panels,
    printed: &[Printed {
        what: "one core / two cores, 16 request lines",
        there: "not shown: each server shares a core with a client",
        here: |m| {
            Some(times(
                m.mops(KEY, ONE_CORE, 16.0)? / m.mops(KEY, TWO_CORES, 16.0)?,
            ))
        },
        drawn: Drawn::Nowhere,
    }],
    words,
    ..Figure::PLAIN
};

const KEY: &str = "lines";
const WAITING: &str = "waiting";

/// The methods whose clients wait, at their places on the axis.
const WAITS: [&str; 2] = ["ffwd", "trust"];

/// Says why nothing can be measured: no core shows two hyperthreads.
fn unavailable(topology: &Topology) -> Option<String> {
    let siblings = topology.cores().iter().any(|core| core.cpus.len() > 1);
    (!siblings).then(|| "no core of this machine shows two hyperthreads".to_owned())
}

fn panels(size: &Size) -> Vec<Panel> {
    let line = |label: &str, xs: &dyn Fn() -> Vec<(f64, Method)>| {
        let pair = size.pairs().iter().find(|(of, _)| *of == label)?.1;
        let cells = xs()
            .into_iter()
            .map(|(x, method)| size.cell_on(pair, x, method));
        Some(FigureLine::new(label, cells.collect::<Vec<_>>()))
    };
    let by_lines = || {
        [1, 4, 16, 64]
            .map(|n| (n as f64, lines::queue(n, 2 * n)))
            .into()
    };
    let waiting = || vec![(1.0, ffwd()), (2.0, trust::apply())];
    let labels = [TWO_SOCKETS, TWO_CORES, ONE_CORE];
    let all = |xs: &dyn Fn() -> Vec<(f64, Method)>| {
        labels.iter().filter_map(|label| line(label, xs)).collect()
    };
    vec![
        Panel {
            key: KEY,
            title: "One client and one server, over request lines",
            axis: Axis::log("request lines of a pair"),
            quantities: &[Throughput],
            lines: all(&by_lines),
        },
        Panel {
            key: WAITING,
            title: "One client that waits for each answer: 1 is ffwd, 2 is corelay's `apply`",
            axis: Axis::linear("method"),
            quantities: &[Throughput],
            lines: all(&waiting),
        },
    ]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let compared = |panel: &str, x: f64, what: &str| {
        let (one, two) = (m.mops(panel, ONE_CORE, x)?, m.mops(panel, TWO_CORES, x)?);
        let better = match one > two {
            true => "one core is better: its threads share caches, so no line has to travel",
            false => "two cores are better: the threads of one core share its execution units, too",
        };
        Some(format!(
            "{what}: {} Mops on one core and {} on two: {better}.",
            significant(one),
            significant(two)
        ))
    };
    let lines = compared(KEY, 16.0, "With 16 request lines");
    let waits = WAITS.iter().enumerate().map(|(i, name)| {
        compared(
            WAITING,
            (i + 1) as f64,
            &format!("`{name}`, which waits for each answer"),
        )
    });
    lines.into_iter().chain(waits.flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_hyperthreads_says_so() {
        assert!(unavailable(&Topology::regular(2, 14, 1)).is_some());
        assert_eq!(unavailable(&Topology::regular(2, 14, 2)), None);
    }
}
