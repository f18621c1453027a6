//! Signals: how a waiter learns that its request has been run, or that it is to combine.
//!
//! # States
//! | word | meaning | next, and who writes it |
//! |---|---|---|
//! | null | the waiter spins | a token (waiter), `TURN` or `DONE` (combiner) |
//! | a token's address | the waiter waits for that token, in its frame | `DONE` (combiner) |
//! | `TURN` | the waiter is the combiner; its request has not been run | |
//! | `DONE` | its request has been run | |
//!
//! # Proof sketch
//! *Nobody is forgotten.* A waiter goes to wait by an exchange of null for its token, so either the
//! combiner's exchange finds the token and sets it, or the waiter's fails and finds the answer.
//! *No frame dies early.* After the exchange to `DONE` the combiner touches the signal no more: the
//! waiter may free it. It touches the token only if its exchange returned one. Then the waiter stays
//! until that token is set, and `notify` does not touch a token that is set.
//! *A turn goes to a thread that runs.* `TURN` replaces null only.

use crate::turn::Turn;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::wait::{Call, Token, wait_in};
use std::ptr;

/// The word between a waiter and the combiners.
#[derive(Debug)]
pub(crate) struct Signal {
    state: AtomicPtr<Token>,
}

const SPINS: *mut Token = ptr::null_mut();
const TURN: *mut Token = ptr::without_provenance_mut(1);
const DONE: *mut Token = ptr::without_provenance_mut(2);

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
        let token = Token::new();
        let asleep = ptr::from_ref(&token).cast_mut();
        // Release: pairs with the Acquire of `finish` (the token is initialised) and of a failed
        // `hand_over` (what this thread has linked). Acquire: as in `wait`.
        let slept =
            self.state
                .compare_exchange(SPINS, asleep, Ordering::Release, Ordering::Acquire);
        match slept.err().and_then(answer) {
            Some(answer) => answer,
            None => {
                // No cancellation ends it, for the combiner uses this frame.
                let _ = wait_in(call, &token);
                Answer::Done
            }
        }
    }

    /// Makes the waiter the combiner, if it spins. Returns false if it waits for a token; then what
    /// it did before is visible.
    #[inline]
    pub(crate) fn hand_over(&self) -> bool {
        // Release: pairs with the Acquire of `wait`; the next combiner sees what this one did.
        // Acquire: pairs with the Release of `wait_asleep`.
        self.state
            .compare_exchange(SPINS, TURN, Ordering::Release, Ordering::Acquire)
            .is_ok()
    }

    /// Tells the waiter that its request has been run. The signal may be gone when this returns.
    ///
    /// # Safety
    /// Nobody has answered this wait.
    #[inline]
    pub(crate) unsafe fn finish(&self) {
        // Release: pairs with the Acquire of `wait`; publishes the result. Acquire: pairs with the
        // Release of `wait_asleep`; the token is initialised.
        let token = self.state.swap(DONE, Ordering::AcqRel);
        // SAFETY: nobody has answered (the caller's duty), so it is null, or the token for which the
        // waiter stays in its frame until the `notify` below has set it.
        if let Some(token) = unsafe { token.as_ref() } {
            token.notify();
        }
    }
}

/// The answer in a signal's word.
#[inline]
fn answer(state: *mut Token) -> Option<Answer> {
    match state {
        TURN => Some(Answer::Turn),
        DONE => Some(Answer::Done),
        _ => None,
    }
}
