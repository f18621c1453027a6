//! How far apart the CPUs' clocks are, as samples of a figure: the boundary is measured again and
//! again, between every ordered pair of CPUs, and all that was found is kept.
//!
//! It has no contenders and takes no turns. What is measured is the machine itself, and a sample is a
//! calibration: each pair's *smallest* difference over many rounds. Each is an upper bound of the
//! offset, so of several samples the smallest is one too, and the nearest.

use super::measure::Pace;
use crate::measure::rig::Rig;
use crate::measure::stats::quantile;
use crate::ordered::clocks::offsets_ns;
use corelay_clock::{CalibrateError, Calibration, Calibrator};
use corelay_topology::CpuSet;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Duration;

/// Offsets between the clocks of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offsets {
    /// The CPUs, in the order of rows and columns.
    pub cpus: Vec<usize>,
    /// Rounds of each pair in a sample; fewer where its time was up before.
    pub rounds: u64,
    /// The samples in the order in which they were taken.
    pub samples: Vec<Sample>,
}

/// One calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// From the row's CPU to the column's, in nanoseconds; upper bounds, `null` on the diagonal.
    pub offsets_ns: Vec<Vec<Option<f64>>>,
    /// By how much the counter advances at a time.
    pub step_ns: f64,
    /// The boundary that follows, with its margin.
    pub boundary_ns: f64,
    /// How long it took, in seconds.
    pub took_s: f64,
}

/// An ordered pair of CPUs and what its samples have found, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

impl Offsets {
    /// Every ordered pair, row by row.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let n = self.cpus.len();
        let places = (0..n).flat_map(|row| (0..n).map(move |column| (row, column)));
        places.filter_map(|at| self.pair(at)).collect()
    }

    /// The smallest of each pair, row by row, with blanks where there is none.
    pub(super) fn least(&self) -> Vec<Option<f64>> {
        let n = self.cpus.len();
        let cell = |at: usize| Some(self.pair((at / n, at % n))?.least);
        (0..n * n).map(cell).collect()
    }

    /// Of each ordered pair by how much there is more than back, within a sample: the median of all,
    /// in nanoseconds. Of two samples the smallest may be of different moods of the machine.
    pub(super) fn asymmetry_ns(&self) -> Vec<(usize, usize, f64)> {
        let n = self.cpus.len();
        let places = (0..n).flat_map(|row| (0..n).map(move |column| (row, column)));
        let of = |(row, column): (usize, usize)| {
            let more = |s: &Sample| Some(s.cell(row, column)? - s.cell(column, row)?);
            let more: Vec<f64> = self.samples.iter().filter_map(more).collect();
            Some((self.cpus[row], self.cpus[column], quantile(&more, 0.5)?))
        };
        places.filter_map(of).collect()
    }

    fn pair(&self, (row, column): (usize, usize)) -> Option<Pair> {
        let samples = self.samples.iter();
        let ns: Vec<f64> = samples.filter_map(|s| s.cell(row, column)).collect();
        Some(Pair {
            from: self.cpus[row],
            to: self.cpus[column],
            least: quantile(&ns, 0.0)?,
            median: quantile(&ns, 0.5)?,
            most: quantile(&ns, 1.0)?,
        })
    }
}

/// Rounds of a pair: as many as there is any use for, and those of a smoke pass.
const ROUNDS: u64 = 1_000_000;
const ROUNDS_SHORT: u64 = 10_000;

/// A pair that has had so many rounds may end when its time is up: see [`Calibrator::at_most`].
const LEAST_ROUNDS: u64 = 1_000;

/// A round of two CPUs that are far apart, for the estimate only.
const ROUND: Duration = Duration::from_nanos(600);

fn rounds(short: bool) -> u64 {
    if short { ROUNDS_SHORT } else { ROUNDS }
}

/// How long samples of so many CPUs take: disjoint pairs are measured at the same time.
pub(super) fn expected(cpus: usize, short: bool, pace: Pace) -> Duration {
    let all = ROUND.as_secs_f64() * rounds(short) as f64;
    let least = ROUND.as_secs_f64() * LEAST_ROUNDS as f64;
    let of_pair = all.min(pace.secs.max(least));
    Duration::from_secs_f64(of_pair * cpus.saturating_sub(1) as f64 * pace.samples as f64)
}

/// Takes the samples; `None` where there is none, and the reason is said.
pub(super) fn measure(
    cpus: &CpuSet,
    short: bool,
    pace: Pace,
    rig: &Rig,
    tick: &dyn Fn(),
    missing: &mut Vec<String>,
) -> Option<Offsets> {
    let rounds = rounds(short);
    let by = Calibrator::new()
        .cpus(cpus.clone())
        .rounds(rounds)
        .looks(1)
        .at_most(Duration::from_secs_f64(pace.secs));
    let mut samples = Vec::new();
    for _ in 0..pace.samples {
        let found = by.run_with(|_| match rig.is_interrupted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        match found {
            Ok(found) => samples.push(Sample::of(&found)),
            Err(CalibrateError::Stopped) => break,
            Err(why) => {
                missing.push(format!("Sample {}: {why}.", samples.len() + 1));
                break;
            }
        }
        tick();
    }
    let offsets = Offsets {
        cpus: cpus.iter().collect(),
        rounds,
        samples,
    };
    (!offsets.samples.is_empty()).then_some(offsets)
}

impl Sample {
    fn cell(&self, row: usize, column: usize) -> Option<f64> {
        *self.offsets_ns.get(row)?.get(column)?
    }

    fn of(found: &Calibration) -> Self {
        let ns = |ticks: u64| found.rate.nanoseconds(ticks as f64).value;
        let n = found.offsets.cpus().len();
        Self {
            offsets_ns: offsets_ns(found).chunks(n).map(<[_]>::to_vec).collect(),
            step_ns: ns(found.step),
            boundary_ns: ns(found.boundary),
            took_s: found.took.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_samples_a_pair_has_the_smallest() {
        let sample = |there: f64, back: f64| Sample {
            offsets_ns: vec![vec![None, Some(there)], vec![Some(back), None]],
            step_ns: 10.0,
            boundary_ns: 100.0,
            took_s: 0.1,
        };
        let offsets = Offsets {
            cpus: vec![2, 5],
            rounds: 10,
            samples: vec![sample(40.0, -3.0), sample(30.0, 9.0), sample(50.0, 2.0)],
        };
        let pair = |from, to, least, median, most| Pair {
            from,
            to,
            least,
            median,
            most,
        };
        let expected = [pair(2, 5, 30.0, 40.0, 50.0), pair(5, 2, -3.0, 2.0, 9.0)];
        assert_eq!(offsets.pairs(), expected);
        // 43, 21 and 48 more than back.
        let more = [(2, 5, 43.0), (5, 2, -43.0)];
        assert_eq!(offsets.asymmetry_ns(), more);
        assert_eq!(offsets.least(), [None, Some(30.0), Some(-3.0), None]);
    }

    #[test]
    fn more_cpus_take_longer_and_a_pace_that_is_short_does_not() {
        let seconds = |cpus, short, pace| expected(cpus, short, pace).as_secs_f64();
        let (source, fast) = (Pace::SOURCE, Pace::SHORT);
        assert!((seconds(2, false, source) - 6.0).abs() < 1e-9);
        assert!((seconds(240, false, source) - 239.0 * 6.0).abs() < 1e-6);
        assert!(seconds(2, true, fast) < 0.1);
        assert!(seconds(1, true, fast) < 1e-9);
    }
}
