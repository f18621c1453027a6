//! The sampling of how long closures take: a trustee times some of its batches.
//!
//! Requests of equal type that follow each other run in one loop. In a batch that is timed there is
//! a stamp between any two such loops and none inside, so a stream of equal requests runs as ever.
//! Even so a stamp would be much for each batch of short requests, and is nothing for one that
//! takes long. So batches are timed, at random, as often as costs a hundredth of the time that
//! batches take: one in some dozens of batches that take some hundred nanoseconds, and every batch
//! that takes ten microseconds or more.

use super::dice::Dice;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The samples of the requests of one type, added up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) name: fn() -> &'static str,
    pub(crate) samples: u64,
    pub(crate) total: Duration,
    pub(crate) longest: Duration,
}

/// All samples of a trustee. Read by reports, written by the trustee.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// The samples by the address of the function that names the closure. Comparing names takes
    /// longer, and is left to reports.
    of: Mutex<BTreeMap<usize, Taken>>,
}

impl Samples {
    /// Adds `requests` of one type that took `took` together.
    pub(crate) fn add(&self, name: fn() -> &'static str, requests: u32, took: Duration) {
        // A report that holds the lock must not hold the trustee up: the sample is lost instead.
        let Ok(mut of) = self.of.try_lock() else {
            return;
        };
        let taken = of.entry(name as usize).or_insert(Taken {
            name,
            samples: 0,
            total: Duration::ZERO,
            longest: Duration::ZERO,
        });
        taken.samples += u64::from(requests);
        taken.total += took;
        taken.longest = taken.longest.max(took / requests);
    }

    /// All that has been sampled so far.
    pub(crate) fn all(&self) -> Vec<Taken> {
        let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.values().copied().collect()
    }
}

/// The trustee's side of sampling: it decides which batch is timed next, by what timing costs.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// The number of batches to let go by before the next one is timed.
    left: Cell<u32>,
    dice: Dice,
    /// The time that a stamp takes.
    stamp: Duration,
    /// The time of the batch that is being timed, and the cost of timing it.
    batch: Cell<Spent>,
    /// The time and the cost of an average batch, weighted towards the latest ones.
    mean: Cell<Spent>,
    samples: Arc<Samples>,
    /// The time from which a closure is slow.
    slow: Duration,
    /// The slowest closure of the batch, if it is slow.
    slowest: Cell<Option<Slow>>,
}

/// A closure that has taken long. The time of requests that were timed together is their average.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "tracing"),
    expect(dead_code, reason = "nobody is told of it")
)]
pub(crate) struct Slow {
    pub(crate) name: fn() -> &'static str,
    pub(crate) took: Duration,
}

/// Nanoseconds of work, and nanoseconds spent on timing it.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    work: f64,
    cost: f64,
}

/// The share of the trustee's time that timing may take.
const SHARE: f64 = 0.01;

/// The nanoseconds that it takes to store a sample, as measured on the reference machine, without
/// the two stamps.
const KEEPING: f64 = 50.0;

/// The least time that a batch counts for, in nanoseconds. Clocks advance in steps, so a short
/// batch can seem to take no time.
const SHORTEST: f64 = 2.0;

/// The weight of the newest batch in [`Sampler::mean`].
const NEWEST: f64 = 1.0 / 16.0;

impl Sampler {
    pub(crate) fn new(samples: Arc<Samples>, slow: Duration) -> Self {
        const STAMPS: u32 = 64;
        let begun = Instant::now();
        let ended = (0..STAMPS).fold(begun, |_, _| Instant::now());
        Self::with_stamp(samples, slow, (ended - begun) / STAMPS)
    }

    fn with_stamp(samples: Arc<Samples>, slow: Duration, stamp: Duration) -> Self {
        Self {
            left: Cell::new(0),
            dice: Dice::default(),
            stamp,
            batch: Cell::default(),
            mean: Cell::new(Spent {
                work: SHORTEST,
                cost: KEEPING,
            }),
            samples,
            slow,
            slowest: Cell::default(),
        }
    }

    /// Counts the batch that comes now, and returns whether it is to be timed.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(1));
        left == 0
    }

    /// Starts a stopwatch for the requests of a batch that is due.
    pub(crate) fn lap(&self) -> Lap<'_> {
        Lap {
            sampler: self,
            begun: Instant::now(),
        }
    }

    fn add(&self, name: fn() -> &'static str, requests: u32, took: Duration) {
        self.samples.add(name, requests, took);
        let each = took / requests;
        if each >= self.slow && self.slowest.get().is_none_or(|other| other.took < each) {
            self.slowest.set(Some(Slow { name, took: each }));
        }
        let Spent { work, cost } = self.batch.get();
        let stamp = self.stamp.as_nanos() as f64;
        self.batch.set(Spent {
            work: work + (took.as_nanos() as f64 - stamp).max(SHORTEST),
            cost: cost + 2.0 * stamp + KEEPING,
        });
    }

    /// Ends the batch that was due: adds its time and cost to the average, and draws when the next
    /// one is due. Returns the slowest closure of the batch, if it was slow.
    pub(crate) fn end_batch(&self) -> Option<Slow> {
        let (batch, mean) = (self.batch.take(), self.mean.get());
        self.mean.set(Spent {
            work: mean.work + (batch.work - mean.work) * NEWEST,
            cost: mean.cost + (batch.cost - mean.cost) * NEWEST,
        });
        self.left.set(self.dice.gap(self.one_in()));
        self.slowest.take()
    }

    /// The interval of sampling: one in so many batches is timed.
    fn one_in(&self) -> u32 {
        let Spent { work, cost } = self.mean.get();
        (cost / (work.max(SHORTEST) * SHARE)).clamp(1.0, 1e6) as u32
    }
}

/// A stopwatch for the requests of a batch that is timed.
pub(crate) struct Lap<'a> {
    sampler: &'a Sampler,
    begun: Instant,
}

impl Lap<'_> {
    /// Ends a lap in which `requests` of one type have run, and begins the next.
    pub(crate) fn end(&mut self, name: fn() -> &'static str, requests: u32) {
        // The growth of a ring is no request.
        if requests > 0 {
            self.sampler.add(name, requests, self.begun.elapsed());
        }
        self.begun = Instant::now();
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    fn name() -> &'static str {
        "a closure"
    }

    fn sampler() -> Sampler {
        Sampler::with_stamp(Arc::default(), Duration::MAX, Duration::from_nanos(25))
    }

    #[test]
    fn timing_takes_a_hundredth_of_the_time() {
        // Laps in a batch, the time of each lap, and the interval that follows.
        for (laps, took, one_in) in [
            (1, 25, 5_000),
            (1, 345, 31),
            (1, 10_025, 1),
            (1, 1 << 30, 1),
            (4, 125, 100),
            (4, 2_525, 4),
        ] {
            let sampler = sampler();
            for _ in 0..1_000 {
                for _ in 0..laps {
                    sampler.add(name, 3, Duration::from_nanos(took));
                }
                sampler.end_batch();
            }
            let found = sampler.one_in();
            assert!(found.abs_diff(one_in) <= 1, "{laps} of {took} ns: {found}");
            let taken = sampler.samples.all()[0];
            assert_eq!(taken.samples, 3_000 * laps);
            assert_eq!(taken.longest, Duration::from_nanos(took) / 3);
        }
    }

    #[test]
    fn the_first_batch_is_due_and_then_random_ones() {
        let sampler = sampler();
        for _ in 0..10 {
            assert!(sampler.is_due());
            sampler.add(name, 1, Duration::from_nanos(1_025));
            sampler.end_batch();
            let gap = sampler.left.get();
            assert!((0..gap).all(|_| !sampler.is_due()));
        }
    }

    #[test]
    fn laps_count_requests_and_not_ring_growth() {
        let sampler = sampler();
        let mut lap = sampler.lap();
        lap.end(name, 2);
        lap.end(name, 0);
        lap.end(name, 1);
        assert_eq!(sampler.samples.all()[0].samples, 3);
    }

    #[test]
    fn the_slowest_closure_of_a_batch_is_told_of_if_it_is_slow() {
        let sampler = Sampler::with_stamp(Arc::default(), Duration::from_nanos(20), Duration::ZERO);
        let batch = |laps: &[(u32, u64)]| {
            for &(requests, took) in laps {
                sampler.add(name, requests, Duration::from_nanos(took));
            }
            sampler.end_batch().map(|slow| slow.took.as_nanos())
        };
        assert_eq!(batch(&[(1, 20), (1, 30), (2, 58)]), Some(30));
        assert_eq!(batch(&[(2, 38), (1, 19)]), None);
    }

    /// A report that reads the samples holds no trustee up.
    #[test]
    fn a_sample_is_lost_rather_than_waited_for() {
        let sampler = sampler();
        let looking = sampler.samples.of.lock().expect("not poisoned");
        sampler.add(name, 1, Duration::ZERO);
        assert!(looking.is_empty());
    }
}
