//! The client's side of a channel: taking answers and running callbacks.

use crate::catch::guarded;
use crate::client::Client;
use crate::client::mark;
use crate::context::discard::discard;
use crate::error::BarrierError;
use crate::request::label::Label;
use crate::request::{FaultCheck, Reap, read_label};
use crate::wait_graph::{Wait, address};
use crate::wire::word::{Position, is_past};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::{prefetch_read, trace};
use std::any::Any;

impl Client {
    /// Takes all answers that are there and runs their callbacks, and the callbacks that were left
    /// to run later. Panics of callbacks are held by the thread's state, for the caller to raise.
    pub(crate) fn reap(&self) {
        self.observe_poll();
        let _in_callback = self.thread.enter_callbacks();
        while let Err(payload) = guarded(|| {
            self.reap_all();
            self.thread.run_left_callbacks();
        }) {
            self.thread.hold(payload);
        }
    }

    /// Publishes the requests that have been sent and, if answers may have come, reaps them. Returns
    /// whether there was one.
    pub(crate) fn catch_up(&self) -> bool {
        let before = self.reaper.reaped();
        let _call = self.thread.enter_call();
        self.flush();
        if self.thread.has_left_callbacks()
            || (self.has_callbacks() && !self.is_single_request_unanswered())
        {
            self.reap();
            self.note_quiet();
        } else {
            self.observe_poll_in_vain();
        }
        self.reaper.reaped() != before
    }

    /// Whether callbacks of this client's requests have still to run: an answer is to come or to be
    /// reaped, or callbacks were left to run later.
    #[inline(always)]
    pub(crate) fn has_callbacks(&self) -> bool {
        !self.reaper.callbacks.is_empty(self.reaper.reaped()) || self.thread.has_left_callbacks()
    }

    /// Reaps up to the tail. A callback's panic unwinds out of this with everything in order:
    /// cursors are stored before a callback runs.
    fn reap_all(&self) {
        if !self.reap_single_request() {
            return;
        }
        let channel = self.channel();
        let before = self.reaper.tail();
        let tail = self.reaper.look(channel);
        // Relaxed: the tail's Acquire has published every fault up to it.
        let faults = channel.tail.faults.load(Ordering::Relaxed);
        if faults == self.reaper.faults_seen.get() {
            self.reap_to::<false>(before, tail);
        } else {
            self.reap_to::<true>(before, tail);
            if tail == self.position() {
                // All is executed, so the faults counted are those of requests that have been
                // reaped.
                self.reaper.faults_seen.set(faults);
            }
        }
    }

    #[inline(always)]
    fn reap_to<const FAULTS: bool>(&self, before: Position, tail: Position) {
        let mut reaped = self.reaper.reaped();
        // Fetches the answers of the whole batch at once: they lie in the trustee's cache.
        let answers = tail.count().wrapping_sub(before.count()).min(256);
        for unit in (0..answers).step_by(8) {
            prefetch_read(
                self.reaper
                    .answers
                    .get()
                    .at(reaped.answer().wrapping_add(unit)),
            );
        }
        while self.reaper.is_reapable(reaped, tail) {
            let entry = self.reaper.callbacks.at(reaped.callback());
            let mut check = FaultCheck::AllWell;
            if FAULTS {
                // SAFETY: an entry begins here; its second word is the position.
                let at = Position(unsafe { entry.wrapping_add(1).read() });
                let record = self.reaper.rings().requests.at(at.cursor());
                // SAFETY: the tail has passed the request, so the record is the client's again, its
                // label still there.
                let label = unsafe { read_label(record) };
                check = if label == Label::FAULTED {
                    FaultCheck::FirstFaulted
                } else {
                    FaultCheck::FirstWell
                };
            }
            // SAFETY: an entry begins here, and its first word is its reap function.
            let reap = unsafe { entry.cast::<Reap>().read() };
            // SAFETY: the entry is the oldest, of the reap function's type, and the tail has passed
            // its request.
            reaped = unsafe { reap(&self.reaper, reaped, tail, check) };
        }
    }

    /// Whether every request sent has been executed and reaped, going by the last look. Closures
    /// that the client has launched are not counted.
    fn is_answered(&self) -> bool {
        if self.single_request.is_pending() {
            return false;
        }
        let tail = self.reaper.tail();
        // After the tail of a trustee that has ended lies at most a record of ring growth.
        let gone = self.reaper.gone.get();
        let reaped = match self.reaper.oldest_callback() {
            None => true,
            Some(at) => gone && !is_past(tail.cursor(), at.cursor()),
        };
        reaped && (gone || tail == self.position()) && !self.thread.has_left_callbacks()
    }

    /// Waits until every request sent has been executed, its callback has run, and the closures
    /// that the client has launched have ended. The thread holds panics of callbacks.
    pub(crate) fn finish(&self) {
        self.finish_until(|| self.is_answered() && !self.has_launches());
    }

    /// Waits as [`finish`](Self::finish) does, but lets launched closures run on.
    pub(crate) fn finish_requests(&self) {
        self.finish_until(|| self.is_answered());
    }

    fn finish_until(&self, is_done: impl Fn() -> bool) {
        let _call = self.thread.enter_call();
        loop {
            self.flush();
            self.reap();
            if is_done() {
                return;
            }
            self.flush();
            self.await_progress(&mark::ANSWERS);
        }
    }

    /// Whether nothing is in flight, so that nothing would be lost if the client went away.
    pub(crate) fn is_idle(&self) -> bool {
        self.reaper.look(self.channel());
        self.is_answered() && !self.has_launches()
    }

    /// Whether there is something to reap, or the tail has moved since the last look: the condition
    /// that [`await_progress`](Self::await_progress) waits for.
    pub(crate) fn has_gone_on(&self) -> bool {
        if self.thread.has_left_callbacks() {
            return true;
        }
        if self.single_request.is_pending() {
            return !self.is_single_request_unanswered();
        }
        let before = self.reaper.tail();
        self.reaper.is_reapable(self.reaper.reaped(), before)
            || self.reaper.look(self.channel()) != before
    }

    /// Waits until there is something to reap or the tail has moved. `why` is for a recording.
    pub(super) fn await_progress(&self, why: &'static trace::Mark) {
        if self.thread.has_left_callbacks() {
            return;
        }
        if self.single_request.is_pending() {
            return self.wait_until(why, None, || !self.is_single_request_unanswered());
        }
        let before = self.reaper.tail();
        if before == self.position() && self.has_launches() {
            let launches = Wait::Launches(address(self.channel));
            return self.wait_until(why, Some(launches), || !self.has_launches());
        }
        if self.reaper.gone.get()
            || before == self.position()
            || self.reaper.is_reapable(self.reaper.reaped(), before)
        {
            return;
        }
        let tail = Wait::Tail(address(self.channel), before.0);
        self.wait_until(why, Some(tail), || {
            self.reaper.look(self.channel()) != before
        });
    }

    /// Reports the failure of a request in the mail line without a waiting caller to the next
    /// barrier. If `is_first`, it goes before failures that were kept earlier.
    pub(super) fn report_own_fault(&self, payload: Box<dyn Any + Send>, is_first: bool) {
        discard(self.channel().keep_fault(payload, is_first));
        let reported = self.reaper.faults_reported.get();
        self.reaper.faults_reported.set(reported.wrapping_sub(1));
    }

    /// Whether requests without a waiting caller have failed since the last barrier, so that the
    /// next one has something to report.
    pub(crate) fn has_faults(&self) -> bool {
        // Relaxed: the caller has acquired the tail.
        let faults = self.channel().tail.faults.load(Ordering::Relaxed);
        self.reaper.faults_reported.get() != faults
    }

    /// Takes the failures, since the last call, of requests without a waiting caller.
    pub(crate) fn take_faults(&self) -> Option<BarrierError> {
        // Relaxed: the caller has acquired the tail.
        let faults = self.channel().tail.faults.load(Ordering::Relaxed);
        if self.reaper.faults_reported.replace(faults) == faults {
            return None;
        }
        let taken = std::mem::take(&mut *self.channel().faults.lock().expect("never poisoned"));
        taken.into_error()
    }
}
