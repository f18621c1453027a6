//! Flat delegation by policy (D12): the latency of a request, and how often a client's look finds
//! its answer ready.
//!
//! The thesis shows 56 and 28 pairs of client and server, and leaves the greedy policy out
//! because of its scale. This figure shows all threads and half of them, also without the greedy
//! policy. The thesis's dedicated request lines are shown for comparison, as in the thesis.

use super::declare::{Cell, Drawn, Figure, FigureLine, Panel, Printed, Source, Work};
use super::size::{Size, named, usual_servers};
use corelay::Policy;
use corelay_lab_measure::method::Method;
use corelay_lab_measure::method::flat::{self, BOUND};
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{Latency, Ready, Throughput};
use corelay_lab_report::plot::{percent, significant};
use corelay_lab_report::words::times;

const DEDICATED: &str = "async-lines:16x32 (dedicated)";

pub(super) const FIGURE: Figure = Figure {
    name: "flat-latency",
    title: "How long does a request take, by policy?",
    source: Source::Thesis("Scheduling Strategies for Asynchronous Flat Delegation"),
    whole: 4,
    fewer: "half of two threads would be one, which asks only itself, so only all threads are shown.",
    panels,
    printed: &[
        Printed {
            what: "latency of blocked against queue",
            there: "up to 15.5 % lower",
            here: |m| lower(m, "flat-lines:blocked", "flat-lines:queue"),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "the same, on corelay's channel",
            there: "not shown",
            here: |m| lower(m, "flat-blocked", "flat-queue"),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "the policy with the longest latency",
            there: "doorbell",
            here: |m| {
                let lines = &m.panel("threads")?.lines;
                let flat = lines.iter().filter(|line| line.starts_with("flat-lines"));
                let of = |line: &'_ String| Some((line.clone(), latency(m, line)?));
                let longest = flat.filter_map(of).max_by(|a, b| a.1.total_cmp(&b.1))?;
                Some(format!("{}, {} ns", longest.0, significant(longest.1)))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "latency of flat queue against dedicated lines",
            there: "on the order of 10 times",
            here: |m| {
                Some(times(
                    latency(m, "flat-lines:queue")? / latency(m, DEDICATED)?,
                ))
            },
            drawn: Drawn::Nowhere,
        },
    ],
    words,
    ..Figure::PLAIN
};

/// Compares the latencies of two lines.
fn lower(m: &Measured<'_>, line: &str, than: &str) -> Option<String> {
    Some(match latency(m, line)? / latency(m, than)? {
        r if r <= 1.0 => format!("{} lower", percent(1.0 - r)),
        r => format!("{} higher", percent(r - 1.0)),
    })
}

/// Wraps a policy so that its requests are timed, and its looks for responses are counted.
macro_rules! observed {
    ($method:expr, $policy:expr) => {
        $method.built_by(|add, point, setup_limit| flat::observed(add, point, setup_limit, $policy))
    };
}

const POLICIES: [Method; 5] = [
    observed!(flat::bound(), Policy::Bound(BOUND)),
    observed!(flat::doorbell(), Policy::Doorbell),
    observed!(flat::blocked(), Policy::Blocked),
    observed!(flat::queue(), Policy::Queue),
    observed!(flat::adaptive(), Policy::Adaptive),
];

/// The same policies on the thesis's own lines.
const SOURCES: [&str; 4] = [
    "flat-lines:bound",
    "flat-lines:doorbell",
    "flat-lines:blocked",
    "flat-lines:queue",
];

fn panels(size: &Size) -> Vec<Panel> {
    let mut threads = vec![size.threads / 2, size.threads];
    threads.retain(|&n| n >= 2);
    let cells = |way: Method, servers: &dyn Fn(usize) -> usize| -> Vec<Cell> {
        let cell = |&n: &usize| {
            let mut cell = size.cell_per_server_of(n, n as f64, way, servers(n));
            // The same number of requests in flight as with the lines beside it, because latency
            // follows from it.
            if let Work::Sharing(item) = &mut cell.work {
                item.point.window = IN_FLIGHT;
            }
            cell
        };
        threads.iter().map(cell).collect()
    };
    let flat = |method: Method| {
        let way = method;
        FigureLine::new(method.name(), cells(way, &|_| 0))
    };
    let dedicated = lines::queue(16, 32);
    let of_source = SOURCES.iter().map(|&name| flat(named(name)));
    let mut lines: Vec<FigureLine> = of_source.chain(POLICIES.map(flat)).collect();
    lines.insert(
        0,
        FigureLine::new(DEDICATED, cells(dedicated, &usual_servers)),
    );
    vec![Panel {
        key: "threads",
        title: "Over threads",
        axis: Axis::linear("threads"),
        quantities: &[Latency, Ready, Throughput],
        lines,
    }]
}

/// Requests in flight per client and server: those of 16 lines and a queue of 32.
const IN_FLIGHT: usize = 48;

fn latency(m: &Measured<'_>, line: &str) -> Option<f64> {
    let (_, value) = *m.points("threads", line, Latency).last()?;
    Some(value.middle)
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let queue = latency(m, "flat-lines:queue");
    if let (Some(queue), Some(dedicated)) = (queue, latency(m, DEDICATED)) {
        said.push(format!(
            "A request of `flat-lines:queue` takes {} ns, one on dedicated lines {}: {}.",
            significant(queue),
            significant(dedicated),
            if queue > 3.0 * dedicated {
                "in a flat team it waits until the other member serves, as the source finds, too"
            } else {
                "the members soon serve each other. The source's factor of ten comes from waiting \
                 for 55 others in turn, and does not occur here"
            }
        ));
    }
    said.push(format!(
        "Latency follows from the number of requests in flight (Little's law): every line here may \
         have {IN_FLIGHT} per pair, but `flat-lines` without a queue 16. It is the average over the requests that were timed, one in 64."
    ));
    said
}
