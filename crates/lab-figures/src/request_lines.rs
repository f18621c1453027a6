//! The number of request lines of a pair (D3). More lines let more requests be in flight, and
//! take more of the server's cache and of its passes.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::Size;
use corelay_lab_measure::method::Method;
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{Batch, Latency, Throughput};
use corelay_lab_report::plot::significant;
use corelay_lab_report::words::{count, times};

const QUEUE: &str = "queue of 2 N";
const DIRECT: &str = "direct";

pub(super) const FIGURE: Figure = Figure {
    name: "request-lines",
    title: "How many request lines should a pair of client and server have?",
    source: Source::Thesis("More Concurrency with Request Lines"),
    panels,
    printed: &[
        Printed {
            what: "the knee: more lines add nothing worth naming",
            there: "about 16, which the thesis uses from there on",
            here: |m| {
                let (knee, _) = m.knee("lines", QUEUE)?;
                Some(format!("{knee}"))
            },
            drawn: Drawn::At {
                panel: "lines",
                x: 16.0,
                label: "thesis: 16",
            },
        },
        Printed {
            what: "beyond 16 lines",
            there: "“performance degrades”",
            here: |m| {
                let (most, last) = m.last("lines", QUEUE)?;
                let sixteen = m.mops("lines", QUEUE, 16.0)?;
                Some(format!(
                    "{most} have {} of what 16 have",
                    times(last / sixteen)
                ))
            },
            drawn: Drawn::Nowhere,
        },
    ],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let most = if size.short { 6 } else { 8 };
    let line = |label, way: &dyn Fn(usize) -> Method| {
        let counts = (0..=most).map(|shift| 1usize << shift);
        let cell = |n: usize| size.cell_per_server(n as f64, way(n), size.usual_servers());
        FigureLine::new(label, counts.map(cell))
    };
    vec![Panel {
        key: "lines",
        title: "Over request lines",
        axis: Axis::log("request lines of a pair"),
        quantities: &[Throughput, Batch, Latency],
        lines: vec![
            line(DIRECT, &lines::direct),
            line(QUEUE, &|n| lines::queue(n, 2 * n)),
        ],
    }]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let batch = |x| m.at("lines", QUEUE, x, Batch);
    if let (Some((knee, mops)), Some(one)) = (m.knee("lines", QUEUE), m.mops("lines", QUEUE, 1.0)) {
        said.push(format!(
            "The knee is at {knee} lines: {} Mops, {} that of one line.",
            significant(mops),
            times(mops / one)
        ));
        if let (Some(at_knee), Some((most, _))) = (batch(knee), m.last("lines", QUEUE))
            && let Some(at_most) = batch(most)
        {
            said.push(format!(
                "A pass with work finds {} requests of {knee} lines at the knee, and {} of {most}. \
                 {}",
                significant(at_knee),
                significant(at_most),
                if at_most < most / 2.0 {
                    "The server looks in vain at lines that are not filled before its next pass."
                } else {
                    "They are filled: the gain from more lines is bounded by the work on each \
                     request, not by waiting."
                }
            ));
        }
        if knee != 16.0 {
            let servers = m.outcome().results.runs.first().map(|run| &run.params);
            let here = servers.map_or(String::new(), |p| {
                format!(
                    " with {} and {}",
                    count((p.threads - p.servers) as u64, "client", "clients"),
                    count(p.servers as u64, "server", "servers")
                )
            });
            said.push(format!(
                "The source's 16 is for 56 threads on two sockets, where a server passes over the \
                 lines of all its clients; the knee depends on how many requests a client can \
                 write and a server can answer within a round trip, here{here}."
            ));
        }
    }
    said
}
