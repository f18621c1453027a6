//! A cluster at work on one benchmark: its fibres start together, and all of them end.
//!
//! ```text
//! main     spawn t │ wait for all │ open the gate, begin │ poll … stop, wake all │ join, check
//! fibres           │ arrive, wait │ work until the end is reached                │
//! ```
//! The loops themselves are in a file each; here is what they have in common and what is not
//! measured.

use super::fibre::{self, BinarySemaphore, Cluster, JoinHandle};
use super::migrate::Mobility;
use super::spec::{Length, Spec};
use crate::cluster;
use corelay_lab_measure::measure::cpu::process_cpu_s;
use corelay_lab_measure::schema::fibres::{Outcome, PerFibre};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, AtomicUsize, Ordering};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// How often the main thread looks whether it is time to stop.
const POLL: Duration = Duration::from_millis(100);

/// How often it looks whether somebody has arrived or ended.
const LOOK: Duration = Duration::from_millis(1);

/// Looks that fibres have, once they are told to stop and woken, until they are called lost:
/// half a minute.
const LOST_LOOKS: u32 = 30_000;

/// What the fibres of a benchmark do.
pub(super) trait Work: Send + Sync + 'static {
    /// What fibre `me` does until the end is reached.
    fn fibre(&self, me: usize, end: &End) -> Tally;

    /// Called once, on the main thread, when all fibres have been let go.
    fn begin(&self) {}

    /// Wakes whoever waits, on the main thread, after the stop.
    fn wake_all(&self) {}

    /// Whether what the fibres have counted fits what they have left behind.
    ///
    /// # Errors
    /// A sentence that says what was lost.
    fn check(&self, _tallies: &[Tally]) -> Result<(), String> {
        Ok(())
    }

    /// False where it was given up.
    fn completed(&self) -> bool {
        true
    }
}

/// What one fibre has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) operations: u64,
    /// Of the fibre and of the arrays that it had, where the benchmark counts them.
    pub(super) migrations: Option<(u64, u64)>,
    pub(super) rechecks: Option<u64>,
    /// The processor on which it ended; noted for all alike.
    pub(super) home: Option<usize>,
}

impl Tally {
    /// So many operations and nothing else.
    pub(super) fn of(operations: u64) -> Self {
        Self {
            operations,
            ..Self::default()
        }
    }
}

/// When a fibre ends.
pub(super) struct End {
    stop: CachePadded<AtomicBool>,
    /// Operations of each fibre; as good as endless where time is the end.
    each: u64,
}

impl End {
    /// Whether a fibre that has done so many operations is done.
    #[inline]
    pub(super) fn is_reached(&self, operations: u64) -> bool {
        self.is_stopped() || operations >= self.each
    }

    /// One that time is to reach, by [`reach`](Self::reach).
    #[cfg(test)]
    pub(super) fn by_time() -> Self {
        Self {
            stop: CachePadded::new(AtomicBool::new(false)),
            each: u64::MAX,
        }
    }

    /// The time is over.
    pub(super) fn reach(&self) {
        // Relaxed: as `is_stopped` says.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the time is over.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        // Relaxed: the flag carries no data; whoever waits is woken after it is set.
        self.stop.load(Ordering::Relaxed)
    }
}

/// One fibre's stream of random numbers.
pub(super) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(super) fn of(seed: u64, me: usize) -> Self {
        // The golden ratio keeps the streams of neighbouring seeds apart.
        let stream = (me as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(stream)))
    }

    /// A number below `n`.
    #[inline]
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }
}

/// What the main thread and the fibres share.
struct Team<W> {
    work: W,
    end: End,
    arrived: CachePadded<AtomicUsize>,
    ended: CachePadded<AtomicUsize>,
    gate: Box<[CachePadded<BinarySemaphore>]>,
    /// When there was nothing more to measure.
    over: OnceLock<Moment>,
}

#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    cpu_s: f64,
}

impl Moment {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            cpu_s: process_cpu_s().unwrap_or(0.0),
        }
    }
}

/// So many semaphores at 0, each on lines of its own.
pub(super) fn seats(n: usize) -> Box<[CachePadded<BinarySemaphore>]> {
    (0..n)
        .map(|_| CachePadded::new(BinarySemaphore::new(false)))
        .collect()
}

/// Runs the benchmark once, on a cluster of its own.
///
/// # Errors
/// A sentence that says what could not be had, or what came out wrong.
pub(super) fn run<W: Work>(
    spec: &Spec,
    mobility: Mobility,
    interrupted: &AtomicBool,
    work: W,
) -> Result<Outcome, String> {
    let cluster = cluster::start(spec.processors).map_err(|error| {
        format!(
            "a cluster of {} processors cannot be had: {error}",
            spec.processors
        )
    })?;
    let team = Arc::new(Team::new(spec, work));
    let fibres = team.spawn(&cluster, mobility, spec.all_fibres())?;
    while team.arrived.load(Ordering::Relaxed) < fibres.len() {
        thread::sleep(LOOK);
    }
    let migrated = cluster.counters().migrations;
    let began = Moment::now();
    team.gate.iter().for_each(|seat| seat.post());
    team.work.begin();
    if let Length::Time(time) = spec.length {
        sleep_until(began.at + time, interrupted);
        team.stop();
    }
    if let Err(sentence) = team.wait_for(&fibres, spec.length) {
        // It would wait for those that are lost.
        std::mem::forget(cluster);
        return Err(sentence);
    }
    let migrated = cluster.counters().migrations - migrated;
    let tallies = join(fibres)?;
    team.work.check(&tallies)?;
    let over = *team.over.get().expect("the last fibre has set it");
    let mut outcome = Outcome {
        wall_s: (over.at - began.at).as_secs_f64(),
        cpu_s: over.cpu_s - began.cpu_s,
        completed: team.work.completed(),
        fibre_migrations: Some(migrated),
        ..Outcome::default()
    };
    sum_up(&mut outcome, &tallies);
    if mobility == Mobility::Stays {
        outcome.per_processor = by_home(&tallies, spec.processors);
    }
    Ok(outcome)
}

impl<W: Work> Team<W> {
    fn new(spec: &Spec, work: W) -> Self {
        Self {
            work,
            end: End {
                stop: CachePadded::new(AtomicBool::new(false)),
                each: match spec.length {
                    Length::Time(_) => u64::MAX,
                    Length::Iterations(each) => each,
                },
            },
            arrived: CachePadded::new(AtomicUsize::new(0)),
            ended: CachePadded::new(AtomicUsize::new(0)),
            gate: seats(spec.all_fibres()),
            over: OnceLock::new(),
        }
    }

    /// All fibres, on their way to the gate.
    fn spawn(
        self: &Arc<Self>,
        cluster: &Cluster,
        mobility: Mobility,
        all: usize,
    ) -> Result<Vec<JoinHandle<Tally>>, String> {
        let mut fibres = Vec::with_capacity(all);
        for me in 0..all {
            let team = Arc::clone(self);
            match mobility.spawn(cluster, move || team.fibre(me)) {
                Ok(fibre) => fibres.push(fibre),
                Err(error) => {
                    // Those that are there find the stop at the gate.
                    self.end.reach();
                    self.gate.iter().for_each(|seat| seat.post());
                    return Err(format!("{me} fibres could be had of {all}: {error}"));
                }
            }
        }
        Ok(fibres)
    }

    fn fibre(&self, me: usize) -> Tally {
        // Relaxed: a count; what it stands for comes with the gate.
        self.arrived.fetch_add(1, Ordering::Relaxed);
        self.gate[me].wait();
        if self.end.is_stopped() {
            return Tally::default();
        }
        let mut tally = self.work.fibre(me, &self.end);
        tally.home = fibre::processor();
        // Relaxed: only who is last matters, and the cell does its own publishing.
        if self.ended.fetch_add(1, Ordering::Relaxed) + 1 == self.gate.len() {
            self.over.get_or_init(Moment::now);
        }
        tally
    }

    /// The time is over: nobody is left waiting.
    fn stop(&self) {
        self.end.reach();
        self.over.get_or_init(Moment::now);
        self.work.wake_all();
    }

    /// Until all have ended. Who was told to and does not was lost; where fibres count their
    /// operations, they take as long as they take.
    fn wait_for(&self, fibres: &[JoinHandle<Tally>], length: Length) -> Result<(), String> {
        let mut looks = 0;
        for fibre in fibres {
            while !fibre.is_finished() {
                thread::sleep(LOOK);
                looks += u32::from(matches!(length, Length::Time(_)));
                if looks > LOST_LOOKS {
                    let left = fibres.iter().filter(|fibre| !fibre.is_finished()).count();
                    return Err(format!(
                        "wrong result: {left} of {} fibres did not end when they were woken",
                        fibres.len()
                    ));
                }
            }
        }
        Ok(())
    }
}

fn sleep_until(end: Instant, interrupted: &AtomicBool) {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // Relaxed: the flag carries no data.
        if left.is_zero() || interrupted.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(left.min(POLL));
    }
}

fn join(fibres: Vec<JoinHandle<Tally>>) -> Result<Vec<Tally>, String> {
    let joined = fibres.into_iter().map(JoinHandle::join);
    joined
        .collect::<Result<_, _>>()
        .map_err(|_| "wrong result: a fibre panicked".to_owned())
}

fn sum_up(outcome: &mut Outcome, tallies: &[Tally]) {
    outcome.per_fibre = PerFibre::of(tallies.iter().map(|tally| tally.operations).collect());
    outcome.operations = outcome.per_fibre.sum;
    outcome.rechecks = tallies.iter().map(|tally| tally.rechecks).sum();
    let migrations = || tallies.iter().map(|tally| tally.migrations);
    if let Some(own) = migrations().map(|m| m.map(|(fibre, _)| fibre)).sum() {
        outcome.fibre_migrations = Some(own);
    }
    outcome.data_migrations = migrations().map(|m| m.map(|(_, data)| data)).sum();
}

/// Operations by where each fibre ended, which is where it was all the time.
fn by_home(tallies: &[Tally], processors: usize) -> Option<Vec<u64>> {
    let mut sums = vec![0; processors];
    for tally in tallies {
        *sums.get_mut(tally.home?)? += tally.operations;
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fibre_and_every_seed_draws_a_stream_of_its_own() {
        let draw = |seed, me| {
            let mut dice = Dice::of(seed, me);
            [(); 16].map(|()| dice.below(1 << 20))
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        let mut streams: Vec<_> = (0..4)
            .flat_map(|seed| (0..4).map(move |me| draw(seed, me)))
            .collect();
        streams.sort_unstable();
        streams.dedup();
        assert_eq!(streams.len(), 16);
        assert!(streams.as_flattened().iter().all(|&n| n < 1 << 20));
    }
}
