//! Schedules: the moments at which operations arrive, which no answer can change.
//!
//! Arrivals are a Poisson process: the gaps between them are independent and exponentially
//! distributed. Many independent users amount to that (Palm and Khintchine). A Poisson process
//! stays one when it is dealt out to clients or put together again, so a load means the same
//! whatever the number of clients. Equal gaps would have neither property, and could fall into step
//! with other periodic events, such as a trustee's passes or a timer.
//!
//! A schedule follows from its seed alone. It is drawn while it is used: a list of a second's
//! arrivals would push the method's own data out of the caches.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One client's arrivals: moments in nanoseconds since its start, ascending, without end.
#[derive(Clone, Debug)]
pub struct Schedule {
    rng: Xoshiro256PlusPlus,
    mean_gap_ns: f64,
    at_ns: f64,
}

impl Schedule {
    /// Arrivals at `per_second` on average.
    ///
    /// ```
    /// use corelay_lab_measure::workload::schedule::Schedule;
    /// let arrivals: Vec<u64> = Schedule::poisson(1e6, 1).take(100).collect();
    /// assert!(arrivals.is_sorted());
    /// ```
    ///
    /// # Panics
    /// The rate is not above 0.
    pub fn poisson(per_second: f64, seed: u64) -> Self {
        assert!(per_second > 0.0, "operations arrive at a rate above 0");
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            mean_gap_ns: 1e9 / per_second,
            at_ns: 0.0,
        }
    }

    /// The average number of arrivals in `ns` nanoseconds.
    pub(crate) fn expected(&self, ns: u64) -> f64 {
        ns as f64 / self.mean_gap_ns
    }

    /// Deals the arrivals out to `n` schedules with seeds of their own and the same total rate.
    pub(crate) fn split(mut self, n: usize) -> impl Iterator<Item = Self> {
        let per_second = 1e9 / self.mean_gap_ns / n.max(1) as f64;
        (0..n).map(move |_| Self::poisson(per_second, self.rng.next_u64()))
    }
}

impl Iterator for Schedule {
    type Item = u64;

    /// The next arrival; there always is one.
    #[inline]
    fn next(&mut self) -> Option<u64> {
        // 53 random bits, plus a half: never 0, never 1.
        let chance = ((self.rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        self.at_ns -= chance.ln() * self.mean_gap_ns;
        Some(self.at_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_ascend_and_follow_from_the_seed() {
        let moments = || Schedule::poisson(1e6, 1).take(1000).collect::<Vec<u64>>();
        assert!(moments().is_sorted());
        assert_eq!(moments(), moments());
    }

    const N: usize = 100_000;

    fn gaps(schedule: Schedule) -> Vec<f64> {
        let moments: Vec<u64> = schedule.take(N).collect();
        moments.windows(2).map(|w| (w[1] - w[0]) as f64).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn gaps_are_exponential() {
        for (per_second, seed) in [(1e4, 1), (1e6, 2), (3e6, 77)] {
            let (gaps, expected) = (gaps(Schedule::poisson(per_second, seed)), 1e9 / per_second);
            // The mean of 10^5 gaps lies within 1 % (three standard errors) of the rate's.
            let mean = mean(&gaps);
            assert!((mean / expected - 1.0).abs() < 0.01, "{mean} of {expected}");
            // The standard deviation is the mean, and gaps beyond k means are e^-k of all.
            let squares: Vec<f64> = gaps.iter().map(|g| (g - mean).powi(2)).collect();
            let deviation = self::mean(&squares).sqrt();
            assert!((deviation / expected - 1.0).abs() < 0.02, "{deviation}");
            for k in [0.5f64, 1.0, 3.0] {
                let beyond = gaps.iter().filter(|&&g| g > k * expected).count() as f64;
                let share = beyond / gaps.len() as f64;
                assert!(
                    (share - (-k).exp()).abs() < 0.006,
                    "{share} beyond {k} means"
                );
            }
        }
    }

    #[test]
    fn gaps_are_independent() {
        let gaps = gaps(Schedule::poisson(1e5, 5));
        let mean = mean(&gaps);
        let products: Vec<f64> = gaps
            .windows(2)
            .map(|w| (w[0] - mean) * (w[1] - mean))
            .collect();
        let correlation = self::mean(&products) / (mean * mean);
        assert!(correlation.abs() < 0.015, "{correlation}");
    }

    #[test]
    fn split_schedules_differ_and_keep_the_total_rate() {
        let parts: Vec<Schedule> = Schedule::poisson(1e6, 3).split(4).collect();
        let until = |s: &Schedule| s.clone().take_while(|&at| at < 100_000_000).count();
        let counts: Vec<usize> = parts.iter().map(until).collect();
        // 10^5 arrivals in a tenth of a second, give or take three roots of them.
        assert!(
            counts.iter().sum::<usize>().abs_diff(100_000) < 1000,
            "{counts:?}"
        );
        let first: Vec<u64> = parts.into_iter().filter_map(|mut s| s.next()).collect();
        let unique: std::collections::BTreeSet<&u64> = first.iter().collect();
        assert_eq!(unique.len(), 4);
    }
}
