//! The conversion of ticks to nanoseconds, with its error.

use corelay_sync::counter;
use std::fmt;
use std::time::{Duration, Instant};

/// The share by which the kernel slews the clock that we compare with, to follow a server's
/// (adjtimex(2): at most 500 parts in a million).
const SLEW: f64 = 500e-6;

/// The shortest comparison of the two clocks: a moment is known to some 20 ns, so to 4 parts in a
/// million.
const LONG_ENOUGH: Duration = Duration::from_millis(10);

/// The rate of a counter: its ticks in a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rate {
    /// Ticks per nanosecond.
    pub ticks_per_ns: f64,
    /// The share by which the rate may be wrong, 0..1.
    pub error: f64,
}

/// A duration in nanoseconds, with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Nanoseconds {
    /// The likeliest value; negative if the second of the two times was earlier.
    pub value: f64,
    /// The most by which the true value may differ from `value`.
    pub error: f64,
}

/// One moment, read from both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The counter, half way between the readings before and after.
    ticks: f64,
    /// The most by which `ticks` may be wrong: half the ticks between the readings before and
    /// after.
    within: f64,
    instant: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let look = || {
            let before = counter::read_between();
            let instant = Instant::now();
            (
                counter::read_between().saturating_sub(before),
                before,
                instant,
            )
        };
        // A look that was interrupted in between is wide, so another one is taken.
        let tightest = (0..16).map(|_| look()).min_by_key(|&(width, ..)| width);
        let (width, before, instant) = tightest.expect("there are sixteen");
        let within = width as f64 / 2.0;
        Self {
            ticks: before as f64 + within,
            within,
            instant,
        }
    }

    /// The counter's rate since this moment. Sleeps if too little time has passed.
    pub(crate) fn rate(&self) -> Rate {
        std::thread::sleep(LONG_ENOUGH.saturating_sub(self.instant.elapsed()));
        let now = Self::now();
        let ns = (now.instant - self.instant).as_nanos() as f64;
        let ticks = (now.ticks - self.ticks).max(1.0);
        Rate {
            ticks_per_ns: ticks / ns,
            error: SLEW + (self.within + now.within) / ticks,
        }
    }
}

impl Rate {
    /// Converts ticks of one CPU's counter to nanoseconds.
    pub fn nanoseconds(&self, ticks: f64) -> Nanoseconds {
        let value = ticks / self.ticks_per_ns;
        Nanoseconds {
            value,
            error: value.abs() * self.error,
        }
    }

    /// The ticks that pass in `time`, rounded up: never fewer than there may be.
    pub fn ticks(&self, time: Duration) -> u64 {
        // The conversion saturates.
        (time.as_nanos() as f64 * self.ticks_per_ns * (1.0 + self.error)).ceil() as u64
    }
}

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ns ± {:.1}", self.value, self.error)
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_rate_agrees_with_the_systems_clock() {
        if !counter::usable() {
            return;
        }
        let rate = Moment::now().rate();
        assert!(rate.ticks_per_ns > 0.0 && rate.error < 0.1, "{rate:?}");
        let (start, from) = (counter::read_between(), Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (end, to) = (counter::read_between(), Instant::now());
        let spent = rate.nanoseconds((end - start) as f64);
        let true_ns = (to - from).as_nanos() as f64;
        // The time between the two readings of each pair is unknown here, and may be long.
        assert!(
            (spent.value - true_ns).abs() < 0.5 * true_ns,
            "{spent} {true_ns}"
        );
    }

    #[test]
    fn conversions_carry_their_error() {
        let rate = Rate {
            ticks_per_ns: 2.5,
            error: 0.01,
        };
        let time = rate.nanoseconds(-250.0);
        assert!((time.value + 100.0).abs() < 1e-9 && (time.error - 1.0).abs() < 1e-9);
        assert_eq!(time.to_string(), "-100.0 ns ± 1.0");
        // Never fewer ticks than there may be.
        assert_eq!(rate.ticks(Duration::from_nanos(1_000)), 2_525);
    }
}
