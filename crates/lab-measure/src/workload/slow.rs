//! Operations that take a while: the workload of the load `slow-operations`, and the computation
//! after each burst of `bursts`.
//!
//! It computes a chain of multiplications, each of which needs the previous result: about five
//! cycles a round on any recent core, whatever the compiler does, and without memory accesses.

use crate::workload::operation::{Operation, Workload};
use crate::workload::random::Random;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Computes for `rounds` rounds, starting from the number `from`.
#[inline(never)]
pub fn compute(rounds: u32, from: u64) -> u64 {
    (0..rounds).fold(from, |x, _| {
        (x ^ (x >> 13)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// The workload. Its objects are plain numbers, as in [`FetchAdd`](super::fetch_add::FetchAdd).
#[derive(Clone, Copy, Debug)]
pub struct Slow {
    rounds: u32,
}

impl Slow {
    /// Operations of about a microsecond: 0.7 to 1.1 µs at 2.3 to 3.6 GHz.
    pub const MICROSECOND: Self = Self { rounds: 512 };

    /// Operations that compute for about `time`, by the speed that this thread has now.
    ///
    /// ```
    /// use corelay_lab_measure::workload::{operation::Workload, slow::Slow};
    /// use std::time::Duration;
    ///
    /// assert_eq!(Slow::lasting(Duration::from_micros(2)).object(), 0);
    /// ```
    pub fn lasting(time: Duration) -> Self {
        const ROUNDS: u32 = 20_000;
        // The shortest of several, for the thread may be interrupted.
        let shortest = (0..10).map(|from| {
            let start = Instant::now();
            black_box(compute(ROUNDS, from));
            start.elapsed()
        });
        let round = shortest.min().unwrap_or_default().as_secs_f64() / f64::from(ROUNDS);
        let rounds = (time.as_secs_f64() / round.max(1e-11)).round();
        Self {
            rounds: rounds as u32,
        }
    }
}

/// Adds one, computes for a while, and answers with the result.
#[derive(Clone, Copy, Debug)]
pub struct AddSlowly {
    rounds: u32,
}

impl Operation<u64> for AddSlowly {
    type Answer = u64;

    #[inline(always)]
    fn run(self, count: &mut u64) -> u64 {
        *count = count.wrapping_add(1);
        compute(self.rounds, *count)
    }
}

impl Workload for Slow {
    type Object = u64;
    type Operation = AddSlowly;

    fn name(self) -> &'static str {
        "slow"
    }

    fn object(self) -> u64 {
        0
    }

    fn operations(self, _: Random) -> impl FnMut() -> AddSlowly + Send + 'static {
        move || AddSlowly {
            rounds: self.rounds,
        }
    }

    fn check(self, count: &u64) -> Result<u64, String> {
        Ok(*count)
    }
}
