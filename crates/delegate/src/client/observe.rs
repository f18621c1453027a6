//! What a client lets reports know: that it is there, and what it counts where its trustee is
//! observed.
//!
//! Called where the client has left its fast path; where the trustee is not observed, each is
//! one comparison.

use crate::client::Client;
use crate::observe::counts::Observer;
use crate::observe::roster::{Connected, Name};
use crate::wire::word::Position;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;

impl Client {
    /// Reports know of this client from now on.
    pub(super) fn join(&self) {
        self.tell_queues();
        let counts = self.observer.as_deref().map(Observer::counts);
        let client = Connected::new(Arc::as_ptr(&self.owned), self.thread.name(), counts);
        self.trustee.roster.join(client);
    }

    /// And no more. Before the channel goes.
    pub(super) fn leave(&self) {
        self.trustee.roster.leave(Arc::as_ptr(&self.owned));
    }

    /// It is called otherwise.
    pub(crate) fn rename(&self, name: &Name) {
        let roster = &self.trustee.roster;
        roster.rename(Arc::as_ptr(&self.owned), name);
    }

    /// Its queues lie somewhere else now.
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

    /// A request with an answer is about to go: to that place in the ring, or alone.
    #[inline(always)]
    pub(super) fn observe_request(&self, at: Option<Position>) {
        if let Some(observer) = &self.observer {
            observer.time_request(at);
        }
    }

    /// A request has found no room, although the answers have been taken.
    pub(super) fn observe_failed_pop(&self) {
        if let Some(observer) = &self.observer {
            observer.count_failed_pop();
        }
    }

    /// A wait is going to take longer.
    pub(super) fn observe_wait(&self) {
        if let Some(observer) = &self.observer {
            observer.count_wait();
        }
    }

    /// The client has looked for the answer of a single request, and it was not there.
    #[inline(always)]
    pub(super) fn observe_poll_in_vain(&self) {
        if let Some(observer) = &self.observer
            && self.single_request.is_pending()
        {
            observer.count_poll(false);
        }
    }

    /// The client is about to take the answers that are there.
    #[inline(always)]
    pub(super) fn observe_poll(&self) {
        if let Some(observer) = &self.observer {
            self.count_poll(observer);
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
    fn queues_are_known_wherever_they_go() {
        let trustees = Trustees::dedicated(1).observe(true).start();
        let trustees = trustees.expect("threads");
        let t = trustees.entrust(0u64);
        let client = t.client("test");
        let known = || {
            let counts = client.observer.as_deref().expect("observed").counts();
            // Relaxed: our own.
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
