//! A clock whose algorithms take the time of their parts.

use crate::sealed::Ours;
use crate::{Clock, Order, Time};
use corelay_sync::counter;

/// A clock that asks the algorithm that it orders to measure where its time goes. All times are
/// those of the clock inside.
///
/// Algorithms that follow it say so: read-log-update counts the ticks of its parts in its `Stats`.
/// For every other clock the question is answered when the algorithm is compiled, so nothing is
/// left of it. With this clock each part costs a reading of the counter, some tens of nanoseconds.
/// Use it to compare parts, and not to see how fast the whole is.
///
/// ```
/// use corelay_clock::{Clock, Logical, Order, Timed};
///
/// let Some(clock) = Timed::new(Logical::new()) else { return };
/// let first = clock.now();
/// assert_eq!(clock.cmp(first, clock.after(first)), Order::Before);
/// assert!(corelay_clock::is_timed(&clock) && !corelay_clock::is_timed(&Logical::new()));
/// ```
#[derive(Debug)]
pub struct Timed<C> {
    clock: C,
    /// Ticks of a lap in which nothing happens.
    empty: u64,
}

/// Laps from which the ticks of an empty one are taken. The smallest counts: an interrupt only
/// makes a lap longer.
const LAPS: usize = 1_000;

impl<C: Clock> Timed<C> {
    /// A clock that gives out the times of `clock`; `None` if this process cannot use the CPUs'
    /// counter: [`ticks_source`](corelay_sync::ticks_source) says why.
    pub fn new(clock: C) -> Option<Self> {
        counter::usable().then(|| Self {
            clock,
            empty: empty(),
        })
    }
}

fn empty() -> u64 {
    let lap = || {
        let start = counter::read_between();
        counter::read_between().saturating_sub(start)
    };
    (0..LAPS).map(|_| lap()).min().unwrap_or(0)
}

/// Whether the clock is a [`Timed`] one, whose algorithms take the time of their parts.
#[inline(always)]
pub fn is_timed<C: Clock + ?Sized>(clock: &C) -> bool {
    clock.empty_lap(Ours).is_some()
}

/// The laps of one thread through the parts of an algorithm, if its clock is a [`Timed`] one.
///
/// ```
/// use corelay_clock::{Laps, Logical, Timed};
///
/// assert_eq!(Laps::start(&Logical::new()).split(), None);
/// if let Some(clock) = Timed::new(Logical::new()) {
///     let mut laps = Laps::start(&clock);
///     let ticks: Option<u64> = laps.split();
///     assert!(ticks.is_some());
/// }
/// ```
#[derive(Debug)]
pub struct Laps<'c, C: ?Sized> {
    clock: &'c C,
    /// The beginning of the lap, in ticks; 0 if the clock is not a [`Timed`] one.
    begun: u64,
}

impl<'c, C: Clock + ?Sized> Laps<'c, C> {
    /// Begins the first lap.
    #[inline(always)]
    pub fn start(clock: &'c C) -> Self {
        let begun = match is_timed(clock) {
            true => counter::read_between(),
            false => 0,
        };
        Self { clock, begun }
    }

    /// Ends the lap and begins the next one. Returns the ticks of the lap, without those that
    /// reading the counter takes; `None` unless the clock is a [`Timed`] one.
    #[inline(always)]
    pub fn split(&mut self) -> Option<u64> {
        // Known from the clock's type, wherever this is called.
        let empty = self.clock.empty_lap(Ours)?;
        let now = counter::read_between();
        let ticks = now.saturating_sub(self.begun);
        self.begun = now;
        Some(ticks.saturating_sub(empty))
    }
}

impl<C: Clock> Clock for Timed<C> {
    #[inline(always)]
    fn now(&self) -> Time {
        self.clock.now()
    }
    #[inline(always)]
    fn read_time(&self) -> Time {
        self.clock.read_time()
    }
    #[inline(always)]
    fn commit_time(&self, floor: Time) -> Time {
        self.clock.commit_time(floor)
    }
    #[inline(always)]
    fn announced_time(&self, floor: Time) -> Time {
        self.clock.announced_time(floor)
    }
    #[inline(always)]
    fn after(&self, t: Time) -> Time {
        self.clock.after(t)
    }
    #[inline(always)]
    fn update_time(&self) -> Time {
        self.clock.update_time()
    }
    #[inline(always)]
    fn wait_out(&self, t: Time) {
        self.clock.wait_out(t);
    }
    #[inline(always)]
    fn cmp(&self, a: Time, b: Time) -> Order {
        self.clock.cmp(a, b)
    }
    #[inline(always)]
    fn is_before(&self, a: Time, b: Time) -> bool {
        self.clock.is_before(a, b)
    }
    #[inline(always)]
    fn horizon(&self, t: Time) -> Time {
        self.clock.horizon(t)
    }
    #[inline(always)]
    fn boundary(&self) -> u64 {
        self.clock.boundary()
    }
    fn met_beyond(&self, seen: Time, now: Time) {
        self.clock.met_beyond(seen, now);
    }
    #[inline(always)]
    fn exact(&self, ours: Ours) -> bool {
        self.clock.exact(ours)
    }
    #[inline(always)]
    fn empty_lap(&self, _: Ours) -> Option<u64> {
        Some(self.empty)
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;
    use crate::{Logical, is_exact};
    use std::time::Duration;

    #[test]
    fn a_lap_is_as_long_as_its_work() {
        let Some(clock) = Timed::new(Logical::new()) else {
            return;
        };
        let mut laps = Laps::start(&clock);
        std::thread::sleep(Duration::from_millis(2));
        let long = laps.split().unwrap();
        // The shortest of some: any of them may be interrupted.
        let short = (0..100).map(|_| laps.split().unwrap()).min().unwrap();
        assert!(short < long / 10, "{short} {long}");
    }

    #[test]
    fn the_clock_inside_keeps_its_properties() {
        let Some(clock) = Timed::new(Logical::new()) else {
            return;
        };
        assert!(is_exact(&clock) && is_timed(&&clock));
        let first = clock.commit_time(Time::ZERO);
        assert!(clock.is_before(first, clock.read_time()));
        let skewed = crate::SkewedBuilder {
            skew: 0,
            step: 1,
            boundary: 3,
            delay: 0,
        };
        let clock = Timed::new(skewed.build()).unwrap();
        assert!(!is_exact(&clock) && clock.boundary() == 3);
    }
}
