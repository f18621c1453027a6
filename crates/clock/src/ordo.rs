//! Each core's own hardware clock, and the boundary between two of them.
//!
//! # The comparison
//! ```text
//!      a.raw()            b.raw()
//!   ─────┼─────────────────┼─────▶
//!        │◀── boundary ──▶ │         a is certainly before b: with Cᵢ, Cⱼ the counters that were
//!                                    read, Cⱼ is never ahead of Cᵢ by more than the boundary. Had
//!                                    b been drawn first, or at the same time, its count would be
//!                                    at most a's and the boundary.
//! ```
//!
//! # What each draw is
//! | draw | x86-64 | aarch64 | why |
//! |---|---|---|---|
//! | `now` | `rdtsc` | `isb; mrs` | no order but that of the thread's own draws |
//! | `read_time`, `after` | `lfence; rdtsc; lfence` | `dsb ishld; isb; mrs; isb` | what this thread has read was there before; what it reads now is of later |
//! | `commit_time` | `xchg; lfence; rdtsc; lfence` | `dsb ish; isb; mrs; isb` | and what it has stored is seen by all: the announcement |
//! | `announced_time` | `lfence; rdtsc; lfence` | `dsb ish; isb; mrs; isb` | the same, where a locked instruction has announced |
//!
//! [`corelay_sync::counter`] argues each instruction.
//!
//! The second promise of [`Clock`] follows: the writer's store can be seen by all before its draw
//! w, and the reader's loads begin behind its draw r; where w is certainly before r, they see it.

use crate::calibrate::{self, CalibrateError, Calibration, Calibrator};
use crate::fitness::{Fitness, Unfit};
use crate::rate::{Moment, Nanoseconds, Rate};
use crate::{Clock, Order, Time};
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::hint::spin_loop;
use corelay_sync::{CachePadded, counter};
use std::sync::OnceLock;

/// Each core's own hardware clock. Times nearer to each other than the boundary are uncertain.
///
/// ```
/// use corelay_clock::{Clock, Ordo};
///
/// match Ordo::shared() {
///     Ok(clock) => {
///         let a = clock.now();
///         let b = clock.after(a); // on whichever CPU: certainly later
///         assert!(clock.is_before(a, b));
///     }
///     Err(error) => println!("no Ordo here: {error}"), // it says why; use Logical
/// }
/// ```
///
/// # What voids it
/// The boundary holds for the CPUs that it was measured on, as long as their counters run on.
/// Suspending the machine, moving a virtual machine to another host or restoring a snapshot of it,
/// and CPUs that are switched on later may change an offset and are not noticed by a comparison;
/// a [`Watchdog`](crate::Watchdog) notices, a while later.
#[derive(Debug)]
pub struct Ordo {
    /// Ticks; only raised.
    boundary: CachePadded<AtomicU64>,
    /// The largest boundary, in ticks, that it raises itself to.
    most: u64,
    /// Times that it was told to be wrong.
    beyond: AtomicU64,
    /// When it was made.
    made: Moment,
    rate: OnceLock<Rate>,
    calibration: Option<Calibration>,
}

impl Ordo {
    /// A clock with a boundary measured now, between all CPUs that this process may run on: some
    /// 10 to 50 ms for each CPU but the first. [`Calibrator`] has the particulars.
    ///
    /// # Errors
    /// Why there is none: the counter is unfit, there is one CPU only, a CPU cannot be measured.
    pub fn calibrate() -> Result<Self, CalibrateError> {
        Calibrator::new().run().map(Self::from_calibration)
    }

    /// The clock of this process, measured when it is first asked for. Who raises its boundary
    /// raises it for all who use it.
    ///
    /// # Errors
    /// As [`calibrate`](Self::calibrate); the same for all who ask.
    pub fn shared() -> Result<&'static Self, &'static CalibrateError> {
        static SHARED: OnceLock<Result<Ordo, CalibrateError>> = OnceLock::new();
        SHARED.get_or_init(Self::calibrate).as_ref()
    }

    /// The clock of a calibration of this process.
    pub fn from_calibration(calibration: Calibration) -> Self {
        let rate = OnceLock::from(calibration.rate);
        Self {
            boundary: CachePadded::new(AtomicU64::new(calibration.boundary)),
            most: calibration.most(),
            beyond: AtomicU64::new(0),
            made: Moment::now(),
            rate,
            calibration: Some(calibration),
        }
    }

    /// A clock with this boundary, in ticks of the hardware's counter, instead of a measured one:
    /// for experiments. With one that is too small, what is called certain is not;
    /// [`after`](Clock::after) waits for one that is large, however large.
    ///
    /// # Panics
    /// Where the hardware's counter cannot be used: ask [`Fitness`] first.
    pub fn with_boundary(ticks: u64) -> Self {
        match Self::try_with_boundary(ticks) {
            Ok(clock) => clock,
            Err(unfit) => panic!("{unfit}"),
        }
    }

    /// As [`with_boundary`](Self::with_boundary).
    ///
    /// # Errors
    /// Where the hardware's counter cannot be used.
    pub fn try_with_boundary(ticks: u64) -> Result<Self, Unfit> {
        Fitness::probe().verdict()?;
        Ok(Self {
            boundary: CachePadded::new(AtomicU64::new(ticks.min(MAX_BOUNDARY))),
            most: RAISED,
            beyond: AtomicU64::new(0),
            made: Moment::now(),
            rate: OnceLock::new(),
            calibration: None,
        })
    }

    /// What was measured when the clock was made, where it was.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// Sets the boundary to `ticks` where it is less. Returns the one before.
    ///
    /// What was called certain by the smaller one stays said; what is compared from now on obeys
    /// the larger.
    pub fn raise_boundary(&self, ticks: u64) -> u64 {
        // Relaxed: a word of its own; who has raised it says so to those who must know.
        self.boundary
            .fetch_max(ticks.min(MAX_BOUNDARY), Ordering::Relaxed)
    }

    /// How often an algorithm met a time that the boundary does not allow: see
    /// [`met_beyond`](Clock::met_beyond). More than 0 says that this host moves its CPUs' counters
    /// further than was measured, or that the boundary was given by hand.
    pub fn beyond(&self) -> u64 {
        // Relaxed: a count.
        self.beyond.load(Ordering::Relaxed)
    }

    /// How many ticks pass in a nanosecond. The first call may sleep for 10 ms to find out.
    pub fn rate(&self) -> Rate {
        *self.rate.get_or_init(|| self.made.rate())
    }

    /// From `a` to `b`, in nanoseconds: wrong by no more than the boundary, as they may be of two
    /// CPUs, and what is not known of the rate.
    ///
    /// ```
    /// # use corelay_clock::{Clock, Ordo};
    /// # let Ok(clock) = Ordo::shared() else { return };
    /// let begin = clock.read_time();
    /// let sum: u64 = (0..1_000).sum();
    /// let spent = clock.elapsed(begin, clock.read_time());
    /// println!("{spent}, {sum}"); // 512.3 ns ± 46.4, …
    /// ```
    pub fn elapsed(&self, a: Time, b: Time) -> Nanoseconds {
        let ticks = b.raw().wrapping_sub(a.raw()).cast_signed();
        let rate = self.rate();
        let Nanoseconds { value, error } = rate.nanoseconds(ticks as f64);
        let boundary = rate.nanoseconds(self.boundary() as f64);
        Nanoseconds {
            value,
            error: error + boundary.value + boundary.error,
        }
    }

    /// The next one certainly after `t`.
    #[cold]
    fn wait_beyond(&self, t: Time) -> Time {
        loop {
            let time = self.read_time();
            if self.is_before(t, time) {
                return time;
            }
            let ahead = t.raw().saturating_sub(time.raw());
            assert!(
                ahead < FOREIGN + self.boundary(),
                "{t:?} is no time of this clock, which stands at {time:?}: `after` takes times \
                 that this process has drawn from this machine's counters"
            );
            spin_loop();
        }
    }
}

/// A time so many ticks ahead of a counter was not drawn from this machine's: a third of a second
/// at 3 GHz.
const FOREIGN: u64 = 1 << 30;

/// The largest boundary that a clock without a calibration raises itself to: 13 µs at 2.6 GHz. One that
/// was calibrated goes as far as a calibration may.
const RAISED: u64 = 1 << 15;

/// The largest boundary: with it everything is uncertain.
const MAX_BOUNDARY: u64 = Time::NEVER.raw();

impl Clock for Ordo {
    #[inline(always)]
    fn now(&self) -> Time {
        Time::from_raw(counter::read())
    }

    #[inline(always)]
    fn read_time(&self) -> Time {
        Time::from_raw(counter::read_between())
    }

    #[inline(always)]
    fn commit_time(&self, floor: Time) -> Time {
        let time = Time::from_raw(counter::read_behind_stores());
        if is_after_floor(floor, time, self.boundary()) {
            return time;
        }
        self.wait_beyond(floor)
    }

    #[inline(always)]
    fn announced_time(&self, floor: Time) -> Time {
        let time = Time::from_raw(counter::read_behind_exchange());
        if is_after_floor(floor, time, self.boundary()) {
            return time;
        }
        self.wait_beyond(floor)
    }

    #[inline(always)]
    fn update_time(&self) -> Time {
        self.read_time()
    }

    #[inline(always)]
    fn after(&self, t: Time) -> Time {
        let time = self.read_time();
        if self.is_before(t, time) {
            return time;
        }
        self.wait_beyond(t)
    }

    #[inline(always)]
    fn cmp(&self, a: Time, b: Time) -> Order {
        compare(a, b, self.boundary())
    }

    #[inline(always)]
    fn is_before(&self, a: Time, b: Time) -> bool {
        is_beyond(a, b, self.boundary())
    }

    #[inline(always)]
    fn boundary(&self) -> u64 {
        // Relaxed: a word of its own; who has raised it says so to those who must know.
        self.boundary.load(Ordering::Relaxed)
    }

    /// Raises the boundary so that it covers the two, and a margin, but not beyond what a calibration may
    /// find: one that is as wide as some minutes would be waited out. Says so once, on standard error.
    #[cold]
    fn met_beyond(&self, seen: Time, now: Time) {
        let ahead = seen.raw().saturating_sub(now.raw());
        let wanted = calibrate::boundary(ahead.min(MAX_BOUNDARY).cast_signed(), 0, 0);
        let before = self.raise_boundary(wanted.min(self.most));
        // Relaxed: a count.
        if self.beyond.fetch_add(1, Ordering::Relaxed) == 0 {
            eprintln!(
                "corelay: a CPU's counter is {ahead} ticks ahead of another's, more than the boundary of \
                 {before} ticks; it is {} now, and what was called certain before may be wrong",
                self.boundary()
            );
        }
    }
}

/// True where `b` is more than the boundary beyond `a`. Times are below 2^62, so their difference
/// is a signed number.
#[inline(always)]
pub(crate) fn is_beyond(a: Time, b: Time, boundary: u64) -> bool {
    b.raw().wrapping_sub(a.raw()).cast_signed() > boundary.cast_signed()
}

/// True where `time` may be given out for this floor. Every time is after ZERO, also where the boundary
/// is wider than the counter has counted so far.
#[inline(always)]
fn is_after_floor(floor: Time, time: Time, boundary: u64) -> bool {
    floor == Time::ZERO || is_beyond(floor, time, boundary)
}

/// How `a` and `b` relate by clocks that are this far apart.
#[inline(always)]
pub(crate) fn compare(a: Time, b: Time, boundary: u64) -> Order {
    if is_beyond(a, b, boundary) {
        Order::Before
    } else if is_beyond(b, a, boundary) {
        Order::After
    } else {
        Order::Uncertain
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_told_to_be_wrong_raises_its_boundary_as_far_as_it_may() {
        let Ok(clock) = Ordo::try_with_boundary(100) else {
            return;
        };
        let at = Time::from_raw;
        clock.met_beyond(at(5_000), at(4_000));
        assert_eq!((clock.boundary(), clock.beyond()), (1_250, 1));
        // It never waits for what nobody would measure.
        clock.met_beyond(Time::NEVER, at(0));
        clock.met_beyond(at(u64::MAX), at(0));
        clock.met_beyond(at(0), at(u64::MAX));
        assert_eq!((clock.boundary(), clock.beyond()), (RAISED, 4));
    }
}
