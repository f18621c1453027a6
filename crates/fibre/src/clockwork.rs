//! A thread that looks after a cluster: it ends waits whose time has come, and takes what lies ready
//! on processors that are stuck.
//!
//! Busy processors help each other, idle ones look while they spin. What is left: all that are not
//! stuck sleep, or are in slices so long that they look around too seldom. The clockwork looks
//! every two milliseconds while any processor runs fibres, and moves what it finds on a stuck one to
//! the others in turn.

use crate::cluster::Shared;
use crate::dump::dump;
use crate::switch::Runnable;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::wait::Sleeper;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(crate) struct Clockwork {
    sleeper: OnceLock<Arc<Sleeper>>,
}

impl Clockwork {
    pub(crate) fn wake_if_asleep(&self) {
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.wake_if_asleep();
        }
    }
}

/// What its thread does, until the cluster closes.
pub(crate) fn run(shared: &Shared) {
    let sleeper = shared.clockwork.sleeper.get_or_init(Sleeper::current);
    let mut seen = vec![0; shared.processors.len()];
    let mut looked = Instant::now();
    let mut stuck = Stuck::default();
    while !shared.is_over() {
        shared.timers.run();
        let first = shared.timers.next();
        let look = (shared.processors.len() > 1 && !is_quiet(shared)).then(|| looked + PERIOD);
        let report = stuck.look(shared);
        let until = first.into_iter().chain(look).chain(report).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_none_or(|left| !left.is_zero()) {
            sleeper.sleep(left, || {
                shared.timers.next() != first
                    || look.is_none() && shared.processors.len() > 1 && !is_quiet(shared)
                    || shared.is_over()
                    || report.is_none() && shared.is_stuck() && !stuck.is_reported
            });
        }
        if look.is_none_or(|look| Instant::now() < look) {
            continue;
        }
        looked = Instant::now();
        let mut moves = Vec::new();
        let mut awake = Vec::new();
        for (processor, seen) in shared.processors.iter().zip(&mut seen) {
            let pops = processor.pops.read();
            if std::mem::replace(seen, pops) != pops || processor.is_waiting() {
                awake.push(processor);
                continue;
            }
            // First what has lain longest.
            processor.lane.take(|fibre| moves.push(fibre));
            while processor
                .ring
                .take(|there| there, |fibre| moves.push(fibre))
                > 0
            {}
            processor.take_arrivals(|fibre| moves.push(fibre));
        }
        // Where all are stuck, to them in turn: whoever comes back first.
        let all: Vec<_> = shared.processors.iter().collect();
        let to = if awake.is_empty() { all } else { awake };
        for (fibre, processor) in moves.into_iter().zip(to.iter().cycle()) {
            // SAFETY: it was ready, and is ours.
            processor.receive(unsafe { Runnable::new(fibre) });
        }
    }
}

/// No processor runs a fibre.
fn is_quiet(shared: &Shared) -> bool {
    // Relaxed: behind the sleeper's barrier where it counts.
    shared.idle.resting.load(Ordering::Relaxed) == shared.processors.len()
}

/// For so long a cluster that closes must be stuck until that is reported.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether every fibre waits, for good.
#[derive(Default)]
struct Stuck {
    since: Option<Instant>,
    is_reported: bool,
}

impl Stuck {
    /// When to look again, if it may be.
    fn look(&mut self, shared: &Shared) -> Option<Instant> {
        if !shared.is_stuck() {
            *self = Self::default();
            return None;
        }
        if self.is_reported {
            return None;
        }
        let due = *self.since.get_or_insert_with(Instant::now) + PATIENCE;
        if Instant::now() < due {
            return Some(due);
        }
        let dump = dump(shared);
        if !dump.all_wait_here() {
            self.since = None;
            return Some(Instant::now() + PATIENCE);
        }
        self.is_reported = true;
        let n = dump.fibres.len();
        eprintln!(
            "corelay: a cluster that is to end has {n} fibres, and each of them waits:\n{dump}"
        );
        None
    }
}
