//! What measuring needs and keeps: the crew, the probe, and the pair's smallest round trip.

use crate::measure::crew::Crew;
use crate::measure::mode::{Bracket, Memory};
use crate::measure::probe::{Prober, Reading};
use crate::method::Patience;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Length of the probe before and after each sample: some 280 batches near and 60 far on
/// the reference machine, and short against a sample.
pub const PROBE_TIME: Duration = Duration::from_millis(2);

/// A round trip has to last this long to count as the pair's smallest: as long as a short
/// sample. See [`Reading::smallest_lasting_ns`].
const LASTING: Duration = Duration::from_millis(20);

/// The crew and the probe of one invocation.
#[derive(Debug)]
pub struct Rig {
    /// The threads that run the clients.
    pub crew: Crew,
    /// Set by Ctrl-C: measuring ends soon, what was measured is kept.
    pub interrupted: Arc<AtomicBool>,
    prober: Result<Prober, String>,
    memory: Memory,
}

impl Rig {
    /// A crew on `placement`, a probe between the first two different CPUs of `sequence`,
    /// and what is remembered about this machine.
    ///
    /// Without two CPUs there is no probe; that is no error ([`no_probe`](Self::no_probe)).
    ///
    /// # Errors
    /// Where the system gives no more threads.
    pub fn new(
        placement: &[Option<usize>],
        sequence: &[usize],
        machine: &str,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let crew = Crew::new(placement).map_err(|error| {
            format!(
                "--threads: the system gave fewer than {} threads: {error}",
                placement.len()
            )
        })?;
        let prober = match sequence {
            [a, rest @ ..] => match rest.iter().find(|&b| b != a) {
                Some(b) => Prober::new(*a, *b),
                None => Err(format!(
                    "all threads run on CPU {a}, so there is no pair to probe"
                )),
            },
            [] => Err("no CPU is known, so there is no pair to probe".to_owned()),
        };
        Ok(Self {
            crew,
            interrupted,
            prober,
            memory: Memory::open(machine),
        })
    }

    /// Why round trips cannot be probed here, where they cannot.
    pub fn no_probe(&self) -> Option<&str> {
        self.prober.as_ref().err().map(String::as_str)
    }

    /// The probed pair of CPUs.
    pub fn pair(&self) -> Option<(usize, usize)> {
        self.prober.as_ref().ok().map(Prober::pair)
    }

    /// True once Ctrl-C was pressed.
    pub fn is_interrupted(&self) -> bool {
        // Relaxed: the flag carries no data.
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Time for a set-up: until then, or until Ctrl-C.
    pub fn patience(&self, until: Option<Instant>) -> Patience {
        Patience {
            until,
            interrupted: Arc::clone(&self.interrupted),
        }
    }

    /// Probes the pair for `time`; remembers the smallest round trip that lasted.
    pub fn probe(&mut self, time: Duration) -> Option<Reading> {
        let prober = self.prober.as_ref().ok()?;
        let reading = prober.read(time);
        if reading.batches.is_empty() {
            return None;
        }
        if let Some(ns) = reading.smallest_lasting_ns(LASTING) {
            self.memory.learn(prober.pair(), ns);
        }
        Some(reading)
    }

    /// The pair's round trip now, in nanoseconds.
    pub fn rtt_ns(&mut self) -> Option<f64> {
        self.probe(PROBE_TIME).map(|reading| reading.rtt_ns())
    }

    /// Puts the two round trips around a sample together; what lasted for the sample is
    /// remembered.
    pub fn bracket(&mut self, before: Option<f64>, after: Option<f64>) -> Option<Bracket> {
        let (before_ns, after_ns) = before.zip(after)?;
        let bracket = Bracket {
            before_ns,
            after_ns,
        };
        self.memory.learn(self.pair()?, bracket.larger_ns());
        Some(bracket)
    }

    /// The pair's smallest round trip ever seen, in nanoseconds.
    pub fn smallest_ns(&self) -> Option<f64> {
        self.memory.smallest(self.pair()?)
    }

    /// Keeps what was learnt for the next invocation, if it can be kept.
    pub fn save(&mut self) {
        self.memory.save();
    }
}
