//! The counts and latencies of a load thread in one block.
//!
//! Latencies go into a histogram of high dynamic range (Tene's HdrHistogram) at two significant
//! digits, so within 1 %. It is small, so that it takes little of the load thread's cache.

use corelay_lab_measure::schema::cache::{Counts, Latency};
use hdrhistogram::Histogram;

/// The longest latency that is distinguished from longer ones: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counts and latencies.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    latency: Histogram<u64>,
    longest_ns: u64,
    /// A latency and how often it was recorded, of which the histogram does not know yet. The answers
    /// of a batch that arrive together have the same.
    held: (u64, u64),
}

impl Default for Tally {
    fn default() -> Self {
        let latency = Histogram::new_with_bounds(1, LONGEST_NS, 2);
        Self {
            counts: Counts::default(),
            latency: latency.expect("the bounds are in order and the digits few"),
            longest_ns: 0,
            held: (0, 0),
        }
    }
}

impl Tally {
    /// Records the latency of an answer.
    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        if ns != self.held.0 {
            self.release();
            self.held.0 = ns;
        }
        self.held.1 += 1;
    }

    #[inline]
    fn release(&mut self) {
        let (ns, times) = self.held;
        if times > 0 {
            self.latency.saturating_record_n(ns, times);
            self.longest_ns = self.longest_ns.max(ns);
            self.held.1 = 0;
        }
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self) {
        self.counts = Counts::default();
        self.latency.reset();
        (self.longest_ns, self.held) = (0, (0, 0));
    }

    /// The latencies in little memory. Those of other threads and blocks can be added.
    pub(super) fn latencies(&mut self) -> Latencies {
        self.release();
        let recorded = self.latency.iter_recorded();
        Latencies {
            longest_ns: self.longest_ns,
            times: recorded
                .map(|value| (value.value_iterated_to(), value.count_at_value()))
                .collect(),
        }
    }
}

/// Latencies in nanoseconds, and how often each occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    longest_ns: u64,
    times: Vec<(u64, u64)>,
}

impl Latencies {
    /// The percentiles of several parts together; `None` if they are empty.
    pub(super) fn percentiles<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Option<Latency> {
        let mut all = Tally::default();
        for part in parts {
            all.longest_ns = all.longest_ns.max(part.longest_ns);
            for &(ns, times) in &part.times {
                all.latency.saturating_record_n(ns, times);
            }
        }
        let longest = all.longest_ns;
        let at = |quantile| all.latency.value_at_quantile(quantile).min(longest);
        (!all.latency.is_empty()).then(|| Latency {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: longest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_latencies() {
        let mut parts = Vec::new();
        for part in 0..4 {
            let mut tally = Tally::default();
            (1..=100_000u64)
                .filter(|ns| ns % 4 == part)
                .for_each(|ns| tally.record(ns));
            parts.push(tally.latencies());
        }
        let got = Latencies::percentiles(&parts).unwrap();
        for (value, truth) in [
            (got.p50, 50_000.0),
            (got.p90, 90_000.0),
            (got.p99, 99_000.0),
            (got.p999, 99_900.0),
        ] {
            assert!((value as f64 / truth - 1.0).abs() <= 0.01, "{value}");
        }
        assert_eq!(got.max, 100_000);
        assert_eq!(Latencies::percentiles([]), None);
    }

    #[test]
    fn equal_latencies_count_each_and_a_reset_forgets() {
        let mut tally = Tally::default();
        [5, 5, 5, 9, 5].into_iter().for_each(|ns| tally.record(ns));
        assert_eq!(tally.latencies().times, [(5, 4), (9, 1)]);
        tally.record(7);
        tally.reset();
        tally.record(0);
        let latencies = tally.latencies();
        let times: u64 = latencies.times.iter().map(|(_, times)| times).sum();
        assert_eq!((times, latencies.longest_ns), (1, 0));
    }
}
