//! A thread that looks after a cluster: it ends waits whose time has come, and takes what lies ready
//! on processors that are stuck.
//!
//! Busy processors help each other, idle ones look while they spin. What is left: all that are not
//! stuck sleep, or are in slices so long that they look around too seldom. The monitor looks
//! every two milliseconds while any processor runs fibres (more often where one with something ready
//! goes on slowly), and moves what it finds on a stuck one to the others in turn. It gives stacks back
//! to the system, too, where more are free than in use.

use crate::cluster::Shared;
use crate::dump::dump;
use crate::stack;
use crate::switch::Runnable;
use corelay_sync::barrier;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::wait::Sleeper;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(2);
/// The same while a processor that has something ready goes on slowly: it may be stuck soon.
const PERIOD_WHILE_SLOW: Duration = Duration::from_micros(500);
/// So slowly: fibres taken since the last look.
const SLOW_POPS: u64 = 8;
/// A processor is stuck that has taken no fibre for so long.
const STUCK: Duration = Duration::from_micros(1500);

#[derive(Default)]
pub(crate) struct Monitor {
    sleeper: OnceLock<Arc<Sleeper>>,
}

impl Monitor {
    pub(crate) fn wake_if_asleep(&self) {
        // As in `Processor::wake`.
        barrier::light();
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.wake_if_asleep();
        }
    }
}

/// What its thread does, until the cluster closes.
pub(crate) fn run(shared: &Shared) {
    let sleeper = shared.monitor.sleeper.get_or_init(Sleeper::current);
    let _watch = stack::all().watch(sleeper);
    let is_watching = || shared.processors.len() > 1 && !is_quiet(shared);
    let mut seen = vec![Progress::default(); shared.processors.len()];
    let mut due = Instant::now() + PERIOD;
    let mut spare = Spare::default();
    let mut stuck = Stuck::default();
    while !shared.is_over() {
        shared.timers.run();
        let first = shared.timers.next();
        let look = is_watching().then_some(due);
        let report = stuck.look(shared);
        let trim = spare.look();
        let until = first.into_iter().chain(look).chain(report).chain(trim);
        let until = until.min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_none_or(|left| !left.is_zero()) {
            sleeper.sleep(left, || {
                shared.timers.next() != first
                    || look.is_none() && is_watching()
                    || shared.is_over()
                    || trim.is_none() && stack::all().has_spare()
                    || report.is_none() && shared.is_stuck() && !stuck.is_reported
            });
        }
        let now = Instant::now();
        if look.is_some_and(|look| look <= now) {
            due = now + relieve(shared, &mut seen, now);
        }
    }
}

/// Between two steps of giving stacks back.
const STEP: Duration = Duration::from_millis(10);
/// Before the first one.
const LINGER: Duration = Duration::from_millis(100);

/// Gives stacks back to the system that nobody needs, by and by.
#[derive(Default)]
struct Spare {
    due: Option<Instant>,
}

impl Spare {
    /// When to look again, if there are some.
    fn look(&mut self) -> Option<Instant> {
        if !stack::all().has_spare() {
            self.due = None;
            return None;
        }
        let now = Instant::now();
        let due = self.due.get_or_insert(now + LINGER);
        if *due <= now {
            stack::all().trim_some();
            *due = now + STEP;
        }
        self.due
    }
}

/// What is known of a processor.
#[derive(Clone, Copy, Default)]
struct Progress {
    pops: u64,
    /// When it was first seen with so many.
    since: Option<Instant>,
}

/// Moves what lies ready on stuck processors to the others; when to look again.
fn relieve(shared: &Shared, seen: &mut [Progress], now: Instant) -> Duration {
    let mut moves = Vec::new();
    let mut others = Vec::new();
    let mut next = PERIOD;
    for (processor, seen) in shared.processors.iter().zip(seen) {
        let pops = processor.pops.read();
        if pops - seen.pops < SLOW_POPS && processor.has_something() {
            next = PERIOD_WHILE_SLOW;
        }
        if pops != seen.pops || processor.is_waiting() {
            *seen = Progress {
                pops,
                since: Some(now),
            };
        }
        if seen.since.is_none_or(|since| now - since < STUCK) {
            others.push(processor);
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
    if others.is_empty() {
        // To all in turn: whoever comes back first.
        others.extend(&shared.processors);
    }
    for (fibre, processor) in moves.into_iter().zip(others.iter().cycle()) {
        // SAFETY: it was ready, and is ours.
        processor.receive(unsafe { Runnable::new(fibre) });
    }
    next
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
        // Deadlines go on where nobody hears it.
        let _ = writeln!(
            std::io::stderr(),
            "corelay: a cluster that is to end has {n} fibres, and each of them waits:\n{dump}"
        );
        None
    }
}
