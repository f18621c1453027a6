//! The work of a rung: keys, threads that start together, and a stopwatch for each.

use super::keys::{Seen, key};
use super::nodes::{List, Node, Owned};
use super::usage::Usage;
use corelay_lab_measure::measure::counters::Counters;
use corelay_lab_measure::measure::crew::message;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
#[cfg(not(target_arch = "x86_64"))]
use corelay_sync::ticks;
use corelay_sync::trace::{self, Mark, Span};
use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::ops::{Deref, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// A span: one thread inserts a part of the keys without a break.
pub(crate) static PART: Mark = Mark::new("part").with_args("first key", "keys");

/// An instant: a thread is ready and waits for the others.
static READY: Mark = Mark::new("ready");

/// Nodes from a timed node to the next stamp without a node, and from there to the next timed
/// node. Their sum, 37, is prime to the nodes of a page; otherwise page faults would be timed
/// always or never.
const UNTIL_NOTHING: u32 = 18;
const UNTIL_NODE: u32 = 19;

/// The memory that is touched before the timed phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Keys, arrays and pools. An allocator takes memory from the system in the timed phase.
    #[default]
    Touched,
    /// Nothing. In the timed phase, keys are made and pages are touched for the first time.
    Untouched,
    /// All memory: each thread has allocated and freed as many nodes before.
    Recycled,
}

impl Pages {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Touched => "touched",
            Self::Untouched => "untouched",
            Self::Recycled => "recycled",
        }
    }
}

/// One run of one rung.
#[derive(Debug)]
pub(crate) struct Job {
    /// Threads that insert.
    pub(crate) threads: usize,
    /// Keys of each thread, if each has the same share.
    pub(crate) share: usize,
    /// Parts that the keys are cut into, if threads take one after the other.
    pub(crate) parts: usize,
    /// Whether each thread has one part, that of its number, instead of taking one after the other.
    pub(crate) equal_shares: bool,
    /// Bytes between the heads of two lists.
    pub(crate) padding: usize,
    /// The memory that is touched before the timed phase.
    pub(crate) pages: Pages,
    /// CPU of each thread that is pinned.
    pub(crate) cpus: Vec<Option<usize>>,
    /// Whether waiting and the making of nodes are timed, which takes time itself.
    pub(crate) watched: bool,
    /// The keys; empty if they are made in the timed phase.
    pub(crate) keys: Arc<[u64]>,
}

/// The record of one thread in the timed phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lap {
    /// The moment at which the thread began.
    pub(crate) begin: Instant,
    /// The moment at which it was done.
    pub(crate) end: Instant,
    /// Keys that it has inserted.
    pub(crate) keys: u64,
    /// Parts that it has taken.
    pub(crate) parts: u64,
    /// Time spent waiting for locks; zero unless watched.
    pub(crate) waited: Duration,
    /// Time spent making nodes; zero unless watched.
    pub(crate) made: Duration,
    /// The kernel's counts, if it gives any.
    pub(crate) usage: Option<Usage>,
    /// Misses of the shared caches, if the run is watched and the processor counts them.
    pub(crate) misses: Option<u64>,
}

/// The outcome of a run: its threads' records, and its fault if it has one.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// The record of each thread.
    pub(crate) laps: Vec<Lap>,
    /// Passes that the records add up: each fills new lists.
    pub(crate) passes: u32,
    /// The fault, as a sentence; a run with a fault has no figure.
    pub(crate) fault: Option<String>,
}

/// A thread of a run, in the timed phase.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    job: &'a Job,
    number: usize,
    keys: u64,
    parts: u64,
    waited: Duration,
    made: Making,
}

/// A stopwatch for the making of nodes. It times one node in 37, and as often an empty stretch,
/// to learn the cost of timing in the same loop.
#[derive(Clone, Copy, Debug)]
struct Making {
    until: u32,
    /// Whether the next stamp times a node, or an empty stretch.
    is_node: bool,
    nodes: Timed,
    nothing: Timed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Timed {
    ticks: u64,
    times: u64,
}

/// The keys of a part while they are inserted. It records a span on the timeline.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    keys: Cow<'a, [u64]>,
    _span: Span,
}

impl Deref for Part<'_> {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.keys
    }
}

/// Parts of the keys, before threads take them.
#[derive(Debug)]
pub(crate) enum Parts<I: Iterator> {
    /// Parts that any thread takes, one after the other.
    Shared(Mutex<I>),
    /// The part of each thread.
    Own(Vec<Mutex<Option<I::Item>>>),
}

impl<I: Iterator> Parts<I> {
    /// Takes the next part for a thread. It locks, but only a few times in a run.
    fn take(&self, thread: usize) -> Option<I::Item> {
        match self {
            Self::Shared(left) => open(left).next(),
            Self::Own(parts) => open(parts.get(thread)?).take(),
        }
    }
}

/// Locks a mutex, even if a thread that held it has panicked.
fn open<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A gate where threads wait for each other before the timed phase.
#[derive(Debug, Default)]
struct Gate {
    ready: AtomicUsize,
}

impl Gate {
    fn arrive(&self) {
        // Release: pairs with the Acquire below; publishes what this thread has prepared.
        self.ready.fetch_add(1, Ordering::Release);
    }

    fn wait(&self, threads: usize) {
        self.arrive();
        let mut backoff = Backoff::new();
        // Acquire: pairs with the Release above; sees what every thread has prepared.
        while self.ready.load(Ordering::Acquire) < threads {
            backoff.wait();
        }
    }
}

/// Returns the name of a thread that inserts, for the tracer and for perf.
fn thread_name(number: usize) -> String {
    format!("inserter-{number}")
}

impl Job {
    /// Returns the number of keys of all threads.
    pub(crate) fn all(&self) -> usize {
        self.threads * self.share
    }

    /// Makes the first `keys` keys.
    pub(crate) fn table(keys: usize) -> Arc<[u64]> {
        (0..keys as u64).map(key).collect()
    }

    /// Makes room for a node of each key, in one piece of memory.
    pub(crate) fn array(&self) -> Box<[MaybeUninit<Node>]> {
        let mut nodes = Box::new_uninit_slice(self.all());
        if self.pages != Pages::Untouched {
            nodes
                .iter_mut()
                .for_each(|node| _ = node.write(Node::new(0)));
        }
        nodes
    }

    /// Returns the number of keys of a part. The last part may have fewer.
    pub(crate) fn part_len(&self) -> usize {
        match self.equal_shares {
            true => self.share,
            false => self.all().div_ceil(self.parts),
        }
    }

    /// Cuts the keys into parts, each with one item of `beside`. With equal shares there is a part
    /// for each thread.
    pub(crate) fn parts<B: IntoIterator>(
        &self,
        beside: B,
    ) -> Parts<impl Iterator<Item = (Range<usize>, B::Item)> + use<B>> {
        let (all, len) = (self.all(), self.part_len());
        let ranges = (0..all)
            .step_by(len)
            .map(move |from| from..all.min(from + len));
        let parts = ranges.zip(beside);
        match self.equal_shares {
            true => Parts::Own(parts.map(|part| Mutex::new(Some(part))).collect()),
            false => Parts::Shared(Mutex::new(parts)),
        }
    }

    /// Runs `body` in each thread, with one item of `own`.
    pub(crate) fn run<O: Send>(
        &self,
        own: impl Iterator<Item = O>,
        body: impl Fn(&mut Worker<'_>, O) + Sync,
    ) -> Ended {
        self.run_prepared(own, |own| own, body)
    }

    /// Like [`run`](Self::run), but each thread first prepares its item, before the timed phase.
    pub(crate) fn run_prepared<O: Send, P>(
        &self,
        own: impl Iterator<Item = O>,
        prepare: impl Fn(O) -> P + Sync,
        body: impl Fn(&mut Worker<'_>, P) + Sync,
    ) -> Ended {
        let gate = Gate::default();
        let laps = std::thread::scope(|scope| {
            let (gate, prepare, body) = (&gate, &prepare, &body);
            let spawn = |(number, own)| {
                let thread = move || {
                    self.settle(number);
                    let own = prepare(own);
                    self.lap(number, gate, |me| body(me, own))
                };
                let builder = std::thread::Builder::new().name(thread_name(number));
                let spawned = builder.spawn_scoped(scope, thread);
                // No thread may wait at the gate for one that could not be started.
                spawned.inspect_err(|_| gate.arrive())
            };
            let threads: Vec<_> = (0..self.threads).zip(own).map(spawn).collect();
            let lap = |thread: std::io::Result<ScopedJoinHandle<'_, _>>| {
                let thread = thread.map_err(|e| format!("the system gave fewer threads: {e}"))?;
                thread
                    .join()
                    .unwrap_or_else(|payload| Err(message(&*payload)))
            };
            threads.into_iter().map(lap).collect::<Vec<_>>()
        });
        Ended::of(laps.into_iter())
    }

    /// Runs `body` in threads that exist already. `threads` calls the function that it is given
    /// in each of them, with the thread's number.
    pub(crate) fn run_in(
        &self,
        threads: impl FnOnce(&(dyn Fn(usize) -> Result<Lap, String> + Sync)) -> Vec<Result<Lap, String>>,
        body: impl Fn(&mut Worker<'_>) + Sync,
    ) -> Ended {
        let gate = Gate::default();
        Ended::of(threads(&|number| self.lap(number, &gate, &body)).into_iter())
    }

    /// Names the calling thread and pins it to its CPU.
    fn settle(&self, number: usize) {
        trace::name_thread(&thread_name(number));
        if let Some(cpu) = self.cpus.get(number).copied().flatten() {
            // A thread that cannot be pinned runs elsewhere; a note of the probe says so.
            let _ = corelay_topology::pin_current_thread(cpu);
        }
    }

    fn lap(
        &self,
        number: usize,
        gate: &Gate,
        body: impl FnOnce(&mut Worker<'_>),
    ) -> Result<Lap, String> {
        let mut me = Worker {
            job: self,
            number,
            keys: 0,
            parts: 0,
            waited: Duration::ZERO,
            made: Making::new(),
        };
        // A thread's first event makes its ring, so one is recorded before the timed phase.
        trace::instant(&READY, ());
        let mut misses = self.watched.then(|| Counters::misses().ok()).flatten();
        let missed = misses.as_mut().map(|counter| counter.read().remote);
        let before = Usage::own();
        gate.wait(self.threads);
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&mut me)));
        let end = Instant::now();
        let misses = misses.map(|mut counter| counter.read().remote);
        let usage = before
            .zip(Usage::own())
            .map(|(before, after)| after - before);
        outcome.map_err(|payload| format!("a thread panicked: {}", message(&*payload)))?;
        Ok(Lap {
            begin,
            end,
            keys: me.keys,
            parts: me.parts,
            waited: me.waited,
            made: me.made.estimate(me.keys),
            usage,
            misses: misses.zip(missed).map(|(after, before)| after - before),
        })
    }
}

impl<'a> Worker<'a> {
    /// Returns the thread's keys, if each thread has the same share.
    pub(crate) fn share(&self) -> Range<usize> {
        self.number * self.job.share..(self.number + 1) * self.job.share
    }

    /// Returns the thread's number, from 0.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Takes the thread's next part.
    pub(crate) fn take<I: Iterator>(&self, parts: &Parts<I>) -> Option<I::Item> {
        parts.take(self.number)
    }

    /// Begins to insert these keys.
    pub(crate) fn part(&mut self, range: Range<usize>) -> Part<'a> {
        self.parts += 1;
        self.keys += range.len() as u64;
        let args = (range.start as u64, range.len() as u64);
        let _span = trace::span(&PART).with(args);
        let keys = match self.job.pages {
            Pages::Untouched => Cow::Owned(range.map(|n| key(n as u64)).collect()),
            _ => Cow::Borrowed(&self.job.keys[range]),
        };
        Part { keys, _span }
    }

    /// Takes a lock. In a watched run, times the wait.
    #[inline]
    pub(crate) fn lock<'m, T>(&mut self, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
        if self.job.watched {
            if let Ok(guard) = mutex.try_lock() {
                return guard;
            }
            let since = Instant::now();
            let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
            self.waited += since.elapsed();
            return guard;
        }
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a node. In a watched run, times one in 37.
    #[inline]
    pub(crate) fn make<N>(&mut self, node: impl FnOnce() -> N) -> N {
        if self.job.watched {
            return self.made.time(node);
        }
        node()
    }
}

impl Making {
    const fn new() -> Self {
        let none = Timed { ticks: 0, times: 0 };
        Self {
            until: UNTIL_NODE,
            is_node: true,
            nodes: none,
            nothing: none,
        }
    }

    #[inline(always)]
    fn time<N>(&mut self, node: impl FnOnce() -> N) -> N {
        self.until -= 1;
        if self.until > 0 {
            return node();
        }
        let begin = stamp();
        if !self.is_node {
            self.nothing.add(stamp().saturating_sub(begin));
            (self.is_node, self.until) = (true, UNTIL_NODE);
            return node();
        }
        (self.is_node, self.until) = (false, UNTIL_NOTHING);
        let node = node();
        self.nodes.add(stamp().saturating_sub(begin));
        node
    }

    /// Estimates the time of all nodes from the timed ones, less the cost of timing.
    fn estimate(self, keys: u64) -> Duration {
        let one = (self.nodes.mean() - self.nothing.mean()).max(0.0);
        Duration::from_nanos((one * keys as f64 / ticks_of_a_nanosecond()) as u64)
    }
}

impl Timed {
    fn add(&mut self, ticks: u64) {
        self.ticks += ticks;
        self.times += 1;
    }

    fn mean(self) -> f64 {
        self.ticks as f64 / self.times.max(1) as f64
    }
}

/// Reads the counter without a fence. A fence would wait for the stores of earlier nodes and
/// count that wait for this one.
#[inline(always)]
fn stamp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    return corelay_lab_measure::measure::instructions::rdtsc();
    #[cfg(not(target_arch = "x86_64"))]
    ticks()
}

/// Returns the counter's ticks in a nanosecond, measured once in a process, within two
/// milliseconds.
fn ticks_of_a_nanosecond() -> f64 {
    static RATE: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    *RATE.get_or_init(|| {
        let (since, begin) = (Instant::now(), stamp());
        while since.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        let passed = stamp().saturating_sub(begin);
        (passed as f64 / since.elapsed().as_nanos() as f64).max(f64::MIN_POSITIVE)
    })
}

impl Ended {
    fn of(laps: impl Iterator<Item = Result<Lap, String>>) -> Self {
        match laps.collect() {
            Ok(laps) => Self {
                laps,
                passes: 1,
                fault: None,
            },
            Err(sentence) => Self::failed(sentence),
        }
    }

    /// Makes a run without a figure, with its fault.
    pub(crate) fn failed(sentence: String) -> Self {
        Self {
            laps: Vec::new(),
            passes: 0,
            fault: Some(sentence),
        }
    }

    /// Adds another pass of the same threads, as if it had begun at the moment at which this run
    /// ended. The time in between, in which lists are checked and freed, is left out.
    pub(crate) fn followed_by(mut self, pass: Self) -> Self {
        if self.fault.is_some() || pass.fault.is_some() {
            return Self {
                fault: self.fault.or(pass.fault),
                ..self
            };
        }
        let ended = self.laps.iter().map(|lap| lap.end).max();
        let begun = pass.laps.iter().map(|lap| lap.begin).min();
        for (lap, next) in self.laps.iter_mut().zip(&pass.laps) {
            if let Some((ended, begun)) = ended.zip(begun) {
                lap.end = ended + (next.end - begun);
            }
            lap.keys += next.keys;
            lap.parts += next.parts;
            lap.waited += next.waited;
            lap.made += next.made;
            lap.usage = lap.usage.zip(next.usage).map(|(mut sum, more)| {
                sum += more;
                sum
            });
            lap.misses = lap.misses.zip(next.misses).map(|(sum, more)| sum + more);
        }
        self.passes += pass.passes;
        self
    }

    /// Checks the resulting list: each key once, and all links both ways.
    pub(crate) fn check<N: Owned>(mut self, list: List<N>, keys: usize) -> Self {
        let mut seen = Seen::none_of(keys as u64);
        let found = list.walk(|key| seen.see(key)).and_then(|()| seen.check());
        self.fault = self
            .fault
            .or(found.err().map(|e| format!("wrong result: {e}")));
        self
    }

    /// Returns the time from the first thread's begin to the last one's end.
    pub(crate) fn wall(&self) -> Duration {
        let begin = self.laps.iter().map(|lap| lap.begin).min();
        let end = self.laps.iter().map(|lap| lap.end).max();
        begin
            .zip(end)
            .map_or(Duration::ZERO, |(begin, end)| end - begin)
    }

    /// Returns the time of the slowest thread over that of the fastest; `None` without a thread.
    pub(crate) fn slowest_over_fastest(&self) -> Option<f64> {
        let times = self
            .laps
            .iter()
            .map(|lap| (lap.end - lap.begin).as_secs_f64());
        let most = times.clone().max_by(f64::total_cmp)?;
        let least = times.min_by(f64::total_cmp)?;
        Some(most / least.max(1e-9))
    }

    /// Returns the keys that all threads have inserted.
    pub(crate) fn keys(&self) -> u64 {
        self.laps.iter().map(|lap| lap.keys).sum()
    }

    /// Returns the throughput in millions of keys per second.
    pub(crate) fn mops(&self) -> f64 {
        self.keys() as f64 / self.wall().as_secs_f64().max(1e-9) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_add_up_without_the_time_between() {
        let zero = Instant::now();
        let ns = Duration::from_nanos;
        let pass = |laps: &[(u64, u64, u64)]| {
            let lap = |&(begin, end, keys): &(u64, u64, u64)| Lap {
                begin: zero + ns(begin),
                end: zero + ns(end),
                keys,
                parts: 1,
                waited: ns(1),
                made: ns(2),
                usage: None,
                misses: Some(3),
            };
            Ended::of(laps.iter().map(lap).map(Ok))
        };
        let run = pass(&[(0, 100, 10), (10, 90, 10)]);
        let run = run.followed_by(pass(&[(5_000, 5_040, 5), (5_010, 5_050, 15)]));
        assert_eq!((run.wall(), run.keys(), run.passes), (ns(150), 40, 2));
        assert_eq!(run.laps[1].end, zero + ns(150));
        assert_eq!((run.laps[1].keys, run.laps[1].parts), (25, 2));
        assert_eq!(run.laps[0].misses, Some(6));
        let run = run.followed_by(Ended::failed("lost".to_owned()));
        assert_eq!(run.fault.as_deref(), Some("lost"));
    }
}
