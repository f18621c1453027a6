//! The number of servers (D24): dedicated delegation over variables, a line for each number of
//! servers. If the data lies in memory, more servers wait for it at the same time, and the tail
//! rises.

use super::declare::{Drawn, Figure, FigureLine, Panel, Printed, Source};
use super::size::{Size, named};
use corelay_lab_measure::method::literature::lines;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::{Saturation, Throughput};
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::words::{count, times};

const FLAT: &str = "flat-queue";

pub(super) const FIGURE: Figure = Figure {
    name: "vary-servers",
    title: "How many servers should there be, over so many variables?",
    source: Source::Thesis("Memory Subsystem"),
    whole: 3,
    fewer: "two threads leave one server beside a client; flat delegation, where both serve, \
            stands for more servers.",
    panels,
    printed: &[Printed {
        what: "the tail, where variables lie in memory",
        there: "rises with the number of servers; 32 of 56 and flat do nearly what atomics do",
        here: tail,
        drawn: Drawn::Nowhere,
    }],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let line = |label: String, way, servers| {
        let cell = |vars: u64| size.cell(vars as f64, way, servers, vars);
        FigureLine::new(label, size.vars().into_iter().map(cell))
    };
    let named = |name: &str| line(name.to_owned(), named(name), 1);
    let mut lines = vec![named("atomic"), named(FLAT)];
    let servers = size.servers().into_iter();
    lines.extend(servers.map(|n| line(label(n), lines::queue(16, 32), n)));
    vec![Panel {
        key: "vars",
        title: "Over variables",
        axis: Axis::vars(),
        quantities: &[Throughput, Saturation],
        lines,
    }]
}

fn label(servers: usize) -> String {
    count(servers as u64, "server", "servers")
}

/// Reports the throughput of each number of servers at the most variables.
fn tail(m: &Measured<'_>) -> Option<String> {
    let lines = &m.panel("vars")?.lines;
    let (x, _) = m.last("vars", FLAT)?;
    let of = |line: &String| Some(format!("{line} {}", significant(m.mops("vars", line, x)?)));
    let sentence: Vec<String> = lines.iter().filter_map(of).collect();
    Some(format!(
        "at {}: {} Mops",
        grouped(x as u64),
        sentence.join(", ")
    ))
}

/// The throughput of one server with the most variables and at its best, and of flat delegation with the
/// most variables.
fn beyond(vars: u64, [one, in_cache, flat]: [f64; 3]) -> String {
    let why = match one < 0.9 * in_cache {
        true => "it fetches them from slower caches or memory, one after the other",
        false => "they are not too many for it",
    };
    let serves = match flat > 1.1 * one {
        true => "where every thread serves, does",
        false => "where every thread serves, does no more:",
    };
    format!(
        "With {} variables one server does {} Mops, {} of its best: {why}. Flat delegation, {serves} {} \
         ({} of one server's).",
        grouped(vars),
        significant(one),
        times(one / in_cache),
        significant(flat),
        times(flat / one)
    )
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let sentence = || {
        let (x, flat) = m.last("vars", FLAT)?;
        let (one, in_cache) = (
            m.mops("vars", "1 server", x)?,
            m.peak("vars", "1 server")?.1,
        );
        Some(beyond(x as u64, [one, in_cache, flat]))
    };
    sentence().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_blamed_only_for_a_loss() {
        let slow = beyond(1 << 22, [20.0, 200.0, 90.0]);
        assert!(
            slow.contains("memory") && !slow.contains("no more"),
            "{slow}"
        );
        let level = beyond(1 << 10, [200.0, 200.0, 90.0]);
        assert!(
            !level.contains("memory") && level.contains("no more: 90"),
            "{level}"
        );
    }
}
