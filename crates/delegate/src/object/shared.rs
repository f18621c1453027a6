//! What a trustee shares with its clients and its objects.

use super::number::TrusteeNumber;
use super::thread::TrusteeThread;
use crate::metrics::Counters;
use crate::observe::State;
use crate::observe::roster::Roster;
use crate::observe::sampler::Samples;
use crate::policy::Policy;
use crate::wire::inbox::{Inbox, News, Node};
use crate::wire::word::Position;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::wait::{Host, Sleeper, Token};
use corelay_sync::{CachePadded, Futex, barrier};
use std::time::Duration;

/// Polling, and publishing needs no fence: the one state of the fast path.
pub(crate) const AWAKE: u32 = 0;
/// Polling, where the barrier is not asymmetric: every publication must fence.
pub(crate) const AWAKE_FENCED: u32 = 1;
/// Asleep in its thread's sleeper, or about to be.
pub(crate) const DOZING: u32 = 2;
pub(crate) const CLOSED: u32 = 3;
pub(crate) const GONE: u32 = 4;
/// Closed, for now at least: see `hosted`.
pub(crate) const CLOSING: u32 = 5;

/// The state of a trustee that polls.
pub(crate) fn awake() -> u32 {
    if barrier::is_asymmetric() {
        AWAKE
    } else {
        AWAKE_FENCED
    }
}

/// What a trustee and its channels are set to.
pub(crate) struct Settings {
    /// Requests in flight per client.
    pub(crate) window: u32,
    /// Requests of one client before the next one's turn.
    pub(crate) batch: u32,
    /// How long an idle trustee polls before it sleeps.
    pub(crate) spin: Duration,
    /// Looks of a waiting client before it yields.
    pub(crate) looks: u32,
    /// Units up to which a client's rings grow.
    pub(crate) ring_units: u32,
    /// Where positions begin: tests begin shortly before the wrap.
    pub(crate) origin: Position,
    /// Of a member of a flat team.
    pub(crate) policy: Option<Policy>,
    /// See `Builder::observe`.
    pub(crate) observe: bool,
    /// The CPU that the trustee is pinned to.
    pub(crate) cpu: Option<usize>,
    /// See `Builder::stack_size`.
    pub(crate) stack_size: Option<usize>,
    /// See `Builder::host`.
    pub(crate) host: Option<Host>,
}

/// What a trustee shares with its clients and its objects.
pub(crate) struct Shared {
    /// [`AWAKE`] and so on. Clients look at it with every request.
    pub(crate) state: CachePadded<Futex>,
    pub(crate) inbox: CachePadded<Inbox>,
    pub(crate) counters: Counters,
    pub(crate) settings: Settings,
    pub(crate) number: TrusteeNumber,
    pub(crate) name: String,
    /// Names of objects and clients, for reports.
    pub(crate) roster: Roster,
    /// How long closures take, where that is observed.
    pub(crate) samples: Option<std::sync::Arc<Samples>>,
    close: Node,
    /// Requests that wait here are to be refused: see `held::circle`.
    has_refusals: AtomicBool,
    /// Its thread asks for nothing more, but for destructors of thread-locals.
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
            close: Node::new(News::Close),
            has_refusals: AtomicBool::new(false),
            ended: Token::new(),
            thread: TrusteeThread::new(),
        }
    }

    /// Call it after publishing: true where the trustee polls and will find it. Otherwise
    /// ask [`rouse_if_needed`](Self::rouse_if_needed).
    #[inline(always)]
    pub(crate) fn is_awake(&self) -> bool {
        // Pairs with the heavy barrier of a trustee that goes to sleep or closes: it sees
        // what was published, or this sees its state. Where the barrier is not asymmetric
        // the state is never AWAKE, and `rouse_if_needed` fences.
        barrier::compiler_only();
        // Relaxed: ordered by the barrier.
        self.state.word().load(Ordering::Relaxed) == AWAKE
    }

    /// Makes sure that the trustee will look around once more; false where it has closed.
    /// Call it after publishing.
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

    /// The trustee's thread sleeps in its own sleeper, unless `look` finds an answer that it waits
    /// for, or something to serve at any head. It may return early.
    ///
    /// **Nothing is missed.** The trustee says DOZING, then that its thread sleeps, passes the
    /// heavy barrier, and looks at its answers, at every head, and whether it still dozes. A
    /// client publishes, passes the light barrier, and looks at the state. Where it sees
    /// DOZING it says AWAKE and wakes the thread: which sleeps, or will see that it dozes no
    /// more. Where it sees AWAKE, its request was there before DOZING was said and is found;
    /// or another client has said AWAKE, and the same holds for that one's wake-up.
    pub(crate) fn doze(&self, sleeper: &Sleeper, look: impl FnOnce() -> bool) {
        let state = self.state.word();
        // Release: pairs with the Acquire of `rouse_if_needed`; publishes where the thread sleeps.
        // An exchange, here as below: it continues the order of the word's changes where a client
        // has changed it, also in loom's eyes.
        state.swap(DOZING, Ordering::Release);
        // Relaxed: ordered by the barrier of the sleeper.
        sleeper.sleep(None, || look() || state.load(Ordering::Relaxed) != DOZING);
        // Acquire: pairs with the Release of `rouse_if_needed`.
        state.swap(awake(), Ordering::Acquire);
    }

    /// Requests that wait here are to be refused.
    pub(crate) fn tell_of_refusals(&self) {
        // Release: pairs with the Acquire of `take_refusals`; the graph's lock has the rest.
        self.has_refusals.store(true, Ordering::Release);
        self.rouse_if_needed();
    }

    /// True where the trustee has been told of such since it last asked.
    pub(crate) fn take_refusals(&self) -> bool {
        // Relaxed: asked in every pass; what is seen late is seen by the next one, or behind the
        // barrier of `doze`.
        self.has_refusals.load(Ordering::Relaxed)
            // Acquire: pairs with the Release of `tell_of_refusals`.
            && self.has_refusals.swap(false, Ordering::Acquire)
    }

    /// Somebody waits for the trustee: where it is a member that has other work, it may want
    /// to know.
    pub(crate) fn ring(&self) {
        if self.settings.policy.is_some() {
            self.thread.bell.ring();
        }
    }

    /// True once the trustee takes no requests any more.
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: a hint.
        matches!(self.state.word().load(Ordering::Relaxed), CLOSED | GONE)
    }

    /// True while the trustee finds out whether it takes requests again.
    pub(crate) fn is_closing(&self) -> bool {
        // Relaxed: a hint.
        self.state.word().load(Ordering::Relaxed) == CLOSING
    }

    /// Waits until the trustee knows whether it takes requests again. Not on a trustee that is
    /// CLOSING itself or has closed: see `nested`.
    pub(crate) fn wait_until_decided(&self) {
        while self.is_closing() {
            self.state.wait(CLOSING, None);
        }
    }

    /// True once the trustee has ended.
    pub(crate) fn is_gone(&self) -> bool {
        // Acquire: pairs with the Release of `Trustee::close`.
        self.state.word().load(Ordering::Acquire) == GONE
    }

    /// What the trustee does, for reports.
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

    /// Waits for a trustee that has closed to end; false where it takes requests again instead.
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

    /// Asks the trustee to serve what was accepted and end. Call it once.
    pub(crate) fn close(&self) {
        // SAFETY: a node of its own, pushed once; `self` outlives the trustee.
        if unsafe { self.inbox.push(&raw const self.close) } {
            self.rouse_if_needed();
        }
    }
}
