//! What measuring needs and keeps: the crew, the probe, and the pair's smallest round trip.

use crate::measure::crew::Crew;
use crate::measure::mode::{Bracket, Distance, Memory};
use crate::measure::probe::{Prober, Reading};
use crate::method::Patience;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Length of the probe before and after each sample: some 280 batches near and 60 far on
/// the reference machine, and short against a sample.
pub(crate) const PROBE_TIME: Duration = Duration::from_millis(2);

/// Length of one reading where the pair is watched.
const STEP: Duration = Duration::from_millis(5);

/// So many readings on end have to show a round trip for it to count as the pair's smallest: as
/// long as a short sample. Two virtual CPUs can share a core for some milliseconds, which halves
/// the round trip, and a reading tells only of its own end whether they do.
const LASTING: usize = 4;

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

    /// Probes the pair for `time`.
    fn probe(&self, time: Duration) -> Option<Reading> {
        let reading = self.prober.as_ref().ok()?.read(time);
        (!reading.batches.is_empty()).then_some(reading)
    }

    /// Watches the pair for `time`; remembers the smallest round trip that lasted.
    pub fn watch(&mut self, time: Duration) -> Vec<Reading> {
        let end = Instant::now() + time;
        let mut all: Vec<Reading> = Vec::new();
        while Instant::now() < end
            && let Some(pair) = self.pair()
            && let Some(reading) = self.probe(STEP)
        {
            all.push(reading);
            if let Some(ns) = lasting_ns(&all) {
                self.memory.learn(pair, ns);
            }
        }
        all
    }

    /// How far apart the pair is now.
    pub fn distance(&mut self) -> Option<Distance> {
        let distance = |reading: Reading| Distance {
            rtt_ns: reading.rtt_ns(),
            on_one_core: reading.on_one_core,
        };
        self.probe(PROBE_TIME).map(distance)
    }

    /// Puts the two distances around a sample together; a round trip that lasted for the sample is
    /// remembered.
    pub fn bracket(
        &mut self,
        before: Option<Distance>,
        after: Option<Distance>,
    ) -> Option<Bracket> {
        let (before, after) = before.zip(after)?;
        let bracket = Bracket { before, after };
        if !bracket.is_on_one_core() {
            self.memory.learn(self.pair()?, bracket.larger_ns());
        }
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

/// The largest round trip of the last readings, where there are enough of them, all on two cores.
fn lasting_ns(readings: &[Reading]) -> Option<f64> {
    let first = readings.len().checked_sub(LASTING)?;
    let last = &readings[first..];
    if last.iter().any(|reading| reading.on_one_core) {
        return None;
    }
    last.iter().map(Reading::rtt_ns).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_on_two_cores_is_told_from_what_flashes() {
        let reading = |ns, on_one_core| Reading {
            batches: vec![ns],
            on_one_core,
        };
        let two = |ns: f64| reading(ns, false);
        assert_eq!(lasting_ns(&[two(50.0), two(50.0), two(50.0)]), None);
        // One that has come back from one core at its end.
        let flash = [two(110.0), two(50.0), two(108.0), two(109.0)];
        assert_eq!(lasting_ns(&flash), Some(110.0));
        let shared = [two(110.0), reading(50.0, true), two(108.0), two(109.0)];
        assert_eq!(lasting_ns(&shared), None);
        // Only the last count.
        let past = [reading(50.0, true), two(1.0), two(2.0), two(3.0), two(4.0)];
        assert_eq!(lasting_ns(&past), Some(4.0));
    }
}
