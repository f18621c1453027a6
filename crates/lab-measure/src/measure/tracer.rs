//! What an event of the tracer costs: in a recording, and without one.
//!
//! A tick read alone, an event (which reads the tick), and a mark that is off take turns in
//! short batches; of each the batch of the middle counts, as on a machine that moves.

use crate::measure::stats::median;
use corelay_sync::ticks;
use corelay_sync::trace::{self, AlreadyRecording, Limits, Mark, Recording};
use std::hint::black_box;
use std::time::Instant;

static MARK: Mark = Mark::new("measured").with_arg("n");

/// Events of a batch: each takes another place of a ring of the usual size.
const BATCH: u64 = 2_000;
const ROUNDS: usize = 100;

/// Nanoseconds, each a median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Of [`ticks`] alone.
    pub tick_ns: f64,
    /// Of an instant in a recording, its tick among it.
    pub(crate) event_ns: f64,
    /// Of an instant without a recording.
    pub off_ns: f64,
}

impl Cost {
    /// Of an event, beyond its tick read.
    pub fn beyond_tick_ns(self) -> f64 {
        self.event_ns - self.tick_ns
    }
}

/// Measures it on this thread, within some tenths of a second. Records nothing that is kept.
///
/// # Errors
/// Where a recording is under way: there is one at a time.
pub fn cost() -> Result<Cost, AlreadyRecording> {
    let mut samples = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        let tick = batch(|_| _ = black_box(ticks()));
        let recording = Recording::start(Limits::default())?;
        // This thread's ring is made by its first event.
        trace::instant(&MARK, 0);
        let event = batch(|n| trace::instant(&MARK, black_box(n)));
        drop(recording);
        let off = batch(|n| trace::instant(&MARK, black_box(n)));
        // The first round warms up.
        if round > 0 {
            for (samples, sample) in samples.iter_mut().zip([tick, event, off]) {
                samples.push(sample);
            }
        }
    }
    let [tick_ns, event_ns, off_ns] =
        samples.map(|samples| median(&samples).expect("there were rounds"));
    Ok(Cost {
        tick_ns,
        event_ns,
        off_ns,
    })
}

/// Nanoseconds of one call of `run`.
fn batch(run: impl Fn(u64)) -> f64 {
    let start = Instant::now();
    (0..BATCH).for_each(run);
    start.elapsed().as_nanos() as f64 / BATCH as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The only test of this crate's own that records: there is one recording at a time.
    #[test]
    fn every_part_of_the_cost_is_measured() {
        let cost = cost().expect("nobody else records");
        for ns in [cost.tick_ns, cost.event_ns, cost.off_ns] {
            assert!(ns.is_finite() && ns > 0.0, "{cost:?}");
        }
        assert!(cost.beyond_tick_ns().is_finite());
        let recording = Recording::start(Limits::default()).unwrap();
        assert_eq!(super::cost(), Err(AlreadyRecording));
        drop(recording);
    }
}
