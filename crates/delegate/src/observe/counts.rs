//! What a client counts where its trustee is observed.
//!
//! All of it happens where the client has left its fast path anyway: when it looks for
//! answers, has no room, or waits.

use super::dice::Dice;
use super::{mean, ratio};
use crate::wire::word::{Position, is_past};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, AtomicUsize, Ordering, load_own};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What one client has counted. The client writes, reports read.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) polls: AtomicU64,
    pub(crate) ready: AtomicU64,
    pub(crate) failed_pops: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) latencies: AtomicU64,
    /// In nanoseconds.
    pub(crate) latency_total: AtomicU64,
    /// In nanoseconds.
    pub(crate) latency_longest: AtomicU64,
    /// Addresses of request ring, answer ring and callback queue.
    pub(crate) queues: [AtomicUsize; 3],
}

/// On lines of its own, and there as long as its client or a report needs it.
pub(crate) type SharedCounts = Arc<CachePadded<Counts>>;

/// `counter` plus `n`. Only its client adds to it.
fn add(counter: &AtomicU64, n: u64) {
    // Relaxed: a figure of its own; nothing is handed over.
    counter.store(load_own(counter) + n, Ordering::Relaxed);
}

/// What a client counts where its trustee is observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientObserved {
    /// Times that the client looked for answers while a callback waited for one. A wait
    /// counts once, however long it looks. Calls that wait, and futures, are not among them.
    pub polls: u64,
    /// Polls that found the oldest one's answer ready.
    pub ready: u64,
    /// Requests that found no room: the window or the rings were full, also after the answers
    /// had been taken. (D8's failed pops.)
    pub failed_pops: u64,
    /// Waits of more than a few microseconds: for an answer, or for room.
    pub waits: u64,
    /// Requests of [`apply_then`](crate::Trust::apply_then) that were timed.
    pub latencies: u64,
    /// From asking until the client saw the answer, all of them together.
    pub latency_total: Duration,
    /// The longest of them.
    pub latency_longest: Duration,
}

impl ClientObserved {
    /// What a client has counted up to now.
    pub(crate) fn read(counts: &Counts) -> Self {
        // Relaxed: each a figure for itself.
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // A poll is counted before it is found ready.
        let ready = load(&counts.ready);
        Self {
            polls: load(&counts.polls),
            ready,
            failed_pops: load(&counts.failed_pops),
            waits: load(&counts.waits),
            latencies: load(&counts.latencies),
            latency_total: Duration::from_nanos(load(&counts.latency_total)),
            latency_longest: Duration::from_nanos(load(&counts.latency_longest)),
        }
    }

    /// The share of polls that found an answer ready (D8's response-ready rate); `None`
    /// before the first poll.
    pub fn ready_rate(&self) -> Option<f64> {
        ratio(self.ready, self.polls)
    }

    /// The average latency; `None` where none was timed yet.
    pub fn latency_mean(&self) -> Option<Duration> {
        mean(self.latency_total, self.latencies)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.polls += other.polls;
        self.ready += other.ready;
        self.failed_pops += other.failed_pops;
        self.waits += other.waits;
        self.latencies += other.latencies;
        self.latency_total += other.latency_total;
        self.latency_longest = self.latency_longest.max(other.latency_longest);
    }
}

/// The client's side of it.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    counts: SharedCounts,
    /// Requests that go by before one is timed.
    left: Cell<u32>,
    dice: Dice,
    timed: Cell<Option<Timed>>,
}

/// Of the requests that leave the fast path, one in so many is timed. Of a stream these are a
/// sixty-fourth.
const ONE_IN: u32 = 64;

/// A request that is being timed.
#[derive(Clone, Copy, Debug)]
struct Timed {
    /// Where it lies; `None` if it went alone.
    at: Option<u32>,
    sent: Instant,
}

impl Observer {
    /// What a report reads.
    pub(crate) fn counts(&self) -> SharedCounts {
        Arc::clone(&self.counts)
    }

    /// Request ring, answer ring and callback queue lie there now.
    pub(crate) fn set_queues(&self, at: [*const u64; 3]) {
        for (queue, at) in self.counts.queues.iter().zip(at) {
            // Relaxed: a figure, never followed.
            queue.store(at.addr(), Ordering::Relaxed);
        }
    }

    /// The client has looked for answers; the oldest one that it waits for was there or not.
    pub(crate) fn count_poll(&self, is_ready: bool) {
        add(&self.counts.polls, 1);
        add(&self.counts.ready, u64::from(is_ready));
    }

    /// A request has found no room.
    pub(crate) fn count_failed_pop(&self) {
        add(&self.counts.failed_pops, 1);
    }

    /// The client has waited for longer than a few microseconds.
    pub(crate) fn count_wait(&self) {
        add(&self.counts.waits, 1);
    }

    /// A request is about to go: into the ring at that place, or alone. Now and then it is
    /// timed.
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

    /// The client has seen what is executed: the ring up to `tail`, and the single request,
    /// where there is one, if `is_single_request_done`.
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
        // Relaxed: as in `add`.
        counts.latency_longest.store(longest, Ordering::Relaxed);
    }
}
