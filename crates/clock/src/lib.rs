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
//! * Few cores, or few commits: [`Logical`] is exact, and its callers never wait.
//! * To measure durations: [`std::time::Instant`] is for that.
//! * Across processes or machines: a boundary is measured for the CPUs of one process.
//!
//! # Guarantees
//! * **Order**: [`Clock`]'s promises hold for every pair of the CPUs that were measured. They are
//!   void after a suspend, a restored snapshot, a move to another host, or for CPUs switched on
//!   later ([`Ordo`]).
//! * **Refusal**: if the counters cannot be a clock, or there is one CPU, [`Ordo`] is an error that
//!   says why, never a guess. [`Logical`] is always available.
//! * **Waiting**: [`after`](Clock::after), [`wait_out`](Clock::wait_out), and the two commit draws
//!   with their floor wait for twice the boundary at most. For a time of another clock [`Ordo`] and
//!   [`Logical`] panic instead of waiting without end. No other draw or comparison waits.
//! * **Threads and fibres**: clocks keep no state of a thread. A fibre may go on on another thread
//!   between two calls.
//! * **Memory, idle cost**: [`Logical`] takes two cache lines. [`Ordo`] takes some 400 bytes, and 8
//!   bytes for each ordered pair of CPUs. No idle cost unless a [`Watchdog`] is started.
//!
//! # Features
//! * `serde`: [`Time`], [`Order`], [`Rate`], [`Nanoseconds`] and [`Movement`] are `Serialize` and
//!   `Deserialize`; [`Offsets`], [`Calibration`] and [`Drift`] are `Serialize` only, since a boundary
//!   has to be measured where it is used. ([`Record`] and [`Identity`] are both without the feature.)
//!
//! # How it works
//! | module | idea |
//! |---|---|
//! | `ordo` | the comparison; the instructions of each draw, and why |
//! | `calibrate` | the boundary: offsets between every ordered pair of CPUs, and whether they move |
//! | `fitness` | whether the counters can be used at all |
//! | `history` | boundaries of earlier calibrations, in a file; they may only raise |
//! | `watchdog` | whether the counters still run as they did |
//! | `rate` | nanoseconds and their error |
//! | `logical`, `skewed` | one counter; a clock that is wrong on purpose, for tests |
//! | `timed` | the time of an algorithm's parts, on a clock that asks for it |
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
mod timed;
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
pub use timed::{Laps, Timed, is_timed};
pub use watchdog::{Drift, Watchdog};

/// A source of times, which also says which of two times was first.
///
/// # What algorithms may rely on
/// * **Certain means certain.** `cmp(a, b) == Before` only if the draw of `a` came before the draw
///   of `b` in real time, on whichever cores.
/// * **A reader of a later time sees what was announced.** Suppose a thread stored something, then
///   drew `w` by [`commit_time`](Self::commit_time), and another thread drew `r` by
///   [`read_time`](Self::read_time) with `cmp(w, r) == Before`. Then the other thread's later loads
///   return what was stored, or newer.
/// * Times of one thread never decrease *certainly*: by [`cmp`](Self::cmp) a later one is never
///   before an earlier one. As bare numbers they do not decrease while the thread stays on its CPU.
///   If the system or a fibre's cluster moves it to another CPU, the counter there may be behind by
///   up to the [boundary](Self::boundary), and the two times are uncertain. [`after`](Self::after)
///   and [`wait_out`](Self::wait_out) hold across the move. [`Logical`]'s numbers never decrease.
///
/// # What algorithms may not rely on
/// A time that was drawn but not published tells other threads nothing. So a writer **announces
/// before it draws**: it first makes its objects visibly pending, then draws, then publishes the
/// time. A reader that meets a pending object waits, helps or aborts.
pub trait Clock: Send + Sync {
    /// Draws a time as cheaply as possible: in no order to the loads and stores around it.
    fn now(&self) -> Time;

    /// Draws the time at which a reader begins: earlier loads have their values, later loads and
    /// stores have not begun.
    fn read_time(&self) -> Time;

    /// Draws the time at which a writer commits, certainly after `floor`; every time is after
    /// [`Time::ZERO`]. At the draw every thread can see all that this thread has stored; later
    /// loads and stores have not begun. No other thread's commit time is equal to it, except by
    /// clocks that call equal times uncertain. Waits as [`after`](Self::after) does if `floor` is
    /// recent.
    ///
    /// # Panics
    /// [`Ordo`] and [`Logical`] panic if `floor` cannot be a time of this clock.
    fn commit_time(&self, floor: Time) -> Time;

    /// Draws a commit time as [`commit_time`](Self::commit_time) does, for a thread that announced
    /// by an atomic read-modify-write (it took a lock, it swapped a word). Every thread can see the
    /// announcement and what was stored before it. Stores after it may still wait. If the
    /// announcement has drained the stores already, they are not drained again.
    #[inline(always)]
    fn announced_time(&self, floor: Time) -> Time {
        self.commit_time(floor)
    }

    /// Draws a time certainly after `t`: `cmp(t, after(t)) == Before` (the paper's `new_time`). If
    /// it has to wait, then for twice the boundary at most, provided that `t` was drawn from this
    /// clock.
    ///
    /// # Panics
    /// [`Ordo`] and [`Logical`] panic if `t` cannot be a time of this clock.
    fn after(&self, t: Time) -> Time;

    /// Draws the time of an update that is going to be [waited out](Self::wait_out), after
    /// everything that this thread has loaded. Other threads may not see yet what it has stored.
    #[inline(always)]
    fn update_time(&self) -> Time {
        self.commit_time(Time::ZERO)
    }

    /// Waits until every time that any thread draws from now on is greater, as a bare number, than
    /// `t`, which was drawn by [`update_time`](Self::update_time). Suppose an update ends with this
    /// wait before another update draws its time: then the later update has the greater time. Waits
    /// for twice the boundary at most, counted from the draw of `t`. Does not wait if the clock
    /// draws all updates' times in one order, as [`Logical`] does.
    ///
    /// # Panics
    /// If the clock stands still, instead of waiting without end.
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

    /// Says which of two times was first (the paper's `cmp_time`).
    fn cmp(&self, a: Time, b: Time) -> Order;

    /// Whether `a` was certainly before `b`.
    #[inline(always)]
    fn is_before(&self, a: Time, b: Time) -> bool {
        self.cmp(a, b) == Order::Before
    }

    /// A threshold for comparing many times with `t`: a time of this clock was certainly before `t`
    /// if it is below the threshold. Valid as long as the boundary is not raised.
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

    /// The boundary: times that differ by no more than this are uncertain. In the clock's own
    /// units.
    fn boundary(&self) -> u64;

    /// Tells the clock that it is wrong: `seen` was drawn before `now`, in real time, but is
    /// certainly after it. Algorithms call this when they notice it, and count it as `beyond`.
    ///
    /// [`Ordo`] raises its boundary. Does nothing unless overridden.
    fn met_beyond(&self, seen: Time, now: Time) {
        let _ = (seen, now);
    }

    /// Whether the clock is exact: see [`is_exact`].
    #[doc(hidden)]
    #[inline(always)]
    fn exact(&self, _: sealed::Ours) -> bool {
        false
    }

    /// The ticks of an empty lap if algorithms are to take the time of their parts: see
    /// [`is_timed`].
    #[doc(hidden)]
    #[inline(always)]
    fn empty_lap(&self, _: sealed::Ours) -> Option<u64> {
        None
    }
}

/// Equal readings in a row after which [`Clock::wait_out`] takes a clock to stand still. So many
/// take at least a tenth of a second.
const STILL: u32 = 1 << 24;

/// Whether all times of the clock come from one word that every commit changes. Then a time read
/// after a commit's draw is always the greater number, never an equal one. True for [`Logical`]. A
/// boundary of 0 promises less: it may be raised later, and equal times of different threads are
/// uncertain even at 0.
///
/// No clock outside this crate can claim it, so memory safety may rest on it.
#[inline(always)]
pub fn is_exact<C: Clock + ?Sized>(clock: &C) -> bool {
    clock.exact(sealed::Ours)
}

/// Writes a time as its nanoseconds: 584 years at most.
#[cfg(feature = "serde")]
fn nanoseconds<S: serde::Serializer>(time: &std::time::Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

mod sealed {
    /// A type that other crates cannot name. So they can neither override nor call a method that
    /// takes it.
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
    #[inline(always)]
    fn empty_lap(&self, ours: sealed::Ours) -> Option<u64> {
        (**self).empty_lap(ours)
    }
}
