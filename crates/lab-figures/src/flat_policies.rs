//! Flat delegation by policy (D12): when should a thread that is client and server serve?

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::{Size, named};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::plot::significant;
use corelay_lab_report::words::{code, count, times};

/// The thesis's policies and, last, corelay's own.
const POLICIES: [&str; 6] = [
    "flat-fast-path",
    "flat-bound",
    "flat-doorbell",
    "flat-blocked",
    "flat-queue",
    "flat-adaptive",
];

pub(super) const FIGURE: Figure = Figure {
    name: "flat-policies",
    title: "When should a thread that is client and server serve?",
    source: Source::Thesis("Scheduling Strategies for Asynchronous Flat Delegation"),
    least: 1,
    whole: 4,
    fewer: "the axis of threads ends where the CPUs do.",
    panels,
    printed: &[
        Printed {
            what: "the best policy at the most threads",
            there: "queue",
            here: |m| {
                let (best, mops) = best(m)?;
                Some(format!("{best}, {} Mops", significant(mops)))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "blocked / queue at the most threads",
            there: "“comparable”",
            here: |m| {
                let (x, queue) = m.last("threads", "flat-queue")?;
                Some(times(m.mops("threads", "flat-blocked", x)? / queue))
            },
            drawn: Drawn::Nowhere,
        },
    ],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let threads = size.threads_from(1);
    let line = |name| {
        let way = named(name);
        let of = |&n: &usize| n <= size.cpus;
        let cell = |&n: &usize| size.cell_per_server_of(n, n as f64, way, 0);
        FigureLine::new(name, threads.iter().filter(|n| of(n)).map(cell))
    };
    vec![Panel {
        key: "threads",
        title: "Over threads, each client and server",
        axis: Axis::linear("threads"),
        quantities: &[Throughput],
        lines: POLICIES.map(line).into(),
    }]
}

fn best<'a>(m: &Measured<'a>) -> Option<(&'a str, f64)> {
    let (x, _) = m.last("threads", "flat-queue")?;
    m.winner("threads", x)
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some((best, mops)), Some((x, queue))) = (best(m), m.last("threads", "flat-queue")) {
        let more = if best == "flat-queue" {
            "as in the source".to_owned()
        } else {
            format!(
                "{} what `flat-queue` does, the source's best",
                times(mops / queue)
            )
        };
        said.push(format!(
            "With {} {} is ahead with {} Mops, {more}.",
            count(x as u64, "thread", "threads"),
            code(best),
            significant(mops)
        ));
    }
    said.push(
        "The policies decide when members of corelay's own flat teams serve. They share one channel, \
         which sends requests in batches even with `flat-blocked`, while the source's `blocked` \
         sends each request by itself. That may narrow the gap between the two."
            .to_owned(),
    );
    said
}
