//! The number of request lines of a pair (D3). More lines let more requests be in flight, and
//! take more of the server's cache and of its passes.
//!
//! The thesis does not know why throughput falls beyond 16 lines. A table puts what could explain it
//! side by side: lines moved (a model), loads from memory, the lines that a server looks at for each
//! request, their space, and the latency.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::Size;
use corelay_lab_measure::measure::counters;
use corelay_lab_measure::method::Method;
use corelay_lab_measure::method::counted::Counted;
use corelay_lab_measure::method::literature::lines;
use corelay_lab_measure::schema::Run;
use corelay_lab_report::figure::measured::KNEE;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{
    Batch, Latency, LocalLoads, Outstanding, RemoteLoads, Throughput,
};
use corelay_lab_report::model::footprint::async_lines;
use corelay_lab_report::model::lines::{BY_REQUEST_LINES, REQUEST_LINES};
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{count, times};
use corelay_literature::Shape;

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
        Printed {
            what: "requests outstanding at a client",
            there: "“well over 1,000” (with Gepard at most 64, its fibres)",
            here: |m| {
                let points = m.points("lines", QUEUE, Outstanding);
                let (x, most) = points
                    .iter()
                    .max_by(|a, b| a.1.middle.total_cmp(&b.1.middle))?;
                let servers = m.outcome().results.runs.first()?.params.servers;
                Some(format!(
                    "{} on average with {x} lines, room for {}",
                    significant(most.middle),
                    grouped(servers as u64 * 3 * *x as u64)
                ))
            },
            drawn: Drawn::Nowhere,
        },
    ],
    tables: |m| vec![why(m)],
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
        quantities: &[Throughput, Batch, Latency, Outstanding],
        lines: vec![
            line(DIRECT, &|n| counted(lines::direct(n))),
            line(QUEUE, &|n| counted(lines::queue(n, 2 * n))),
        ],
    }]
}

/// Wraps a method of request lines so that its loads from memory are counted, where they can be.
fn counted(method: Method) -> Method {
    if counters::unavailable().is_some() {
        return method;
    }
    method.built_by(|_, point, setup_limit| {
        let method = lines::shaped("async-lines", point.lines);
        Counted::start(&method, point, setup_limit)
    })
}

/// Returns the lines that a server looks at for each request that it finds.
fn looks(run: &Run, lines: f64) -> Option<f64> {
    let clients = run.params.threads.checked_sub(run.params.servers)? as f64;
    let passes: u64 = run.trustees.iter().map(|trustee| trustee.passes).sum();
    let requests: u64 = run.trustees.iter().map(|trustee| trustee.requests).sum();
    (requests > 0).then(|| lines * clients * passes as f64 / requests as f64)
}

/// Returns the bytes of the lines of a server and all its clients.
fn server_bytes(run: &Run, lines: f64) -> Option<f64> {
    let shape = Shape::queue(lines as usize, 2 * lines as usize).ok()?;
    let clients = run.params.threads.checked_sub(run.params.servers)?;
    Some(async_lines(shape).of_server(clients))
}

/// Puts side by side what grows with the request lines.
fn why(m: &Measured<'_>) -> Grid {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), significant);
    let row = |(lines, run): (f64, &Run)| {
        let at = |quantity| m.at("lines", QUEUE, lines, quantity);
        let moved = REQUEST_LINES.iter().position(|n| *n as f64 == lines);
        let loads = at(LocalLoads).map(|local| local + at(RemoteLoads).unwrap_or(0.0));
        let bytes = server_bytes(run, lines).map(|bytes| bytes / 1024.0);
        vec![
            lines.to_string(),
            number(m.mops("lines", QUEUE, lines)),
            number(at(Latency)),
            number(looks(run, lines)),
            number(bytes),
            number(moved.map(|i| BY_REQUEST_LINES[i])),
            loads.map_or("unavailable".to_owned(), significant),
        ]
    };
    Grid {
        title: "What grows with the request lines (queue of 2 N)".to_owned(),
        head: [
            "lines",
            "Mops",
            "latency, ns",
            "lines looked at for a request",
            "KiB of a server's lines",
            "lines moved per operation (model, 8 clients)",
            "loads from memory per operation",
        ]
        .map(str::to_owned)
        .into(),
        rows: m.runs("lines", QUEUE).into_iter().map(row).collect(),
    }
}

/// Says what grows from the peak to the most lines, and whether throughput falls meanwhile.
fn beyond_the_peak(m: &Measured<'_>) -> Option<String> {
    let ((peak, high), (most, last)) = (m.peak("lines", QUEUE)?, m.last("lines", QUEUE)?);
    if peak >= most || last >= KNEE * high {
        return Some(
            "Throughput does not fall with more lines here, so there is no fall to explain."
                .to_owned(),
        );
    }
    let runs = m.runs("lines", QUEUE);
    let run = |x: f64| runs.iter().find(|(at, _)| *at == x).map(|(_, run)| *run);
    let growth = |what: &str, of: &dyn Fn(f64) -> Option<f64>| {
        let (from, to) = (of(peak)?, of(most)?);
        Some((
            format!("{what} from {} to {}", significant(from), significant(to)),
            to / from,
        ))
    };
    let candidates = [
        growth("the latency of a request in ns", &|x| {
            m.at("lines", QUEUE, x, Latency)
        }),
        growth("the lines that a server looks at for a request", &|x| {
            looks(run(x)?, x)
        }),
        growth("the KiB of a server's lines", &|x| {
            server_bytes(run(x)?, x).map(|bytes| bytes / 1024.0)
        }),
    ];
    let grown = candidates
        .into_iter()
        .flatten()
        .filter(|(_, ratio)| *ratio > 1.1);
    let grown: Vec<String> = grown.map(|(words, _)| words).collect();
    if grown.is_empty() {
        return Some(format!(
            "From {peak} to {most} lines throughput falls to {}, and nothing in the table that could explain \
             it grows by a tenth.",
            times(last / high)
        ));
    }
    let l1 = m.machine().caches.iter().find(|cache| cache.level == 1);
    let l1 = l1.map_or(String::new(), |cache| {
        format!(
            " (its L1 has {} KiB)",
            significant(cache.bytes as f64 / 1024.0)
        )
    });
    Some(format!(
        "From {peak} to {most} lines throughput falls to {}. Meanwhile grow: {}{l1}. The lines moved for \
         an operation do not: in the model they are the same for any number of request lines.",
        times(last / high),
        grown.join("; "),
    ))
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(beyond_the_peak(m));
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
