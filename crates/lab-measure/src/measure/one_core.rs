//! Whether two CPUs are two hardware threads of one core, at this moment.
//!
//! A hypervisor that does not show hardware threads may run two virtual CPUs on one core for
//! seconds. No line travels then, and the two take each other's units: that is neither near nor
//! far. The round trip does not tell it from near on a machine that has not been seen before, but
//! work does: a core has one divider, which does not begin a division before the last has ended.
//! Two threads that do nothing but divide take twice as long there, and no longer on two cores.
//! (Additions do not tell: a core of today has room for two such threads.)

use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::{hint, thread};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Each side's best of so many counts: an interrupt spoils one.
const ROUNDS: u64 = 8;

/// Steps of [`work`]: 3.6 µs on AMD Zen 5, long against the time that a start takes to arrive.
const STEPS: u64 = 400;

/// Whoever takes this many times as long in company shares a core. On two cores of AMD Zen 5 at
/// most 1.01 was seen in 699 probes; on one core it is 2 by reasoning.
const SLOWED: f64 = 1.5;

/// What the two sides tell each other.
#[derive(Debug, Default)]
pub(super) struct Contest {
    go: CachePadded<AtomicU64>,
    done: CachePadded<AtomicU64>,
}

impl Contest {
    /// True where the other side, which is in [`accompany`](Self::accompany), slows this one down.
    pub(super) fn is_slowed(&self) -> bool {
        let (mut alone, mut together) = (Duration::MAX, Duration::MAX);
        for round in 1..=ROUNDS {
            alone = alone.min(time(STEPS));
            // Relaxed, here as below: only the value travels, no data.
            self.go.store(round, Ordering::Relaxed);
            together = together.min(time(STEPS));
            pause_until(|| self.done.load(Ordering::Relaxed) == round);
        }
        together > alone.mul_f64(SLOWED)
    }

    /// The other side: still while the one works alone, at work where it is to have company.
    pub(super) fn accompany(&self) {
        for round in 1..=ROUNDS {
            pause_until(|| self.go.load(Ordering::Relaxed) == round);
            work(3 * STEPS);
            self.done.store(round, Ordering::Relaxed);
        }
    }
}

fn time(steps: u64) -> Duration {
    let begin = Instant::now();
    work(steps);
    begin.elapsed()
}

/// Divisions that do not wait for each other, but for the divider.
fn work(steps: u64) {
    let mut values = black_box([u64::MAX; 4]);
    let by = black_box(3);
    for step in 0..steps {
        for value in &mut values {
            *value = (u64::MAX - *value - step) / by;
        }
    }
    black_box(values);
}

/// With pauses, which leave the core to the other side.
fn pause_until(done: impl Fn() -> bool) {
    let mut looks = 0u32;
    while !done() {
        hint::spin_loop();
        looks += 1;
        if looks.is_multiple_of(1 << 10) {
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_end() {
        let contest = Contest::default();
        std::thread::scope(|s| {
            s.spawn(|| contest.accompany());
            // What it says depends on where the two threads happen to run.
            contest.is_slowed();
        });
    }
}
