//! The charts of a file: lines of points for each workload and axis, in each mode of the machine
//! that occurred.

use super::fibres;
use super::read::Input;
use crate::data::{self, MODES, Subject, lines};
use crate::figure::measured::Measured;
use crate::figure::outcome::Axis;
use crate::figure::outcome::{About, Outcome};
use crate::figure::quantity::{Better, Quantity};
use crate::latency::LoadQuantity;
use corelay_lab_measure::schema::{Mode, Percentiles, Results, Run};
use std::collections::BTreeMap;

/// Lines over an axis.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The key. Charts of two files can be overlaid if their keys are equal.
    pub(crate) key: Key,
    /// The lines in each mode.
    pub(crate) lines: BTreeMap<Mode, Vec<ChartLine>>,
}

/// A workload, an axis and a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The workload and its distribution, or the figure and its panel.
    pub what: String,
    /// The horizontal axis.
    pub axis: Axis,
    /// The vertical axis: name and unit.
    pub(crate) quantity: String,
    /// The direction in which the quantity improves.
    pub(crate) better: Better,
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub(crate) struct ChartLine {
    /// The line's name: a method, or a variant of it.
    pub(crate) label: String,
    /// The points in order of x.
    pub(crate) points: Vec<Point>,
}

/// A point with its spread.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Point {
    /// The place on the horizontal axis.
    pub x: f64,
    /// The value on the vertical axis.
    pub y: f64,
    /// First and third quartile, or the value itself.
    pub spread: (f64, f64),
    /// Number of samples; 0 for a value over a whole run.
    pub(crate) n: usize,
}

/// Makes all charts of a file.
pub(crate) fn of(input: &Input) -> Vec<Chart> {
    let charts = input.parts.iter().flat_map(|part| match &part.figure {
        Some(about) => of_figure(&part.results, about),
        None => of_runs(&part.results),
    });
    charts.filter(|chart| !chart.lines.is_empty()).collect()
}

/// Makes the charts of runs that belong to no figure.
fn of_runs(results: &Results) -> Vec<Chart> {
    let mut others = results.clone();
    others.runs.retain(|run| !fibres::is_one(run));
    let charts = [of_throughput(&others), of_latency(&others)];
    [charts.concat(), fibres::of(results)].concat()
}

fn of_figure(results: &Results, about: &About) -> Vec<Chart> {
    let outcome = Outcome {
        figure: about.clone(),
        results: results.clone(),
    };
    let mut charts = Vec::new();
    for panel in &about.panels {
        for &quantity in &panel.quantities {
            let in_mode = |measured: &Measured<'_>| {
                let line = |label: &String| ChartLine {
                    label: label.clone(),
                    points: measured
                        .points(&panel.key, label, quantity)
                        .into_iter()
                        .map(|(x, value)| Point {
                            x,
                            y: value.middle,
                            spread: value.spread,
                            n: value.n,
                        })
                        .collect(),
                };
                panel.lines.iter().map(line).collect()
            };
            charts.push(Chart {
                key: Key {
                    what: format!("figure {}: {}", about.name, lower(&panel.title)),
                    axis: panel.axis.clone(),
                    quantity: quantity.label().to_owned(),
                    better: quantity.better(),
                },
                lines: by_mode(|mode| match quantity {
                    Quantity::Throughput => in_mode(&Measured::in_mode(&outcome, mode)),
                    // Counters are over all modes together.
                    _ if mode == Mode::Unknown => in_mode(&Measured::of(&outcome)),
                    _ => Vec::new(),
                }),
            });
        }
    }
    charts
}

/// Returns a title as it stands within a line.
fn lower(title: &str) -> String {
    let mut letters = title.chars();
    letters
        .next()
        .map_or(String::new(), |c| c.to_lowercase().chain(letters).collect())
}

/// Returns the modes in which there are lines with points, with these lines.
pub(super) fn by_mode(lines: impl Fn(Mode) -> Vec<ChartLine>) -> BTreeMap<Mode, Vec<ChartLine>> {
    let of = |mode| {
        let mut lines = lines(mode);
        lines.retain(|line| !line.points.is_empty());
        (!lines.is_empty()).then_some((mode, lines))
    };
    MODES.into_iter().filter_map(of).collect()
}

/// Makes the charts of runs without a load: over variables if these were swept, else over
/// threads. As on the page of `compare`, the most threads that have a CPU each represent a
/// machine.
fn of_throughput(results: &Results) -> Vec<Chart> {
    let of = |subject: Subject<'_>| {
        let threads = subject.main_threads(results.machine.cpus);
        // Workloads ordered by a clock have no variables for an axis.
        let is_ordered = |run: &&Run| run.samples.iter().any(|s| s.counts.is_some());
        let is_ordered = subject.runs.iter().any(is_ordered);
        // Nor have the course's workloads (they are named after its steps), and one number of
        // threads is enough to draw these.
        let has_no_vars = is_ordered || subject.workload.starts_with("course-");
        let over_threads = subject.vars().len() == 1 && subject.threads().len() > 1 || has_no_vars;
        let runs = match threads.filter(|_| !over_threads) {
            Some(threads) => subject.at(threads),
            None => subject.runs.clone(),
        };
        let x = |run: &Run| match over_threads {
            true => run.params.threads as u64,
            false => run.params.vars,
        };
        let line = |mode| {
            let drawn = |line: data::MethodLine<'_>| ChartLine {
                points: line
                    .points
                    .iter()
                    .filter_map(|(x, run)| {
                        let value = Quantity::Throughput.of(run, mode)?;
                        let summary = run.by_mode.get(&mode)?;
                        Some(Point {
                            x: *x as f64,
                            y: summary.median_mops,
                            spread: value.spread,
                            n: value.n,
                        })
                    })
                    .collect(),
                label: line.label,
            };
            lines(&runs, x).into_iter().map(drawn).collect()
        };
        Chart {
            key: Key {
                what: subject.name(),
                axis: match over_threads {
                    true => Axis::linear("threads"),
                    false => Axis::vars(),
                },
                quantity: Quantity::Throughput.label().to_owned(),
                better: Quantity::Throughput.better(),
            },
            lines: by_mode(line),
        }
    };
    Subject::all(results).into_iter().map(of).collect()
}

/// Makes the charts of runs under a load, over the load: the median and the 99th percentile, at
/// the most threads and the fewest variables.
fn of_latency(results: &Results) -> Vec<Chart> {
    type Pick = fn(&Percentiles) -> u64;
    // A percentile has a spread over the samples, if the file has those of each sample.
    let runs = results.runs.iter().filter(|run| run.correct);
    let mut runs: Vec<&Run> = runs.filter(|run| run.load.is_some()).collect();
    let threads = runs.iter().map(|run| run.params.threads).max();
    let vars = runs.iter().map(|run| run.params.vars).min();
    runs.retain(|run| Some(run.params.threads) == threads && Some(run.params.vars) == vars);
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let offered = |run: &Run| run.load.map_or(0, |load| load.offered as u64);
    let of = |(name, quantity, pick): (&str, LoadQuantity, Pick)| {
        let line = |mode| {
            let point = |(x, run): &(u64, &Run)| {
                let x = *x as f64;
                if let Some(over) = quantity.of(run, mode) {
                    return Some(Point {
                        x,
                        y: over.median,
                        spread: (over.q1, over.q3),
                        n: over.n,
                    });
                }
                let us = pick(&run.by_mode.get(&mode)?.latency_ns?) as f64 / 1000.0;
                Some(Point {
                    x,
                    y: us,
                    spread: (us, us),
                    n: 0,
                })
            };
            let drawn = |line: data::MethodLine<'_>| ChartLine {
                points: line.points.iter().filter_map(point).collect(),
                label: line.label,
            };
            lines(&runs, offered).into_iter().map(drawn).collect()
        };
        Chart {
            key: Key {
                what: format!("{}, arriving on a schedule", first.workload),
                axis: Axis::log("operations per second offered"),
                quantity: name.to_owned(),
                better: Better::Lower,
            },
            lines: by_mode(line),
        }
    };
    let picks: [(&str, LoadQuantity, Pick); 2] = [
        ("median latency, µs", LoadQuantity::P50, |p| p.p50),
        ("99th percentile of latency, µs", LoadQuantity::P99, |p| {
            p.p99
        }),
    ];
    picks.map(of).into()
}
