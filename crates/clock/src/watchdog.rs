//! Whether the counters still run as they did when they were measured.

use crate::calibrate::{CalibrateError, Calibration, Calibrator};
use crate::{Clock, Ordo};
use std::fmt;
use std::ops::Deref;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Rounds of each pair in one look. They take about a millisecond for a near pair, and give a bound
/// only a little wider than a calibration's.
const LOOK: u64 = 5_000;

/// Rounds of each pair in the second measurement, which follows a look that found more than the
/// boundary allows: that may have been noise.
const DOUBT: u64 = 100_000;

/// The result of measuring a clock's counters again.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Drift {
    /// The new measurement.
    pub found: Calibration,
    /// The clock's boundary before this check, in ticks.
    pub before: u64,
    /// The clock's boundary after this check, in ticks; never less than `before`.
    pub boundary: u64,
}

impl Drift {
    /// Whether the check had to raise the boundary. If so, comparisons before it may have called
    /// certain what was not.
    pub fn is_raised(&self) -> bool {
        self.boundary > self.before
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |ticks: u64| self.found.rate.nanoseconds(ticks as f64).value;
        let (before, now) = (ns(self.before), ns(self.boundary));
        match self.is_raised() {
            true => write!(
                f,
                "the CPUs' counters have drifted apart: the boundary was {before:.1} ns and is \
                 now {now:.1} ns"
            ),
            false => write!(f, "the boundary of {now:.1} ns holds"),
        }
    }
}

impl Ordo {
    /// Measures the offsets again, between the CPUs that the clock was made for, and raises the
    /// boundary if they have outgrown it. Never lowers it: users may rely on the larger one.
    ///
    /// Each CPU is busy for about a millisecond per other CPU. An offset that is still within the
    /// boundary's margin raises nothing. If one exceeds the boundary, everything is measured again
    /// with more rounds, and only the second measurement counts.
    ///
    /// # Errors
    /// The reason why nothing could be measured. The boundary stays as it was.
    pub fn check(&self) -> Result<Drift, CalibrateError> {
        let mut by = Calibrator::new().rounds(LOOK).looks(1);
        if let Some(made) = self.calibration() {
            by = by.cpus(made.offsets.cpus().iter().copied().collect());
            by = if made.composed { by.composed() } else { by };
        }
        self.check_by(&by)
    }

    /// Measures again as [`check`](Self::check) does, with a calibrator of your own.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    pub fn check_by(&self, by: &Calibrator) -> Result<Drift, CalibrateError> {
        let mut found = by.run()?;
        if outgrown(&found, self.boundary()) {
            found = by.clone().rounds(DOUBT).looks(4).run()?;
        }
        let before = self.boundary();
        if outgrown(&found, before) {
            self.raise_boundary(found.boundary);
        }
        Ok(Drift {
            boundary: self.boundary(),
            found,
            before,
        })
    }
}

/// Whether the largest offset found exceeds the boundary. A step of the counter is added, because
/// the offset may be one step more at other moments.
fn outgrown(found: &Calibration, boundary: u64) -> bool {
    let largest = found.offsets.largest().map_or(0, |(_, _, ticks)| ticks);
    largest.max(0).cast_unsigned() + found.step > boundary
}

/// A thread that measures a clock's counters again and again, and raises the clock's boundary if
/// they have drifted apart. Dropping the watchdog ends the thread, after the measurement that is
/// under way.
///
/// ```no_run
/// use corelay_clock::{Ordo, Watchdog};
/// use std::{sync::Arc, time::Duration};
///
/// let clock = Arc::new(Ordo::calibrate()?);
/// let watchdog = Watchdog::start(Arc::clone(&clock), Duration::from_secs(60), |look| match look {
///     Ok(drift) if drift.is_raised() => eprintln!("{drift}"),
///     Ok(_) => {}
///     Err(error) => eprintln!("the clock cannot be watched: {error}"),
/// })?;
/// # drop(watchdog);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the watching ends when this is dropped"]
pub struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread. It measures at once, and then again whenever `every` has passed since the
    /// last report. It calls `report` with each result.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start<C, R>(clock: C, every: Duration, mut report: R) -> std::io::Result<Self>
    where
        C: Deref<Target = Ordo> + Send + 'static,
        R: FnMut(Result<Drift, CalibrateError>) + Send + 'static,
    {
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            loop {
                report(clock.check());
                if stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("corelay-clock-watch".to_owned());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(watch)?),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If `report` panicked, its thread has said so.
            let _ = thread.join();
        }
    }
}
