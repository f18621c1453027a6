//! A lock for some instructions: what the waiters of one thing are listed under.
//!
//! Nothing that waits, unwinds or calls what a user wrote runs under it.

use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::hint;

/// The bit of a [`LockWord`] that is the lock.
pub(crate) const LOCKED: u64 = 1;

/// A word with a lock in it: who holds that has the other bits to itself.
///
/// Unlocking is the last touch of the word, so what it says may let somebody else free it.
pub(crate) struct LockWord(AtomicU64);

impl LockWord {
    pub(crate) fn new(word: u64) -> Self {
        Self(AtomicU64::new(word))
    }

    /// For steps that need no lock, where it is free.
    #[inline(always)]
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.0
    }

    /// Locks it; the word without the lock.
    #[inline]
    pub(crate) fn lock(&self) -> u64 {
        let mut backoff = Backoff::new();
        let mut times = 0;
        loop {
            // Relaxed: checked by the exchange.
            let word = self.0.load(Ordering::Relaxed);
            // Acquire: pairs with the Release of `unlock`: what was done under the lock before.
            if word & LOCKED == 0
                && self
                    .0
                    .compare_exchange_weak(
                        word,
                        word | LOCKED,
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                return word;
            }
            times += 1;
            hint::in_vain(times);
            backoff.wait();
        }
    }

    /// Unlocks it, and says what the word is then.
    #[inline]
    pub(crate) fn unlock(&self, word: u64) {
        // Release: pairs with the Acquire of `lock`. Nobody else changes a locked word.
        self.0.store(word, Ordering::Release);
    }
}

/// A value under such a lock.
pub(crate) struct Spin<S> {
    word: LockWord,
    value: UnsafeCell<S>,
}

// SAFETY: one at a time has the value.
unsafe impl<S: Send> Sync for Spin<S> {}
// SAFETY: as a cell's.
unsafe impl<S: Send> Send for Spin<S> {}

impl<S> Spin<S> {
    pub(crate) fn new(value: S) -> Self {
        Self {
            word: LockWord::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `f` with the value. Some instructions, and no panic.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        self.word.lock();
        // SAFETY: locked.
        let result = self.value.with_mut(|value| f(unsafe { &mut *value }));
        self.word.unlock(0);
        result
    }
}
