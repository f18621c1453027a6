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
//! to it. All pairs are looked at several times, spread over a while, and what has moved in between
//! widens the boundary ([`movement`]).

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

/// A pair that has had so many rounds may end when its time is up.
const LEAST_ROUNDS: u64 = 1_000;

/// A boundary beyond this is no clock to order by but counters that nobody synchronised: the
/// paper's largest, of eight sockets, is 1.1 µs.
const LIMIT: Duration = Duration::from_micros(10);

/// Looks at each pair, which its rounds are divided among, and how long all of them are spread over.
const LOOKS: u32 = 4;
const OVER: Duration = Duration::from_millis(50);

/// A pause between two looks says so often that it lasts.
const NAP: Duration = Duration::from_millis(20);

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
    /// How often each pair was looked at.
    pub looks: u32,
    /// The pairs whose offset moved between two looks. The boundary is wider by the farthest.
    pub moved: Vec<Movement>,
    /// Most that two counters may be apart by, movement included.
    pub limit: Duration,
    /// Ticks and nanoseconds.
    pub rate: Rate,
    /// How long it took.
    pub took: Duration,
}

impl Calibration {
    /// The largest boundary that could have been found here, in ticks.
    pub(crate) fn most(&self) -> u64 {
        let limit = self.rate.ticks(self.limit);
        boundary(i64::try_from(limit).unwrap_or(i64::MAX), self.step, 0)
    }
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
    /// The offset of two CPUs moves while a program runs, too far to order by.
    Moves {
        /// One.
        from: usize,
        /// The other.
        to: usize,
        /// By so many nanoseconds.
        nanoseconds: f64,
        /// The largest boundary allowed, offset and movement together.
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
    /// Rounds of each pair where nothing is said: some 11 ms on a near pair of the reference
    /// machine, 51 ms on a far one.
    pub const ROUNDS: u64 = 100_000;

    /// Every pair of the CPUs that this process may run on, 100,000 rounds each.
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

    /// So many rounds for each pair, at least 1: fewer give a wider boundary, never a wrong one.
    #[must_use]
    pub fn rounds(mut self, rounds: u64) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// So many looks at each pair (4 where not said), which its rounds are divided among. An offset that
    /// moves between two of them widens the boundary; one look sees no movement.
    #[must_use]
    pub fn looks(mut self, looks: u32) -> Self {
        self.looks = looks.max(1);
        self
    }

    /// Spreads the looks over so long, and what they take themselves (50 ms where not said). A host that
    /// moves virtual CPUs may do so every few seconds: who has the time sees more.
    #[must_use]
    pub fn over(mut self, time: Duration) -> Self {
        self.over = time;
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

    /// One pinned thread for each CPU goes through the schedule.
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
                    // Also where this thread panics, nobody waits for it.
                    let call_off = CallOff(off);
                    let played = self.play(index, cpu, games, off, &tell);
                    if played.is_ok() {
                        std::mem::forget(call_off);
                    }
                    // The receiver is gone only when all is called off.
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

    /// All games of one CPU, in the order of the schedule, so no two wait for each other.
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
                // What was left out is not waited for.
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

    /// Waits for the next look.
    fn pause(&self, off: &AtomicBool, tell: &mpsc::Sender<Message>) -> Result<(), CalibrateError> {
        let (begun, long) = (Instant::now(), self.over / (self.looks - 1));
        while let left = long.saturating_sub(begun.elapsed())
            && !left.is_zero()
        {
            // Relaxed: a request to stop soon.
            if off.load(Ordering::Relaxed) {
                return Err(CalibrateError::Stopped);
            }
            // So that the progress is asked whether to stop.
            let _ = tell.send(Message::Rounds(0));
            thread::sleep(left.min(NAP));
        }
        Ok(())
    }
}

/// One pair, by index, in one look.
struct Game {
    look: u32,
    leader: usize,
    follower: usize,
    lines: Exchange,
}

/// What a thread tells who waits for all of them.
enum Message {
    /// So many more.
    Rounds(u64),
    /// The look, from, to, and the bound between them.
    Bound(u32, usize, usize, i64),
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

/// The boundary for a largest bound and the farthest movement, in ticks: see the module. Saturates, for
/// numbers that nobody has measured.
pub(crate) fn boundary(largest: i64, step: u64, moved: u64) -> u64 {
    // The sum of a pair's two bounds is twice the way of a line, so the larger one is not negative
    // but for steps.
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
