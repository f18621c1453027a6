//! Test-and-test-and-set with back-off.
//!
//! One byte: held or not. A thread that wants in exchanges "free" for "held"; if it was
//! held already, the thread only *reads* it (its copy stays in its own cache, no line
//! moves) until it looks free, and then tries again. The test before the test-and-set is
//! Rudolph and Segall's (ISCA 1984); that losers back off, so that a release is not
//! answered by all waiters at once, is Anderson's (IEEE TPDS 1990, section III).
//!
//! Where we depart: the very first try does not read first. On a line that is not in this
//! core's cache a read would fetch it shared, and the exchange would then ask for it
//! again, exclusively; a free lock would cost two misses. And it is a compare-and-exchange
//! where the papers swap, so that a loser stores nothing.
//!
//! Nothing is fair about it: the thread that released the lock has its line and often
//! wins it again. That is why it is fast, and why a waiter may starve.

use crate::lock::{Algorithm, Lock};
use crate::session::sealed::Sealed;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::hint;

/// A value behind a test-and-test-and-set lock with exponential back-off.
///
/// ```
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::Ttas::new(vec![1]);
/// assert_eq!(lock.session().apply(|v| { v.push(2); v.len() }), 2);
/// ```
pub type Ttas<T> = Lock<TtasWord, T>;

/// The lock word of [`Ttas`].
#[derive(Debug, Default)]
pub struct TtasWord {
    held: AtomicBool,
}

impl Sealed for TtasWord {}

// SAFETY: only an exchange that finds `false` enters, and it leaves `true` until the
// release; the exchange's Acquire pairs with the release's Release.
unsafe impl Algorithm for TtasWord {
    type Acquisition = ();

    const WAIT: &'static str = "waiting for a `Ttas` lock";

    #[inline(always)]
    unsafe fn acquire(&self, _acquisition: &()) {
        if !self.try_enter() {
            self.acquire_contended();
        }
    }

    #[inline(always)]
    unsafe fn try_acquire(&self, _acquisition: &()) -> bool {
        self.try_enter()
    }

    #[inline(always)]
    unsafe fn release(&self, _acquisition: &()) {
        // Release: pairs with the Acquire in `try_enter`; publishes the section.
        self.held.store(false, Ordering::Release);
    }
}

impl TtasWord {
    #[inline(always)]
    fn try_enter(&self) -> bool {
        // Acquire: pairs with the Release in `release`; this thread sees what the holder
        // before it did. Relaxed: a loser has read nothing that counts.
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn acquire_contended(&self) {
        let mut backoff = Backoff::new();
        loop {
            backoff.wait();
            hint::in_vain(backoff.yields());
            // Relaxed: only a hint that an exchange may succeed.
            if !self.held.load(Ordering::Relaxed) && self.try_enter() {
                return;
            }
        }
    }
}
