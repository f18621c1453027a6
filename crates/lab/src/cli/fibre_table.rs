//! Benchmarks of fibres as a table for the terminal.

use crate::cli::table;
use crate::columns::columns;
use crate::fibres::spec::Outcome;
use crate::measure::stats;
use crate::plot::{grouped, significant};
use crate::schema::{Mode, ModeSummary, Results, Run};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A table of all runs, a line per mode, then what the reader should know about them.
pub(crate) fn of(results: &Results) -> String {
    let head = [
        "method",
        "form",
        "mode",
        "processors",
        "fibres",
        "ops/s",
        "ns/op",
        "spread",
        "ns·p/op",
        "per fibre",
        "migrations",
        "of data",
        "n",
        "result",
    ];
    let table = columns(head, results.runs.iter().flat_map(rows), 3);
    let mut text = format!("{table}\n");
    for cpus in table::placements(results) {
        let (plural, cpus) = (if cpus.len() == 1 { "" } else { "s" }, cpus.join(", "));
        let _ = writeln!(text, "processor{plural} on CPU{plural}: {cpus}");
    }
    let absent = |run: &Run| Some((run.method.clone(), run.not_installed.clone()?));
    let absent: BTreeMap<_, _> = results.runs.iter().filter_map(absent).collect();
    for (method, why) in absent {
        let _ = writeln!(text, "{method}: not installed: {why}");
    }
    table::notes(&mut text, results);
    let _ = writeln!(
        text,
        "Medians and quartiles. ns/op: wall time per operation of the whole system; times the \
         processors it is level\nwhere more of them are so much faster. Per fibre: fewest–most in \
         a sample. Migrations: per 1,000 operations."
    );
    if let Some(rtt) = results.machine.rtt_min_ns {
        let _ = writeln!(
            text,
            "near: round trip at most {:.0} ns, twice the smallest ever seen here.",
            2.0 * rtt
        );
    }
    text
}

/// Whether no sample was given up.
pub(crate) fn completed(run: &Run) -> bool {
    outcomes(run).all(|outcome| outcome.completed)
}

fn outcomes(run: &Run) -> impl Iterator<Item = &Outcome> {
    run.samples.iter().filter_map(|s| s.fibres.as_ref())
}

fn rows(run: &Run) -> Vec<Vec<String>> {
    let params = &run.params;
    let begin = |mode: &str| {
        let fibres = params.extra.get("fibres").and_then(|n| n.as_u64());
        vec![
            run.method.clone(),
            form(run),
            mode.to_owned(),
            params.threads.to_string(),
            grouped(fibres.unwrap_or(0)),
        ]
    };
    let without = |mode: &str, result: &str| {
        let mut row = begin(mode);
        row.extend(["–"; 7].map(str::to_owned));
        row.extend([run.samples.len().to_string(), result.to_owned()]);
        vec![row]
    };
    if run.not_installed.is_some() {
        return without("", "not installed");
    }
    if !run.correct {
        return without("", "WRONG");
    }
    if !completed(run) {
        return without("", "did not complete");
    }
    if run.by_mode.is_empty() {
        return without("", "no sample");
    }
    let row = |(&mode, summary): (&Mode, &ModeSummary)| {
        let mut row = begin(name(mode));
        row.extend(figures(run, mode, summary));
        row
    };
    run.by_mode.iter().map(row).collect()
}

/// What tells runs of one benchmark apart, beside processors and fibres.
fn form(run: &Run) -> String {
    let extra = &run.params.extra;
    if let Some(share) = extra.get("share").and_then(|share| share.as_bool()) {
        return if share { "share" } else { "no share" }.to_owned();
    }
    let flavour = extra.get("flavour").and_then(|flavour| flavour.as_str());
    flavour.unwrap_or_default().to_owned()
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Near => "near",
        Mode::Far => "far",
        Mode::Discarded => "discarded",
        Mode::Unknown => "unknown",
    }
}

fn figures(run: &Run, mode: Mode, summary: &ModeSummary) -> [String; 9] {
    let ns = |mops: f64| 1e3 / mops;
    let kept = || {
        let of_mode = run.samples.iter().filter(|s| s.mode == mode);
        of_mode.filter_map(|s| s.fibres.as_ref())
    };
    let fewest = kept().map(|o| o.per_fibre.min).min().unwrap_or(0);
    let most = kept().map(|o| o.per_fibre.max).max().unwrap_or(0);
    let per_thousand = |count: fn(&Outcome) -> Option<u64>| {
        let rate = |o: &Outcome| Some(count(o)? as f64 * 1e3 / o.operations as f64);
        let rates: Option<Vec<f64>> = kept().map(rate).collect();
        let median = rates.and_then(|rates| stats::median(&rates));
        median.map_or("–".to_owned(), significant)
    };
    [
        grouped((summary.median_mops * 1e6).round() as u64),
        significant(ns(summary.median_mops)),
        format!(
            "[{}–{}]",
            significant(ns(summary.q3_mops)),
            significant(ns(summary.q1_mops))
        ),
        significant(ns(summary.median_mops) * run.params.threads as f64),
        format!("{}–{}", grouped(fewest), grouped(most)),
        per_thousand(|o| o.fibre_migrations),
        per_thousand(|o| o.data_migrations),
        summary.n.to_string(),
        "right".to_owned(),
    ]
}
