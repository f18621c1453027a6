//! Flat delegation by policy (D12): when should a thread that is client and server serve?

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::{Size, named};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::model::footprint::async_lines;
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::words::{code, count, times};
use corelay_literature::Shape;

/// The thesis's policies on its own lines, then on corelay's channel; last, corelay's own.
const POLICIES: [&str; 11] = [
    "flat-lines:fast-path",
    "flat-lines:bound",
    "flat-lines:doorbell",
    "flat-lines:blocked",
    "flat-lines:queue",
    "flat-fast-path",
    "flat-bound",
    "flat-doorbell",
    "flat-blocked",
    "flat-queue",
    "flat-adaptive",
];

/// The policy that is the source's best, on the source's lines.
const SOURCES_BEST: &str = "flat-lines:queue";

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
            what: "blocked / queue at the most threads, on the source's lines",
            there: "“comparable”",
            here: |m| blocked_by_queue(m, "flat-lines:blocked", "flat-lines:queue"),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "the same, on corelay's channel",
            there: "not shown",
            here: |m| blocked_by_queue(m, "flat-blocked", "flat-queue"),
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

fn blocked_by_queue(m: &Measured<'_>, blocked: &str, queue: &str) -> Option<String> {
    let (x, queue) = m.last("threads", queue)?;
    Some(times(m.mops("threads", blocked, x)? / queue))
}

fn best<'a>(m: &Measured<'a>) -> Option<(&'a str, f64)> {
    let (x, _) = m.last("threads", SOURCES_BEST)?;
    m.winner("threads", x)
}

/// Says how much memory `blocked` saves: it writes requests straight into lines and has no queues.
fn saved(threads: usize) -> String {
    let of = |shape: Shape| async_lines(shape).of_client(threads);
    let (queue, direct) = (Shape::DEFAULT, Shape::direct(Shape::DEFAULT.lines()));
    let direct = direct.unwrap_or(queue);
    format!(
        "`blocked` needs no queues: a member of {threads} keeps {} bytes as a client instead of {}, from \
         the sizes of the types (`corelay model footprint`). The source says that this helps larger \
         systems and smaller caches.",
        grouped(of(direct) as u64),
        grouped(of(queue) as u64)
    )
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some((best, mops)), Some((x, queue))) = (best(m), m.last("threads", SOURCES_BEST)) {
        let more = if best == SOURCES_BEST {
            "as in the source".to_owned()
        } else {
            format!(
                "{} what {} does, the source's best",
                times(mops / queue),
                code(SOURCES_BEST)
            )
        };
        said.push(format!(
            "With {} {} is ahead with {} Mops, {more}.",
            count(x as u64, "thread", "threads"),
            code(best),
            significant(mops)
        ));
    }
    if let Some((threads, _)) = m.last("threads", SOURCES_BEST) {
        said.push(saved(threads as usize));
    }
    said.push(
        "`flat-lines` is the source's own: 16 request lines for each pair, of which `blocked` and \
         the policies after it write one request at a time. The other lines are corelay's flat \
         teams by the same policies, on its channel, which sends requests in batches even with \
         `flat-blocked`."
            .to_owned(),
    );
    said
}
