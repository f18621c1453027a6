//! Decides which of two methods is faster, and how sure that is.

use crate::data;
use corelay_lab_measure::measure::stats::{Interval, quantile, ratio_ci};
use corelay_lab_measure::schema::{Mode, Run};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Samples that each side of a comparison needs. Five against five of the same distribution lie
/// wholly apart in 1 of 126 cases (2 ÷ C(10, 5)), four against four in 1 of 35.
pub(crate) const MIN_SAMPLES: usize = 5;

/// The samples of one subject at one thread count, ready to be compared.
pub(crate) struct Judge<'a> {
    cells: BTreeMap<Cell<'a>, Vec<f64>>,
    /// Intervals already computed: a bootstrap costs about a millisecond.
    known: RefCell<BTreeMap<(Cell<'a>, &'a str), Option<Interval>>>,
}

/// A point, a mode and a method.
pub(crate) type Cell<'a> = (u64, Mode, &'a str);

impl<'a> Judge<'a> {
    /// Takes runs that agree in workload, distribution and threads. If a method was run in
    /// several variants at a point, the fastest counts, because rivals are tuned.
    pub(crate) fn new(runs: &[&'a Run]) -> Self {
        let mut best: BTreeMap<(u64, &str), &Run> = BTreeMap::new();
        for run in runs.iter().filter(|r| r.correct) {
            let run: &Run = run;
            let known = best.entry((run.params.vars, &run.method)).or_insert(run);
            if run.median_mops > known.median_mops {
                *known = run;
            }
        }
        let mut cells = BTreeMap::new();
        for ((vars, method), run) in best {
            for mode in data::MODES {
                let samples = data::samples(run, mode);
                if !samples.is_empty() {
                    cells.insert((vars, mode, method), samples);
                }
            }
        }
        Self::of(cells)
    }

    /// Takes cells that were filled elsewhere. Their points need not be numbers of variables.
    pub(crate) fn of(cells: BTreeMap<Cell<'a>, Vec<f64>>) -> Self {
        Self {
            cells,
            known: RefCell::default(),
        }
    }

    /// Returns the points measured in any mode, ascending.
    pub(crate) fn vars(&self) -> Vec<u64> {
        self.cells
            .keys()
            .map(|c| c.0)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// Returns the modes that occurred.
    pub(crate) fn modes(&self) -> Vec<Mode> {
        let seen: BTreeSet<Mode> = self.cells.keys().map(|c| c.1).collect();
        data::MODES
            .into_iter()
            .filter(|m| seen.contains(m))
            .collect()
    }

    /// Returns the mode with the most samples.
    pub(crate) fn main_mode(&self) -> Option<Mode> {
        let samples = |mode: &Mode| {
            let of_mode = self.cells.iter().filter(|(cell, _)| cell.1 == *mode);
            of_mode.map(|(_, samples)| samples.len()).sum::<usize>()
        };
        self.modes().into_iter().max_by_key(samples)
    }

    /// Returns the number of cells with too few samples, and of all cells, of a mode.
    pub(crate) fn thin(&self, mode: Mode) -> (usize, usize) {
        let sizes = || {
            self.cells
                .iter()
                .filter(|(c, _)| c.1 == mode)
                .map(|(_, s)| s.len())
        };
        (
            sizes().filter(|&n| n < MIN_SAMPLES).count(),
            sizes().count(),
        )
    }

    /// Returns the median of a method at a point, if there are enough samples.
    pub(crate) fn median(&self, vars: u64, mode: Mode, method: &'a str) -> Option<f64> {
        let samples = self.cells.get(&(vars, mode, method))?;
        (samples.len() >= MIN_SAMPLES).then(|| quantile(samples, 0.5))?
    }

    /// Returns `a` over `b` on a level: the geometric mean of the ratios at the points where both
    /// have enough samples; `None` if there is no such point.
    ///
    /// The points are independent. So the distances from each ratio to the ends of its interval,
    /// as logarithms, add up as the root of their squares.
    pub(crate) fn ratio(
        &self,
        points: &[u64],
        mode: Mode,
        a: &'a str,
        b: &'a str,
    ) -> Option<Interval> {
        let at: Vec<Interval> = points
            .iter()
            .filter_map(|&v| self.at_point((v, mode, a), b))
            .collect();
        if at.is_empty() {
            return None;
        }
        let n = at.len() as f64;
        let middle = at.iter().map(|i| i.ratio.ln()).sum::<f64>() / n;
        let root = |far: fn(&Interval) -> f64| {
            at.iter()
                .map(|i| (far(i).ln() - i.ratio.ln()).powi(2))
                .sum::<f64>()
                .sqrt()
                / n
        };
        Some(Interval {
            low: (middle - root(|i| i.low)).exp(),
            ratio: middle.exp(),
            high: (middle + root(|i| i.high)).exp(),
        })
    }

    /// Returns only the middle of [`ratio`](Self::ratio), which needs no bootstrap.
    pub(crate) fn middle(&self, points: &[u64], mode: Mode, a: &'a str, b: &'a str) -> Option<f64> {
        let at = |&v: &u64| Some((self.median(v, mode, a)? / self.median(v, mode, b)?).ln());
        let logs: Vec<f64> = points.iter().filter_map(at).collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    fn at_point(&self, cell: Cell<'a>, rival: &'a str) -> Option<Interval> {
        if let Some(known) = self.known.borrow().get(&(cell, rival)) {
            return *known;
        }
        let enough = |c: Cell<'a>| self.cells.get(&c).filter(|s| s.len() >= MIN_SAMPLES);
        let (vars, mode, _) = cell;
        let interval = match (enough(cell), enough((vars, mode, rival))) {
            (Some(a), Some(b)) => ratio_ci(a, b),
            _ => None,
        };
        self.known.borrow_mut().insert((cell, rival), interval);
        interval
    }

    /// Returns the fastest of `candidates` on a level, and those that cannot be told from it, in
    /// their order. Two are compared at the points where both were measured. A method measured at
    /// less than half as many points as another is left out.
    pub(crate) fn leaders(
        &self,
        points: &[u64],
        mode: Mode,
        candidates: &[&'a str],
    ) -> Vec<&'a str> {
        let measured = |m: &str| {
            let enough = |v: &&u64| {
                self.cells
                    .get(&(**v, mode, m))
                    .is_some_and(|s| s.len() >= MIN_SAMPLES)
            };
            points.iter().filter(enough).count()
        };
        let most = candidates.iter().map(|m| measured(m)).max().unwrap_or(0);
        let mut seen = candidates
            .iter()
            .copied()
            .filter(|m| measured(m) > 0 && 2 * measured(m) >= most);
        let Some(start) = seen.next() else {
            return Vec::new();
        };
        let first = seen.fold(start, |best, m| match self.middle(points, mode, m, best) {
            Some(ratio) if ratio > 1.0 => m,
            _ => best,
        });
        let near_first = |m: &'a str| {
            let close = || {
                self.ratio(points, mode, first, m)
                    .is_some_and(|i| i.low <= 1.0)
            };
            !self.apart(points, mode, first, m) && close()
        };
        let others = candidates
            .iter()
            .copied()
            .filter(|m| *m != first && 2 * measured(m) >= most);
        std::iter::once(first)
            .chain(others.filter(|m| near_first(m)))
            .collect()
    }

    /// Whether every sample of `a` lies above every sample of `b`, at every point where both are.
    /// Then no resampled median of `a` can fall below one of `b`, so the interval lies above 1
    /// and need not be computed.
    fn apart(&self, points: &[u64], mode: Mode, a: &'a str, b: &'a str) -> bool {
        let extreme = |v: u64, m: &'a str, pick: fn(f64, f64) -> f64| {
            self.cells.get(&(v, mode, m))?.iter().copied().reduce(pick)
        };
        points.iter().all(
            |&v| match (extreme(v, a, f64::min), extreme(v, b, f64::max)) {
                (Some(low), Some(high)) => low > high,
                _ => true,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{Recipe, small_machine};

    #[test]
    fn leaders_are_those_whose_interval_contains_one() {
        let mops = |m: &str| match m {
            "mutex" | "ttas" => (50.0, 51.0),
            m => small_machine(m),
        };
        let results = Recipe {
            mops,
            noise: 0.15,
            modes: vec![Mode::Near],
            ..Recipe::default()
        }
        .make();
        let runs: Vec<&Run> = results.runs.iter().collect();
        let judge = Judge::new(&runs);
        let all = ["mutex", "ttas", "ticket", "mcs", "trust"];
        for points in [vec![1], vec![1, 2], vec![64, 1024]] {
            let leaders = judge.leaders(&points, Mode::Near, &all);
            for m in all.into_iter().filter(|m| *m != leaders[0]) {
                let interval = judge.ratio(&points, Mode::Near, leaders[0], m).unwrap();
                assert_eq!(
                    leaders.contains(&m),
                    interval.low <= 1.0,
                    "{m} {points:?} {interval:?}"
                );
                assert!(interval.ratio >= 1.0);
                let middle = judge.middle(&points, Mode::Near, leaders[0], m).unwrap();
                assert!((middle / interval.ratio - 1.0).abs() < 1e-9);
                // The shortcut never claims more than the interval does.
                let apart = judge.apart(&points, Mode::Near, leaders[0], m);
                assert!(!apart || interval.low > 1.0, "{m} {points:?}");
            }
        }
    }

    #[test]
    fn a_missing_point_does_not_disqualify_and_a_single_one_does_not_win() {
        let mut results = Recipe {
            modes: vec![Mode::Near],
            ..Recipe::default()
        }
        .make();
        results
            .runs
            .retain(|r| r.method != "ttas" || r.params.vars != 64);
        results
            .runs
            .retain(|r| r.method != "atomic" || r.params.vars == 64);
        let runs: Vec<&Run> = results.runs.iter().collect();
        let judge = Judge::new(&runs);
        let all = ["atomic", "mutex", "ttas", "mcs"];
        assert_eq!(
            judge.leaders(&[64, 1024, 16_384], Mode::Near, &all),
            ["ttas"]
        );
        assert_eq!(judge.leaders(&[64], Mode::Near, &all), ["atomic"]);
        assert!(judge.leaders(&[64], Mode::Far, &all).is_empty());
    }

    #[test]
    fn too_few_samples_have_no_median_and_no_ratio() {
        for (samples, there) in [(MIN_SAMPLES - 1, false), (MIN_SAMPLES, true)] {
            let results = Recipe {
                samples,
                modes: vec![Mode::Near],
                ..Recipe::default()
            }
            .make();
            let runs: Vec<&Run> = results.runs.iter().collect();
            let judge = Judge::new(&runs);
            assert_eq!(judge.median(1, Mode::Near, "mutex").is_some(), there);
            assert_eq!(
                judge.ratio(&[1], Mode::Near, "trust", "mutex").is_some(),
                there
            );
            assert_eq!(
                judge
                    .leaders(&[1], Mode::Near, &["trust", "mutex"])
                    .is_empty(),
                !there
            );
            assert_eq!(judge.thin(Mode::Near).0 == 0, there);
        }
    }

    #[test]
    fn a_level_is_at_least_as_sure_as_its_points() {
        let results = Recipe {
            noise: 0.2,
            ..Recipe::default()
        }
        .make();
        let runs: Vec<&Run> = results.runs.iter().collect();
        let judge = Judge::new(&runs);
        let width = |points: &[u64]| {
            let i = judge.ratio(points, Mode::Near, "trust", "mutex").unwrap();
            (i.high / i.low).ln()
        };
        let widest = [64, 1024, 16_384]
            .map(|v| width(&[v]))
            .into_iter()
            .fold(0.0, f64::max);
        assert!(width(&[64, 1024, 16_384]) < widest);
        assert!(
            judge.ratio(&[3], Mode::Near, "trust", "mutex").is_none(),
            "no such point"
        );
        assert!(judge.ratio(&[1, 3], Mode::Near, "trust", "mutex").is_some());
    }
}
