//! Operations of a closed loop, some of them timed.
//!
//! Operations follow each other at once, so that a stall shows as *one* slow operation for each
//! client that waits in it. Latency under load is that of [`latency`](super::latency).

use super::latency::put;
use super::random::Client;
use crate::measure::tally::Tally;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The times that one client's operations took in one slice. They join those of the slice when it is
/// dropped.
#[derive(Debug)]
pub struct Latencies {
    tally: Tally,
    all: Arc<Mutex<Tally>>,
}

impl Latencies {
    /// Records that an operation took `time`.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        // Wraps after five centuries.
        self.tally.answer(time.as_nanos() as u64);
    }
}

impl Drop for Latencies {
    fn drop(&mut self) {
        put(&self.all, &self.tally);
    }
}

impl Client {
    /// The record of this client's times, for operations that [`drive_timed`](Self::drive_timed)
    /// cannot time.
    pub fn latencies(&self) -> Latencies {
        Latencies {
            tally: Tally::default(),
            all: Arc::clone(&self.tallies),
        }
    }

    /// Runs `op(variable)` until the slice is over, in a closed loop, and returns how often. The stop
    /// flag is read after each operation, for operations that take long.
    pub fn drive_slow(self, op: impl FnMut(usize) -> u64) -> u64 {
        self.drive_in_blocks(1, op)
    }

    /// Runs `op(variable)` until the slice is over, in a closed loop, and returns how often. One in
    /// `period` operations is timed, which takes two looks at the clock, some 24 ns each. The stop flag
    /// is read as often.
    ///
    /// # Panics
    /// `period` is 0.
    #[inline]
    pub fn drive_timed(self, period: u64, mut op: impl FnMut(usize) -> u64) -> u64 {
        assert!(period > 0, "one operation in a period is timed");
        let mut latencies = self.latencies();
        let mut left = 0;
        self.drive_in_blocks(period, |variable| {
            if left > 0 {
                left -= 1;
                return op(variable);
            }
            left = period - 1;
            let start = Instant::now();
            let answer = op(variable);
            latencies.record(start.elapsed());
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::{Choice, Distribution};
    use corelay_sync::facade::atomic::{AtomicBool, Ordering};

    #[test]
    fn one_operation_in_a_period_is_timed() {
        let draw = Distribution::new(Choice::Uniform, 7, 9);
        for (period, expected_done, expected_timed) in [(1, 20, 20), (16, 32, 2)] {
            let (stop, tallies) = (Arc::new(AtomicBool::new(false)), Arc::default());
            let client = Client::new(0, draw.stream(0, 0), Arc::clone(&stop));
            let client = client.with_tallies(Arc::clone(&tallies));
            let mut seen = 0;
            let done = client.drive_timed(period, |variable| {
                assert!(variable < 7);
                seen += 1;
                // Relaxed: one thread only.
                stop.store(seen >= 20, Ordering::Relaxed);
                0
            });
            let timed = tallies.lock().unwrap().answered();
            assert_eq!((done, seen, timed), (expected_done, done, expected_timed));
        }
    }
}
