//! The targets of the locks: `adaptive` against the best lock at each point of a sweep, alone on its
//! thread, and with far more threads than CPUs.

use super::Bound::{AtLeast, AtMost};
use super::Term::{Best, BestP99, Fixed, Mops, Ns, P99};
use super::{Judgement, Target, judge};
use corelay_lab_measure::measure::load;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::method::{Method, OnSchedule, any, named};
use corelay_lab_measure::schema::{Limit, Mode, Run};
use corelay_lab_measure::workload::operation::Workload;
use corelay_lab_measure::workload::point;
use corelay_lab_measure::workload::slow::Slow;
use std::fmt;
use std::time::Duration;

/// The locks that `adaptive` is compared with.
const RIVALS: &[&str] = &[
    "mutex",
    "parking-lot",
    "ttas",
    "mcs",
    "clh",
    "flat-combining",
    "cc-synch",
];

const ADAPTIVE: &str = "adaptive";

const EVERYWHERE: Target = Target {
    what: "adaptive / best lock",
    top: Mops(ADAPTIVE),
    bottom: Best(RIVALS),
    near: AtLeast(0.95),
    far: AtLeast(0.95),
};

/// One thread has no second CPU to be near to or far from, so both modes have the bound.
const ALONE: Target = Target {
    what: "time of adaptive / of parking-lot, alone",
    top: Ns(ADAPTIVE),
    bottom: Ns("parking-lot"),
    near: AtMost(1.1),
    far: AtMost(1.1),
};

const CROWDED: Target = Target {
    what: "adaptive, 64 threads / 2 threads",
    top: Mops("64 threads"),
    bottom: Mops("2 threads"),
    near: AtLeast(0.8),
    far: AtLeast(0.8),
};

/// At half of the highest load that every lock bears in the mode.
const LATE: Target = Target {
    what: "p99 of adaptive / of the best lock",
    top: P99(ADAPTIVE),
    bottom: BestP99(RIVALS),
    near: AtMost(1.2),
    far: AtMost(1.2),
};

/// The combining locks against the slower one of their C versions, which did 16 to 25 and 18 to 25
/// Mops on one number, with two threads that are near. What they do far is only shown.
const COMBINING: [Target; 2] = [
    combining("flat-combining / 18 Mops", "flat-combining"),
    combining("cc-synch / 18 Mops", "cc-synch"),
];

const fn combining(what: &'static str, method: &'static str) -> Target {
    Target {
        what,
        top: Mops(method),
        bottom: Fixed(18.0),
        near: AtLeast(1.0),
        far: AtLeast(0.0),
    }
}

/// The lengths of sections that compute. There is one besides that only adds, and that every method
/// can inline as it could inline a user's.
const SECTIONS: [Duration; 2] = [Duration::from_nanos(100), Duration::from_micros(2)];
const THREADS: [usize; 5] = [1, 2, 4, 16, 64];
const VARS: [u64; 2] = [1, 64];

/// A place of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    section: Duration,
    /// All threads.
    pub threads: usize,
    /// Variables, each with a lock.
    pub vars: u64,
}

impl Point {
    /// Returns the point at which the locks are measured.
    pub(crate) fn point(self) -> point::Point {
        point::Point {
            servers: 0,
            vars: self.vars,
            ..point::Point::small(self.threads)
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            section,
            threads,
            vars,
        } = self;
        write!(
            f,
            "{threads} threads, {vars} variables, section {section:?}"
        )
    }
}

/// Returns the most threads of any point.
pub(crate) fn most_threads() -> usize {
    THREADS.into_iter().max().unwrap_or(1)
}

/// Returns the points of a section, which are measured in one session.
pub(crate) fn points(section: Duration) -> Vec<Point> {
    let counts = THREADS.into_iter();
    let points = counts.flat_map(|threads| {
        VARS.map(|vars| Point {
            section,
            threads,
            vars,
        })
    });
    points.collect()
}

/// Returns each length of a section that computes with its workload.
pub(crate) fn sections() -> impl Iterator<Item = (Duration, Slow)> {
    SECTIONS
        .into_iter()
        .map(|section| (section, Slow::lasting(section)))
}

/// Returns the place at which latency is measured: two threads, which share one variable.
pub(crate) fn latency_at(section: Duration) -> Point {
    Point {
        section,
        threads: 2,
        vars: 1,
    }
}

/// Returns the methods that are measured at a load.
///
/// # Errors
/// If the catalogue does not know one of them.
pub(crate) fn on_schedule<W: Workload>() -> Result<Vec<OnSchedule<W>>, String> {
    let known = any::<W>();
    let names = RIVALS.iter().chain([&ADAPTIVE]);
    names.map(|name| OnSchedule::named(&known, name)).collect()
}

/// Returns the loads to measure at `point`, in operations per second, each half of the one before. The
/// first is the highest that every one of `methods` was seen to bear; which of them all bear in a mode
/// is up to the samples.
pub(crate) fn loads<W: Workload>(
    workload: W,
    rig: &mut Rig,
    methods: &[OnSchedule<W>],
    point: &point::Point,
) -> Vec<u64> {
    const SEARCHES: usize = 3;
    const LOWEST: f64 = 50_000.0;
    const STEP: f64 = 1.4;
    /// The number of loads. One that is borne near may be several times as high as one that is borne far.
    const LOADS: u32 = 4;
    let ladder: Vec<u64> = (0..24).map(|n| (LOWEST * STEP.powi(n)) as u64).collect();
    let mut borne = vec![0; methods.len()];
    for _ in 0..SEARCHES {
        let climbed = load::climb(workload, rig, methods, point, &ladder, None, || {});
        for (borne, loads) in borne.iter_mut().zip(climbed) {
            // The last load of a method is the first that it does not bear.
            let highest = loads.iter().rev().nth(1).or(loads.first());
            *borne = highest.copied().unwrap_or(0).max(*borne);
        }
    }
    let highest = borne.into_iter().min().unwrap_or(0).max(1 << LOADS);
    (0..LOADS).map(|n| highest >> n).collect()
}

/// The runs of all locks at one load.
pub(crate) type AtLoad = (u64, Vec<Run>);

/// Returns the runs at half of the highest load that every lock bears in this mode. `None` if they
/// bear none in this mode, or only the lowest, half of which was not measured. `by_load` has the
/// higher loads first.
pub(crate) fn at_half_of_bearable(by_load: &[AtLoad], mode: Mode) -> Option<&AtLoad> {
    let bears = |run: &Run| {
        let limit = run.by_mode.get(&mode).and_then(|summary| summary.limit);
        run.correct && limit == Some(Limit::None)
    };
    let bearable = by_load
        .iter()
        .position(|(_, runs)| runs.iter().all(bears))?;
    by_load.get(bearable + 1)
}

/// Judges the latency in one mode by the runs at its load.
pub(crate) fn judge_latency(runs: &[Run], mode: Mode, blocks: usize) -> Vec<Judgement> {
    let mut judged = judge(&[LATE], runs, blocks);
    judged.retain(|judgement| judgement.mode == mode);
    judged
}

/// Returns the methods that are measured at each point.
///
/// # Errors
/// If the catalogue does not know one of them.
pub(crate) fn methods<W: Workload>() -> Result<Vec<Method<W>>, String> {
    let known = any::<W>();
    let names = RIVALS.iter().chain([&ADAPTIVE]);
    let missing = |name: &str| format!("the catalogue has no method `{name}`");
    names
        .map(|name| named(&known, name).unwrap_or_else(|| Err(missing(name))))
        .collect()
}

/// Judges the targets at one point by its runs.
pub(crate) fn judge_point(point: Point, runs: &[Run], blocks: usize) -> Vec<Judgement> {
    let mut targets = vec![EVERYWHERE];
    targets.extend((point.threads == 1).then_some(ALONE));
    if (point.threads, point.vars, point.section) == (2, 1, Duration::ZERO) {
        targets.extend(COMBINING);
    }
    judge(&targets, runs, blocks)
}

/// Judges, for each section and number of variables, what is left of `adaptive` in a crowd.
pub(crate) fn judge_crowds(
    of: &[(Point, Vec<Run>)],
    blocks: usize,
) -> Vec<(Point, Vec<Judgement>)> {
    let judged = |(crowd, runs): &(Point, Vec<Run>)| {
        let pair = Point {
            threads: 2,
            ..*crowd
        };
        let (_, pairs) = of.iter().find(|(point, _)| *point == pair)?;
        let both = [adaptive(runs, "64 threads")?, adaptive(pairs, "2 threads")?];
        Some((*crowd, judge(&[CROWDED], &both, blocks)))
    };
    let crowds = of
        .iter()
        .filter(|(point, _)| point.threads == most_threads());
    crowds.filter_map(judged).collect()
}

/// The run of `adaptive`, under the name by which a target knows it.
fn adaptive(runs: &[Run], name: &str) -> Option<Run> {
    let run = runs.iter().find(|run| run.method == ADAPTIVE)?;
    Some(Run {
        method: name.to_owned(),
        ..run.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::tests::run;
    use corelay_lab_measure::schema::ModeSummary;
    use corelay_lab_measure::workload::fetch_add::FetchAdd;

    #[test]
    fn the_catalogue_has_the_methods_of_all_targets() {
        let methods = methods::<FetchAdd>().unwrap();
        let has = |name: &str| methods.iter().any(|method| method.name() == name);
        for target in [EVERYWHERE, ALONE, LATE].iter().chain(&COMBINING) {
            for term in [target.top, target.bottom] {
                assert!(term.methods().iter().all(|name| has(name)), "{target:?}");
            }
        }
    }

    #[test]
    fn operations_of_every_lock_can_arrive_on_a_schedule() {
        assert_eq!(on_schedule::<Slow>().unwrap().len(), RIVALS.len() + 1);
    }

    #[test]
    fn half_of_the_highest_load_that_all_bear_is_judged() {
        let run = |limit| {
            let summary = ModeSummary {
                median_mops: 1.0,
                n: 30,
                q1_mops: 1.0,
                q3_mops: 1.0,
                latency_ns: None,
                limit: Some(limit),
            };
            Run {
                by_mode: [(Mode::Near, summary)].into(),
                ..run("mutex", Mode::Near, &[])
            }
        };
        let at = |load, one, other| (load, vec![run(one), run(other)]);
        let loads = [
            at(8, Limit::Method, Limit::None),
            at(4, Limit::None, Limit::None),
            at(2, Limit::None, Limit::Cpus),
        ];
        let half = |loads| at_half_of_bearable(loads, Mode::Near).map(|(load, _)| *load);
        assert_eq!(half(&loads), Some(2));
        assert_eq!(half(&loads[..2]), None, "half of 4 was not measured");
        assert_eq!(half(&loads[2..]), None);
        assert!(at_half_of_bearable(&loads, Mode::Far).is_none());
    }

    #[test]
    fn every_point_is_there_once() {
        let all = points(Duration::ZERO);
        assert_eq!(all.len(), THREADS.len() * VARS.len());
        for (i, point) in all.iter().enumerate() {
            assert!(!all[..i].contains(point), "{point}");
        }
    }
}
