//! Runs one benchmark on a cluster: its fibres start together, and all of them end.
//!
//! ```text
//! main     spawn t │ wait for all │ open the gate, begin │ sleep … stop, wake all │ join, check
//! fibres           │ arrive, wait │ work until the end is reached                │
//! ```
//! Each benchmark's loop has its own file. This file has what they share, and what is not measured.

use super::chains::{self, Trail};
use super::fibre::{self, BinarySemaphore, Cluster, JoinHandle};
use super::migrate::Mobility;
use super::spec::{Length, Spec};
use crate::cluster;
use corelay_lab_measure::measure::cpu::process_cpu_s;
use corelay_lab_measure::schema::fibres::{FibreResult, PerFibre};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, AtomicUsize, Ordering};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Longest sleep of the main thread before it reads the interrupt flag again.
const STOP_POLL: Duration = Duration::from_millis(100);

/// Interval at which the main thread looks whether fibres have arrived or ended.
const JOIN_POLL: Duration = Duration::from_millis(1);

/// Intervals that fibres have to end, once they are told to stop and woken, before they count as
/// lost: half a minute.
const MAX_JOIN_POLLS: u32 = 30_000;

/// The loop of a benchmark's fibres, with its start, its end and its check.
pub(super) trait Work: Send + Sync + 'static {
    /// Runs the loop of fibre `me` until the end is reached.
    fn fibre(&self, me: usize, end: &StopCondition) -> Tally;

    /// Starts the work. Called once, on the main thread, after the gate was opened.
    fn begin(&self) {}

    /// Wakes all waiting fibres. Called on the main thread, after the stop.
    fn wake_all(&self) {}

    /// Checks the fibres' counts against the state that they have left behind.
    ///
    /// # Errors
    /// A sentence that says what was lost.
    fn check(&self, _tallies: &[Tally]) -> Result<(), String> {
        Ok(())
    }

    /// Whether the run completed; false if a fibre gave up.
    fn completed(&self) -> bool {
        true
    }
}

/// The counts of one fibre.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) operations: u64,
    /// Migrations of the fibre and of its arrays, if the benchmark counts them.
    pub(super) migrations: Option<(u64, u64)>,
    pub(super) rechecks: Option<u64>,
    /// The fibre's migrations, if they are noted.
    pub(super) trail: Option<Trail>,
    /// The processor on which the fibre ended, for all benchmarks.
    pub(super) home: Option<usize>,
}

impl Tally {
    /// A tally of so many operations and nothing else.
    pub(super) fn of(operations: u64) -> Self {
        Self {
            operations,
            ..Self::default()
        }
    }
}

/// The condition on which a fibre ends.
pub(super) struct StopCondition {
    stop: CachePadded<AtomicBool>,
    /// Operations of each fibre; practically unlimited if time ends the run.
    each: u64,
}

impl StopCondition {
    /// Whether a fibre that has done `operations` is done.
    #[inline]
    pub(super) fn is_reached(&self, operations: u64) -> bool {
        self.is_stopped() || operations >= self.each
    }

    /// A condition that ends fibres by [`stop`](Self::stop) only.
    #[cfg(test)]
    pub(super) fn by_time() -> Self {
        Self {
            stop: CachePadded::new(AtomicBool::new(false)),
            each: u64::MAX,
        }
    }

    /// Tells all fibres that the time is over.
    pub(super) fn stop(&self) {
        // Relaxed: see `is_stopped`.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the time is over.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        // Relaxed: the flag carries no data; waiting fibres are woken after it is set.
        self.stop.load(Ordering::Relaxed)
    }
}

/// The random numbers of one fibre.
pub(super) struct FibreRandom(Xoshiro256PlusPlus);

impl FibreRandom {
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

/// The state that the main thread and the fibres share.
struct Team<W> {
    work: W,
    end: StopCondition,
    arrived: CachePadded<AtomicUsize>,
    ended: CachePadded<AtomicUsize>,
    gate: Box<[CachePadded<BinarySemaphore>]>,
    /// Whether the run is not to be, because not all fibres could be started.
    is_called_off: AtomicBool,
    /// The end of the measurement: the stop, or the end of the last fibre.
    over: OnceLock<Moment>,
}

/// A moment in wall time and in CPU time.
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

/// `n` semaphores at 0, each on its own cache lines.
pub(super) fn semaphores(n: usize) -> Box<[CachePadded<BinarySemaphore>]> {
    (0..n)
        .map(|_| CachePadded::new(BinarySemaphore::new(false)))
        .collect()
}

/// Runs the benchmark once, on a cluster of its own.
///
/// # Errors
/// A sentence that says what could not be had, or what was wrong with the result.
pub(super) fn run<W: Work>(
    spec: &Spec,
    mobility: Mobility,
    interrupted: &AtomicBool,
    work: W,
) -> Result<FibreResult, String> {
    let cluster = cluster::start(spec.processors).map_err(|error| {
        format!(
            "a cluster of {} processors could not be started: {error}",
            spec.processors
        )
    })?;
    let team = Arc::new(Team::new(spec, work));
    let fibres = team.spawn(&cluster, mobility, spec.all_fibres())?;
    while team.arrived.load(Ordering::Relaxed) < fibres.len() {
        thread::sleep(JOIN_POLL);
    }
    let migrated = cluster.counters().migrations;
    let began = Moment::now();
    team.gate.iter().for_each(|semaphore| semaphore.post());
    team.work.begin();
    if let Length::Time(time) = spec.length {
        sleep_until(began.at + time, interrupted);
        team.stop();
    }
    if let Err(sentence) = team.wait_for(&fibres, spec.length) {
        // Dropping the cluster would wait for the lost fibres.
        std::mem::forget(cluster);
        return Err(sentence);
    }
    let migrated = cluster.counters().migrations - migrated;
    let tallies = join(fibres)?;
    team.work.check(&tallies)?;
    let over = *team.over.get().expect("the last fibre has set it");
    let mut outcome = FibreResult {
        wall_s: (over.at - began.at).as_secs_f64(),
        cpu_s: over.cpu_s - began.cpu_s,
        completed: team.work.completed(),
        fibre_migrations: Some(migrated),
        ..FibreResult::default()
    };
    sum_up(&mut outcome, &tallies);
    let trails = tallies.iter().filter_map(|tally| tally.trail.as_ref());
    let trails: Vec<&Trail> = trails.collect();
    if !trails.is_empty() {
        outcome.chains = Some(chains::of(trails, began.at, over.at));
    }
    if mobility == Mobility::Stays {
        outcome.per_processor = by_home(&tallies, spec.processors);
    }
    Ok(outcome)
}

impl<W: Work> Team<W> {
    fn new(spec: &Spec, work: W) -> Self {
        Self {
            work,
            end: StopCondition {
                stop: CachePadded::new(AtomicBool::new(false)),
                each: match spec.length {
                    Length::Time(_) => u64::MAX,
                    Length::Iterations(each) => each,
                },
            },
            arrived: CachePadded::new(AtomicUsize::new(0)),
            ended: CachePadded::new(AtomicUsize::new(0)),
            gate: semaphores(spec.all_fibres()),
            is_called_off: AtomicBool::new(false),
            over: OnceLock::new(),
        }
    }

    /// Spawns all fibres; each waits at the gate.
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
                    // The fibres spawned so far find this at the gate.
                    // Relaxed: the gate's post publishes it.
                    self.is_called_off.store(true, Ordering::Relaxed);
                    self.gate.iter().for_each(|semaphore| semaphore.post());
                    return Err(format!(
                        "only {me} of {all} fibres could be started: {error}"
                    ));
                }
            }
        }
        Ok(fibres)
    }

    /// The body of fibre `me`: waits at the gate, works, and notes the end. It works even if it
    /// comes through the gate after the stop, because the checks expect a pass of each fibre.
    fn fibre(&self, me: usize) -> Tally {
        // Relaxed: only a count; the gate orders everything else.
        self.arrived.fetch_add(1, Ordering::Relaxed);
        self.gate[me].wait();
        // Relaxed: the gate's post has published it.
        if self.is_called_off.load(Ordering::Relaxed) {
            return Tally::default();
        }
        let mut tally = self.work.fibre(me, &self.end);
        tally.home = fibre::processor();
        // Relaxed: it only has to tell the last fibre, and `over` publishes its own value.
        if self.ended.fetch_add(1, Ordering::Relaxed) + 1 == self.gate.len() {
            self.over.get_or_init(Moment::now);
        }
        tally
    }

    /// Ends the measurement by time, and wakes all waiting fibres.
    fn stop(&self) {
        self.end.stop();
        self.over.get_or_init(Moment::now);
        self.work.wake_all();
    }

    /// Waits until all fibres have ended. If they were told to stop, fibres that do not end in time
    /// are lost; if they count their operations, they may take any time.
    fn wait_for(&self, fibres: &[JoinHandle<Tally>], length: Length) -> Result<(), String> {
        let mut polls = 0;
        for fibre in fibres {
            while !fibre.is_finished() {
                thread::sleep(JOIN_POLL);
                polls += u32::from(matches!(length, Length::Time(_)));
                if polls > MAX_JOIN_POLLS {
                    let left = fibres.iter().filter(|fibre| !fibre.is_finished()).count();
                    return Err(format!(
                        "wrong result: {left} of {} fibres did not end after they were woken",
                        fibres.len()
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Sleeps until `end`, or until `interrupted`.
fn sleep_until(end: Instant, interrupted: &AtomicBool) {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // Relaxed: the flag carries no data.
        if left.is_zero() || interrupted.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(left.min(STOP_POLL));
    }
}

/// Joins all fibres; their tallies.
fn join(fibres: Vec<JoinHandle<Tally>>) -> Result<Vec<Tally>, String> {
    let joined = fibres.into_iter().map(JoinHandle::join);
    joined
        .collect::<Result<_, _>>()
        .map_err(|_| "wrong result: a fibre panicked".to_owned())
}

/// Sets the counts of the result from the fibres' tallies.
fn sum_up(outcome: &mut FibreResult, tallies: &[Tally]) {
    outcome.per_fibre = PerFibre::of(tallies.iter().map(|tally| tally.operations).collect());
    outcome.operations = outcome.per_fibre.sum;
    outcome.rechecks = tallies.iter().map(|tally| tally.rechecks).sum();
    let migrations = || tallies.iter().map(|tally| tally.migrations);
    if let Some(own) = migrations().map(|m| m.map(|(fibre, _)| fibre)).sum() {
        outcome.fibre_migrations = Some(own);
    }
    outcome.data_migrations = migrations().map(|m| m.map(|(_, data)| data)).sum();
}

/// Operations by the processor on which each fibre ended; fibres that stay were there all the time.
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
    fn every_fibre_and_every_seed_has_its_own_random_stream() {
        let draw = |seed, me| {
            let mut random = FibreRandom::of(seed, me);
            [(); 16].map(|()| random.below(1 << 20))
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
