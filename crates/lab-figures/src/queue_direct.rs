//! Queue against direct (D5): requests that wait in a queue for a free line, against requests
//! that are written at once.
//!
//! The thesis varies the servers, which moves the balance: with few the servers are the limit,
//! with many the clients, and there direct writes fall behind. A single server cannot be varied,
//! but its work can, which moves the same balance: that is the second panel.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::fast_slow::{by_roots, work_axis};
use super::size::Size;
use corelay_lab_measure::method::Method;
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{Ready, Saturation, Throughput};
use corelay_lab_report::plot::percent;
use corelay_lab_report::words::times;

const QUEUE: &str = "queue of 32";
const DIRECT: &str = "direct";

pub(super) const FIGURE: Figure = Figure {
    name: "queue-direct",
    title: "Do requests that wait in a queue beat requests written at once?",
    source: Source::Thesis("Hurry Up and Wait: The Pending Request Queue"),
    whole: 3,
    fewer: "with one server and one client the number of servers cannot be varied; the work per \
            operation moves the same balance, from a client that is the limit (left) to a server \
            that is.",
    panels,
    printed: &[
        Printed {
            what: "queue / direct if clients are the limit",
            there: "above 1: direct writes show an “undesirable degradation”",
            here: |m| queue_over_direct(m, End::Clients),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "queue / direct if servers are the limit",
            there: "about 1: a “comparable server consumption rate”",
            here: |m| queue_over_direct(m, End::Servers),
            drawn: Drawn::Nowhere,
        },
    ],
    words,
    ..Figure::PLAIN
};

/// An end of the panel over work.
#[derive(Clone, Copy)]
enum End {
    Clients,
    Servers,
}

fn panels(size: &Size) -> Vec<Panel> {
    let ways = || [(DIRECT, lines::direct(16)), (QUEUE, lines::queue(16, 32))];
    let by_servers = |(label, way): (&str, Method)| {
        let servers = size.servers().into_iter();
        FigureLine::new(
            label,
            servers.map(|n| size.cell_per_server(n as f64, way, n)),
        )
    };
    let servers = size.usual_servers();
    let by_work = |(label, way)| FigureLine::new(label, by_roots(size, way, servers));
    vec![
        Panel {
            key: "servers",
            title: "Over servers",
            axis: Axis::linear("servers"),
            quantities: &[Throughput, Saturation],
            lines: ways().map(by_servers).into(),
        },
        Panel {
            key: "work",
            title: "Over work per operation",
            axis: work_axis(),
            quantities: &[Throughput, Saturation, Ready],
            lines: ways().map(by_work).into(),
        },
    ]
}

fn ratio(m: &Measured<'_>, end: End) -> Option<f64> {
    let points = m.throughput("work", QUEUE);
    let (x, queue) = match end {
        End::Clients => *points.first()?,
        End::Servers => *points.last()?,
    };
    Some(queue / m.mops("work", DIRECT, x)?)
}

fn queue_over_direct(m: &Measured<'_>, end: End) -> Option<String> {
    ratio(m, end).map(times)
}

/// Why the queue gains nothing over direct writes with so many servers.
fn why_no_gain(servers: usize) -> &'static str {
    match servers {
        0 | 1 => {
            "Direct writes wait for the next line even if others are free, which costs with many servers. \
             With one server the next line is the one that is answered next, and the queue only copies \
             each request once more."
        }
        _ => {
            "Direct writes wait for the next line even if others are free; here that costs no more than \
             the queue, which copies each request once more."
        }
    }
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let share = |line, quantity| m.at("work", line, 1.0, quantity).map(percent);
    if let Some(light) = ratio(m, End::Clients) {
        said.push(format!(
            "At one root per operation the queue has {} of what direct writes do: {}.",
            times(light),
            if light > 1.05 {
                "the queue has the advantage that the source finds"
            } else if light < 0.95 {
                "direct writes have the advantage, unlike in the source"
            } else {
                "the queue has no advantage, unlike in the source"
            }
        ));
        let servers = m
            .outcome()
            .results
            .runs
            .iter()
            .map(|run| run.params.servers);
        let servers = servers.max().unwrap_or(1);
        if light < 1.05
            && let (Some(queue), Some(direct)) = (share(QUEUE, Ready), share(DIRECT, Ready))
        {
            said.push(format!(
                "A look at a response finds it ready in {direct} of cases with direct writes, in \
                 {queue} with the queue. {}",
                why_no_gain(servers)
            ));
        }
    }
    if let (Some(queue), Some(direct)) = (share(QUEUE, Saturation), share(DIRECT, Saturation)) {
        said.push(format!(
            "{queue} of the server's passes found work with the queue, {direct} with direct writes."
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_is_named_only_where_there_is_one() {
        assert!(why_no_gain(1).contains("With one server"));
        assert!(!why_no_gain(16).contains("one server"));
    }
}
