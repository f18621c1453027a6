//! Measuring the boundary: the largest offset between two CPUs' counters that there may be.
//!
//! For every **ordered** pair of CPUs: the smallest difference of many rounds ([`exchange`]), an
//! upper bound of the offset in that direction. The boundary is the **largest** of all (Kashyap
//! and others, EuroSys 2018, section 3.2). An implementation that takes the smaller of a pair's
//! two directions gets the way of a line *less* the offset, which is no bound of it.
//!
//! To that bound comes a quarter of it, because offsets were seen to move under load, or one step
//! of the counter if that is more: the difference of two counters that advance in steps is one
//! step more at some moments than at others, and a smallest difference found the others.
//!
//! Disjoint pairs measure at the same time ([`schedule`]), each CPU by a thread that is pinned
//! to it.

mod exchange;
mod offsets;
mod schedule;

pub use offsets::Offsets;

use crate::fitness::{Fitness, Unfit};
use crate::rate::{Moment, Rate};
use corelay_sync::counter;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_topology::{CpuSet, PinError, Topology, pin_current_thread};
use exchange::Exchange;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A pair that has had so many rounds may end when its time is up.
const LEAST_ROUNDS: u64 = 1_000;

/// A boundary beyond this is no clock to order by but counters that nobody synchronised: the
/// paper's largest, of eight sockets, is 1.1 µs.
const LIMIT: Duration = Duration::from_micros(10);

/// What a calibration found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Calibration {
    /// Between every ordered pair of CPUs.
    pub offsets: Offsets,
    /// True where not every pair was measured, but composed of others.
    pub composed: bool,
    /// By how much the counter advances at a time, in ticks, or a little more.
    pub step: u64,
    /// The boundary that follows, in ticks.
    pub boundary: u64,
    /// Ticks and nanoseconds.
    pub rate: Rate,
    /// How long it took.
    pub took: Duration,
}

/// Why there is no boundary.
#[derive(Debug)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The counter cannot be a clock.
    Unfit(Unfit),
    /// An offset takes two CPUs.
    OneCpu {
        /// The one that may be used, where it is known.
        cpu: Option<usize>,
    },
    /// A thread could not be put on its CPU.
    Pin(PinError),
    /// The system gave no thread.
    Thread(std::io::Error),
    /// Two CPUs' counters are too far apart to order by.
    Apart {
        /// Behind.
        from: usize,
        /// Ahead.
        to: usize,
        /// By so many nanoseconds.
        nanoseconds: f64,
        /// What was allowed.
        limit: Duration,
    },
    /// The progress callback ended it.
    Stopped,
}

/// How to measure a boundary; for most, [`Ordo::calibrate`](crate::Ordo::calibrate) says it all.
///
/// ```
/// use corelay_clock::{Calibrator, CalibrateError};
///
/// match Calibrator::new().rounds(5_000).run() {
///     Ok(found) => println!("{} ticks: {:?}", found.boundary, found.offsets),
///     Err(error) => println!("no boundary: {error}"),
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Calibrator {
    rounds: u64,
    at_most: Duration,
    limit: Duration,
    cpus: Option<CpuSet>,
    composed: bool,
    trusting: bool,
}

impl Default for Calibrator {
    fn default() -> Self {
        Self::new()
    }
}

impl Calibrator {
    /// Rounds of each pair where nothing is said: some 11 ms on a near pair of the reference
    /// machine, 51 ms on a far one.
    pub const ROUNDS: u64 = 100_000;

    /// Every pair of the CPUs that this process may run on, 100,000 rounds each.
    pub fn new() -> Self {
        Self {
            rounds: Self::ROUNDS,
            at_most: Duration::from_secs(1),
            limit: LIMIT,
            cpus: None,
            composed: false,
            trusting: false,
        }
    }

    /// So many rounds for each pair, at least 1: fewer give a wider boundary, never a wrong one.
    #[must_use]
    pub fn rounds(mut self, rounds: u64) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// A pair that has had a thousand rounds ends after this time (one second where not said),
    /// for machines on which other programs run.
    #[must_use]
    pub fn at_most(mut self, time: Duration) -> Self {
        self.at_most = time;
        self
    }

    /// Refuse where two counters are further apart than this (10 µs where not said).
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Measure these CPUs only.
    ///
    /// Times drawn on any other CPU are then **not** ordered by the boundary: every thread that
    /// draws has to be kept on these.
    #[must_use]
    pub fn cpus(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Measure log₂ n rounds of pairs in place of n − 1, and add up over others what was not
    /// measured. For machines of hundreds of CPUs: quick, and as safe, but wider.
    #[must_use]
    pub fn composed(mut self) -> Self {
        self.composed = true;
        self
    }

    /// Measure also where nobody vouches for the counters: on your word that they run at one rate
    /// on all CPUs. For emulators, and for kernels that keep time by something else although the
    /// counters would do.
    #[must_use]
    pub fn trusting(mut self) -> Self {
        self.trusting = true;
        self
    }

    /// Measures.
    ///
    /// # Errors
    /// Why there is no boundary.
    pub fn run(&self) -> Result<Calibration, CalibrateError> {
        self.run_with(|_| ControlFlow::Continue(()))
    }

    /// Measures and says again and again how much of it is done, 0..=1; stops where told to.
    ///
    /// # Errors
    /// Why there is no boundary.
    pub fn run_with(
        &self,
        progress: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Calibration, CalibrateError> {
        if !(self.trusting && counter::is_there()) {
            Fitness::probe().verdict().map_err(CalibrateError::Unfit)?;
        }
        let cpus = self.cpus.clone().unwrap_or_else(reachable);
        if cpus.len() < 2 {
            return Err(CalibrateError::OneCpu { cpu: cpus.first() });
        }
        let cpus: Vec<usize> = cpus.iter().collect();
        let (start, moment) = (Instant::now(), Moment::now());
        let step = exchange::step();
        let mut offsets = self.measure(&cpus, progress)?;
        if self.composed {
            offsets.compose(step.cast_signed());
        }
        let rate = moment.rate();
        let (from, to, largest) = offsets.largest().ok_or(CalibrateError::Stopped)?;
        let nanoseconds = rate.nanoseconds(largest as f64).value;
        if nanoseconds > self.limit.as_nanos() as f64 {
            return Err(CalibrateError::Apart {
                from,
                to,
                nanoseconds,
                limit: self.limit,
            });
        }
        Ok(Calibration {
            composed: self.composed,
            boundary: boundary(largest, step),
            step,
            offsets,
            rate,
            took: start.elapsed(),
        })
    }

    /// One pinned thread for each CPU goes through the schedule.
    fn measure(
        &self,
        cpus: &[usize],
        mut progress: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Offsets, CalibrateError> {
        let schedule = if self.composed {
            schedule::hypercube(cpus.len())
        } else {
            schedule::tournament(cpus.len())
        };
        let games: Vec<(usize, usize)> = schedule.into_iter().flatten().collect();
        let all_rounds = games.len() as u64 * self.rounds;
        let games: Vec<Game> = games
            .into_iter()
            .map(|(leader, follower)| Game {
                leader,
                follower,
                lines: Exchange::default(),
            })
            .collect();
        let off = &AtomicBool::new(false);
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            for (index, &cpu) in cpus.iter().enumerate() {
                let (games, tell) = (&games, tell.clone());
                let play = move || {
                    // Also where this thread panics, nobody waits for it.
                    let call_off = CallOff(off);
                    let played = self.play(index, cpu, games, off, &tell);
                    if played.is_ok() {
                        std::mem::forget(call_off);
                    }
                    // The receiver is gone only when all is called off.
                    let _ = tell.send(Told::End(played));
                };
                let name = format!("corelay-clock-{cpu}");
                let spawned = thread::Builder::new().name(name).spawn_scoped(scope, play);
                if let Err(error) = spawned {
                    drop(CallOff(off));
                    return Err(CalibrateError::Thread(error));
                }
            }
            drop(tell);
            let mut offsets = Offsets::unknown(cpus);
            let (mut done, mut outcome) = (0, Ok(()));
            for word in told {
                match word {
                    Told::Rounds(rounds) => done += rounds,
                    Told::Bound(from, to, ticks) => offsets.lower(cpus[from], cpus[to], ticks),
                    // The first error is the cause of the others.
                    Told::End(played) => outcome = outcome.and(played),
                }
                if outcome.is_ok() && progress(done as f64 / all_rounds as f64).is_break() {
                    drop(CallOff(off));
                    outcome = Err(CalibrateError::Stopped);
                }
            }
            outcome.map(|()| offsets)
        })
    }

    /// All games of one CPU, in the order of the schedule, so no two wait for each other.
    fn play(
        &self,
        index: usize,
        cpu: usize,
        games: &[Game],
        off: &AtomicBool,
        tell: &mpsc::Sender<Told>,
    ) -> Result<(), CalibrateError> {
        pin_current_thread(cpu).map_err(CalibrateError::Pin)?;
        for game in games {
            let bound = if game.leader == index {
                let (mut begun, mut played) = (None, 0);
                let enough = |rounds| {
                    played += rounds;
                    let _ = tell.send(Told::Rounds(rounds));
                    let begun = *begun.get_or_insert_with(Instant::now);
                    played >= LEAST_ROUNDS && begun.elapsed() >= self.at_most
                };
                let least = game.lines.lead(self.rounds, off, enough);
                // What was left out is not waited for.
                let _ = tell.send(Told::Rounds(self.rounds.saturating_sub(played)));
                least.map(|least| (game.follower, least))
            } else if game.follower == index {
                let least = game.lines.follow(off);
                least.map(|least| (game.leader, least))
            } else {
                continue;
            };
            let (from, least) = bound.ok_or(CalibrateError::Stopped)?;
            let _ = tell.send(Told::Bound(from, index, least));
        }
        Ok(())
    }
}

/// One pair, by index.
struct Game {
    leader: usize,
    follower: usize,
    lines: Exchange,
}

/// What a thread tells who waits for all of them.
enum Told {
    /// So many more.
    Rounds(u64),
    /// From, to, and the bound between them.
    Bound(usize, usize, i64),
    /// It has played all its games, or could not.
    End(Result<(), CalibrateError>),
}

/// When dropped, nobody waits any longer.
struct CallOff<'a>(&'a AtomicBool);

impl Drop for CallOff<'_> {
    fn drop(&mut self) {
        // Relaxed: a request to stop soon.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The CPUs on which threads of this process may run.
fn reachable() -> CpuSet {
    let online = Topology::current().online().clone();
    if corelay_topology::is_pinned_beyond() {
        // Some thread was asked first when it was pinned already: then nothing less is known.
        return online;
    }
    corelay_topology::process_affinity().intersection(&online)
}

/// The boundary for a largest bound, in ticks: see the module.
pub(crate) fn boundary(largest: i64, step: u64) -> u64 {
    // The sum of a pair's two bounds is twice the way of a line, so the larger one is not negative
    // but for steps.
    let largest = largest.max(0).cast_unsigned();
    largest + (largest / 4).max(step)
}

impl From<Unfit> for CalibrateError {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

impl fmt::Display for CalibrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::OneCpu { cpu: Some(cpu) } => write!(
                f,
                "this process may run on CPU {cpu} only, and an offset takes two; use the clock \
                 Logical"
            ),
            Self::OneCpu { cpu: None } => f.write_str(
                "no CPU is known that a thread could be pinned to, and an offset takes two; use \
                 the clock Logical",
            ),
            Self::Pin(error) => write!(f, "the offsets cannot be measured: {error}"),
            Self::Thread(error) => {
                write!(f, "the offsets cannot be measured: no thread: {error}")
            }
            Self::Apart {
                from,
                to,
                nanoseconds,
                limit,
            } => write!(
                f,
                "the counter of CPU {to} is up to {nanoseconds:.0} ns ahead of that of CPU {from}, \
                 more than the {} ns that a clock may be off; use the clock Logical",
                limit.as_nanos()
            ),
            Self::Stopped => f.write_str("the calibration was stopped before its end"),
        }
    }
}

impl std::error::Error for CalibrateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unfit(unfit) => Some(unfit),
            Self::Pin(error) => Some(error),
            Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_has_a_margin_and_a_floor() {
        assert_eq!(boundary(100, 10), 125);
        assert_eq!(boundary(100, 30), 130);
        assert_eq!(boundary(0, 10), 10);
        assert_eq!(boundary(-7, 10), 10);
    }
}
