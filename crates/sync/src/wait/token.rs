//! One event, one waiter.
//!
//! ```text
//!   EMPTY ──subscribe──► WAITING ──notify──► TAKING ──► SET
//!     └───────────────────notify──────────────────────────┘
//! ```
//! The notifier takes the waker out (TAKING) before it says SET, and touches only that
//! waker afterwards: the waiter may free the token as soon as it sees SET.

use crate::facade::atomic::{AtomicU32, Ordering};
use crate::facade::cell::UnsafeCell;
use std::task::Waker;

const EMPTY: u32 = 0;
const WAITING: u32 = 1;
const TAKING: u32 = 2;
const SET: u32 = 3;

/// Set once, by any thread; waited for by one thread or fibre. May live on the waiter's
/// stack.
///
/// ```
/// use corelay_sync::wait::{self, Token};
/// let token = Token::new();
/// std::thread::scope(|s| {
///     s.spawn(|| token.notify());
///     wait::wait(&token);
/// });
/// assert!(token.is_set());
/// ```
#[derive(Debug)]
pub struct Token {
    state: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is written by the waiter while EMPTY and taken by the notifier while
// TAKING; the state hands it over.
unsafe impl Send for Token {}
// SAFETY: as above; `subscribe` is for the one waiter.
unsafe impl Sync for Token {}

impl Token {
    /// Not set.
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            waker: UnsafeCell::new(None),
        }
    }

    /// True once it has been set; what the notifier did before is then visible.
    #[inline]
    pub fn is_set(&self) -> bool {
        // Acquire: pairs with the Release of `notify`.
        self.state.load(Ordering::Acquire) == SET
    }

    /// Has `waker` woken when the token is set; false where it is set already, and true
    /// without another subscription where there is one. For contexts; the rest call
    /// [`wait`](super::wait).
    ///
    /// # Safety
    /// Only one thread or fibre subscribes, and it keeps the token until [`is_set`](Self::is_set).
    pub unsafe fn subscribe(&self, waker: Waker) -> bool {
        // Relaxed: only this side leaves EMPTY for WAITING.
        match self.state.load(Ordering::Relaxed) {
            EMPTY => {}
            SET => return false,
            _ => return true,
        }
        // SAFETY: EMPTY, and only one subscriber: nobody else looks at the waker.
        self.waker.with_mut(|slot| unsafe { *slot = Some(waker) });
        // Release: pairs with the Acquire of `notify`; hands the waker over. Acquire where
        // it fails: the token is set.
        let handed =
            self.state
                .compare_exchange(EMPTY, WAITING, Ordering::Release, Ordering::Acquire);
        if handed.is_err() {
            // SAFETY: set while EMPTY: the notifier does not look at the waker.
            self.waker.with_mut(|slot| unsafe { *slot = None });
        }
        handed.is_ok()
    }

    /// Sets the token and wakes its waiter. Once set, it does nothing.
    pub fn notify(&self) {
        // Release: publishes what was done before to `is_set`. Acquire where it fails:
        // pairs with the Release of `subscribe`.
        let set = self
            .state
            .compare_exchange(EMPTY, SET, Ordering::Release, Ordering::Acquire);
        if set.is_ok() {
            return;
        }
        // Acquire: as above. Whoever makes this step has the waker to itself; another
        // notifier finds TAKING or SET and leaves.
        let taken =
            self.state
                .compare_exchange(WAITING, TAKING, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            // SAFETY: handed over by WAITING, kept from others by TAKING.
            let waker = self.waker.with_mut(|slot| unsafe { (*slot).take() });
            // Release: as above. The token may be gone after this.
            self.state.store(SET, Ordering::Release);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}
