//! Tests of the figures' sentences, on made-up data.

mod chapter;
mod ffwd;
mod ordo;
mod thesis;

use super::declare::{Figure, Work};
use super::measure::{Pace, annotated};
use super::size::Size;
use corelay_lab_measure::schema::fibres::{FibreResult, MigrationChains};
use corelay_lab_measure::schema::{
    ClientCounts, ConflictCounts, Machine, Mode, ModeSummary, Params, Results, Run, SCHEMA, Sample,
    TimeOfParts, Trustee,
};
use corelay_lab_report::figure::outcome::{Outcome, place};

/// Makes the outcome of `figure` on so many CPUs, in mode near. `mops` is the throughput of a
/// line at x.
pub(super) fn outcome(figure: &Figure, cpus: usize, mops: impl Fn(&str, f64) -> f64) -> Outcome {
    let size = Size::test(cpus);
    let panels = (figure.panels)(&size);
    let mut runs = Vec::new();
    for panel in &panels {
        for line in &panel.lines {
            for cell in &line.cells {
                let mut run = run(mops(&line.label, cell.x));
                match &cell.work {
                    Work::Sharing(item) => {
                        run.params.threads = item.point.threads;
                        run.params.servers = item.point.servers;
                    }
                    Work::Fibres(item) => {
                        run.method = item.method.name().to_owned();
                        run.params.threads = item.spec.processors;
                    }
                    Work::Ordered(entrant) => {
                        run.method = entrant.method.name().to_owned();
                        run.params.threads = entrant.point.threads;
                    }
                    Work::Structure(of) => {
                        let (point, method, _) = of.point();
                        run.method = method.to_owned();
                        run.params.threads = point.threads;
                        run.params.extra = of.extra();
                        let mops = run.median_mops;
                        let summary = ModeSummary {
                            median_mops: mops,
                            n: 1,
                            q1_mops: mops,
                            q3_mops: mops,
                            latency_ns: None,
                            limit: None,
                        };
                        run.by_mode.insert(Mode::Near, summary);
                    }
                }
                place(&mut run, panel.key, &line.label, cell.x);
                runs.push(run);
            }
        }
    }
    let results = Results {
        schema: SCHEMA,
        machine: Machine {
            cpus,
            ..Machine::default()
        },
        commit: "c".to_owned(),
        command: "x".to_owned(),
        runs,
    };
    annotated(figure, &panels, Pace::SHORT, Vec::new(), results, None)
}

fn run(mops: f64) -> Run {
    Run {
        workload: "fetch-add".to_owned(),
        method: "m".to_owned(),
        params: Params::default(),
        correct: true,
        median_mops: mops,
        harmonic_mean_mops: mops,
        by_mode: Default::default(),
        samples: vec![Sample {
            mops,
            mode: Mode::Near,
            rtt_ns: Some(100.0),
            per_thread: vec![1],
            cpu_s: 0.0,
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
            picture: None,
            cache: None,
        }],
        trustees: vec![Trustee {
            requests: 80,
            passes: 20,
            passes_with_work: 10,
            asked: Some(ClientCounts {
                polls: 4,
                ready: 1,
                pops: 10,
                failed_pops: 1,
                timed: 2,
                latency_ns: 1000,
                ..ClientCounts::default()
            }),
            ..Trustee::default()
        }],
        latency_ns: None,
        load: None,
        loads: None,
        not_installed: None,
        cache: None,
        notes: Vec::new(),
    }
}

/// Returns the values measured beside the source's, and a figure's sentences, as one text.
pub(super) fn said(outcome: &Outcome) -> String {
    let beside = outcome.figure.beside.iter();
    let here = beside.map(|b| format!("{}: {}", b.what, b.here.as_deref().unwrap_or("?")));
    let said = outcome.figure.said.iter().cloned();
    let text: Vec<String> = here.chain(said).collect();
    text.join("\n").replace('\u{a0}', " ")
}
