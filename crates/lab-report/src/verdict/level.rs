//! Levels of contention: few variables, some, many, more than the caches hold.
//!
//! A sentence for each measured point would be a table. A level gathers the points that should
//! behave alike because of the chance that two threads meet (SPEC D20), and of whether the
//! variables fit into the caches (D22). If they do not behave alike, findings about a level
//! [divide it](super::findings).

use crate::model::{contention, residency};
use crate::words;
use corelay_lab_measure::schema::CacheLevel;
use std::fmt;

/// The reason that the points of a level belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Two threads meet with a probability of at least one half.
    Few,
    /// Between [`Kind::Few`] and [`Kind::Many`].
    Some,
    /// Two threads meet with a probability of at most 1 in 20.
    Many,
    /// More variables than all last-level caches together hold.
    Beyond,
    /// A single point of a workload to which the models do not apply.
    Point,
}

const LIKELY_TO_MEET: f64 = 0.5;
const RARELY_MEET: f64 = 0.05;

/// Points of a sweep that are reported together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    /// The reason that they belong together.
    pub(crate) kind: Kind,
    /// Their numbers of variables, ascending.
    pub(crate) vars: Vec<u64>,
}

impl Level {
    /// Sorts the points of a uniform fetch-add sweep into levels, in order of variables.
    pub(super) fn of_model(vars: &[u64], threads: usize, caches: &[CacheLevel]) -> Vec<Self> {
        let held =
            (!caches.is_empty()).then(|| residency::capacity(residency::last_caches(caches)));
        let kind = |&v: &u64| {
            if held.is_some_and(|held| v > held) {
                return Kind::Beyond;
            }
            match contention::probability(threads, v) {
                p if p >= LIKELY_TO_MEET => Kind::Few,
                p if p > RARELY_MEET => Kind::Some,
                _ => Kind::Many,
            }
        };
        vars.chunk_by(|a, b| kind(a) == kind(b))
            .map(|points| Level {
                kind: kind(&points[0]),
                vars: points.to_vec(),
            })
            .collect()
    }

    /// Makes a level of each point, if no model says which belong together.
    pub(super) fn of_points(vars: &[u64]) -> Vec<Self> {
        vars.iter()
            .map(|&v| Level {
                kind: Kind::Point,
                vars: vec![v],
            })
            .collect()
    }
}

/// Formats the level's name and its numbers of variables: `few (1–2)`.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = words::range(&self.vars);
        match self.kind {
            Kind::Few => write!(f, "few ({range})"),
            Kind::Some => write!(f, "some ({range})"),
            Kind::Many => write!(f, "many ({range})"),
            Kind::Beyond => write!(f, "beyond caches ({range})"),
            Kind::Point => write!(f, "{range}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u32, bytes: u64, instances: usize) -> CacheLevel {
        CacheLevel {
            level,
            bytes,
            sharers: 1,
            instances,
        }
    }

    #[test]
    fn two_threads_on_a_small_machine() {
        let caches = [cache(2, 1 << 20, 2), cache(3, 32 << 20, 1)];
        let levels = Level::of_model(&[1, 2, 4, 16, 64, 1024, 1 << 20], 2, &caches);
        let text: Vec<String> = levels.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "few (1–2)",
                "some (4–16)",
                "many (64–1,024)",
                "beyond caches (1,048,576)",
            ]
        );
    }

    #[test]
    fn many_threads_contend_far_out() {
        let levels = Level::of_model(&[1, 1024, 1 << 14, 1 << 19], 56, &[]);
        let kinds: Vec<Kind> = levels.iter().map(|l| l.kind).collect();
        // With 56 threads: 8.98 % at 2^14, 0.29 % at 2^19.
        assert_eq!(kinds, [Kind::Few, Kind::Some, Kind::Many]);
    }

    #[test]
    fn without_models_each_point_stands_alone() {
        let levels = Level::of_points(&[1, 8]);
        assert_eq!(levels[0].to_string(), "1");
        assert_eq!(levels[1].to_string(), "8");
        assert!(Level::of_model(&[], 2, &[]).is_empty());
    }
}
