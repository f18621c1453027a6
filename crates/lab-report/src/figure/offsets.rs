//! Offsets between the clocks of CPUs, as they stand in a figure's file.

use corelay_lab_measure::measure::stats::quantile;
use serde::{Deserialize, Serialize};

/// Offsets between the clocks of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offsets {
    /// The CPUs, in the order of rows and columns.
    pub cpus: Vec<usize>,
    /// Rounds of each pair in a sample; fewer if its time was up before.
    pub rounds: u64,
    /// The samples in the order in which they were taken.
    pub samples: Vec<Sample>,
}

/// One calibration: the offsets of all pairs, and the boundary that follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Offsets from the row's CPU to the column's, in nanoseconds; upper bounds, `null` on the
    /// diagonal.
    pub offsets_ns: Vec<Vec<Option<f64>>>,
    /// Step by which the counter advances, in nanoseconds.
    pub step_ns: f64,
    /// The resulting boundary with its margin, in nanoseconds.
    pub boundary_ns: f64,
    /// Ticks of the counter in a nanosecond, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticks_per_ns: Option<f64>,
    /// Duration of the calibration, in seconds.
    pub took_s: f64,
}

/// The smallest, median and largest sample of an ordered pair of CPUs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The CPU whose counter is read first.
    pub from: usize,
    /// The CPU whose counter is read second.
    pub to: usize,
    /// The smallest of all samples.
    pub least: f64,
    /// The median of all samples.
    pub median: f64,
    /// The largest of all samples.
    pub most: f64,
}

impl Offsets {
    /// Returns every ordered pair, row by row.
    pub fn pairs(&self) -> Vec<Pair> {
        let n = self.cpus.len();
        let places = (0..n).flat_map(|row| (0..n).map(move |column| (row, column)));
        places.filter_map(|at| self.pair(at)).collect()
    }

    /// Returns the smallest sample of each pair, row by row; `None` on the diagonal.
    pub(crate) fn least(&self) -> Vec<Option<f64>> {
        let n = self.cpus.len();
        let cell = |at: usize| Some(self.pair((at / n, at % n))?.least);
        (0..n * n).map(cell).collect()
    }

    /// Returns, for each ordered pair, how much larger its offset is than that of the way back,
    /// in nanoseconds: the median over all samples. Both directions are taken from the same
    /// sample, because the smallest of each may be from different modes of the machine.
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
    fn a_pair_has_the_smallest_of_its_samples() {
        let sample = |there: f64, back: f64| Sample {
            offsets_ns: vec![vec![None, Some(there)], vec![Some(back), None]],
            step_ns: 10.0,
            boundary_ns: 100.0,
            ticks_per_ns: None,
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
        // In the three samples the offset from 2 to 5 is larger by 43, 21 and 48 ns.
        let more = [(2, 5, 43.0), (5, 2, -43.0)];
        assert_eq!(offsets.asymmetry_ns(), more);
        assert_eq!(offsets.least(), [None, Some(30.0), Some(-3.0), None]);
    }
}
