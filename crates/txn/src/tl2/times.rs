//! The times of a domain: the clock's, until the clock is caught breaking its promise.
//!
//! A time that was seen and is certainly *after* one drawn later cannot be, if the boundary is right:
//! some CPU's counter has stepped. A clock that is caught so is not asked again. The domain goes on with
//! a counter of its own, whose times are beyond all of the clock's:
//!
//! ```text
//!   TRUSTED ── caught ──► CAUGHT ── heavy barrier ──► SETTLED
//!   commits: clock        counter                     counter
//!   reads:   clock        clock                       counter
//! ```
//!
//! A commit locks, passes a light barrier and looks. If its barrier comes before the heavy one, whoever
//! finds SETTLED sees its locks, so that a time of the counter may be called later than the clock's time
//! that it is going to write. If not, it finds CAUGHT and takes the counter. A commit that overwrites
//! a time of the counter has found CAUGHT, since the writer of that had: so the times of one variable
//! increase. Among times of the counter everything is as by [`Logical`].

use corelay_clock::{Clock, Logical, Order, Time, is_exact};
use corelay_sync::barrier;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicU8, AtomicU64, Ordering};

const TRUSTED: u8 = 0;
const CAUGHT: u8 = 1;
const SETTLED: u8 = 2;

/// The counter's times are beyond this. A clock that reads more (25 years at 3 GHz) is not trusted:
/// a variable's word would have no room for what comes after.
const LATEST: Time = Time::from_raw((1 << 61) - 1);

/// Draws in vain after which a clock counts as one that stands still: 40 µs or more, and four times the
/// largest offset that a calibration takes.
const DRAWS: u32 = if MODEL { 8 } else { 1 << 12 };

/// The source of a domain's times.
#[derive(Debug)]
pub(super) struct Times<C> {
    clock: C,
    trust: AtomicU8,
    own: Logical,
    beyond: AtomicU64,
}

impl<C: Clock> Times<C> {
    pub(super) fn new(clock: C) -> Self {
        Self {
            clock,
            trust: AtomicU8::new(TRUSTED),
            own: Logical::new(),
            beyond: AtomicU64::new(0),
        }
    }

    pub(super) fn clock(&self) -> &C {
        &self.clock
    }

    /// Times met that the clock's boundary does not allow.
    pub(super) fn beyond(&self) -> u64 {
        // Relaxed: a count.
        self.beyond.load(Ordering::Relaxed)
    }

    /// Versions below the answer were certainly written before `time`.
    #[inline(always)]
    pub(super) fn horizon(&self, time: Time) -> Time {
        if !self.is_settled() {
            return self.clock.horizon(time);
        }
        // The clock's times of before say nothing any more.
        if time > LATEST { time } else { Time::ZERO }
    }

    /// Which was first: a version, or the time that a transaction has.
    pub(super) fn cmp(&self, version: Time, time: Time) -> Order {
        if !self.is_settled() {
            return self.clock.cmp(version, time);
        }
        if time <= LATEST {
            Order::Uncertain
        } else if version < time {
            Order::Before
        } else {
            Order::After
        }
    }

    /// A time to read at, drawn after the version `seen` was seen.
    pub(super) fn read(&self, seen: Time) -> Time {
        if !self.is_settled() {
            let now = self.clock.read_time();
            if now <= LATEST && !self.clock.is_before(now, seen) {
                return now;
            }
            self.catch(seen, now);
        }
        own(self.own.read_time())
    }

    /// A time to commit at, after those of all that is overwritten, of which `newest` is the newest. The
    /// caller has locked that, and passed a light barrier since.
    ///
    /// It need not be *certainly* after them: the proof uses of the versions of one variable only
    /// that they differ, and of the time that it was drawn while the locks were held.
    #[inline(always)]
    pub(super) fn commit(&self, newest: Time) -> Time {
        if is_exact(&self.clock) {
            return self.clock.announced_time(Time::ZERO);
        }
        // Relaxed: ordered by the barrier of the caller.
        if self.trust.load(Ordering::Relaxed) == TRUSTED {
            let time = self.clock.announced_time(Time::ZERO);
            if newest < time && time <= LATEST {
                return time;
            }
        }
        self.commit_slowly(newest)
    }

    #[cold]
    #[inline(never)]
    fn commit_slowly(&self, newest: Time) -> Time {
        let mut draws = 0;
        // Relaxed: as in `commit`.
        while self.trust.load(Ordering::Relaxed) == TRUSTED {
            let time = self.clock.announced_time(Time::ZERO);
            if newest < time && time <= LATEST {
                return time;
            }
            draws += 1;
            if draws == DRAWS || time > LATEST || self.clock.is_before(time, newest) {
                self.catch(newest, time);
            }
        }
        own(self.own.announced_time(Time::ZERO))
    }

    /// The version `seen` is certainly after the time `now`, which was drawn later; or the clock
    /// stands still, or gives out what no clock does.
    #[cold]
    #[inline(never)]
    fn catch(&self, seen: Time, now: Time) {
        // Loom takes two relaxed read-modify-writes for one; as in `stats`.
        if !cfg!(corelay_loom) {
            // Relaxed: a count.
            self.beyond.fetch_add(1, Ordering::Relaxed);
        }
        // Relaxed, both: the barrier orders it, before it is settled.
        let caught =
            self.trust
                .compare_exchange(TRUSTED, CAUGHT, Ordering::Relaxed, Ordering::Relaxed);
        if caught != Err(SETTLED) {
            // Pairs with the light barrier of commits. By each that comes here: none waits for another.
            barrier::heavy();
            // Release: pairs with the Acquire of `is_settled`; carries the barrier.
            self.trust.store(SETTLED, Ordering::Release);
        }
        // In the end: it may be anybody's code, and panic.
        self.clock.met_beyond(seen, now);
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        // Acquire: pairs with the Release of `catch`.
        !is_exact(&self.clock) && self.trust.load(Ordering::Acquire) == SETTLED
    }
}

/// A time of the counter.
#[inline(always)]
fn own(time: Time) -> Time {
    Time::from_raw(LATEST.raw() + time.raw())
}
