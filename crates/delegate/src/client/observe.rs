//! The client's news for reports: that it is there, and its counts if its trustee is observed.
//!
//! Called after the client has left its fast path. If the trustee is not observed, each call is one
//! comparison.

use crate::client::Client;
use crate::observe::counts::Observer;
use crate::observe::roster::{Connected, Name};
use crate::wire::word::Position;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;

impl Client {
    /// Adds this client to its trustee's list of clients, for reports.
    pub(super) fn join(&self) {
        self.tell_queues();
        let counts = self.observer.as_deref().map(Observer::counts);
        let client = Connected::new(Arc::as_ptr(&self.owned), self.thread.name(), counts);
        self.trustee.roster.join(client);
    }

    /// Takes this client off the list. Called before the channel goes.
    pub(super) fn leave(&self) {
        self.trustee.roster.leave(Arc::as_ptr(&self.owned));
    }

    /// Gives this client another name.
    pub(crate) fn rename(&self, name: &Name) {
        let roster = &self.trustee.roster;
        roster.rename(Arc::as_ptr(&self.owned), name);
    }

    /// Notes the addresses of the client's queues after they have changed.
    pub(super) fn tell_queues(&self) {
        if let Some(observer) = &self.observer {
            let (rings, start) = (self.rings(), 0);
            observer.set_queues([
                rings.requests.at(start),
                rings.answers.at(start),
                self.reaper.callbacks.at(start),
            ]);
        }
    }

    /// Begins to time a request with an answer, now and then, before it is sent: to `at` in the
    /// ring, or as a single request if that is `None`.
    #[inline(always)]
    pub(super) fn observe_request(&self, at: Option<Position>) {
        if let Some(observer) = &self.observer {
            observer.time_request(at);
        }
    }

    /// Counts a request that has found no room, although the answers have been taken.
    pub(super) fn observe_failed_push(&self) {
        if let Some(observer) = &self.observer {
            observer.count_failed_push();
        }
    }

    /// Counts a look for requests to publish, if the window has room. `has_found` says whether there
    /// was one.
    #[inline(always)]
    pub(super) fn observe_pop(&self, has_found: bool) {
        if let Some(observer) = &self.observer
            && self.in_flight() < self.window
        {
            observer.count_pop(has_found);
        }
    }

    /// Counts a wait that has not ended after the first spinning.
    pub(super) fn observe_wait(&self) {
        if let Some(observer) = &self.observer {
            observer.count_wait();
        }
    }

    /// Counts a look for the answer of a single request that was not there.
    #[inline(always)]
    pub(super) fn observe_poll_in_vain(&self) {
        if let Some(observer) = &self.observer
            && self.single_request.is_pending()
        {
            observer.count_poll(false);
        }
    }

    /// Counts a look for answers, before the client takes those that are there.
    #[inline(always)]
    pub(super) fn observe_poll(&self) {
        if let Some(observer) = &self.observer {
            self.count_poll(observer);
        }
    }

    /// Ends the timing of the single request, if it is timed: its answer may have come after the look
    /// that counted as a poll.
    pub(super) fn observe_single_answer(&self) {
        if let Some(observer) = &self.observer {
            observer.note_answers(self.reaper.tail(), true);
        }
    }

    #[cold]
    fn count_poll(&self, observer: &Observer) {
        // Relaxed: for the counts only; reaping looks again.
        let tail = Position(self.channel().tail.position.load(Ordering::Relaxed));
        let is_single_request_done =
            self.single_request.is_pending() && !self.is_single_request_unanswered();
        let reaped = self.reaper.reaped();
        if !self.reaper.callbacks.is_empty(reaped) {
            observer.count_poll(is_single_request_done || self.reaper.is_reapable(reaped, tail));
        }
        observer.note_answers(tail, is_single_request_done);
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use crate::{Trustees, barrier};
    use std::hint::black_box;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn queues_that_move_are_noted() {
        let trustees = Trustees::dedicated(1).observe(true).start();
        let trustees = trustees.expect("threads");
        let t = trustees.entrust(0u64);
        let client = t.client("test");
        let known = || {
            let counts = client.observer.as_deref().expect("observed").counts();
            // Relaxed: this thread's own.
            [0, 1, 2].map(|queue: usize| counts.queues[queue].load(super::Ordering::Relaxed))
        };
        let actual = || {
            let rings = client.rings();
            let queues = [
                rings.requests.at(0),
                rings.answers.at(0),
                client.reaper.callbacks.at(0),
            ];
            queues.map(|queue| queue.addr())
        };
        let first = actual();
        assert_eq!(known(), first);
        // A trustee that keeps up would let no queue grow.
        let go = Arc::new(AtomicBool::new(false));
        let waits = Arc::clone(&go);
        t.post(move |_| {
            while !waits.load(super::Ordering::Acquire) {
                std::thread::yield_now();
            }
        });
        for i in 0..200u64 {
            let large = [i; 8];
            t.apply_then(
                move |n| large.map(|i| i + *n),
                move |_| _ = black_box(large),
            );
            assert_eq!(known(), actual());
        }
        go.store(true, super::Ordering::Release);
        barrier().expect("all well");
        for _ in 0..1_000 {
            t.apply_then(|n| *n += 1, |()| ());
            assert_eq!(known(), actual());
        }
        barrier().expect("all well");
        let last = actual();
        assert!(
            (0..3).all(|queue| last[queue] != first[queue]),
            "all have grown"
        );
    }
}
