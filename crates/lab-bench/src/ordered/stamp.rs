//! `timestamp`: every thread draws one time after the other (O11).
//!
//! | method | a new time | checked promise |
//! |---|---|---|
//! | `fetch-add`, `cas` | a shared counter, by one instruction or by a loop | all times differ: the counter has advanced once for each |
//! | `logical` | `Logical::commit_time` | likewise |
//! | `ordo` | `Ordo::commit_time`: earlier stores are visible by then | a thread's times never fall |
//! | `ordo-after` | `Ordo::after` the last one: waits out the boundary | a thread's times are certainly ordered |
//! | `ordo-after-other` | `Ordo::after` the latest one that any thread has published: a time that is certainly newer than another core's | each is certainly after the one that was met |
//! | `ordo-update` | `Ordo::update_time`, and `Ordo::wait_out`: the stamp of an update of OpLog | a thread's times rise |
//! | `ordo-cmp` | `Ordo::read_time`, compared with the last one by `Ordo::cmp`; open comparisons are counted | a thread's times never fall |
//! | `ordo-now`, `ordo-read` | `Ordo::now`, `Ordo::read_time` | a thread's times never fall |
//! | `rdtsc`, `rdtscp` | the bare instruction | likewise |
//! | `clock-gettime` | the system's monotonic clock | likewise |

use super::clocks;
use super::ledger::Ledger;
use super::method::Build;
use corelay_clock::{Clock, Logical, Order, Time};
#[cfg(target_arch = "x86_64")]
use corelay_lab_measure::measure::instructions;
use corelay_lab_measure::method::Contender;
use corelay_lab_measure::schema::ConflictCounts;
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::Client;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::AtomicU64;
use corelay_sync::facade::atomic::Ordering::{Acquire, Relaxed, Release};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

pub(super) const FETCH_ADD: Build = |_, point, _| {
    // Relaxed: only the number matters. A clock would need more order, which costs the same here.
    counted(point, |counter, _| counter.fetch_add(1, Relaxed) + 1)
};

pub(super) const CAS: Build = |_, point, _| {
    counted(point, |counter, _| {
        // Relaxed: as in `FETCH_ADD`.
        let mut seen = counter.load(Relaxed);
        loop {
            // Relaxed: as in `FETCH_ADD`.
            match counter.compare_exchange_weak(seen, seen + 1, Relaxed, Relaxed) {
                Ok(_) => return seen + 1,
                Err(newer) => seen = newer,
            }
        }
    })
};

pub(super) const LOGICAL: Build = |_, point, _| {
    let clock = Arc::new(Logical::new());
    let first = clock.commit_time(Time::ZERO).raw();
    let last = Arc::clone(&clock);
    let drawn = move || (last.commit_time(Time::ZERO).raw() - first) / 2 - 1;
    let next = move |_| clock.commit_time(Time::ZERO).raw();
    Ok(StampContender::boxed(point, 1, next, Some(Box::new(drawn))))
};

pub(super) const ORDO: Build = |spec, point, _| {
    let clock = clocks::ordo(spec.scale)?;
    let next = move |_| clock.commit_time(Time::ZERO).raw();
    Ok(StampContender::boxed(point, 0, next, None))
};

pub(super) const ORDO_AFTER: Build = |spec, point, _| {
    let clock = clocks::ordo(spec.scale)?;
    let step = clock.boundary() + 1;
    let next = move |previous| clock.after(Time::from_raw(previous)).raw();
    Ok(StampContender::boxed(point, step, next, None))
};

/// A stamp of an algorithm that lives by physical times: certainly newer than those of other cores.
pub(super) const ORDO_AFTER_OTHER: Build = |spec, point, _| {
    let clock = clocks::ordo(spec.scale)?;
    let latest = CachePadded::new(AtomicU64::new(0));
    let next = move |previous: u64| {
        // Acquire: pairs with the Release of the thread that has published the time.
        let met = Time::from_raw(latest.load(Acquire));
        let time = clock.after(met);
        // Release: pairs with the Acquire of the thread that takes a time after this one.
        latest.store(time.raw(), Release);
        // A time that is not certainly after the one met counts as a fall.
        match clock.is_before(met, time) {
            true => time.raw(),
            false => previous.wrapping_sub(1),
        }
    };
    Ok(StampContender::boxed(point, 0, next, None))
};

/// A stamp of an update of OpLog, which waits until later ones are greater.
pub(super) const ORDO_UPDATE: Build = |spec, point, _| {
    let clock = clocks::ordo(spec.scale)?;
    let next = move |_| {
        let time = clock.update_time();
        clock.wait_out(time);
        time.raw()
    };
    Ok(StampContender::boxed(point, 1, next, None))
};

/// A stamp of an algorithm that compares, and defers or reverts if the order is open.
pub(super) const ORDO_CMP: Build = |spec, point, _| {
    let clock = Arc::new(clocks::ordo(spec.scale)?);
    let of_draws = Arc::clone(&clock);
    let next = move |_| of_draws.read_time().raw();
    let is_open = move |previous, time| {
        let (previous, time) = (Time::from_raw(previous), Time::from_raw(time));
        clock.cmp(previous, time) == Order::Uncertain
    };
    Ok(StampContender::comparing(point, 0, next, is_open, None))
};

pub(super) const ORDO_NOW: Build = |spec, point, _| {
    let clock = clocks::ordo(spec.scale)?;
    Ok(StampContender::boxed(
        point,
        0,
        move |_| clock.now().raw(),
        None,
    ))
};

pub(super) const ORDO_READ: Build = |spec, point, _| {
    let clock = clocks::ordo(spec.scale)?;
    Ok(StampContender::boxed(
        point,
        0,
        move |_| clock.read_time().raw(),
        None,
    ))
};

#[cfg(target_arch = "x86_64")]
pub(super) const RDTSC: Build = |_, point, _| {
    Ok(StampContender::boxed(
        point,
        0,
        |_| instructions::rdtsc(),
        None,
    ))
};

#[cfg(target_arch = "x86_64")]
pub(super) const RDTSCP: Build = |_, point, _| {
    Ok(StampContender::boxed(
        point,
        0,
        |_| instructions::rdtscp(),
        None,
    ))
};

pub(super) const CLOCK_GETTIME: Build = |_, point, _| {
    let start = Instant::now();
    let next = move |_| start.elapsed().as_nanos() as u64;
    Ok(StampContender::boxed(point, 0, next, None))
};

/// A contender that draws its times from one shared counter by `next`.
fn counted(
    point: &Point,
    next: impl Fn(&AtomicU64, u64) -> u64 + Send + Sync + 'static,
) -> Result<Box<dyn Contender>, String> {
    let counter = Arc::new(CachePadded::new(AtomicU64::new(0)));
    let last = Arc::clone(&counter);
    // Relaxed: the clients have been joined.
    let drawn = move || last.load(Relaxed);
    let next = move |previous| next(&counter, previous);
    Ok(StampContender::boxed(point, 1, next, Some(Box::new(drawn))))
}

/// Returns the number of different times that were drawn.
type Drawn = Box<dyn Fn() -> u64 + Send + Sync>;

/// A contender of `timestamp`.
struct StampContender<F, G> {
    clients: Range<usize>,
    /// Draws the next time, given this thread's last one.
    next: F,
    /// Compares a thread's last time with the next one. Returns whether the clock left the order
    /// open.
    is_open: G,
    /// The smallest allowed difference between two consecutive times of a thread.
    step: u64,
    /// The number of different times drawn, if the method promises that all differ.
    drawn: Option<Drawn>,
    ledger: Ledger,
    /// The number of times that clients have drawn.
    issued: Mutex<u64>,
}

impl<F: Fn(u64) -> u64 + Send + Sync + 'static> StampContender<F, fn(u64, u64) -> bool> {
    /// A contender that compares no times.
    fn boxed(point: &Point, step: u64, next: F, drawn: Option<Drawn>) -> Box<dyn Contender> {
        StampContender::comparing(point, step, next, |_, _| false, drawn)
    }
}

impl<F, G> StampContender<F, G>
where
    F: Fn(u64) -> u64 + Send + Sync + 'static,
    G: Fn(u64, u64) -> bool + Send + Sync + 'static,
{
    fn comparing(
        point: &Point,
        step: u64,
        next: F,
        is_open: G,
        drawn: Option<Drawn>,
    ) -> Box<dyn Contender> {
        Box::new(Self {
            clients: 0..point.threads,
            next,
            is_open,
            step,
            drawn,
            ledger: Ledger::default(),
            issued: Mutex::new(0),
        })
    }
}

impl<F, G> Contender for StampContender<F, G>
where
    F: Fn(u64) -> u64 + Send + Sync + 'static,
    G: Fn(u64, u64) -> bool + Send + Sync + 'static,
{
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let (mut previous, mut wrong, mut open) = (0, 0, 0);
        // One variable, so that nothing is chosen.
        let done = client.among(1).drive(|_| {
            let time = (self.next)(previous);
            wrong += u64::from(time < previous + self.step);
            open += u64::from((self.is_open)(previous, time));
            previous = time;
            time
        });
        self.ledger
            .report(wrong, || "a thread's times have fallen".to_owned());
        self.ledger.add(ConflictCounts {
            uncertain: open,
            ..ConflictCounts::default()
        });
        *self.issued.lock().unwrap_or_else(PoisonError::into_inner) += done;
        done
    }

    fn total(&self) -> Result<u64, String> {
        self.ledger.check()?;
        let issued = *self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        match self.drawn.as_ref().map(|drawn| drawn()) {
            Some(drawn) if drawn != issued => Err(format!(
                "{issued} times were drawn, and {drawn} are different"
            )),
            _ => Ok(0),
        }
    }

    fn counts(&self) -> Option<ConflictCounts> {
        Some(self.ledger.take(ConflictCounts::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered::spec::Bench;
    use crate::ordered::tests::{assert_caught, measure};
    use corelay_lab_measure::method::{Kind, Method};

    #[test]
    fn comparisons_that_are_left_open_are_counted() {
        let method = |build| Method::new("made up", Kind::Direct, build);
        let open: Build = |_, point, _| {
            let is_open = |previous, time| time % 2 == previous % 2;
            let next = |previous| previous + 1 + previous % 4 / 3;
            Ok(StampContender::comparing(point, 0, next, is_open, None))
        };
        let closed: Build = |_, point, _| Ok(StampContender::boxed(point, 0, |n| n + 1, None));
        let runs = measure(Bench::Timestamp, &[method(open), method(closed)], 2);
        let all = |run: &corelay_lab_measure::schema::Run| {
            let counts = run.samples.iter().map(|s| s.counts.unwrap().uncertain);
            let drawn = run.samples.iter().flat_map(|s| &s.per_thread);
            (counts.sum::<u64>(), drawn.sum::<u64>())
        };
        // Of the times 0, 1, 2, 3, 5, 6, 7, 9, … every third follows one of its own kind.
        let (open, drawn) = all(&runs[0]);
        assert!((drawn / 3).abs_diff(open) <= 12, "{open} of {drawn}");
        assert_eq!(all(&runs[1]).0, 0);
    }

    #[test]
    fn repeated_and_falling_times_are_found() {
        let method = |build| Method::new("broken", Kind::Direct, build);
        let twice: Build = |_, point, _| {
            counted(point, |counter, _| {
                // Relaxed: it is broken anyway.
                let seen = counter.load(Relaxed);
                // Relaxed: as above. Threads meet here, and so do two draws of each.
                counter.store(seen + seen % 2, Relaxed);
                counter.fetch_add(1 - seen % 2, Relaxed) + 1
            })
        };
        let falls: Build = |_, point, _| {
            let next = |previous| if previous == 1_000 { 999 } else { previous + 1 };
            Ok(StampContender::boxed(point, 0, next, None))
        };
        let runs = measure(Bench::Timestamp, &[method(twice), method(falls)], 2);
        assert_caught(&runs[0], "wrong result");
        assert_caught(&runs[1], "have fallen");
    }
}
