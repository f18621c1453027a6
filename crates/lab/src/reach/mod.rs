//! Targets: what the project promises of its speed, measured.
//!
//! A target is a ratio to a tuned rival in the same run. It is met where the worse end of
//! its 95 % bootstrap interval meets it, over at least as many interleaved blocks of one
//! latency mode as asked for. A mode that did not occur so often is *not seen*, which is
//! no pass.

pub(crate) mod course;
mod delegate;
pub(crate) mod fibre;
mod flat;
mod literature;
pub(crate) mod txn;

use corelay_lab_measure::measure::stats::{self, Interval};
use corelay_lab_measure::method::Method;
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::Choice;
use std::fmt;
use std::slice;
use std::sync::Arc;

pub(crate) use delegate::idle;

/// What is measured together, and what is promised of it.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    /// The contenders.
    pub methods: Vec<Method>,
    /// The promises.
    pub targets: Vec<Target>,
    /// All threads, servers included.
    pub threads: usize,
    /// Shared variables.
    pub vars: u64,
    /// Requests in flight per client and trustee.
    pub window: usize,
}

impl Area {
    /// Dedicated delegation.
    pub(crate) fn delegate() -> Self {
        delegate::area()
    }

    /// Flat teams, on a machine of so many CPUs.
    pub(crate) fn flat(cpus: usize) -> Self {
        flat::area(cpus)
    }

    /// Dedicated delegation beside the literature's.
    pub(crate) fn literature() -> Self {
        literature::area()
    }

    /// Fibres that call `apply`, beside what their calls are made of.
    pub(crate) fn calls_of_fibres() -> Self {
        fibre::calls()
    }

    /// Where its contenders are measured.
    pub(crate) fn point(&self, placement: Arc<[Option<usize>]>) -> Point {
        Point {
            threads: self.threads,
            servers: 1,
            vars: self.vars,
            window: self.window,
            load: None,
            lines: Default::default(),
            fibres: 0,
            choice: Choice::Uniform,
            seed: 1,
            placement,
        }
    }
}

/// One figure of a ratio.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure {
    /// Throughput of a method.
    Mops(&'static str),
    /// Time per operation of a method, in nanoseconds.
    Ns(&'static str),
    /// Time per operation of two methods, one after the other, in nanoseconds.
    NsOfBoth(&'static [&'static str; 2]),
    /// The round trip around the samples of a method, in nanoseconds.
    Rtt(&'static str),
    /// Throughput of that one of several methods which has the largest median in the mode.
    Best(&'static [&'static str]),
}

impl Figure {
    /// The methods that it may speak of.
    pub(crate) fn methods(&self) -> &[&'static str] {
        match self {
            Self::Mops(method) | Self::Ns(method) | Self::Rtt(method) => slice::from_ref(method),
            Self::NsOfBoth(methods) => *methods,
            Self::Best(methods) => methods,
        }
    }

    /// With the method that it speaks of in this mode; `None` where one of several has no
    /// sample, so that nobody knows which is the best.
    fn settled(self, runs: &[Run], mode: Mode) -> Option<Self> {
        let Self::Best(methods) = self else {
            return Some(self);
        };
        let median = |&method| {
            let median = stats::median(&values(Self::Mops(method), runs, mode))?;
            Some((method, median))
        };
        let medians: Option<Vec<_>> = methods.iter().map(median).collect();
        let best = medians?.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(method, _)| Self::Mops(method))
    }
}

/// What a ratio is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// Not below.
    AtLeast(f64),
    /// Not above.
    AtMost(f64),
}

/// A promise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
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
pub(crate) struct Outcome {
    /// The target.
    pub what: &'static str,
    /// The mode.
    pub mode: Mode,
    /// What is required.
    pub bound: Bound,
    /// The ratio, where the mode was seen often enough.
    pub ratio: Option<Interval>,
    /// Blocks of this mode: the fewest of the figures' methods.
    pub blocks: usize,
    /// The best of several, where the target is against that.
    pub best: Option<&'static str>,
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
    pub(crate) fn is_met(&self) -> Option<bool> {
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
            "{:what$} {mode:5} {:>8}  ",
            self.what,
            self.bound.to_string(),
            what = f.width().unwrap_or(0)
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
                write!(f, "{value:>24}  {:>4} blocks  {verdict}", self.blocks)?;
                match self.best {
                    Some(best) => write!(f, "  the best: {best}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Judges `targets` by the samples of `runs`, each mode with at least `blocks` of every
/// method that a figure may speak of.
pub(crate) fn judge(targets: &[Target], runs: &[Run], blocks: usize) -> Vec<Outcome> {
    let judged = |target: &Target, mode: Mode, bound: Bound| {
        let figures = [target.top, target.bottom];
        let methods = figures.iter().flat_map(Figure::methods);
        let seen = methods.map(|method| values(Figure::Mops(method), runs, mode).len());
        let fewest = seen.min().unwrap_or(0);
        let settled = figures.map(|figure| figure.settled(runs, mode));
        let [top, bottom] = settled.map(|f| f.map_or(vec![], |f| values(f, runs, mode)));
        let best = match (target.bottom, settled[1]) {
            (Figure::Best(_), Some(Figure::Mops(best))) => Some(best),
            _ => None,
        };
        Outcome {
            what: target.what,
            mode,
            bound,
            ratio: stats::ratio_ci(&top, &bottom).filter(|_| fewest >= blocks),
            blocks: fewest,
            best,
        }
    };
    targets
        .iter()
        .flat_map(|t| [judged(t, Mode::Near, t.near), judged(t, Mode::Far, t.far)])
        .collect()
}

fn values(figure: Figure, runs: &[Run], mode: Mode) -> Vec<f64> {
    if let Figure::NsOfBoth(&[one, other]) = figure {
        let [one, other] = [one, other].map(|method| values(Figure::Ns(method), runs, mode));
        return one
            .iter()
            .zip(other)
            .map(|(one, other)| one + other)
            .collect();
    }
    let method = |run: &&Run| figure.methods() == [run.method.as_str()];
    let run = runs.iter().find(method).filter(|run| run.correct);
    let samples = run.into_iter().flat_map(|run| &run.samples);
    samples
        .filter(|sample| sample.mode == mode)
        .filter_map(|sample| match figure {
            Figure::Mops(_) | Figure::Best(_) => Some(sample.mops),
            Figure::Ns(_) | Figure::NsOfBoth(_) => Some(1e3 / sample.mops),
            Figure::Rtt(_) => sample.rtt_ns,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::schema::{Params, Sample};

    fn run(method: &str, mode: Mode, mops: &[f64]) -> Run {
        let sample = |&mops: &f64| Sample {
            mops,
            mode,
            rtt_ns: Some(100.0),
            per_thread: vec![],
            cpu_s: 0.0,
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
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
            loads: None,
            not_installed: None,
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
    fn the_best_is_found_in_each_mode_and_needs_all_to_be_seen() {
        let best = Target {
            bottom: Figure::Best(&["b", "c"]),
            near: Bound::AtLeast(0.9),
            far: Bound::AtLeast(0.9),
            ..TWICE
        };
        let both = |method, near: &[f64], far: &[f64]| {
            let mut run_of = run(method, Mode::Near, near);
            run_of.samples.extend(run(method, Mode::Far, far).samples);
            run_of
        };
        let runs = [
            both("a", &[20.0; 30], &[20.0; 30]),
            both("b", &[10.0; 30], &[25.0; 30]),
            both("c", &[20.0; 30], &[10.0; 29]),
        ];
        let outcomes = judge(&[best], &runs, 29);
        let seen = |n: usize| (outcomes[n].best, outcomes[n].is_met(), outcomes[n].blocks);
        assert_eq!(seen(0), (Some("c"), Some(true), 30));
        assert_eq!(seen(1), (Some("b"), Some(false), 29));
        let said = format!("{:20}", outcomes[1]);
        assert!(said.starts_with("a / b                far"), "{said}");
        assert!(said.ends_with("MISS  the best: b"), "{said}");
        // `b` has enough, but `c` might have been better.
        assert_eq!(judge(&[best], &runs, 30)[1].is_met(), None);
        let outcome = &judge(&[best], &runs[..2], 1)[0];
        assert_eq!((outcome.best, outcome.is_met()), (None, None));
    }

    #[test]
    fn times_are_the_reciprocal_and_round_trips_come_with_the_samples() {
        let runs = [run("a", Mode::Far, &[20.0; 3])];
        assert_eq!(values(Figure::Ns("a"), &runs, Mode::Far), [50.0; 3]);
        assert_eq!(values(Figure::Rtt("a"), &runs, Mode::Far), [100.0; 3]);
        assert!(values(Figure::Ns("a"), &runs, Mode::Near).is_empty());
        let runs = [runs[0].clone(), run("b", Mode::Far, &[10.0; 2])];
        let both = Figure::NsOfBoth(&["a", "b"]);
        assert_eq!(values(both, &runs, Mode::Far), [150.0; 2]);
        assert_eq!(both.methods(), ["a", "b"]);
    }
}
