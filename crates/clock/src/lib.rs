//! Clocks that order what threads do.
//!
//! A [`Clock`] gives out [`Time`]s and compares them, with three answers: before, after,
//! uncertain. [`Logical`] is one shared counter that every commit increments: exact, and contended.
//! [`Ordo`] reads the hardware clock of the core that it runs on: nothing is shared, but two cores'
//! clocks differ by an unknown offset, so times nearer to each other than the *boundary* are
//! uncertain (Kashyap and others, "A Scalable Ordering Primitive for Multicore Machines",
//! EuroSys 2018).
//!
//! ```
//! use corelay_clock::{Clock, Logical, Order, Ordo};
//!
//! fn stamp_twice(clock: &dyn Clock) {
//!     let first = clock.now();
//!     let second = clock.after(first); // on whichever CPU
//!     assert_eq!(clock.cmp(first, second), Order::Before);
//! }
//!
//! match Ordo::shared() {
//!     Ok(clock) => stamp_twice(clock),
//!     Err(why) => { println!("{why}"); stamp_twice(&Logical::new()) }
//! }
//! ```
//!
//! # When not to use it
//! * Few cores, or few commits: [`Logical`] is exact and nobody waits.
//! * To measure durations: [`std::time::Instant`] is for that.
//! * Across processes or machines: a boundary is measured for the CPUs of one process.
//!
//! # Guarantees
//! * **Order**: what [`Clock`] promises, on every pair of the CPUs that were measured; void after a
//!   suspend, a restored snapshot, a move to another host, CPUs switched on later ([`Ordo`]).
//! * **Refusal**: where the counters cannot be a clock, or there is one CPU, [`Ordo`] is an error
//!   that says why, never a guess. [`Logical`] is always there.
//! * **Waiting**: [`after`](Clock::after) at most until the boundary is over twice; a time that is
//!   not of this clock panics in place of a wait without end. Nothing else waits.
//! * **Threads and fibres**: no state of a thread; a fibre may go on on another thread between
//!   two calls.
//! * **Memory, idle cost**: two cache lines a clock; none, unless a [`Watchdog`] is started.
//!
//! # How it works
//! | module | idea |
//! |---|---|
//! | `ordo` | the comparison; which instructions each draw is, and why |
//! | `calibrate` | the boundary: offsets between every ordered pair of CPUs, and whether they move |
//! | `fitness` | may the counters be used at all |
//! | `history` | boundaries of earlier calibrations, in a file; they may only raise |
//! | `watchdog` | do the counters still run as they did |
//! | `rate` | nanoseconds and their error |
//! | `logical`, `skewed` | one counter; a clock that is wrong on purpose, for tests |
#![forbid(unsafe_code)]

mod calibrate;
mod fitness;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
mod history;
mod logical;
mod ordo;
mod rate;
mod skewed;
mod time;
mod watchdog;

pub use calibrate::{CalibrateError, Calibration, Calibrator, Movement, Offsets};
pub use fitness::{Fitness, Unfit};
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
pub use history::{History, HistoryError, Identity, Record};
pub use logical::Logical;
pub use ordo::Ordo;
pub use rate::{Nanoseconds, Rate};
pub use skewed::{Skewed, SkewedBuilder};
pub use time::{Order, Time};
pub use watchdog::{Drift, Watchdog};

/// Gives out times and says which of two was first.
///
/// # What algorithms may rely on
/// * **Certain means certain.** `cmp(a, b) == Before` only where the draw of `a` came before the
///   draw of `b` in real time, on whichever cores.
/// * **A reader of a later time sees what was announced.** If a thread stored something, then drew
///   `w` by [`commit_time`](Self::commit_time), and another thread drew `r` by
///   [`read_time`](Self::read_time) with `cmp(w, r) == Before`, then what the other thread loads
///   afterwards is what was stored, or newer.
/// * Times of one thread never decrease *certainly*: a later one is never before an earlier one by
///   [`cmp`](Self::cmp). As bare numbers they do not decrease while the thread stays on its CPU; on
///   another one, to which the system or a fibre's cluster has moved it, the counter may be behind by
///   up to the [boundary](Self::boundary), and the two are uncertain. [`after`](Self::after) and
///   [`wait_out`](Self::wait_out) hold across the move. Of [`Logical`] no number ever decreases.
///
/// # What they may not
/// A time drawn says nothing to who has not seen it. A writer **announces before it draws**: it
/// first makes its objects visibly pending, then draws, then publishes the time; a reader that
/// meets a pending object waits, helps or aborts.
pub trait Clock: Send + Sync {
    /// The time, for the least that it can be had: in no order to the loads and stores around it.
    fn now(&self) -> Time;

    /// The time a reader begins at: earlier loads have their values, later loads and stores have
    /// not begun.
    fn read_time(&self) -> Time;

    /// The time a writer commits at: drawn when all that this thread has stored can be seen by
    /// every thread, and certainly after `floor`. Later loads and stores have not begun. No other
    /// thread's commit time is equal to it, except by clocks that call equal times uncertain.
    fn commit_time(&self, floor: Time) -> Time;

    /// As [`commit_time`](Self::commit_time), of a thread that announced by an atomic
    /// read-modify-write (it took a lock, it swapped a word): what it had stored by then, that
    /// included, can be seen by every thread. Stores behind it may still wait. Where the
    /// announcement has drained the stores already, they are not drained again.
    #[inline(always)]
    fn announced_time(&self, floor: Time) -> Time {
        self.commit_time(floor)
    }

    /// A time certainly after `t`: `cmp(t, after(t)) == Before` (the paper's `new_time`). Waits for
    /// it where it has to, at most twice the boundary if `t` was drawn from this clock.
    fn after(&self, t: Time) -> Time;

    /// The time of an update that is going to be [waited out](Self::wait_out): drawn behind all that
    /// this thread has loaded. What it has stored may not be seen yet.
    #[inline(always)]
    fn update_time(&self) -> Time {
        self.commit_time(Time::ZERO)
    }

    /// Waits until every time that anybody draws from now on is greater, as a bare number, than `t`,
    /// a time drawn by [`update_time`](Self::update_time): then of two updates that came one after
    /// the other, the later one has the greater time. At most twice the boundary from the draw;
    /// nothing where updates' times are drawn in one order.
    ///
    /// # Panics
    /// Where the clock stands still, in place of a wait without end.
    #[inline(always)]
    fn wait_out(&self, t: Time) {
        let (mut last, mut looks) = (t, 0);
        loop {
            let now = self.now();
            if self.is_before(t, now) {
                return;
            }
            looks = if now == last { looks + 1 } else { 0 };
            last = now;
            assert!(
                looks < STILL,
                "the clock stands still at {now:?}: {t:?} never passes"
            );
        }
    }

    /// Which was first (the paper's `cmp_time`).
    fn cmp(&self, a: Time, b: Time) -> Order;

    /// True where `a` was certainly before `b`.
    #[inline(always)]
    fn is_before(&self, a: Time, b: Time) -> bool {
        self.cmp(a, b) == Order::Before
    }

    /// A time of this clock that is below the answer was certainly before `t`: for who compares many
    /// with one. Good for as long as the boundary is not raised.
    ///
    /// ```
    /// use corelay_clock::{Clock, SkewedBuilder, Time};
    ///
    /// let clock = SkewedBuilder { skew: 1, step: 1, boundary: 3, delay: 0 }.build();
    /// let t = Time::from_raw(10);
    /// for a in (0..20).map(Time::from_raw) {
    ///     assert_eq!(a < clock.horizon(t), clock.is_before(a, t));
    /// }
    /// ```
    #[inline(always)]
    fn horizon(&self, t: Time) -> Time {
        Time::from_raw(t.raw().saturating_sub(self.boundary()))
    }

    /// Times that differ by no more than this are uncertain; in the clock's own units.
    fn boundary(&self) -> u64;

    /// Tells the clock that it is wrong: `seen` was drawn before `now`, in real time, and is certainly
    /// after it. Algorithms call this where they find it out; see `beyond` in their counts.
    ///
    /// [`Ordo`] raises its boundary. Does nothing unless overridden.
    fn met_beyond(&self, seen: Time, now: Time) {
        let _ = (seen, now);
    }

    /// See [`is_exact`].
    #[doc(hidden)]
    #[inline(always)]
    fn exact(&self, _: sealed::Ours) -> bool {
        false
    }
}

/// Equal readings in a row after which a clock counts as one that stands still: a tenth of a second and more.
const STILL: u32 = 1 << 24;

/// True where one word that all commits change gives out all times, so that a time read behind a
/// commit's draw is the greater number, never an equal one: [`Logical`]. More than a boundary of
/// 0, which may be raised, and by which equal times of different threads are uncertain still.
///
/// No clock from outside of this crate can say it of itself, so memory may rest on it.
#[inline(always)]
pub fn is_exact<C: Clock + ?Sized>(clock: &C) -> bool {
    clock.exact(sealed::Ours)
}

mod sealed {
    /// Who cannot name it can neither override nor call what takes it.
    #[derive(Clone, Copy, Debug)]
    pub struct Ours;
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline(always)]
    fn now(&self) -> Time {
        (**self).now()
    }
    #[inline(always)]
    fn read_time(&self) -> Time {
        (**self).read_time()
    }
    #[inline(always)]
    fn commit_time(&self, floor: Time) -> Time {
        (**self).commit_time(floor)
    }
    #[inline(always)]
    fn announced_time(&self, floor: Time) -> Time {
        (**self).announced_time(floor)
    }
    #[inline(always)]
    fn is_before(&self, a: Time, b: Time) -> bool {
        (**self).is_before(a, b)
    }
    #[inline(always)]
    fn horizon(&self, t: Time) -> Time {
        (**self).horizon(t)
    }
    #[inline(always)]
    fn after(&self, t: Time) -> Time {
        (**self).after(t)
    }
    #[inline(always)]
    fn update_time(&self) -> Time {
        (**self).update_time()
    }
    #[inline(always)]
    fn wait_out(&self, t: Time) {
        (**self).wait_out(t);
    }
    #[inline(always)]
    fn cmp(&self, a: Time, b: Time) -> Order {
        (**self).cmp(a, b)
    }
    #[inline(always)]
    fn boundary(&self) -> u64 {
        (**self).boundary()
    }
    fn met_beyond(&self, seen: Time, now: Time) {
        (**self).met_beyond(seen, now);
    }
    #[inline(always)]
    fn exact(&self, ours: sealed::Ours) -> bool {
        (**self).exact(ours)
    }
}
