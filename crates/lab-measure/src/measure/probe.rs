//! The two-line ping-pong: how far apart two CPUs are at this moment.
//!
//! ```text
//!   CPU a   ping := n ───────────▶ sees n
//!           sees n ◀─────────── pong := n   CPU b        one round trip
//! ```
//!
//! Each side writes a cache line of its own and reads the other's, which is the traffic
//! of a request and its answer. Virtual CPUs migrate under a program: the same pair is a
//! neighbour now and far away seconds later, and every figure changes with it. So the lab
//! brackets each sample by this probe and compares only what ran at the same distance.

use crate::measure::crew::Crew;
use crate::measure::one_core::Contest;
use crate::measure::stats;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::thread;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Round trips per batch: about 7 µs near and 30 µs far on the reference machine, long
/// against the clock's resolution and short against an interrupt's distance.
const BATCH: u64 = 64;

/// Reads of a line before a waiting side yields once: about 10 µs. It only matters where
/// the two sides cannot run at the same time.
const PATIENCE: u32 = 1 << 14;

/// The value that ends the other side's loop.
const STOP: u64 = u64::MAX;

/// What one probing found.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Nanoseconds per round trip of each batch, in order of time.
    pub batches: Vec<f64>,
    /// The two CPUs were hardware threads of one core at its end.
    pub on_one_core: bool,
}

impl Reading {
    /// The median batch: what the pair was like, in nanoseconds per round trip.
    pub fn rtt_ns(&self) -> f64 {
        stats::median(&self.batches).unwrap_or(f64::NAN)
    }
}

/// Two threads, each on one CPU of a pair, that can tell the pair's round trip at any time.
#[derive(Debug)]
pub(crate) struct Prober {
    pair: (usize, usize),
    crew: Crew,
    lines: Arc<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    ping: CachePadded<AtomicU64>,
    pong: CachePadded<AtomicU64>,
}

impl Prober {
    /// A prober for two CPUs.
    ///
    /// # Errors
    /// One sentence that says why this pair cannot be probed: they are the same, or a
    /// thread could not be started or pinned.
    pub(crate) fn new(a: usize, b: usize) -> Result<Self, String> {
        if a == b {
            return Err(format!(
                "CPU {a} has no partner to exchange cache lines with"
            ));
        }
        let crew = Crew::new(&[Some(a), Some(b)])
            .map_err(|error| format!("the probe's threads could not be started: {error}"))?;
        if let Some(note) = crew.notes(2).next() {
            return Err(note.to_owned());
        }
        Ok(Self {
            pair: (a, b),
            crew,
            lines: Arc::default(),
        })
    }

    /// The CPUs probed.
    pub(crate) fn pair(&self) -> (usize, usize) {
        self.pair
    }

    /// Plays ping-pong for about `time`, at least one batch; then finds out whether the two CPUs
    /// are one core's, for another 0.1 ms.
    pub(crate) fn read(&self, time: Duration) -> Reading {
        let (lines, contest) = (Arc::clone(&self.lines), Arc::new(Contest::default()));
        let answers = self.crew.start(0..2, move |side| match side {
            0 => (lines.serve(time), contest.is_slowed()),
            _ => {
                lines.answer();
                contest.accompany();
                (Vec::new(), false)
            }
        });
        let found = answers.join().into_iter().next().and_then(Result::ok);
        let (batches, on_one_core) = found.unwrap_or_default();
        // Relaxed: both sides have ended; the next start publishes the reset.
        self.lines.ping.store(0, Ordering::Relaxed);
        // Relaxed: as above.
        self.lines.pong.store(0, Ordering::Relaxed);
        Reading {
            batches,
            on_one_core,
        }
    }
}

impl Lines {
    fn serve(&self, time: Duration) -> Vec<f64> {
        let start = Instant::now();
        let mut batches = Vec::with_capacity(512);
        let mut n = 0;
        // The first exchange finds the other side; it is not counted.
        n = self.rally(n, 1);
        while batches.is_empty() || start.elapsed() < time {
            let begin = Instant::now();
            n = self.rally(n, BATCH);
            batches.push(begin.elapsed().as_nanos() as f64 / BATCH as f64);
        }
        // Relaxed: only the value travels, no data.
        self.ping.store(STOP, Ordering::Relaxed);
        batches
    }

    #[inline]
    fn rally(&self, from: u64, count: u64) -> u64 {
        for n in from + 1..=from + count {
            // Relaxed: only the value travels, no data.
            self.ping.store(n, Ordering::Relaxed);
            spin_until(|| self.pong.load(Ordering::Relaxed) == n);
        }
        from + count
    }

    fn answer(&self) {
        let mut last = 0;
        loop {
            let mut seen = 0;
            spin_until(|| {
                seen = self.ping.load(Ordering::Relaxed);
                seen != last
            });
            if seen == STOP {
                return;
            }
            last = seen;
            // Relaxed: only the value travels, no data.
            self.pong.store(seen, Ordering::Relaxed);
        }
    }
}

/// Reads without a pause (a pause would round the latency up to its own length), and
/// yields now and then for the case that the other side needs this very CPU.
#[inline]
fn spin_until(mut done: impl FnMut() -> bool) {
    let mut reads = 0;
    while !done() {
        reads += 1;
        if reads == PATIENCE {
            thread::yield_now();
            reads = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_topology::Topology;

    #[test]
    fn a_cpu_is_no_pair() {
        assert!(Prober::new(0, 0).is_err());
    }

    #[test]
    fn a_missing_cpu_is_named() {
        let cpu = Topology::current().cpus()[0].id;
        let error = Prober::new(cpu, 60_000).unwrap_err();
        assert!(error.contains("60000"), "{error}");
    }

    #[test]
    fn readings_are_positive_and_repeatable() {
        let topology = Topology::current();
        let [a, b, ..] = topology.cpus() else { return };
        let prober = Prober::new(a.id, b.id).unwrap();
        for _ in 0..3 {
            let reading = prober.read(Duration::from_millis(1));
            assert!(!reading.batches.is_empty());
            assert!(reading.rtt_ns() > 0.0);
        }
    }
}
