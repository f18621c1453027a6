//! The random choice of variables: the same cheap generator for every rival.
//!
//! Xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021)
//! takes about a nanosecond. Its chain of dependencies does not pass through the operation, so an
//! out-of-order core hides most of that.
//!
//! * **uniform**: `(x · n) >> 64` of a 64-bit `x`: no division, no rejection; the bias is
//!   below `n / 2^64`.
//! * **zipf:θ**: variable `k` (from 0) is drawn with probability proportional to
//!   `1 / (k + 1)^θ`, by [`Zipf`].

use crate::measure::tally::Tally;
use crate::workload::latency::Arrivals;
use crate::workload::operation::Workload;
use crate::workload::schedule::Schedule;
use crate::workload::zipf::Zipf;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

/// The distribution by which variables are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Choice {
    /// Each variable has the same probability.
    #[default]
    Uniform,
    /// Variable `k` (from 0) has a probability proportional to `1 / (k + 1)^θ`.
    Zipf {
        /// The skew θ, above 0 and at most `Choice::MAX_THETA`.
        theta: f64,
    },
}

impl Choice {
    /// The largest skew; with more, all but one of 10^5 operations would use the first variable.
    pub(crate) const MAX_THETA: f64 = 16.0;
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf { theta } => write!(f, "zipf:{theta}"),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "uniform" {
            return Ok(Self::Uniform);
        }
        let unknown = || format!("`{text}` is neither `uniform` nor `zipf:θ` such as `zipf:0.99`");
        let theta = text.strip_prefix("zipf:").ok_or_else(unknown)?;
        let theta: f64 = theta.parse().map_err(|_| unknown())?;
        if theta > 0.0 && theta <= Self::MAX_THETA {
            Ok(Self::Zipf { theta })
        } else {
            Err(format!(
                "the θ of zipf must lie above 0 and be at most {}",
                Self::MAX_THETA
            ))
        }
    }
}

/// The distribution over the variables of a point, from which each client gets its stream.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    law: Law,
    seed: u64,
}

/// A distribution, ready to be sampled.
#[derive(Clone, Debug)]
enum Law {
    Uniform { vars: u64 },
    Zipf { zipf: Arc<Zipf>, choices: u64 },
}

impl Distribution {
    /// The distribution `choice` over `vars` variables, with a seed for its streams.
    ///
    /// # Panics
    /// `vars` is 0.
    pub(crate) fn new(choice: Choice, vars: u64, seed: u64) -> Self {
        assert!(vars > 0, "a client chooses among at least one variable");
        let law = match choice {
            Choice::Uniform => Law::Uniform { vars },
            Choice::Zipf { theta } => Law::Zipf {
                zipf: Arc::new(Zipf::new(vars, theta)),
                choices: vars,
            },
        };
        Self { law, seed }
    }

    /// The random stream number `stream` of client `index`. Streams of different clients or
    /// numbers have different seeds.
    pub(crate) fn stream(&self, index: usize, stream: u64) -> Stream {
        let mut mix = SplitMix64::seed_from_u64(self.seed);
        Stream {
            law: self.law.clone(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed(&mut mix, index, stream)),
        }
    }

    /// The arrivals at client `index` in the slice number `stream`, at `per_second` on average.
    pub(crate) fn schedule(&self, index: usize, stream: u64, per_second: f64) -> Schedule {
        let mut mix = SplitMix64::seed_from_u64(self.seed);
        // The first number seeds the choices; arrivals and variables are independent.
        mix.next_u64();
        Schedule::poisson(per_second, seed(&mut mix, index, stream))
    }
}

/// A seed for a stream of a client, from the next number of `mix`.
fn seed(mix: &mut SplitMix64, index: usize, stream: u64) -> u64 {
    mix.next_u64() ^ (index as u64).rotate_left(40) ^ stream
}

/// An endless stream of random variables.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    law: Law,
    rng: Xoshiro256PlusPlus,
}

impl Stream {
    /// The number of choices that the stream draws from.
    fn choices(&self) -> u64 {
        match &self.law {
            Law::Uniform { vars } => *vars,
            Law::Zipf { choices, .. } => *choices,
        }
    }

    /// The next variable.
    #[inline]
    pub(crate) fn choose(&mut self) -> usize {
        match &self.law {
            Law::Uniform { vars } => uniform(&mut self.rng, *vars),
            Law::Zipf { zipf, .. } => zipf.sample(&mut self.rng) as usize,
        }
    }
}

/// Random numbers that travel with an operation: eight bytes, drawn on the thread where the
/// operation runs (SplitMix64; Steele, Lea and Flood, 2014).
///
/// ```
/// use corelay_lab_measure::workload::random::Random;
///
/// let mut dice = Random::new(1);
/// assert!((0..100).all(|_| dice.below(6) < 6));
/// assert_eq!(Random::new(7).next(), Random::new(7).next());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator of numbers that follow from `seed` alone.
    #[inline(always)]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, each of the 2^64 with the same probability.
    #[expect(clippy::should_implement_trait, reason = "numbers never end")]
    #[inline(always)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `n`, or 0 if `n` is 0.
    #[inline(always)]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// A client during one slice: its number, its random choices, its schedule and its stop flag.
#[derive(Debug)]
pub struct Client {
    /// The number of this client, from 0.
    pub index: usize,
    pub(super) stream: Stream,
    pub(super) stop: Arc<AtomicBool>,
    /// The schedule of operations; `None` for a closed loop, where they follow each other at once.
    pub(super) arrivals: Option<Arrivals>,
    /// The tally of the slice, to which clients add what they have timed.
    pub(super) tallies: Arc<Mutex<Tally>>,
}

/// Operations between two reads of the stop flag: rare enough to cost nothing, and often enough
/// that the slowest method (some microseconds per operation) stops in time.
pub(crate) const OPS_PER_STOP_CHECK: u64 = 32;

impl Client {
    /// A client that runs until `stop` is true, in a closed loop.
    pub(crate) fn new(index: usize, stream: Stream, stop: Arc<AtomicBool>) -> Self {
        Self {
            index,
            stream,
            stop,
            arrivals: None,
            tallies: Arc::default(),
        }
    }

    /// The same client, but it adds what it times to `tallies`.
    pub(crate) fn with_tallies(self, tallies: Arc<Mutex<Tally>>) -> Self {
        Self { tallies, ..self }
    }

    /// The same client with a schedule, if `arrivals` are given.
    pub(crate) fn with_arrivals(self, arrivals: Option<Arrivals>) -> Self {
        Self { arrivals, ..self }
    }

    /// The same client, but it chooses among `vars` variables, each with the same probability.
    ///
    /// # Panics
    /// `vars` is 0.
    pub fn among(mut self, vars: usize) -> Self {
        assert!(vars > 0, "a client chooses among at least one variable");
        let vars = vars as u64;
        self.stream.law = Law::Uniform { vars };
        self
    }

    /// Divides the client among `n` tasks, each with its own stream and without a schedule.
    pub(crate) fn split(mut self, n: usize) -> impl Iterator<Item = Self> {
        (0..n).map(move |_| {
            let rng = Xoshiro256PlusPlus::seed_from_u64(self.stream.rng.next_u64());
            let stream = Stream {
                law: self.stream.law.clone(),
                rng,
            };
            Self {
                index: self.index,
                stream,
                stop: Arc::clone(&self.stop),
                arrivals: None,
                tallies: Arc::clone(&self.tallies),
            }
        })
    }

    /// The requests of this client: the variable and the operation that belong to a choice. The
    /// operations have random numbers independent of the choices.
    pub fn requests<W: Workload>(
        &self,
        workload: W,
    ) -> impl FnMut(usize) -> (usize, W::Operation) + Send + 'static + use<W> {
        let (seed, choices) = (self.stream.rng.clone().next_u64(), self.stream.choices());
        workload.requests(choices, Random::new(seed))
    }

    /// Whether the slice is over.
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        // Relaxed: the flag carries no data; results travel by the join.
        self.stop.load(Ordering::Relaxed)
    }

    /// The next variable, for a method that does not use the loop of [`drive`](Self::drive).
    #[inline]
    pub(crate) fn choose(&mut self) -> usize {
        self.stream.choose()
    }

    /// Runs `op(variable)` until the slice is over and returns how often. In a closed loop it runs
    /// `op` again and again, at least once; on a schedule, whenever an operation is due. The
    /// answers are summed up, so that the compiler cannot drop them.
    ///
    /// The loop is compiled once per method and distribution; nothing is dispatched per operation.
    #[inline]
    pub fn drive(mut self, op: impl FnMut(usize) -> u64) -> u64 {
        match self.arrivals.take() {
            Some(arrivals) => self.drive_on_schedule(arrivals, op),
            None => self.drive_in_blocks(OPS_PER_STOP_CHECK, op),
        }
    }

    /// The closed loop of [`drive`](Self::drive), which reads the stop flag after each block of
    /// operations.
    #[inline(always)]
    pub(super) fn drive_in_blocks(mut self, block: u64, op: impl FnMut(usize) -> u64) -> u64 {
        let (stop, rng) = (&self.stop, &mut self.stream.rng);
        match &self.stream.law {
            // A single variable needs no choosing, for any method.
            &Law::Uniform { vars: 1 } => repeat(stop, block, || 0, op),
            &Law::Uniform { vars } => repeat(stop, block, || uniform(rng, vars), op),
            Law::Zipf { zipf, .. } => repeat(stop, block, || zipf.sample(rng) as usize, op),
        }
    }
}

/// The closed loop: runs `op` on variables that `choose` draws, in blocks until `stop` is true;
/// returns how often.
#[inline(always)]
fn repeat(
    stop: &AtomicBool,
    block: u64,
    mut choose: impl FnMut() -> usize,
    mut op: impl FnMut(usize) -> u64,
) -> u64 {
    let (mut done, mut sum) = (0u64, 0u64);
    // At least one block, so that a client which gets its CPU late has still taken part.
    loop {
        for _ in 0..block {
            sum = sum.wrapping_add(op(choose()));
        }
        done += block;
        // Relaxed: the flag carries no data; results travel by the join.
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    std::hint::black_box(sum);
    done
}

/// A variable below `vars`, each with the same probability.
#[inline(always)]
fn uniform(rng: &mut Xoshiro256PlusPlus, vars: u64) -> usize {
    ((u128::from(rng.next_u64()) * u128::from(vars)) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_round_trip_through_text() {
        for text in ["uniform", "zipf:0.99", "zipf:1", "zipf:16"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        for text in [
            "", "zipf", "zipf:", "zipf:0", "zipf:-1", "zipf:NaN", "zipf:17", "Uniform",
        ] {
            assert!(text.parse::<Choice>().is_err(), "{text}");
        }
    }

    #[test]
    fn streams_repeat_and_differ() {
        let take = |draw: &Distribution, index, stream| -> Vec<usize> {
            let mut s = draw.stream(index, stream);
            (0..20).map(|_| s.choose()).collect()
        };
        for choice in [Choice::Uniform, Choice::Zipf { theta: 0.8 }] {
            let draw = Distribution::new(choice, 1_000, 1);
            let first = take(&draw, 0, 0);
            assert_eq!(first, take(&draw, 0, 0));
            assert_ne!(first, take(&draw, 1, 0));
            assert_ne!(first, take(&draw, 0, 1));
            assert_ne!(first, take(&Distribution::new(choice, 1_000, 2), 0, 0));
        }
    }

    #[test]
    fn random_numbers_are_splitmix64_and_below_their_bound() {
        // The first numbers of the reference implementation (Vigna) from 0.
        let mut random = Random::new(0);
        assert_eq!(
            [random.next(), random.next()],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
        assert_eq!(Random::new(3).below(0), 0);
        let mut seen = [0u32; 5];
        (0..5_000).for_each(|_| seen[random.below(5) as usize] += 1);
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }

    #[test]
    fn drive_counts_operations_and_follows_the_stream() {
        let draw = Distribution::new(Choice::Uniform, 7, 9);
        let stop = Arc::new(AtomicBool::new(false));
        let mut seen = Vec::new();
        let done = Client::new(0, draw.stream(0, 0), Arc::clone(&stop)).drive(|var| {
            seen.push(var);
            if seen.len() == 100 {
                stop.store(true, Ordering::Relaxed);
            }
            0
        });
        assert_eq!(done, 128);
        let mut stream = draw.stream(0, 0);
        assert!(seen.iter().all(|&var| var == stream.choose() && var < 7));
        assert_eq!(seen.len(), 128);
    }
}
