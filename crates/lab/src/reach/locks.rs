//! The targets of the locks: `adaptive` against the best lock at each point of a sweep, alone on its
//! thread, and with far more threads than CPUs.

use super::Bound::{AtLeast, AtMost};
use super::Term::{Best, Fixed, Mops, Ns};
use super::{Judgement, Target, judge};
use corelay_lab_measure::method::{Method, any, named};
use corelay_lab_measure::schema::Run;
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

/// The lengths of the section: an addition, and one that computes besides.
const SECTIONS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_nanos(100),
    Duration::from_micros(2),
];
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

/// Returns the workloads with the points of each, which are measured in one session.
pub(crate) fn points() -> Vec<(Slow, Vec<Point>)> {
    let of = |section| {
        let counts = THREADS.into_iter();
        let points = counts.flat_map(|threads| {
            VARS.map(|vars| Point {
                section,
                threads,
                vars,
            })
        });
        (Slow::lasting(section), points.collect())
    };
    SECTIONS.into_iter().map(of).collect()
}

/// Returns the methods that are measured at each point.
///
/// # Errors
/// If the catalogue does not know one of them.
pub(crate) fn methods() -> Result<Vec<Method<Slow>>, String> {
    let known = any::<Slow>();
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

    #[test]
    fn the_catalogue_has_the_methods_of_all_targets() {
        let methods = methods().unwrap();
        let has = |name: &str| methods.iter().any(|method| method.name() == name);
        for target in [EVERYWHERE, ALONE].iter().chain(&COMBINING) {
            for term in [target.top, target.bottom] {
                assert!(term.methods().iter().all(|name| has(name)), "{target:?}");
            }
        }
    }

    #[test]
    fn every_point_is_there_once() {
        let all: Vec<_> = points()
            .into_iter()
            .flat_map(|(_, points)| points)
            .collect();
        assert_eq!(all.len(), SECTIONS.len() * THREADS.len() * VARS.len());
        for (i, point) in all.iter().enumerate() {
            assert!(!all[..i].contains(point), "{point}");
        }
    }
}
