//! Latency under load as a table for the terminal.

use crate::plot::{grouped, percent, significant};
use crate::table;
use crate::table::columns::columns;
use corelay_lab_measure::measure::limit;
use corelay_lab_measure::schema::{Limit, Mode, ModeSummary, Results, Run};
use std::fmt::Write;

/// Makes a table of all runs, with a line for each mode, and notes for the reader.
pub fn of(results: &Results) -> String {
    let head = [
        "method",
        "threads",
        "servers",
        "vars",
        "offered/s",
        "achieved/s",
        "mode",
        "p50 ns",
        "p99 ns",
        "p99.9 ns",
        "max ns",
        "late",
        "CPUs",
        "waiting",
        "limit",
        "result",
    ];
    let table = columns(head, results.runs.iter().flat_map(rows), 1);
    let mut text = format!("{table}\n");
    table::footnotes(&mut text, results);
    let stamps = results.runs.iter().filter_map(|run| run.load);
    if let Some(load) = stamps.map(|l| l.stamp_ns).reduce(f64::max) {
        let _ = writeln!(
            text,
            "Latency counts from when an operation was due; a look at the clock costs {} ns and is in it.",
            significant(load)
        );
    }
    let _ = writeln!(
        text,
        "late: issued more than a microsecond after it was due, or never. CPUs: used by the whole \
         process; waiting: the part of them in which the load's generators spun until the next arrival."
    );
    let crowded = |run: &&Run| run.load.as_ref().is_some_and(limit::crowded);
    let takes_turns = |run: &Run| run.params.threads > results.machine.cpus.max(1);
    for (turns, who, whose) in [
        (false, "Other programs had the CPUs", "theirs"),
        (true, "More threads than CPUs took turns", "the scheduler's"),
    ] {
        let mut runs = results.runs.iter().filter(crowded);
        if runs.any(|run| takes_turns(run) == turns) {
            let _ = writeln!(
                text,
                "{who} for part of the time: clients waited for longer than they used a CPU. Latencies \
                 are {whose}, too."
            );
        }
    }
    for (limit, words) in [
        (
            Limit::Method,
            "method: saturated; the latency grows with the length of a sample.",
        ),
        (
            Limit::Generator,
            "generator: the load's generator took more than half of each operation, or cannot \
             issue as much; the method is not judged.",
        ),
        (
            Limit::Cpus,
            "cpus: clients had no CPU to issue on; the method is not judged.",
        ),
    ] {
        if results
            .runs
            .iter()
            .any(|run| run.load.is_some_and(|l| l.limit == limit))
        {
            let _ = writeln!(text, "limit {words}");
        }
    }
    text
}

/// Makes a row for each mode, or one that says that nothing was measured.
fn rows(run: &Run) -> Vec<Vec<String>> {
    if run.by_mode.is_empty() {
        return vec![row(run, Mode::Unknown, None)];
    }
    let modes = run.by_mode.iter();
    modes
        .map(|(mode, summary)| row(run, *mode, Some(summary)))
        .collect()
}

fn row(run: &Run, mode: Mode, summary: Option<&ModeSummary>) -> Vec<String> {
    let params = &run.params;
    let load = run.load.unwrap_or_default();
    let latency = summary.and_then(|s| s.latency_ns);
    let ns = |ns: Option<u64>| ns.map_or("–".to_owned(), grouped);
    let servers = match params.servers {
        0 => String::new(),
        n => n.to_string(),
    };
    vec![
        run.method.clone(),
        params.threads.to_string(),
        servers,
        params.vars.to_string(),
        grouped(load.offered as u64),
        summary.map_or("–".to_owned(), |s| significant(s.median_mops * 1e6)),
        match (summary, mode) {
            (None, _) => "not seen",
            (_, Mode::Near) => "near",
            (_, Mode::Far) => "far",
            _ => "",
        }
        .to_owned(),
        ns(latency.map(|l| l.p50)),
        ns(latency.map(|l| l.p99)),
        ns(latency.map(|l| l.p999)),
        ns(latency.map(|l| l.max)),
        percent(load.late),
        format!("{:.2}", load.cpus),
        format!("{:.2}", load.waiting_cpus),
        match load.limit {
            Limit::None => "",
            Limit::Method => "method",
            Limit::Generator => "generator",
            Limit::Cpus => "cpus",
        }
        .to_owned(),
        if run.correct { "right" } else { "WRONG" }.to_owned(),
    ]
}
