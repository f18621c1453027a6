//! Signals: how a waiter learns that its request has been run, or that it is to combine.
//!
//! # States
//! | word | meaning | next, and who writes it |
//! |---|---|---|
//! | null | the waiter spins | an address (waiter), `TURN` or `DONE` (combiner) |
//! | the address of an [`Asleep`] | the waiter sleeps; it is woken to lead, or after `DONE` | `DONE` (combiner) |
//! | `TURN` | the waiter is the combiner; its request has not been run | |
//! | `DONE` | its request has been run | |
//!
//! # Proof sketch
//! *Nobody is forgotten.* A waiter goes to sleep by an exchange of null for the address, so either the
//! combiner's exchange finds the address and wakes it, or the waiter's fails and finds the answer.
//! *No frame dies early.* After the exchange to `DONE` or `TURN` the combiner touches the signal no
//! more: the waiter may free it. It touches the [`Asleep`] only if its exchange returned one. Then the
//! waiter stays until it is woken, which happens once.

use super::asleep::Asleep;
use crate::turn::Turn;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::wait::Call;
use std::ptr::{self, NonNull};

/// The word between a waiter and the combiners.
#[derive(Debug)]
pub(crate) struct Signal {
    state: AtomicPtr<Asleep>,
}

const SPINS: *mut Asleep = ptr::null_mut();
const TURN: *mut Asleep = ptr::without_provenance_mut(1);
const DONE: *mut Asleep = ptr::without_provenance_mut(2);

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The waiter combines now, and runs its own request first.
    Turn,
    /// Another thread has run the request.
    Done,
}

impl Signal {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicPtr::new(SPINS),
        }
    }

    /// Makes an answered signal as new.
    ///
    /// # Safety
    /// Nobody else knows the signal.
    #[inline]
    pub(crate) unsafe fn reset(&self) {
        // Relaxed: the signal is this thread's; whatever publishes it next publishes this.
        self.state.store(SPINS, Ordering::Relaxed);
    }

    /// Waits for the answer: spins, and then suspends the fibre or lets the thread sleep.
    #[inline]
    pub(crate) fn wait(&self, call: Call) -> Answer {
        let mut turn = Turn::new();
        loop {
            // Acquire: pairs with the Release of `hand_over` and `finish`; this thread sees what
            // the combiner did.
            if let Some(answer) = answer(self.state.load(Ordering::Acquire)) {
                return answer;
            }
            if turn.is_over() {
                return self.wait_asleep(call);
            }
            turn.wait(1);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_asleep(&self, call: Call) -> Answer {
        let asleep = Asleep::new();
        let address = ptr::from_ref(&asleep).cast_mut();
        // Release: pairs with the Acquire of `finish` (`asleep` is initialised) and of a failed
        // `hand_over` (so is what this thread has linked). Acquire: as in `wait`.
        let slept =
            self.state
                .compare_exchange(SPINS, address, Ordering::Release, Ordering::Acquire);
        match slept.err().and_then(answer) {
            Some(answer) => answer,
            None if asleep.wait(call) => Answer::Turn,
            None => Answer::Done,
        }
    }

    /// Makes the waiter the combiner, if it spins, or if `may_sleep` and it sleeps and can lead.
    /// Otherwise returns false; then the waiter sleeps, and what it did before is visible.
    ///
    /// # Safety
    /// Nobody has answered this wait.
    #[inline]
    pub(crate) unsafe fn hand_over(&self, may_sleep: bool) -> bool {
        // Release: pairs with the Acquire of `wait`; the next combiner sees what this one did.
        // Acquire: pairs with the Release of `wait_asleep`.
        let spun = self
            .state
            .compare_exchange(SPINS, TURN, Ordering::Release, Ordering::Acquire);
        let Err(address) = spun else {
            return true;
        };
        let Some(asleep) = NonNull::new(address) else {
            unreachable!("a failed exchange has found something else than `SPINS`");
        };
        // SAFETY: nobody has answered (the caller's duty), so it is that of the waiter, which stays
        // in its frame until it is woken.
        let leads = may_sleep && unsafe { asleep.as_ref() }.can_lead();
        if leads {
            // SAFETY: as above, and it can lead.
            unsafe { Asleep::wake_to_lead(asleep) };
        }
        leads
    }

    /// Tells the waiter that its request has been run. The signal may be gone when this returns.
    ///
    /// # Safety
    /// Nobody has answered this wait.
    #[inline]
    pub(crate) unsafe fn finish(&self) {
        // Release: pairs with the Acquire of `wait`; publishes the result. Acquire: pairs with the
        // Release of `wait_asleep`; the waiter's `Asleep` is initialised.
        let asleep = self.state.swap(DONE, Ordering::AcqRel);
        if let Some(asleep) = NonNull::new(asleep) {
            // SAFETY: nobody has answered (the caller's duty), so the waiter has not been woken.
            unsafe { Asleep::wake(asleep) };
        }
    }
}

/// The answer in a signal's word.
#[inline]
fn answer(state: *mut Asleep) -> Option<Answer> {
    match state {
        TURN => Some(Answer::Turn),
        DONE => Some(Answer::Done),
        _ => None,
    }
}
