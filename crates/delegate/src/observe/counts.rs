//! The counters that a client keeps if its trustee is observed.
//!
//! It counts only after it has left its fast path: when it looks for answers, has no room, or
//! waits.

use super::dice::Dice;
use super::{mean, ratio};
use crate::wire::word::{Position, is_past};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, AtomicUsize, Ordering, load_own};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The counters of one client. The client writes, reports read.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) polls: AtomicU64,
    pub(crate) ready: AtomicU64,
    pub(crate) pops: AtomicU64,
    pub(crate) failed_pops: AtomicU64,
    pub(crate) failed_pushes: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) latencies: AtomicU64,
    /// The sum of the timed latencies, in nanoseconds.
    pub(crate) latency_total: AtomicU64,
    /// The longest timed latency, in nanoseconds.
    pub(crate) latency_longest: AtomicU64,
    /// Addresses of request ring, answer ring and callback queue.
    pub(crate) queues: [AtomicUsize; 3],
}

/// A client's counters on cache lines of their own, shared by the client and the roster from which
/// reports read them.
pub(crate) type SharedCounts = Arc<CachePadded<Counts>>;

/// Adds `n` to a counter. Only its client adds to it.
fn add(counter: &AtomicU64, n: u64) {
    // Relaxed: a figure of its own; nothing is handed over.
    counter.store(load_own(counter) + n, Ordering::Relaxed);
}

/// The counts of one client of an observed trustee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct ClientObserved {
    /// The number of times that the client looked for answers while a callback waited for one. A
    /// wait counts once, however long it looks. Calls that wait, and futures, are not among them.
    pub polls: u64,
    /// The number of polls that found the oldest answer ready.
    pub ready: u64,
    /// The number of times that the client, after it had left its fast path, looked for requests to
    /// publish while its window had room.
    pub pops: u64,
    /// The number of those looks that found no request: room for which there is no work. (The failed
    /// queue pops of D8 in `docs/sources.md`, counted for the window as a whole and not for each line.)
    pub failed_pops: u64,
    /// The number of requests that found no room: the window or the rings were full, even after the
    /// answers had been taken.
    pub failed_pushes: u64,
    /// Waits of more than a few microseconds: for an answer, or for room.
    pub waits: u64,
    /// The number of requests of [`apply_then`](crate::Trust::apply_then) that were timed.
    pub latencies: u64,
    /// The sum of the timed latencies, each from the request until the client saw the answer.
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "latency_total_ns",
            deserialize_with = "crate::observe::nanos"
        )
    )]
    pub latency_total: Duration,
    /// The longest timed latency.
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "latency_longest_ns",
            deserialize_with = "crate::observe::nanos"
        )
    )]
    pub latency_longest: Duration,
}

impl ClientObserved {
    /// Reads the counts of a client as they are now.
    pub(crate) fn read(counts: &Counts) -> Self {
        // Relaxed: each is a figure of its own.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // A poll is counted before it is found ready.
        let ready = load(&counts.ready);
        let failed_pops = load(&counts.failed_pops);
        Self {
            polls: load(&counts.polls),
            ready,
            // A pop is counted before it is found to fail.
            failed_pops,
            pops: load(&counts.pops),
            failed_pushes: load(&counts.failed_pushes),
            waits: load(&counts.waits),
            latencies: load(&counts.latencies),
            latency_total: Duration::from_nanos(load(&counts.latency_total)),
            latency_longest: Duration::from_nanos(load(&counts.latency_longest)),
        }
    }

    /// The share of polls that found an answer ready (the response-ready rate of D8 in
    /// `docs/sources.md`). `None` before the first poll.
    pub fn ready_rate(&self) -> Option<f64> {
        ratio(self.ready, self.polls)
    }

    /// The average latency. `None` if no request has been timed yet.
    pub fn latency_mean(&self) -> Option<Duration> {
        mean(self.latency_total, self.latencies)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.polls += other.polls;
        self.ready += other.ready;
        self.pops += other.pops;
        self.failed_pops += other.failed_pops;
        self.failed_pushes += other.failed_pushes;
        self.waits += other.waits;
        self.latencies += other.latencies;
        self.latency_total += other.latency_total;
        self.latency_longest = self.latency_longest.max(other.latency_longest);
    }
}

/// The client's side of the counts: it adds to the counters, and times a request now and then.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    counts: SharedCounts,
    /// The number of requests to let go by before the next one is timed.
    left: Cell<u32>,
    dice: Dice,
    timed: Cell<Option<Timed>>,
}

/// One in so many of the requests that leave the fast path is timed. In a stream one request of
/// each batch leaves it.
const ONE_IN: u32 = 64;

/// A request that is being timed.
#[derive(Clone, Copy, Debug)]
struct Timed {
    /// The request's cursor in the ring. It is `None` for a single request, which travels in the
    /// mail line.
    at: Option<u32>,
    sent: Instant,
}

impl Observer {
    /// The counters, for a report to read.
    pub(crate) fn counts(&self) -> SharedCounts {
        Arc::clone(&self.counts)
    }

    /// Notes the addresses of request ring, answer ring and callback queue.
    pub(crate) fn set_queues(&self, at: [*const u64; 3]) {
        for (queue, at) in self.counts.queues.iter().zip(at) {
            // Relaxed: a figure, never followed.
            queue.store(at.addr(), Ordering::Relaxed);
        }
    }

    /// Counts a look for answers. `is_ready` says whether the oldest expected answer was there.
    pub(crate) fn count_poll(&self, is_ready: bool) {
        add(&self.counts.polls, 1);
        add(&self.counts.ready, u64::from(is_ready));
    }

    /// Counts a look for requests to publish. `has_found` says whether there was one.
    pub(crate) fn count_pop(&self, has_found: bool) {
        add(&self.counts.pops, 1);
        add(&self.counts.failed_pops, u64::from(!has_found));
    }

    /// Counts a request that has found no room.
    pub(crate) fn count_failed_push(&self) {
        add(&self.counts.failed_pushes, 1);
    }

    /// Counts a wait of more than a few microseconds.
    pub(crate) fn count_wait(&self) {
        add(&self.counts.waits, 1);
    }

    /// Begins to time the request that is about to be sent, if one is due to be timed. `at` is its
    /// place in the ring, or `None` for a single request in the mail line.
    pub(crate) fn time_request(&self, at: Option<Position>) {
        if self.timed.get().is_some() {
            return;
        }
        let left = self.left.get();
        if left > 0 {
            self.left.set(left - 1);
        } else {
            self.left.set(self.dice.gap(ONE_IN));
            self.timed.set(Some(Timed {
                at: at.map(Position::cursor),
                sent: Instant::now(),
            }));
        }
    }

    /// Ends the timing of the timed request if it has been executed. The requests in the ring up to
    /// `tail` have been executed, and the single request if `is_single_request_done` is set.
    pub(crate) fn note_answers(&self, tail: Position, is_single_request_done: bool) {
        let Some(Timed { at, sent }) = self.timed.get() else {
            return;
        };
        let is_answered = match at {
            Some(at) => is_past(tail.cursor(), at),
            None => is_single_request_done,
        };
        if !is_answered {
            return;
        }
        self.timed.set(None);
        let took = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let counts = &*self.counts;
        add(&counts.latencies, 1);
        add(&counts.latency_total, took);
        let longest = load_own(&counts.latency_longest).max(took);
        // Relaxed: a figure, as in `add`.
        counts.latency_longest.store(longest, Ordering::Relaxed);
    }
}
