//! Bounds of how far each CPU's counter may be ahead of each other's.

#[cfg(feature = "serde")]
mod serialize;

use std::fmt;

/// Bounds of the offsets between CPUs: for every ordered pair the most that the second one's
/// counter may be ahead of the first one's, in ticks.
///
/// Each is the smallest difference ever seen between a time that the first had written and the time
/// at which the second had seen it: the offset plus the way of one cache line. So the bound is
/// never too small, and noise only widens it.
#[derive(Clone, PartialEq, Eq)]
pub struct Offsets {
    cpus: Vec<usize>,
    /// Bounds by from, then to; `UNKNOWN` on the diagonal and for pairs that were not measured.
    ticks: Vec<i64>,
}

const UNKNOWN: i64 = i64::MAX;

impl Offsets {
    /// Offsets between these CPUs, of which nothing is known yet.
    ///
    /// # Panics
    /// If a CPU occurs twice.
    pub fn unknown(cpus: &[usize]) -> Self {
        let mut sorted = cpus.to_vec();
        sorted.sort_unstable();
        let all = sorted.len();
        sorted.dedup();
        assert!(sorted.len() == all, "a CPU occurs twice: {cpus:?}");
        Self {
            ticks: vec![UNKNOWN; all * all],
            cpus: sorted,
        }
    }

    /// The numbers of the CPUs, in ascending order.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// The most that the counter of CPU `to` may be ahead of that of CPU `from`, in ticks. `None`
    /// if that is not known, and for a CPU with itself.
    pub fn get(&self, from: usize, to: usize) -> Option<i64> {
        let (from, to) = (self.index(from)?, self.index(to)?);
        self.at(from, to)
    }

    /// Adds a measured bound: of two bounds the smaller one counts, as both are true.
    ///
    /// # Panics
    /// If a CPU is not one of these, or they are the same.
    pub fn lower(&mut self, from: usize, to: usize, ticks: i64) {
        let known = self.place(from, to);
        *known = (*known).min(ticks);
    }

    /// Adds a bound of an offset that has moved: of two bounds the larger one counts.
    pub(super) fn raise(&mut self, from: usize, to: usize, ticks: i64) {
        let known = self.place(from, to);
        *known = if *known == UNKNOWN {
            ticks
        } else {
            (*known).max(ticks)
        };
    }

    fn place(&mut self, from: usize, to: usize) -> &mut i64 {
        let known = self.index(from).zip(self.index(to));
        let (from, to) = known.expect("CPUs of these offsets");
        assert_ne!(from, to, "a CPU has no offset from itself");
        &mut self.ticks[from * self.cpus.len() + to]
    }

    /// The largest bound, as from, to and ticks. `None` if some pair is not known: the largest of
    /// some pairs is no bound of all.
    pub fn largest(&self) -> Option<(usize, usize, i64)> {
        let all = self.pairs().map(|(i, j)| {
            let ticks = self.at(i, j)?;
            Some((self.cpus[i], self.cpus[j], ticks))
        });
        let all: Option<Vec<_>> = all.collect();
        all?.into_iter().max_by_key(|&(_, _, ticks)| ticks)
    }

    /// Fills in pairs that were not measured by going over other CPUs: the bound from i to j is at
    /// most that from i to k plus that from k to j. `hop` is added for each CPU on the way (the
    /// step by which two readings of one counter may differ).
    pub fn compose(&mut self, hop: i64) {
        let measured = self.clone();
        let n = self.cpus.len();
        // Floyd's shortest paths. Only unknown bounds are filled in: a measured bound is as good
        // and simpler to believe.
        let mut shortest = self.ticks.clone();
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    let (first, second) = (shortest[i * n + k], shortest[k * n + j]);
                    if i == j || first == UNKNOWN || second == UNKNOWN {
                        continue;
                    }
                    let over = first.saturating_add(second).saturating_add(hop);
                    shortest[i * n + j] = shortest[i * n + j].min(over);
                }
            }
        }
        for (i, j) in measured.pairs() {
            if measured.at(i, j).is_none() {
                self.ticks[i * n + j] = shortest[i * n + j];
            }
        }
    }

    /// The ordered pairs of indices, without the diagonal.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let n = self.cpus.len();
        (0..n).flat_map(move |i| (0..n).filter(move |&j| i != j).map(move |j| (i, j)))
    }

    fn at(&self, from: usize, to: usize) -> Option<i64> {
        let ticks = self.ticks[from * self.cpus.len() + to];
        (ticks != UNKNOWN).then_some(ticks)
    }

    fn index(&self, cpu: usize) -> Option<usize> {
        self.cpus.binary_search(&cpu).ok()
    }
}

impl fmt::Debug for Offsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.pairs().filter_map(|(i, j)| {
            let pair = format!("{}→{}", self.cpus[i], self.cpus[j]);
            Some((pair, self.at(i, j)?))
        });
        f.debug_map().entries(known).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_count_and_the_largest_is_the_bound() {
        let mut offsets = Offsets::unknown(&[4, 2]);
        assert_eq!(offsets.cpus(), [2, 4]);
        offsets.lower(2, 4, 300);
        // With one direction alone there is no bound.
        assert_eq!(offsets.largest(), None);
        offsets.lower(4, 2, -100);
        assert_eq!(offsets.largest(), Some((2, 4, 300)));
        // A smaller measurement of the same pair is better, a larger one says nothing.
        offsets.lower(2, 4, 250);
        offsets.lower(2, 4, 270);
        assert_eq!(offsets.get(2, 4), Some(250));
        assert_eq!((offsets.get(2, 2), offsets.get(2, 9)), (None, None));
    }

    #[test]
    fn unmeasured_pairs_are_composed() {
        let mut offsets = Offsets::unknown(&[0, 1, 2, 3]);
        for (from, to, ticks) in [(0, 1, 10), (1, 2, 20), (2, 3, 30), (0, 2, 99)] {
            offsets.lower(from, to, ticks);
            offsets.lower(to, from, -ticks / 10);
        }
        offsets.compose(5);
        assert_eq!(offsets.get(0, 3), Some(10 + 5 + 20 + 5 + 30));
        assert_eq!(offsets.get(3, 0), Some(-3 + 5 - 9));
        // Measured bounds stay as they are.
        assert_eq!(offsets.get(0, 2), Some(99));
        assert_eq!(offsets.largest(), Some((0, 2, 99)));
    }

    #[test]
    fn islands_stay_unknown() {
        let mut offsets = Offsets::unknown(&[0, 1, 2]);
        offsets.lower(0, 1, 1);
        offsets.lower(1, 0, 1);
        offsets.compose(0);
        assert_eq!((offsets.get(0, 2), offsets.largest()), (None, None));
    }
}
