//! Measuring the boundary: the largest possible offset between two CPUs' counters.
//!
//! For every **ordered** pair of CPUs, many rounds ([`exchange`]) each give a difference. The
//! smallest is an upper bound of the offset in that direction. The boundary is the **largest** of
//! these bounds (Kashyap and others, EuroSys 2018, section 3.2). An implementation that takes the
//! smaller of a pair's two directions gets the way of a line *less* the offset, which is no bound
//! of it.
//!
//! A quarter of that bound is added, because offsets were seen to move under load, or one step of
//! the counter if that is more. The difference of two counters that advance in steps is one step
//! more at some moments than at others, and a smallest difference comes from the others.
//!
//! Disjoint pairs measure at the same time ([`schedule`]), each CPU by a thread that is pinned to
//! it. All pairs are measured several times, spread over a while; an offset that has moved in
//! between widens the boundary ([`movement`]).

mod exchange;
mod movement;
mod offsets;
mod schedule;

pub use movement::Movement;
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

/// Rounds that a pair plays in each look even if its time is up.
const LEAST_ROUNDS: u64 = 1_000;

/// The largest boundary. Beyond it the counters are not synchronised: the paper's largest boundary,
/// of eight sockets, is 1.1 µs.
const LIMIT: Duration = Duration::from_micros(10);

/// Looks at each pair, by default. They share the pair's rounds.
const LOOKS: u32 = 4;
/// The time over which all looks are spread, by default.
const OVER: Duration = Duration::from_millis(50);

/// Length of one sleep in the pause between two looks; progress is reported after each.
const NAP: Duration = Duration::from_millis(20);

/// The result of a calibration.
///
/// With the feature `serde` it is `Serialize`, and not `Deserialize`: a boundary has to be measured
/// where it is used. [`History`](crate::History) keeps those of earlier runs.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Calibration {
    /// The offsets between every ordered pair of CPUs.
    pub offsets: Offsets,
    /// Whether some pairs were not measured, but composed of others.
    pub composed: bool,
    /// The step by which the counter advances, in ticks, or a little more.
    #[cfg_attr(feature = "serde", serde(rename = "step_ticks"))]
    pub step: u64,
    /// The resulting boundary, in ticks.
    #[cfg_attr(feature = "serde", serde(rename = "boundary_ticks"))]
    pub boundary: u64,
    /// How often each pair was measured.
    pub looks: u32,
    /// The pairs whose offset moved between two looks. The largest movement is added to the
    /// boundary.
    pub moved: Vec<Movement>,
    /// The most that two counters were allowed to be apart, movement included:
    /// [`Calibrator::limit`].
    #[cfg_attr(
        feature = "serde",
        serde(rename = "limit_ns", serialize_with = "crate::nanoseconds")
    )]
    pub limit: Duration,
    /// The counter's rate: ticks per nanosecond.
    pub rate: Rate,
    /// How long the calibration took.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "took_ns", serialize_with = "crate::nanoseconds")
    )]
    pub took: Duration,
}

impl Calibration {
    /// The largest boundary that a calibration with this limit can give, in ticks.
    pub(crate) fn most(&self) -> u64 {
        let limit = self.rate.ticks(self.limit);
        boundary(i64::try_from(limit).unwrap_or(i64::MAX), self.step, 0)
    }
}

/// The reason why there is no boundary.
#[derive(Debug)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The counter cannot be a clock.
    Unfit(Unfit),
    /// Fewer than two CPUs may be measured, and an offset takes two. The process may be restricted
    /// to one CPU, the caller may have named one, or no CPU is known.
    OneCpu {
        /// The one CPU that may be used; `None` if no CPU is known.
        cpu: Option<usize>,
    },
    /// A thread could not be put on its CPU.
    Pin(PinError),
    /// The system gave no thread.
    Thread(std::io::Error),
    /// Two CPUs' counters are too far apart to order by.
    Apart {
        /// The CPU whose counter is behind.
        from: usize,
        /// The CPU whose counter is ahead.
        to: usize,
        /// The bound of the offset between them, in nanoseconds.
        nanoseconds: f64,
        /// The largest offset allowed: [`Calibrator::limit`].
        limit: Duration,
    },
    /// The offset of two CPUs moves while a program runs, too far to order by.
    Moves {
        /// One of the two CPUs.
        from: usize,
        /// The other CPU.
        to: usize,
        /// The distance that the offset moved between two looks, in nanoseconds.
        nanoseconds: f64,
        /// The most that offset and movement together may be: [`Calibrator::limit`].
        limit: Duration,
    },
    /// The progress callback stopped the calibration.
    Stopped,
}

/// The settings for measuring a boundary. Most programs need only
/// [`Ordo::calibrate`](crate::Ordo::calibrate).
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
    looks: u32,
    over: Duration,
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
    /// Rounds of each pair by default: some 11 ms on a near pair of the reference machine, 51 ms on
    /// a far one.
    pub const ROUNDS: u64 = 100_000;

    /// A calibrator for every pair of the CPUs that this process may run on, with 100,000 rounds
    /// each.
    pub fn new() -> Self {
        Self {
            rounds: Self::ROUNDS,
            looks: LOOKS,
            over: OVER,
            at_most: Duration::from_secs(1),
            limit: LIMIT,
            cpus: None,
            composed: false,
            trusting: false,
        }
    }

    /// Sets the rounds of each pair; 0 counts as 1. Fewer rounds give a wider boundary, never a
    /// wrong one.
    #[must_use]
    pub fn rounds(mut self, rounds: u64) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Sets the looks at each pair (4 by default; 0 counts as 1), which share its rounds. An offset
    /// that moves between two looks widens the boundary; a single look sees no movement.
    #[must_use]
    pub fn looks(mut self, looks: u32) -> Self {
        self.looks = looks.max(1);
        self
    }

    /// Sets the time that the looks are spread over, in addition to the measuring itself (50 ms by
    /// default). A host may move virtual CPUs every few seconds: a longer time sees more movements.
    #[must_use]
    pub fn over(mut self, time: Duration) -> Self {
        self.over = time;
        self
    }

    /// Limits the time of a pair (one second by default), for machines on which other programs run.
    /// The looks share this time. In each look a pair plays a thousand rounds even if its time is
    /// up.
    #[must_use]
    pub fn at_most(mut self, time: Duration) -> Self {
        self.at_most = time;
        self
    }

    /// Sets the largest offset between two counters, movement included, that is accepted (10 µs by
    /// default). If it is exceeded, [`run`](Self::run) returns an error.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Measures these CPUs only.
    ///
    /// Times drawn on any other CPU are then **not** ordered by the boundary: every thread that
    /// draws must stay on these.
    #[must_use]
    pub fn cpus(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Measures only some pairs of the n CPUs, in log₂ n phases instead of n − 1, and composes the
    /// other pairs' bounds of measured ones. For machines of hundreds of CPUs: quicker and as safe,
    /// but with a wider boundary.
    #[must_use]
    pub fn composed(mut self) -> Self {
        self.composed = true;
        self
    }

    /// Measures even if neither the processor nor the kernel vouches for the counters. The caller
    /// vouches instead that they run at one rate on all CPUs. For emulators, and for kernels that
    /// keep time by something else although the counters would do.
    #[must_use]
    pub fn trusting(mut self) -> Self {
        self.trusting = true;
        self
    }

    /// Measures the boundary.
    ///
    /// # Errors
    /// The reason why there is no boundary.
    pub fn run(&self) -> Result<Calibration, CalibrateError> {
        self.run_with(|_| ControlFlow::Continue(()))
    }

    /// Measures the boundary, and calls `progress` again and again with the share that is done,
    /// 0..=1. Stops if it returns `Break`.
    ///
    /// # Errors
    /// The reason why there is no boundary; [`CalibrateError::Stopped`] if `progress` stopped it.
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
        let looks = self.measure(&cpus, progress)?;
        let (mut offsets, moved) = movement::merge(&looks, step);
        if self.composed {
            offsets.compose(step.cast_signed());
        }
        let rate = moment.rate();
        let (from, to, largest) = offsets.largest().ok_or(CalibrateError::Stopped)?;
        let limit = self.limit.as_nanos() as f64;
        let nanoseconds = rate.nanoseconds(largest as f64).value;
        if nanoseconds > limit {
            return Err(CalibrateError::Apart {
                from,
                to,
                nanoseconds,
                limit: self.limit,
            });
        }
        let farthest = moved.iter().max_by_key(|movement| movement.ticks);
        let farthest = farthest.map_or((0, from, to), |by| (by.ticks, by.from, by.to));
        let (farthest, from, to) = farthest;
        let movement = rate.nanoseconds(farthest as f64).value;
        if nanoseconds + movement > limit {
            return Err(CalibrateError::Moves {
                from,
                to,
                nanoseconds: movement,
                limit: self.limit,
            });
        }
        Ok(Calibration {
            composed: self.composed,
            boundary: boundary(largest, step, farthest),
            looks: self.looks,
            moved,
            limit: self.limit,
            step,
            offsets,
            rate,
            took: start.elapsed(),
        })
    }

    /// Runs the schedule on one pinned thread for each CPU. Returns the offsets that each look
    /// found.
    fn measure(
        &self,
        cpus: &[usize],
        mut progress: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Vec<Offsets>, CalibrateError> {
        let schedule = if self.composed {
            schedule::hypercube(cpus.len())
        } else {
            schedule::tournament(cpus.len())
        };
        let pairs: Vec<(usize, usize)> = schedule.into_iter().flatten().collect();
        let all_rounds = pairs.len() as u64 * u64::from(self.looks) * self.rounds_of_a_look();
        let games: Vec<Game> = (0..self.looks)
            .flat_map(|look| pairs.iter().map(move |&pair| (look, pair)))
            .map(|(look, (leader, follower))| Game {
                look,
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
                    // Even if this thread panics, no thread waits for it.
                    let call_off = CallOff(off);
                    let played = self.play(index, cpu, games, off, &tell);
                    if played.is_ok() {
                        std::mem::forget(call_off);
                    }
                    // The receiver is gone only if the calibration was called off.
                    let _ = tell.send(Message::End(played));
                };
                let name = format!("corelay-clock-{cpu}");
                let spawned = thread::Builder::new().name(name).spawn_scoped(scope, play);
                if let Err(error) = spawned {
                    drop(CallOff(off));
                    return Err(CalibrateError::Thread(error));
                }
            }
            drop(tell);
            let mut looks = vec![Offsets::unknown(cpus); self.looks as usize];
            let (mut done, mut outcome) = (0, Ok(()));
            for word in told {
                match word {
                    Message::Rounds(rounds) => done += rounds,
                    Message::Bound(look, from, to, ticks) => {
                        looks[look as usize].lower(cpus[from], cpus[to], ticks);
                    }
                    // The first error is the cause of the others.
                    Message::End(played) => outcome = outcome.and(played),
                }
                if outcome.is_ok() && progress(done as f64 / all_rounds as f64).is_break() {
                    drop(CallOff(off));
                    outcome = Err(CalibrateError::Stopped);
                }
            }
            outcome.map(|()| looks)
        })
    }

    /// Measures one CPU with each of its partners, in the order of the schedule, so no two CPUs
    /// wait for each other. `index` is the CPU's place among the measured ones. Runs on the CPU's
    /// own thread.
    fn play(
        &self,
        index: usize,
        cpu: usize,
        games: &[Game],
        off: &AtomicBool,
        tell: &mpsc::Sender<Message>,
    ) -> Result<(), CalibrateError> {
        pin_current_thread(cpu).map_err(CalibrateError::Pin)?;
        let rounds = self.rounds_of_a_look();
        let mut look = 0;
        for game in games {
            if look != game.look {
                look = game.look;
                self.pause(off, tell)?;
            }
            let bound = if game.leader == index {
                let (mut begun, mut played) = (None, 0);
                let enough = |rounds| {
                    played += rounds;
                    let _ = tell.send(Message::Rounds(rounds));
                    let begun = *begun.get_or_insert_with(Instant::now);
                    played >= LEAST_ROUNDS && begun.elapsed() >= self.at_most / self.looks
                };
                let least = game.lines.lead(rounds, off, enough);
                // Rounds that were left out count as done.
                let _ = tell.send(Message::Rounds(rounds.saturating_sub(played)));
                least.map(|least| (game.follower, least))
            } else if game.follower == index {
                let least = game.lines.follow(off);
                least.map(|least| (game.leader, least))
            } else {
                continue;
            };
            let (from, least) = bound.ok_or(CalibrateError::Stopped)?;
            let _ = tell.send(Message::Bound(look, from, index, least));
        }
        Ok(())
    }

    fn rounds_of_a_look(&self) -> u64 {
        self.rounds.div_ceil(self.looks.into())
    }

    /// Sleeps between two looks, so that all looks are spread over the configured time. Lets the
    /// progress callback run meanwhile.
    ///
    /// # Errors
    /// [`CalibrateError::Stopped`] if `off` called the calibration off.
    fn pause(&self, off: &AtomicBool, tell: &mpsc::Sender<Message>) -> Result<(), CalibrateError> {
        let (begun, long) = (Instant::now(), self.over / (self.looks - 1));
        while let left = long.saturating_sub(begun.elapsed())
            && !left.is_zero()
        {
            // Relaxed: a request to stop soon.
            if off.load(Ordering::Relaxed) {
                return Err(CalibrateError::Stopped);
            }
            // A message of no rounds, so that the progress callback is asked whether to stop.
            let _ = tell.send(Message::Rounds(0));
            thread::sleep(left.min(NAP));
        }
        Ok(())
    }
}

/// The measurement of one pair, by index, in one look.
struct Game {
    look: u32,
    leader: usize,
    follower: usize,
    lines: Exchange,
}

/// A message from a measuring thread to the thread that waits for all of them.
enum Message {
    /// The number of rounds that were done since the last message.
    Rounds(u64),
    /// A bound: the look, the indices of the CPUs that it leads from and to, and the ticks.
    Bound(u32, usize, usize, i64),
    /// The thread has measured all its pairs, or could not.
    End(Result<(), CalibrateError>),
}

/// Calls the calibration off when it is dropped, so that no measuring thread waits any longer.
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
        // The thread that was asked first may have been pinned already, so the process's own mask
        // is unknown.
        return online;
    }
    corelay_topology::process_affinity().intersection(&online)
}

/// The boundary for a largest bound and the farthest movement, in ticks: see the module. Saturates,
/// for numbers that no one has measured.
pub(crate) fn boundary(largest: i64, step: u64, moved: u64) -> u64 {
    // The sum of a pair's two bounds is twice the way of a line, so the larger one is not negative,
    // apart from steps.
    let largest = largest.max(0).cast_unsigned();
    let margin = (largest / 4).max(step);
    largest.saturating_add(margin).saturating_add(moved)
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
            Self::Moves {
                from,
                to,
                nanoseconds,
                limit,
            } => write!(
                f,
                "the offset between the counters of CPUs {from} and {to} moved by {nanoseconds:.0} ns \
                 while it was measured, and with it they are further apart than the {} ns that a clock \
                 may be off: the host moves virtual CPUs; use the clock Logical",
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
        assert_eq!(boundary(100, 10, 0), 125);
        assert_eq!(boundary(100, 30, 0), 130);
        assert_eq!(boundary(0, 10, 0), 10);
        assert_eq!(boundary(-7, 10, 0), 10);
        assert_eq!(boundary(100, 10, 60), 185);
        assert_eq!(boundary(i64::MAX, u64::MAX, u64::MAX), u64::MAX);
    }
}
