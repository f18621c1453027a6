//! The project's speed targets, and how they are judged.
//!
//! A target is a bound on the ratio to a tuned rival, sampled in turn with it. It is met if the worse
//! end of the ratio's 95 % bootstrap interval meets it, over enough blocks of one latency mode. A
//! mode that occurred in fewer blocks is *not seen*, which is not a pass.

pub(crate) mod cached;
pub(crate) mod course;
mod delegate;
pub(crate) mod fibre;
mod flat;
mod literature;
pub(crate) mod locks;
pub(crate) mod store;
pub(crate) mod structures;
pub(crate) mod txn;

use corelay_lab_measure::measure::stats::{self, Interval};
use corelay_lab_measure::method::Method;
use corelay_lab_measure::schema::{Mode, Run, Sample};
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::Choice;
use std::fmt;
use std::slice;
use std::sync::Arc;

pub(crate) use delegate::idle;

/// Methods that are measured together, and the targets that are judged by their samples.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    /// The methods that are measured.
    pub methods: Vec<Method>,
    /// The targets that are judged.
    pub targets: Vec<Target>,
    /// All threads, servers included.
    pub threads: usize,
    /// Shared variables.
    pub vars: u64,
    /// Requests in flight per client and trustee.
    pub window: usize,
}

impl Area {
    /// Returns the area of dedicated delegation, against locks, atomics and channels.
    pub(crate) fn delegate() -> Self {
        delegate::area()
    }

    /// Returns the area of flat teams, on a machine with `cpus` CPUs.
    pub(crate) fn flat(cpus: usize) -> Self {
        flat::area(cpus)
    }

    /// Returns the area of dedicated delegation, against the protocols of the papers.
    pub(crate) fn literature() -> Self {
        literature::area()
    }

    /// Returns the area of fibres that call `apply`, against a yield and a request, and a mutex.
    pub(crate) fn calls_of_fibres() -> Self {
        fibre::calls()
    }

    /// Returns the point at which the methods are measured.
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

/// The numerator or the denominator of a ratio.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Term {
    /// Throughput of a method.
    Mops(&'static str),
    /// Time per operation of a method, in nanoseconds.
    Ns(&'static str),
    /// The sum of two methods' times per operation, in nanoseconds.
    NsOfBoth(&'static [&'static str; 2]),
    /// The round trip probed around the samples of a method, in nanoseconds.
    Rtt(&'static str),
    /// Throughput of the best of several methods: the one with the largest median in the mode.
    Best(&'static [&'static str]),
    /// The 99th percentile of a method's latency, in nanoseconds. Its operations arrive on a schedule.
    P99(&'static str),
    /// The 99th percentile of the best of several methods: the one with the smallest median in the mode.
    BestP99(&'static [&'static str]),
    /// A fixed number, in the unit of the other term.
    Fixed(f64),
}

impl Term {
    /// Returns the methods whose samples the term may use.
    pub(crate) fn methods(&self) -> &[&'static str] {
        match self {
            Self::Mops(method) | Self::Ns(method) | Self::Rtt(method) | Self::P99(method) => {
                slice::from_ref(method)
            }
            Self::NsOfBoth(methods) => *methods,
            Self::Best(methods) | Self::BestP99(methods) => methods,
            Self::Fixed(_) => &[],
        }
    }

    /// Replaces [`Term::Best`] and [`Term::BestP99`] by the method that is the best in this mode.
    /// Returns `None` if one of the methods has no sample in the mode, because it might have been the
    /// best.
    fn settled(self, runs: &[Run], mode: Mode) -> Option<Self> {
        let (methods, of): (_, fn(&'static str) -> Self) = match self {
            Self::Best(methods) => (methods, Self::Mops),
            Self::BestP99(methods) => (methods, Self::P99),
            _ => return Some(self),
        };
        let median = |&method| {
            let median = stats::median(&values(of(method), runs, mode))?;
            Some((of(method), median))
        };
        let medians: Option<Vec<_>> = methods.iter().map(median).collect();
        let medians = medians?.into_iter();
        let best = match self {
            Self::BestP99(_) => medians.min_by(|a, b| a.1.total_cmp(&b.1)),
            _ => medians.max_by(|a, b| a.1.total_cmp(&b.1)),
        };
        best.map(|(term, _)| term)
    }
}

/// The bound that a ratio has to meet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// The ratio is at least this.
    AtLeast(f64),
    /// The ratio is at most this.
    AtMost(f64),
}

/// A target: a ratio of two terms, and its bound in each mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The target's name in the output, such as `post / fetch_add`.
    pub what: &'static str,
    /// The numerator of the ratio.
    pub top: Term,
    /// The denominator of the ratio.
    pub bottom: Term,
    /// The bound in the mode near.
    pub near: Bound,
    /// The bound in the mode far.
    pub far: Bound,
}

/// The judgement of a target in one mode.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    /// The target's name in the output.
    pub what: &'static str,
    /// The mode.
    pub mode: Mode,
    /// The bound in this mode.
    pub bound: Bound,
    /// The ratio; `None` if the mode occurred in too few blocks.
    pub ratio: Option<Interval>,
    /// Blocks in which the mode occurred, for the method with the fewest.
    pub blocks: usize,
    /// The best method, if the denominator is [`Term::Best`] or [`Term::BestP99`] and it is known.
    pub best: Option<&'static str>,
}

impl Bound {
    /// Returns whether the worse end of the interval meets the bound.
    pub(crate) fn is_met_by(self, ratio: Interval) -> bool {
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

impl Judgement {
    /// Returns whether the target is met; `None` if the mode occurred in too few blocks.
    pub(crate) fn is_met(&self) -> Option<bool> {
        self.ratio.map(|ratio| self.bound.is_met_by(ratio))
    }
}

impl fmt::Display for Judgement {
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

/// Judges `targets` in both modes by the samples of `runs`. A mode is judged if every method of the
/// target has at least `blocks` samples in it.
pub(crate) fn judge(targets: &[Target], runs: &[Run], blocks: usize) -> Vec<Judgement> {
    let judged = |target: &Target, mode: Mode, bound: Bound| {
        let terms = [target.top, target.bottom];
        let methods = terms.iter().flat_map(Term::methods);
        let seen = methods.map(|method| values(Term::Mops(method), runs, mode).len());
        let fewest = seen.min().unwrap_or(0);
        let settled = terms.map(|term| term.settled(runs, mode));
        let [top, bottom] = settled.map(|f| f.map_or(vec![], |f| values(f, runs, mode)));
        let best = match (target.bottom, settled[1]) {
            (Term::Best(_), Some(Term::Mops(best))) | (Term::BestP99(_), Some(Term::P99(best))) => {
                Some(best)
            }
            _ => None,
        };
        Judgement {
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

/// Returns the values of a term: one for each sample of its method in this mode. A run with a wrong
/// result has none.
fn values(term: Term, runs: &[Run], mode: Mode) -> Vec<f64> {
    if let Term::NsOfBoth(&[one, other]) = term {
        let [one, other] = [one, other].map(|method| values(Term::Ns(method), runs, mode));
        return one
            .iter()
            .zip(other)
            .map(|(one, other)| one + other)
            .collect();
    }
    if let Term::Fixed(number) = term {
        return vec![number];
    }
    let method = |run: &&Run| term.methods() == [run.method.as_str()];
    let run = runs.iter().find(method).filter(|run| run.correct);
    let samples = run.into_iter().flat_map(|run| &run.samples);
    samples
        .filter(|sample| sample.mode == mode)
        .filter_map(|sample| match term {
            Term::Mops(_) | Term::Best(_) => Some(sample.mops),
            Term::Ns(_) | Term::NsOfBoth(_) => Some(1e3 / sample.mops),
            Term::Rtt(_) => sample.rtt_ns,
            Term::P99(_) | Term::BestP99(_) => p99(sample),
            Term::Fixed(number) => Some(number),
        })
        .collect()
}

/// Returns the 99th percentile of the latency, in nanoseconds, of each sample of a run in this mode.
pub(crate) fn p99s(run: &Run, mode: Mode) -> Vec<f64> {
    let samples = run.samples.iter().filter(|sample| sample.mode == mode);
    samples.filter_map(p99).collect()
}

fn p99(sample: &Sample) -> Option<f64> {
    sample.latency_ns.map(|latency| latency.p99 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::schema::{Params, Percentiles};

    pub(super) fn run(method: &str, mode: Mode, mops: &[f64]) -> Run {
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
            picture: None,
            cache: None,
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
            cache: None,
            notes: vec![],
        }
    }

    const TWICE: Target = Target {
        what: "a / b",
        top: Term::Mops("a"),
        bottom: Term::Mops("b"),
        near: Bound::AtLeast(2.0),
        far: Bound::AtLeast(2.0),
    };

    #[test]
    fn the_worse_end_decides_and_an_unseen_mode_does_not_pass() {
        let steady = [
            run("a", Mode::Near, &[21.0; 30]),
            run("b", Mode::Near, &[10.0; 30]),
        ];
        let judgements = judge(&[TWICE], &steady, 30);
        assert_eq!(judgements[0].is_met(), Some(true));
        assert_eq!(judgements[1].is_met(), None, "far did not occur");

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
    fn a_fixed_number_needs_no_samples() {
        let above = Target {
            bottom: Term::Fixed(20.0),
            near: Bound::AtLeast(1.0),
            ..TWICE
        };
        let judged = |mops| judge(&[above], &[run("a", Mode::Near, &[mops; 30])], 30)[0].is_met();
        assert_eq!(judged(21.0), Some(true));
        assert_eq!(judged(19.0), Some(false));
        assert_eq!(judge(&[above], &[], 30)[0].is_met(), None);
    }

    #[test]
    fn a_wrong_run_gives_no_judgement() {
        let mut wrong = run("a", Mode::Near, &[21.0; 30]);
        wrong.correct = false;
        let runs = [wrong, run("b", Mode::Near, &[10.0; 30])];
        assert_eq!(judge(&[TWICE], &runs, 30)[0].is_met(), None);
    }

    #[test]
    fn the_best_is_found_in_each_mode_and_needs_all_to_be_seen() {
        let best = Target {
            bottom: Term::Best(&["b", "c"]),
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
        let judgements = judge(&[best], &runs, 29);
        let seen = |n: usize| {
            (
                judgements[n].best,
                judgements[n].is_met(),
                judgements[n].blocks,
            )
        };
        assert_eq!(seen(0), (Some("c"), Some(true), 30));
        assert_eq!(seen(1), (Some("b"), Some(false), 29));
        let said = format!("{:20}", judgements[1]);
        assert!(said.starts_with("a / b                far"), "{said}");
        assert!(said.ends_with("MISS  the best: b"), "{said}");
        // `b` has enough, but `c` might have been better.
        assert_eq!(judge(&[best], &runs, 30)[1].is_met(), None);
        let judgement = &judge(&[best], &runs[..2], 1)[0];
        assert_eq!((judgement.best, judgement.is_met()), (None, None));
    }

    #[test]
    fn the_best_latency_is_the_smallest() {
        let late = |method, p99| {
            let mut late = run(method, Mode::Near, &[1.0; 30]);
            for sample in &mut late.samples {
                sample.latency_ns = Some(Percentiles {
                    p99,
                    ..Percentiles::default()
                });
            }
            late
        };
        let target = Target {
            top: Term::P99("a"),
            bottom: Term::BestP99(&["b", "c"]),
            near: Bound::AtMost(1.2),
            ..TWICE
        };
        let judged = |a| {
            judge(
                &[target],
                &[late("a", a), late("b", 100), late("c", 300)],
                30,
            )
        };
        let judgement = &judged(119)[0];
        assert_eq!(
            (judgement.best, judgement.is_met()),
            (Some("b"), Some(true))
        );
        assert_eq!(judged(121)[0].is_met(), Some(false));
        // A method without a latency might have been the best.
        let runs = [
            late("a", 100),
            late("b", 100),
            run("c", Mode::Near, &[1.0; 30]),
        ];
        assert_eq!(judge(&[target], &runs, 30)[0].is_met(), None);
    }

    #[test]
    fn times_are_reciprocals_and_round_trips_are_those_of_the_samples() {
        let runs = [run("a", Mode::Far, &[20.0; 3])];
        assert_eq!(values(Term::Ns("a"), &runs, Mode::Far), [50.0; 3]);
        assert_eq!(values(Term::Rtt("a"), &runs, Mode::Far), [100.0; 3]);
        assert!(values(Term::Ns("a"), &runs, Mode::Near).is_empty());
        let runs = [runs[0].clone(), run("b", Mode::Far, &[10.0; 2])];
        let both = Term::NsOfBoth(&["a", "b"]);
        assert_eq!(values(both, &runs, Mode::Far), [150.0; 2]);
        assert_eq!(both.methods(), ["a", "b"]);
    }
}
