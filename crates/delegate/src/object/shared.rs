//! The state that a trustee shares with its clients and its objects.

use super::left_cpu::LeftCpu;
use super::number::TrusteeNumber;
use super::parcel::Orders;
use super::thread::TrusteeThread;
use crate::error::Faults;
use crate::metrics::Counters;
use crate::observe::State;
use crate::observe::roster::Roster;
use crate::observe::sampler::Samples;
use crate::policy::Policy;
use crate::wire::inbox::{Inbox, News, Node};
use crate::wire::word::Position;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use corelay_sync::wait::{Host, Sleeper, Token};
use corelay_sync::{CachePadded, Futex, barrier};
use std::time::Duration;

/// The trustee polls, and publishing needs no fence. The fast path accepts this state only.
pub(crate) const AWAKE: u32 = 0;
/// The trustee polls, and the barrier is not asymmetric: every publication must fence.
pub(crate) const AWAKE_FENCED: u32 = 1;
/// The trustee sleeps in its thread's sleeper, or is about to.
pub(crate) const DOZING: u32 = 2;
/// The trustee takes no more requests. It serves those that it has accepted, and drops its values.
pub(crate) const CLOSED: u32 = 3;
/// The trustee has ended: all that it accepted has been served, and all values have been dropped.
pub(crate) const GONE: u32 = 4;
/// A hosted trustee takes no requests at the moment, while it finds out whether it can close for
/// good: see `trustee::hosted`.
pub(crate) const CLOSING: u32 = 5;

/// The state of a trustee that polls, on this machine: [`AWAKE`] or [`AWAKE_FENCED`].
pub(crate) fn awake() -> u32 {
    if barrier::is_asymmetric() {
        AWAKE
    } else {
        AWAKE_FENCED
    }
}

/// The settings of a trustee and its channels.
pub(crate) struct Settings {
    /// The trustee's number among those that were started with it.
    pub(crate) index: usize,
    /// The largest number of requests that one client may have in flight.
    pub(crate) window: u32,
    /// The largest number of requests of one client that the trustee runs before it turns to the
    /// next client.
    pub(crate) batch: u32,
    /// The time for which an idle trustee polls before it sleeps.
    pub(crate) spin: Duration,
    /// The number of looks that a waiting client takes before it yields its CPU.
    pub(crate) looks: u32,
    /// The number of units up to which a client's rings grow.
    pub(crate) ring_units: u32,
    /// The position at which rings begin. Tests begin shortly before the wrap.
    pub(crate) origin: Position,
    /// The policy, if the trustee is a member of a flat team.
    pub(crate) policy: Option<Policy>,
    /// Whether the trustee is observed: see `Builder::observe`.
    pub(crate) observe: bool,
    /// The time from which a closure is slow: see `Builder::slow`.
    pub(crate) slow: Duration,
    /// The CPU that the trustee is pinned to.
    pub(crate) cpu: Option<usize>,
    /// The bytes of the trustee's stack, and of each launched closure's; `None` for the usual
    /// sizes. See `Builder::stack_size`.
    pub(crate) stack_size: Option<usize>,
    /// The host of the loop, if there is one: see `Builder::host`.
    pub(crate) host: Option<Host>,
}

/// The state that a trustee shares with its clients and its objects.
pub(crate) struct Shared {
    /// [`AWAKE`] or another state. Clients look at it with every request.
    pub(crate) state: CachePadded<Futex>,
    pub(crate) inbox: CachePadded<Inbox>,
    pub(crate) counters: Counters,
    pub(crate) settings: Settings,
    pub(crate) number: TrusteeNumber,
    pub(crate) name: String,
    /// Names of objects and clients, for reports.
    pub(crate) roster: Roster,
    /// Failures of clients that have gone before a barrier took them. `None` once nobody can ask for
    /// them any more: their payloads are the user's, and are dropped where user code may run.
    failures: std::sync::Mutex<Option<Faults>>,
    /// The orders for values that are to leave the trustee.
    pub(crate) orders: Orders,
    /// The sampled times of closures, if the trustee is observed.
    pub(crate) samples: Option<std::sync::Arc<Samples>>,
    /// The next [`Ticket`](crate::wire::waiters::Ticket) of a task that waits for room.
    pub(crate) tickets: AtomicU64,
    close: Node,
    /// The CPU that a waiting client has left to others.
    pub(crate) left_cpu: LeftCpu,
    /// Whether the graph of waits holds refusals that this trustee is to deliver to requests that
    /// wait on it: see [`wait_graph`](crate::wait_graph).
    has_refusals: AtomicBool,
    /// An event that is set when the trustee's thread has made its last request, apart from those
    /// of destructors of thread-locals.
    pub(crate) ended: Token,
    pub(crate) thread: TrusteeThread,
}

impl Shared {
    pub(crate) fn new(settings: Settings, name: String) -> Self {
        Self {
            state: CachePadded::new(Futex::new(awake())),
            inbox: CachePadded::new(Inbox::new()),
            counters: Counters::default(),
            samples: settings.observe.then(std::sync::Arc::default),
            settings,
            number: TrusteeNumber::take(),
            name,
            roster: Roster::default(),
            failures: std::sync::Mutex::new(Some(Faults::default())),
            orders: Orders::new(),
            tickets: AtomicU64::new(0),
            close: Node::new(News::Close),
            left_cpu: LeftCpu::default(),
            has_refusals: AtomicBool::new(false),
            ended: Token::new(),
            thread: TrusteeThread::new(),
        }
    }

    /// Whether the trustee polls and will find what was published before this call. If not, the
    /// caller uses [`rouse_if_needed`](Self::rouse_if_needed).
    #[inline(always)]
    pub(crate) fn is_awake(&self) -> bool {
        // Pairs with the heavy barrier of a trustee that goes to sleep or closes: it sees what was
        // published, or this sees its state. Without an asymmetric barrier the state is never
        // AWAKE, and `rouse_if_needed` fences.
        barrier::compiler_only();
        // Relaxed: ordered by the barrier.
        self.state.word().load(Ordering::Relaxed) == AWAKE
    }

    /// Makes sure that the trustee looks for requests once more, and wakes it if it sleeps. Returns
    /// false if it is closing or has closed. The caller has published its request before.
    #[cold]
    pub(crate) fn rouse_if_needed(&self) -> bool {
        barrier::light();
        let state = self.state.word();
        // Relaxed: ordered by the barrier; the exchanges below decide.
        let mut seen = state.load(Ordering::Relaxed);
        loop {
            if matches!(seen, AWAKE | AWAKE_FENCED) {
                return true;
            }
            if matches!(seen, CLOSING | CLOSED | GONE) {
                return false;
            }
            // Release: pairs with the Acquire of `doze`; what was published before is seen in
            // the next pass. Acquire: pairs with its Release; the sleeper is there.
            match state.compare_exchange(seen, awake(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.thread.wake();
                    return true;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Sleeps in the trustee's own sleeper, unless `look` finds an answer that the trustee waits
    /// for, or something to serve at any head. It may return early.
    ///
    /// **Nothing is missed.** The trustee stores DOZING, then that its thread sleeps, passes the
    /// heavy barrier, and looks at its answers, at every head, and whether it still dozes. A client
    /// publishes, passes the light barrier, and looks at the state. If it sees DOZING, it stores
    /// AWAKE and wakes the thread, which sleeps, or will see that it dozes no more. If it sees
    /// AWAKE, then either its request was there before DOZING was stored, and is found; or another
    /// client has stored AWAKE, and the same holds for that one's wake-up.
    pub(crate) fn doze(&self, sleeper: &Sleeper, look: impl FnOnce() -> bool) {
        let state = self.state.word();
        // Release: pairs with the Acquire of `rouse_if_needed`; publishes where the thread sleeps.
        // An exchange, here as below: it continues the order of the word's changes after a client's
        // change, also in loom's eyes.
        state.swap(DOZING, Ordering::Release);
        // Relaxed: ordered by the barrier of the sleeper.
        sleeper.sleep(None, || look() || state.load(Ordering::Relaxed) != DOZING);
        self.end_doze();
    }

    /// Says that the trustee is about to sleep in its thread's event loop, as [`doze`](Self::doze)
    /// does for the sleeper, with the same promise. Returns false if it may not: `look` has found
    /// something, or another thread has roused the trustee. After true the caller ends the sleep by
    /// [`Sleeper::end_sleep`] and [`end_doze`](Self::end_doze).
    ///
    /// # Errors
    /// The system gives no more file descriptors.
    #[cfg(any(unix, corelay_loom, corelay_shuttle))]
    pub(crate) fn begin_doze(
        &self,
        sleeper: &Sleeper,
        look: impl FnOnce() -> bool,
    ) -> std::io::Result<bool> {
        let state = self.state.word();
        // Release: as in `doze`.
        state.swap(DOZING, Ordering::Release);
        // Relaxed: ordered by the barrier of the sleeper.
        let begun = sleeper.begin_sleep(|| look() || state.load(Ordering::Relaxed) != DOZING);
        if !matches!(begun, Ok(true)) {
            self.end_doze();
        }
        begun
    }

    /// Stores that the trustee polls again.
    pub(crate) fn end_doze(&self) {
        // Acquire: pairs with the Release of `rouse_if_needed`.
        self.state.word().swap(awake(), Ordering::Acquire);
    }

    /// Tells the trustee to take refusals from the graph of waits and to refuse those requests.
    pub(crate) fn tell_of_refusals(&self) {
        // Release: pairs with the Acquire of `take_refusals`; the graph's lock has the rest.
        self.has_refusals.store(true, Ordering::Release);
        self.rouse_if_needed();
    }

    /// Whether [`tell_of_refusals`](Self::tell_of_refusals) has been called since the last call of
    /// this. Called by the trustee.
    pub(crate) fn take_refusals(&self) -> bool {
        // Relaxed: asked in every pass; a store that is seen late is seen by the next pass, or
        // after the barrier of `doze`.
        self.has_refusals.load(Ordering::Relaxed)
            // Acquire: pairs with the Release of `tell_of_refusals`.
            && self.has_refusals.swap(false, Ordering::Acquire)
    }

    /// Rings the doorbell of the trustee for a thread that waits for it. Does nothing if the
    /// trustee is no member of a flat team.
    pub(crate) fn ring(&self) {
        if self.settings.policy.is_some() {
            self.thread.bell.ring();
        }
    }

    /// Whether the trustee has closed for good.
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: a hint.
        matches!(self.state.word().load(Ordering::Relaxed), CLOSED | GONE)
    }

    /// Whether the trustee is CLOSING: it is finding out whether it has to take requests again.
    pub(crate) fn is_closing(&self) -> bool {
        // Relaxed: a hint.
        self.state.word().load(Ordering::Relaxed) == CLOSING
    }

    /// Waits until the trustee knows whether it takes requests again. Not called on the thread of a
    /// trustee that is CLOSING itself or has closed: see `client::nested`.
    pub(crate) fn wait_until_decided(&self) {
        while self.is_closing() {
            self.state.wait(CLOSING, None);
        }
    }

    /// Whether the trustee has ended.
    pub(crate) fn is_gone(&self) -> bool {
        // Acquire: pairs with the Release of `Trustee::close`.
        self.state.word().load(Ordering::Acquire) == GONE
    }

    /// The trustee's state, for reports.
    pub(crate) fn report_state(&self) -> State {
        if self.is_gone() {
            return State::ShutDown;
        }
        // Relaxed: a figure.
        match self.state.word().load(Ordering::Relaxed) {
            AWAKE | AWAKE_FENCED => State::Awake,
            DOZING => State::Asleep,
            _ => State::Closing,
        }
    }

    /// Keeps the failures of a client that goes. Returns what is not kept, for the caller to discard.
    pub(crate) fn keep_failures(&self, faults: Faults) -> Option<Faults> {
        let mut failures = self.failures.lock().expect("never poisoned");
        match &mut *failures {
            Some(failures) => failures.merge(faults),
            None => Some(faults),
        }
    }

    /// Takes the failures that have been kept. No more are kept from then on if this `is_last`.
    pub(crate) fn take_failures(&self, is_last: bool) -> Option<Faults> {
        let mut failures = self.failures.lock().expect("never poisoned");
        let next = (!is_last && failures.is_some()).then(Faults::default);
        std::mem::replace(&mut *failures, next)
    }

    /// Waits until a trustee that has closed has ended. Returns false if it takes requests again
    /// instead.
    pub(crate) fn wait_until_gone(&self) -> bool {
        loop {
            // Acquire: pairs with the Release of `Trustee::close`.
            match self.state.word().load(Ordering::Acquire) {
                GONE => return true,
                now @ (CLOSING | CLOSED) => self.state.wait(now, None),
                _ => return false,
            }
        }
    }

    /// Asks the trustee to serve what was accepted and end. Called once.
    pub(crate) fn close(&self) {
        // SAFETY: the node belongs to `self` alone and is pushed here only, once; `self` outlives
        // the trustee.
        if unsafe { self.inbox.push(&raw const self.close) } {
            self.rouse_if_needed();
        }
    }
}
