//! The loop of a trustee beside which launched closures run, as coroutines of its thread.
//!
//! The loop is that of other trustees with turns added: a pass, then the coroutines that are ready,
//! then the work that ended closures have left. A thread that makes a coroutine ready also wakes
//! the trustee.
//!
//! **It ends** when it has been asked to and no closure runs any more. If it finds a launch only
//! then, accepted before the trustee closed, it opens again:
//!
//! ```text
//!          ┌─────── a closure runs ───────┐
//!          ▼                              │
//!   AWAKE, asked to ── none runs ──► CLOSING ── none runs ──► CLOSED ──► GONE
//! ```
//! While the trustee is CLOSING its state is going to change whatever other threads do: it runs
//! accepted closures, which do not wait, and sends none of their requests that it would have to
//! wait for. So another trustee may wait for that, unless it has closed itself: see
//! `client::nested`.

use super::Trustee;
use crate::client::nested;
use crate::context::holds::Lent;
use crate::context::thread::{is_client, turn};
use crate::lane::Lane;
use crate::object::Header;
use crate::object::shared::{CLOSED, CLOSING, Settings, awake};
use crate::trustee::idle::Idle;
use crate::wait_graph;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::{self, Sleeper};
use std::rc::Rc;

/// Passes between two looks for coroutines while no launch is in progress. Ended closures may have
/// left coroutines behind.
const TURN_EVERY: u64 = 64;

impl Trustee {
    pub(super) fn serve_hosted(mut self) {
        let sleeper = self.shared.thread.take_sleeper();
        loop {
            self.serve_beside_others(&sleeper);
            self.serving.is_closing.set(true);
            self.refuse_and_drain(CLOSING);
            if !self.serving.holds.is_busy() {
                break;
            }
            // The trustee takes requests again, since closures run that may make some.
            self.decide(awake());
            self.send_nested();
        }
        self.decide(CLOSED);
        self.close();
    }

    fn serve_beside_others(&mut self, sleeper: &Sleeper) {
        let Settings { batch, spin, .. } = self.shared.settings;
        let mut idle = Idle::default();
        while !self.closing || self.serving.holds.is_busy() {
            let ran = self.pass(false, batch);
            let waits_for_others = is_client() && self.serve_own_requests();
            if self.give_turns() || ran > 0 {
                idle.end();
                continue;
            }
            if !idle.is_time_to_look(self.lanes.len()) {
                continue;
            }
            if self.look_again() {
                idle.end();
                continue;
            }
            if idle.is_time_to_sleep(spin, waits_for_others || self.is_on_a_clients_cpu()) {
                self.doze(sleeper, waits_for_others);
            }
        }
    }

    /// Wakes the coroutines whose waits are over, runs those that are ready, and then does the work
    /// that ended closures have left. Returns whether there was something.
    fn give_turns(&mut self) -> bool {
        let serving = Rc::clone(&self.serving);
        if !serving.holds.is_busy() && !self.passes.is_multiple_of(TURN_EVERY) {
            return false;
        }
        let woken = serving.holds.wake();
        let ran = serving.lend(self, || turn(wait::give_turn));
        woken | ran | self.refuse_circular() | self.settle()
    }

    /// Takes this trustee's refusals from the graph of waits and refuses those deferred requests.
    /// Each is refused so that a wait elsewhere does not close a ring. Returns whether this trustee
    /// had been told of refusals.
    fn refuse_circular(&self) -> bool {
        if !self.shared.take_refusals() {
            return false;
        }
        for (refused, ring) in wait_graph::take_refused(&self.shared) {
            let refuse = |lane: &Lane| lane.refuse_deferred(&self.serving, refused, &ring);
            self.lanes.iter().any(refuse);
        }
        true
    }

    /// Whether there is something for coroutines to do: one is ready, or a deferred request has
    /// been refused. Makes the coroutines ready whose waits are over.
    pub(super) fn has_turns(&self) -> bool {
        self.serving.holds.wake() || self.refuse_circular() || turn(wait::has_ready)
    }

    /// Runs the requests deferred for `object`, in the order of how long their clients have waited.
    fn resume(&self, object: *mut Header) {
        let mut waiting: Vec<_> = self
            .lanes
            .iter()
            .filter_map(|lane| Some((lane.first_deferred(object)?, lane)))
            .collect();
        waiting.sort_unstable_by_key(|&(first, _)| first);
        for (_, lane) in waiting {
            lane.resume(&self.serving, object);
        }
    }

    /// Ends CLOSING by storing the new state, AWAKE or CLOSED, and wakes the threads that wait for
    /// the decision.
    fn decide(&self, state: u32) {
        // Relaxed: a thread that has seen CLOSING looks at the state again. An exchange, as in
        // `Shared::doze`.
        self.shared.state.word().swap(state, Ordering::Relaxed);
        self.shared.state.wake_all();
        self.serving.is_closing.set(false);
    }
}

impl Lent for Trustee {
    fn settle(&mut self) -> bool {
        let mut some = false;
        while let Some(object) = self.serving.take_ended() {
            some = true;
            self.serving.run_deferred_nested(object);
            self.resume(object);
            if !self.serving.is_held(object) && self.serving.holds.take_retired(object) {
                self.drop_object(object);
            }
        }
        some
    }

    fn serve_beneath(&mut self, is_over: &mut dyn FnMut() -> bool) {
        let Settings { batch, spin, .. } = self.shared.settings;
        let (sleeper, shared) = (Sleeper::current(), Arc::clone(&self.shared));
        let mut idle = Idle::default();
        while !is_over() {
            let ran = self.pass(false, batch);
            let waits_for_others = is_client() && self.serve_own_requests();
            if self.refuse_circular() || ran > 0 {
                idle.end();
            } else if idle.is_time_to_look(self.lanes.len()) {
                if self.look_again() {
                    idle.end();
                } else if idle
                    .is_time_to_sleep(spin, waits_for_others || self.is_on_a_clients_cpu())
                {
                    shared.doze(&sleeper, || {
                        is_over()
                            || shared.inbox.has_news()
                            || self.look_again()
                            || (waits_for_others && nested::have_others_gone_on())
                            || self.refuse_circular()
                    });
                }
            }
        }
    }
}
