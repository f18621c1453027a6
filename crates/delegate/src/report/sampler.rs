//! How long closures take: a trustee times some of its requests.
//!
//! A timed request runs alone, with a stamp before and one after it, and all others run as they
//! would without. What that costs, some tens of nanoseconds, would be much for each request of
//! a stream and is nothing where closures take microseconds. So requests are timed as often as
//! costs a hundredth of the time that they themselves take: of the shortest one in some
//! thousands, of those of some microseconds each.

use super::dice::Dice;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What one type of closure has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) type_name: fn() -> &'static str,
    pub(crate) samples: u64,
    pub(crate) total: Duration,
    pub(crate) longest: Duration,
}

/// All samples of a trustee. Read by reports, written by the trustee.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// By the address of the function that names the closure: comparing names takes longer,
    /// and is left to reports.
    of: Mutex<BTreeMap<usize, Taken>>,
}

impl Samples {
    fn add(&self, type_name: fn() -> &'static str, took: Duration) {
        // Whoever reads a report must not hold the trustee up: the sample is lost instead.
        let Ok(mut of) = self.of.try_lock() else {
            return;
        };
        let taken = of.entry(type_name as usize).or_insert(Taken {
            type_name,
            samples: 0,
            total: Duration::ZERO,
            longest: Duration::ZERO,
        });
        taken.samples += 1;
        taken.total += took;
        taken.longest = taken.longest.max(took);
    }

    /// All that has been sampled so far.
    pub(crate) fn all(&self) -> Vec<Taken> {
        let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.values().copied().collect()
    }
}

/// The trustee's side of it.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// Units of requests that go by before one is timed.
    left: Cell<u32>,
    dice: Dice,
    /// What a request takes, by the latest samples, in nanoseconds.
    mean: Cell<f64>,
    /// What it costs to time one, in nanoseconds.
    cost: f64,
    samples: Arc<Samples>,
}

/// The share of the trustee's time that timing may take.
const SHARE: f64 = 0.01;

/// What it costs to leave the loop of equal requests and to enter it again, in nanoseconds: about
/// that on the reference machine.
const ALONE: f64 = 30.0;

/// A request takes at least that, in nanoseconds: see `docs/design/0002-reach.md`.
const SHORTEST: f64 = 2.0;

/// How much of [`Sampler::mean`] is the newest sample.
const NEWEST: f64 = 1.0 / 16.0;

impl Sampler {
    pub(crate) fn new(samples: Arc<Samples>) -> Self {
        const STAMPS: u32 = 64;
        let begun = Instant::now();
        let last = (0..STAMPS).map(|_| Instant::now()).last();
        let stamp = last.map_or(Duration::ZERO, |last| last - begun) / STAMPS;
        Self::with_cost(samples, 2 * stamp + Duration::from_nanos(ALONE as u64))
    }

    fn with_cost(samples: Arc<Samples>, cost: Duration) -> Self {
        Self {
            left: Cell::new(0),
            dice: Dice::default(),
            mean: Cell::new(SHORTEST),
            cost: cost.as_nanos() as f64,
            samples,
        }
    }

    /// So many units of requests are about to run: how many go before one that is to be timed,
    /// if one is.
    #[inline]
    pub(crate) fn next(&self, units: u32) -> Option<u32> {
        let left = self.left.get();
        if left < units {
            return Some(left);
        }
        self.left.set(left - units);
        None
    }

    /// The request that was to be timed, of that type, took so long.
    pub(crate) fn add(&self, type_name: fn() -> &'static str, took: Duration) {
        self.samples.add(type_name, took);
        let own = (took.as_nanos() as f64 - self.cost).max(SHORTEST);
        self.mean
            .set(self.mean.get() + (own - self.mean.get()) * NEWEST);
        self.left.set(self.dice.gap(self.one_in()));
    }

    /// Of how many requests one is timed now.
    fn one_in(&self) -> u32 {
        // Between 1 and some thousands: see the constants. A clock may cost more.
        (self.cost / (self.mean.get() * SHARE)).clamp(1.0, 1e6) as u32
    }

    #[cfg(test)]
    pub(super) fn samples(&self) -> &Samples {
        &self.samples
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    fn name() -> &'static str {
        "a closure"
    }

    fn sampler() -> Sampler {
        Sampler::with_cost(Arc::default(), Duration::from_nanos(50))
    }

    #[test]
    fn timing_takes_a_hundredth_of_the_time() {
        for (took, one_in) in [(50, 2_500), (150, 50), (5_050, 1), (1 << 30, 1)] {
            let sampler = sampler();
            for _ in 0..1_000 {
                sampler.add(name, Duration::from_nanos(took));
            }
            assert_eq!(sampler.one_in(), one_in, "{took} ns");
            assert_eq!(sampler.samples().all()[0].samples, 1_000);
        }
    }

    /// Every so many units one request is timed, wherever batches end.
    #[test]
    fn units_go_by() {
        let sampler = sampler();
        assert_eq!(sampler.next(3), Some(0), "the first one");
        sampler.add(name, Duration::ZERO);
        let gap = sampler.left.get();
        assert!(gap > 10);
        assert_eq!(sampler.next(gap - 4), None);
        assert_eq!(sampler.next(4), None);
        assert_eq!(sampler.next(1), Some(0));
        assert_eq!(sampler.next(1), Some(0), "not timed yet");
    }

    /// A report that looks holds nobody up.
    #[test]
    fn a_sample_is_lost_rather_than_waited_for() {
        let sampler = sampler();
        let looking = sampler.samples.of.lock().expect("not poisoned");
        sampler.add(name, Duration::ZERO);
        assert!(looking.is_empty());
    }
}
