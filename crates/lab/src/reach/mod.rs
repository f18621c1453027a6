//! Targets: what the project promises of its speed, measured.
//!
//! A target is a ratio to a tuned rival in the same run. It is met where the worse end of
//! its 95 % bootstrap interval meets it, over at least as many interleaved blocks of one
//! latency mode as asked for. A mode that did not occur so often is *not seen*, which is
//! no pass.

mod delegate;

use crate::measure::stats::{self, Interval};
use crate::schema::{Mode, Run};
use std::fmt;

pub use delegate::{METHODS, idle, targets};

/// One figure of a ratio.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    /// Throughput of a method.
    Mops(&'static str),
    /// Time per operation of a method, in nanoseconds.
    Ns(&'static str),
    /// The round trip around the samples of a method, in nanoseconds.
    Rtt(&'static str),
}

/// What a ratio is to be.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Not below.
    AtLeast(f64),
    /// Not above.
    AtMost(f64),
}

/// A promise.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What is compared with what.
    pub what: &'static str,
    /// The figure above the line.
    pub top: Figure,
    /// The figure below it.
    pub bottom: Figure,
    /// What is required near.
    pub near: Bound,
    /// What is required far.
    pub far: Bound,
}

/// How a target came out in one mode.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The target.
    pub what: &'static str,
    /// The mode.
    pub mode: Mode,
    /// What is required.
    pub bound: Bound,
    /// The ratio, where the mode was seen often enough.
    pub ratio: Option<Interval>,
    /// Blocks of this mode: the fewer of the two figures'.
    pub blocks: usize,
}

impl Bound {
    fn is_met_by(self, ratio: Interval) -> bool {
        match self {
            Self::AtLeast(least) => ratio.low >= least,
            Self::AtMost(most) => ratio.high <= most,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, ">= {least}"),
            Self::AtMost(most) => write!(f, "<= {most}"),
        }
    }
}

impl Outcome {
    /// Whether the target is met; `None` where the mode was not seen.
    pub fn is_met(&self) -> Option<bool> {
        self.ratio.map(|ratio| self.bound.is_met_by(ratio))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.mode == Mode::Near {
            "near"
        } else {
            "far"
        };
        write!(
            f,
            "{:34} {mode:5} {:>8}  ",
            self.what,
            self.bound.to_string()
        )?;
        match self.ratio {
            None => write!(f, "{:>24}  {:>4} blocks  not seen", "", self.blocks),
            Some(Interval { low, ratio, high }) => {
                let verdict = if self.bound.is_met_by(Interval { low, ratio, high }) {
                    "pass"
                } else {
                    "MISS"
                };
                let value = format!("{ratio:.3} [{low:.3}, {high:.3}]");
                write!(f, "{value:>24}  {:>4} blocks  {verdict}", self.blocks)
            }
        }
    }
}

/// Judges `targets` by the samples of `runs`, each mode with at least `blocks` of both
/// figures.
pub fn judge(targets: &[Target], runs: &[Run], blocks: usize) -> Vec<Outcome> {
    let judged = |target: &Target, mode: Mode, bound: Bound| {
        let (top, bottom) = (
            values(target.top, runs, mode),
            values(target.bottom, runs, mode),
        );
        let fewer = top.len().min(bottom.len());
        let ratio = stats::ratio_ci(&top, &bottom).filter(|_| fewer >= blocks);
        Outcome {
            what: target.what,
            mode,
            bound,
            ratio,
            blocks: fewer,
        }
    };
    targets
        .iter()
        .flat_map(|t| [judged(t, Mode::Near, t.near), judged(t, Mode::Far, t.far)])
        .collect()
}

fn values(figure: Figure, runs: &[Run], mode: Mode) -> Vec<f64> {
    let (Figure::Mops(method) | Figure::Ns(method) | Figure::Rtt(method)) = figure;
    let run = runs.iter().find(|run| run.method == method && run.correct);
    let samples = run.into_iter().flat_map(|run| &run.samples);
    samples
        .filter(|sample| sample.mode == mode)
        .filter_map(|sample| match figure {
            Figure::Mops(_) => Some(sample.mops),
            Figure::Ns(_) => Some(1e3 / sample.mops),
            Figure::Rtt(_) => sample.rtt_ns,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Params, Sample};

    fn run(method: &str, mode: Mode, mops: &[f64]) -> Run {
        let sample = |&mops: &f64| Sample {
            mops,
            mode,
            rtt_ns: Some(100.0),
            per_thread: vec![],
            cpu_s: 0.0,
            latency_ns: None,
            arrivals: None,
        };
        Run {
            workload: "fetch-add".to_owned(),
            method: method.to_owned(),
            params: Params::default(),
            correct: true,
            median_mops: 0.0,
            harmonic_mean_mops: 0.0,
            by_mode: Default::default(),
            samples: mops.iter().map(sample).collect(),
            trustees: vec![],
            latency_ns: None,
            load: None,
            notes: vec![],
        }
    }

    const TWICE: Target = Target {
        what: "a / b",
        top: Figure::Mops("a"),
        bottom: Figure::Mops("b"),
        near: Bound::AtLeast(2.0),
        far: Bound::AtLeast(2.0),
    };

    #[test]
    fn the_worse_end_decides_and_an_unseen_mode_is_no_pass() {
        let steady = [
            run("a", Mode::Near, &[21.0; 30]),
            run("b", Mode::Near, &[10.0; 30]),
        ];
        let outcomes = judge(&[TWICE], &steady, 30);
        assert_eq!(outcomes[0].is_met(), Some(true));
        assert_eq!(outcomes[1].is_met(), None, "far did not occur");

        // The median is above, but the interval reaches below.
        let wide: Vec<f64> = (0..30)
            .map(|i| if i % 2 == 0 { 15.0 } else { 27.0 })
            .collect();
        let spread = [
            run("a", Mode::Near, &wide),
            run("b", Mode::Near, &[10.0; 30]),
        ];
        assert_eq!(judge(&[TWICE], &spread, 30)[0].is_met(), Some(false));

        let few = [
            run("a", Mode::Near, &[21.0; 29]),
            run("b", Mode::Near, &[10.0; 30]),
        ];
        assert_eq!(judge(&[TWICE], &few, 30)[0].is_met(), None);
    }

    #[test]
    fn a_wrong_run_has_no_figure() {
        let mut wrong = run("a", Mode::Near, &[21.0; 30]);
        wrong.correct = false;
        let runs = [wrong, run("b", Mode::Near, &[10.0; 30])];
        assert_eq!(judge(&[TWICE], &runs, 30)[0].is_met(), None);
    }

    #[test]
    fn times_are_the_reciprocal_and_round_trips_come_with_the_samples() {
        let runs = [run("a", Mode::Far, &[20.0; 3])];
        assert_eq!(values(Figure::Ns("a"), &runs, Mode::Far), [50.0; 3]);
        assert_eq!(values(Figure::Rtt("a"), &runs, Mode::Far), [100.0; 3]);
        assert!(values(Figure::Ns("a"), &runs, Mode::Near).is_empty());
    }
}
