//! The test-and-set lock: a waiter exchanges "free" for "held" in the lock word until that succeeds.
//!
//! The oldest of the spin locks, and here for comparison (Anderson, IEEE TPDS 1990, section II). Every
//! try of a waiter asks for the lock's line as a writer. So the line goes from waiter to waiter, and
//! the holder waits for it when it leaves. [`Ttas`](crate::Ttas) only reads while the lock is held:
//! use that.
//!
//! The exchange compares, as in `Ttas`: a loser stores nothing, but fetches the line as a writer all
//! the same. There is no back-off between tries. But a waiter for whom spinning cannot help any more
//! yields its CPU between them, as with all our spin locks, since the holder may need it.
//!
//! The lock is not fair: the thread that released it has its line and often wins it again, and a
//! waiter may starve.

use crate::lock::{Algorithm, Lock};
use crate::session::sealed::Sealed;
use crate::turn::Turn;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};

/// A value behind a plain test-and-set lock.
///
/// **Fairness.** None: a waiter may starve.
///
/// ```
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::Tas::new(1);
/// assert_eq!(lock.session().apply(|n| { *n += 1; *n }), 2);
/// ```
pub type Tas<T> = Lock<TasWord, T>;

/// The lock word of [`Tas`]: whether a thread holds the lock.
#[derive(Debug, Default)]
pub struct TasWord {
    held: AtomicBool,
}

impl Sealed for TasWord {}

// SAFETY: only an exchange that returns `false` enters, and it leaves `true` until the release. The
// exchange's Acquire pairs with the release's Release.
unsafe impl Algorithm for TasWord {
    type Acquisition = ();

    const WAIT: &'static str = "waiting for a `Tas` lock";

    #[inline(always)]
    unsafe fn acquire(&self, _acquisition: &()) {
        let mut turn = Turn::new();
        while !self.test_and_set() {
            turn.wait(1);
        }
    }

    #[inline(always)]
    unsafe fn try_acquire(&self, _acquisition: &()) -> bool {
        self.test_and_set()
    }

    #[inline(always)]
    unsafe fn release(&self, _acquisition: &()) {
        // Release: pairs with the Acquire in `test_and_set`; publishes the section.
        self.held.store(false, Ordering::Release);
    }
}

impl TasWord {
    /// Sets the word. Returns whether it was not set before.
    #[inline(always)]
    fn test_and_set(&self) -> bool {
        // Acquire: pairs with the Release in `release`; this thread sees what the holder before it
        // did. Relaxed: a loser has read nothing that counts.
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}
