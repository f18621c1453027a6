//! What a client counts where its trustee is observed.
//!
//! All of it happens where the client has left its fast path anyway: when it looks for
//! answers, has no room, or waits.

use super::dice::Dice;
use crate::channel::word::{Position, is_past};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, AtomicUsize, Ordering, load_own};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

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
    asked: Instant,
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
    pub(crate) fn ask(&self, at: Option<Position>) {
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
                asked: Instant::now(),
            }));
        }
    }

    /// The client has seen what is executed: the ring up to `tail`, and the lone request,
    /// where there is one, if `is_alone_done`.
    pub(crate) fn answers(&self, tail: Position, is_alone_done: bool) {
        let Some(Timed { at, asked }) = self.timed.get() else {
            return;
        };
        let is_answered = match at {
            Some(at) => is_past(tail.cursor(), at),
            None => is_alone_done,
        };
        if !is_answered {
            return;
        }
        self.timed.set(None);
        let took = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let counts = &*self.counts;
        add(&counts.latencies, 1);
        add(&counts.latency_total, took);
        let longest = load_own(&counts.latency_longest).max(took);
        // Relaxed: as in `add`.
        counts.latency_longest.store(longest, Ordering::Relaxed);
    }
}
