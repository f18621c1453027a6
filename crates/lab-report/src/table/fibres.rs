//! Benchmarks of fibres as a table for the terminal.

use crate::plot::{grouped, significant};
use crate::table;
use crate::table::columns::columns;
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::schema::fibres::{FibreResult, MigrationChains};
use corelay_lab_measure::schema::{Mode, ModeSummary, Results, Run};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Makes a table of all runs, with a line for each mode, and notes for the reader.
pub fn of(results: &Results) -> String {
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
    for run in &results.runs {
        text.extend(chains(run).map(|said| format!("{said}\n")));
    }
    let _ = writeln!(
        text,
        "Medians and quartiles. ns/op: wall time per operation of the whole system; times the \
         processors it is level\nif twice the processors do twice the work. Per fibre: fewest–most in \
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

/// Says how the migrations of a run's samples followed one another, if its fibres have noted them.
fn chains(run: &Run) -> Option<String> {
    let noted: Vec<MigrationChains> = outcomes(run).filter_map(|o| o.chains).collect();
    let first = noted.first()?;
    let sum = |of: fn(&MigrationChains) -> u64| noted.iter().map(of).sum::<u64>();
    let most = |of: fn(&MigrationChains) -> u64| noted.iter().map(of).max().unwrap_or(0);
    let lengths: Vec<f64> = noted.iter().map(|found| found.median as f64).collect();
    Some(format!(
        "{}, {} processors, {} fibres: {} migrations in {} chains, each within {} µs of the one before; {} of \
         them alone; median length {}, longest {}, with up to {} fibres on {} processors",
        run.method,
        run.params.threads,
        grouped(run.params.extra.fibres.unwrap_or(0)),
        grouped(sum(|found| found.migrations)),
        grouped(sum(|found| found.chains)),
        first.within_us,
        grouped(sum(|found| found.alone)),
        significant(stats::median(&lengths).unwrap_or(0.0)),
        grouped(most(|found| found.longest)),
        most(|found| found.most_fibres),
        most(|found| found.most_processors),
    ))
}

/// Whether no sample was given up.
pub fn completed(run: &Run) -> bool {
    outcomes(run).all(|outcome| outcome.completed)
}

fn outcomes(run: &Run) -> impl Iterator<Item = &FibreResult> {
    run.samples.iter().filter_map(|s| s.fibres.as_ref())
}

fn rows(run: &Run) -> Vec<Vec<String>> {
    let params = &run.params;
    let begin = |mode: &str| {
        vec![
            run.method.clone(),
            form(run),
            mode.to_owned(),
            params.threads.to_string(),
            grouped(params.extra.fibres.unwrap_or(0)),
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

/// Returns the parameters that tell runs of one benchmark apart, besides processors and fibres.
fn form(run: &Run) -> String {
    let extra = &run.params.extra;
    if let Some(share) = extra.share {
        return if share { "share" } else { "no share" }.to_owned();
    }
    extra.flavour.clone().unwrap_or_default()
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
    let per_thousand = |count: fn(&FibreResult) -> Option<u64>| {
        let rate = |o: &FibreResult| Some(count(o)? as f64 * 1e3 / o.operations as f64);
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

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::measure::session::summary;
    use corelay_lab_measure::schema::Extra;
    use corelay_lab_measure::schema::fibres::PerFibre;
    use corelay_lab_measure::schema::{Machine, Params, SCHEMA, Sample};

    fn run(method: &str, completed: bool) -> Run {
        let outcome = FibreResult {
            operations: 2_000,
            wall_s: 1e-4,
            per_fibre: PerFibre::of(vec![900, 1_100]),
            fibre_migrations: Some(20),
            data_migrations: Some(40),
            completed,
            ..FibreResult::default()
        };
        Run {
            workload: "locality".to_owned(),
            method: method.to_owned(),
            params: Params {
                threads: 2,
                placement: vec![Some(0), Some(1)],
                extra: Extra {
                    fibres: Some(200),
                    share: Some(true),
                    ..Extra::default()
                },
                ..Params::default()
            },
            correct: true,
            median_mops: 20.0,
            harmonic_mean_mops: 20.0,
            by_mode: BTreeMap::from([(Mode::Near, summary(&[20.0]).unwrap())]),
            samples: vec![Sample {
                mops: 20.0,
                mode: Mode::Near,
                rtt_ns: Some(110.0),
                per_thread: vec![],
                cpu_s: 0.0,
                latency_ns: None,
                arrivals: None,
                fibres: Some(outcome),
                counts: None,
                picture: None,
                cache: None,
            }],
            trustees: vec![],
            latency_ns: None,
            load: None,
            loads: None,
            not_installed: None,
            cache: None,
            notes: vec![],
        }
    }

    fn table(runs: Vec<Run>) -> String {
        of(&Results {
            schema: SCHEMA,
            machine: Machine::default(),
            commit: "unknown".to_owned(),
            command: "corelay bench".to_owned(),
            runs,
        })
    }

    #[test]
    fn a_row_has_both_quantities_and_both_migrations() {
        let table = table(vec![run("corelay", true)]);
        let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        let expected =
            "corelay share near 2 200 20,000,000 50.0 [50.0–50.0] 100 900–1,100 10.0 20.0 1 right";
        assert_eq!(row.join(" "), expected);
        assert!(table.contains("processors on CPUs: 0, 1"), "{table}");
    }

    #[test]
    fn a_run_without_a_figure_says_why() {
        let absent = || Run {
            not_installed: Some("there is no compiler".to_owned()),
            samples: vec![],
            by_mode: BTreeMap::new(),
            ..run("go", true)
        };
        let wrong = Run {
            correct: false,
            ..run("may", true)
        };
        let table = table(vec![absent(), absent(), run("tokio", false), wrong]);
        let rows: Vec<&str> = table.lines().collect();
        assert!(
            rows[1].starts_with(" go") && rows[1].contains("not installed"),
            "{table}"
        );
        assert!(rows[3].starts_with(" tokio") && rows[3].contains("did not complete"));
        assert!(
            rows[4].starts_with(" may") && rows[4].contains("WRONG"),
            "{table}"
        );
        assert!(!rows[4].contains("20,000,000"), "{table}");
        let why = table
            .matches("go: not installed: there is no compiler")
            .count();
        assert_eq!(why, 1, "{table}");
    }
}
