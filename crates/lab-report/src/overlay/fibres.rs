//! Charts of fibre benchmarks over processors (C7): throughput, and scalability, which stays
//! level if twice the processors do twice the work.

use super::chart::{Chart, ChartLine, Key, Point, by_mode};
use crate::figure::outcome::Axis;
use crate::figure::quantity::{Better, Quantity};
use corelay_lab_measure::schema::{Mode, ModeSummary, Results, Run, Size};

/// Whether a run is of a benchmark of fibres.
pub(super) fn is_one(run: &Run) -> bool {
    run.params.extra.fibres.is_some()
}

/// Makes two charts for each benchmark, form and number of fibres.
pub(super) fn of(results: &Results) -> Vec<Chart> {
    let mut kinds: Vec<(String, Vec<&Run>)> = Vec::new();
    for run in results.runs.iter().filter(|run| is_one(run)) {
        let name = name(run);
        match kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, runs)) => runs.push(run),
            None => kinds.push((name, vec![run])),
        }
    }
    let both = |(name, runs): (String, Vec<&Run>)| {
        [
            chart(
                &name,
                &runs,
                (Quantity::Throughput.label(), Better::Higher),
                |mops, _| mops,
            ),
            chart(
                &name,
                &runs,
                (
                    "ns × processors per operation (lower is better)",
                    Better::Lower,
                ),
                |mops, processors| 1e3 / mops * processors,
            ),
        ]
    };
    kinds.into_iter().flat_map(both).collect()
}

/// Returns the name of a line's runs: the benchmark, its form, and the number of fibres.
fn name(run: &Run) -> String {
    let extra = &run.params.extra;
    let mut name = run.workload.clone();
    if let Some(share) = extra.share {
        name += if share { ", share" } else { ", no share" };
    }
    if let Some(flavour) = &extra.flavour {
        name += &format!(", {flavour}");
    }
    match &extra.size {
        Some(Size::Asked(size)) => name + ", " + size,
        _ => name,
    }
}

fn chart(
    name: &str,
    runs: &[&Run],
    (quantity, better): (&str, Better),
    value: fn(f64, f64) -> f64,
) -> Chart {
    let point = |run: &Run, summary: &ModeSummary| {
        let processors = run.params.threads as f64;
        let of = |mops| value(mops, processors);
        let (one, other) = (of(summary.q1_mops), of(summary.q3_mops));
        Point {
            x: processors,
            y: of(summary.median_mops),
            spread: (one.min(other), one.max(other)),
            n: summary.n,
        }
    };
    let lines = |mode: Mode| {
        let mut lines: Vec<ChartLine> = Vec::new();
        for run in runs {
            let Some(summary) = run.by_mode.get(&mode) else {
                continue;
            };
            let known = lines.iter().position(|line| line.label == run.method);
            let at = known.unwrap_or_else(|| {
                lines.push(ChartLine {
                    label: run.method.clone(),
                    points: Vec::new(),
                });
                lines.len() - 1
            });
            lines[at].points.push(point(run, summary));
        }
        for line in &mut lines {
            line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        lines
    };
    Chart {
        key: Key {
            what: name.to_owned(),
            axis: Axis::linear("processors"),
            quantity: quantity.to_owned(),
            better,
        },
        lines: by_mode(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let run = |size: &str, processors: usize, mops: f64| {
            format!(
                r#"{{"workload":"cycle","method":"corelay","correct":true,"median_mops":{mops},
                "harmonic_mean_mops":{mops},"samples":[],
                "params":{{"threads":{processors},"fibres":10,"size":"{size}"}},
                "by_mode":{{"near":{{"median_mops":{mops},"n":3,"q1_mops":{},"q3_mops":{}}}}}}}"#,
                mops / 2.0,
                mops * 2.0
            )
        };
        let runs = [run("hi", 2, 40.0), run("hi", 1, 20.0), run("lo", 1, 10.0)].join(",");
        let text =
            format!(r#"{{"schema":1,"machine":{{}},"commit":"c","command":"x","runs":[{runs}]}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn twice_the_work_of_twice_the_processors_is_level() {
        let charts = of(&results());
        let whats: Vec<&str> = charts.iter().map(|chart| &*chart.key.what).collect();
        assert_eq!(whats, ["cycle, hi", "cycle, hi", "cycle, lo", "cycle, lo"]);
        let points = |chart: &Chart| -> Vec<(f64, f64)> {
            let line = &chart.lines[&Mode::Near][0];
            line.points.iter().map(|point| (point.x, point.y)).collect()
        };
        assert_eq!(points(&charts[0]), [(1.0, 20.0), (2.0, 40.0)]);
        assert_eq!(points(&charts[1]), [(1.0, 50.0), (2.0, 50.0)]);
        assert_eq!(
            charts[1].lines[&Mode::Near][0].points[0].spread,
            (25.0, 100.0)
        );
    }
}
