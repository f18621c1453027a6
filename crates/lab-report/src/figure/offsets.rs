//! Offsets between the clocks of CPUs, as a figure's file has them.

use corelay_lab_measure::measure::stats::quantile;
use serde::{Deserialize, Serialize};

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
pub struct Pair {
    /// The CPU whose counter is read first.
    pub from: usize,
    /// The other CPU.
    pub to: usize,
    /// The smallest of all samples.
    pub least: f64,
    /// The median of all samples.
    pub median: f64,
    /// The largest of all samples.
    pub most: f64,
}

impl Offsets {
    /// Every ordered pair, row by row.
    pub fn pairs(&self) -> Vec<Pair> {
        let n = self.cpus.len();
        let places = (0..n).flat_map(|row| (0..n).map(move |column| (row, column)));
        places.filter_map(|at| self.pair(at)).collect()
    }

    /// The smallest of each pair, row by row, with blanks where there is none.
    pub(crate) fn least(&self) -> Vec<Option<f64>> {
        let n = self.cpus.len();
        let cell = |at: usize| Some(self.pair((at / n, at % n))?.least);
        (0..n * n).map(cell).collect()
    }

    /// Of each ordered pair by how much there is more than back, within a sample: the median of all,
    /// in nanoseconds. Of two samples the smallest may be of different moods of the machine.
    pub fn asymmetry_ns(&self) -> Vec<(usize, usize, f64)> {
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

impl Sample {
    fn cell(&self, row: usize, column: usize) -> Option<f64> {
        *self.offsets_ns.get(row)?.get(column)?
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
}
