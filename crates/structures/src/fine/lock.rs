//! The lock of a node, a bucket or an end of a queue: one byte.
//!
//! It is a test-and-test-and-set lock with back-off, as `corelay-locks` has it. There a lock guards
//! a value and lends it to a closure; a node's lock guards links of several nodes, so here it has a
//! guard.

use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::hint;

/// A lock without a value.
#[derive(Debug, Default)]
pub(super) struct NodeLock {
    held: AtomicBool,
}

/// Holds a lock until it is dropped.
#[must_use]
pub(super) struct NodeGuard<'a>(&'a NodeLock);

impl NodeLock {
    /// Waits until the lock is free, and takes it.
    #[inline]
    pub(super) fn lock(&self) -> NodeGuard<'_> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<NodeGuard<'_>> {
        // Acquire: pairs with the Release of the guard's drop; this thread sees what the holder
        // before it did. Relaxed: a loser has read nothing that counts.
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| NodeGuard(self))
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) -> NodeGuard<'_> {
        let mut backoff = Backoff::new();
        loop {
            backoff.wait();
            hint::in_vain(backoff.yields());
            // Relaxed: only a hint that an exchange may succeed.
            if !self.held.load(Ordering::Relaxed)
                && let Some(guard) = self.try_lock()
            {
                return guard;
            }
        }
    }
}

impl Drop for NodeGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `try_lock`; publishes the section.
        self.0.held.store(false, Ordering::Release);
    }
}

/// A value that one thread at a time reaches.
#[derive(Debug)]
pub(super) struct Locked<T> {
    lock: NodeLock,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value, the one that holds the lock. It may be any
// thread, so the value has to be `Send` and need not be `Sync`.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            lock: NodeLock::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until the lock is free, and runs `section` on the value.
    #[inline]
    pub(super) fn with<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        self.with_held(self.lock.lock(), section)
    }

    /// Runs `section` on the value if the lock is free; otherwise gives it back.
    #[inline]
    pub(super) fn try_with<R, F: FnOnce(&mut T) -> R>(&self, section: F) -> Result<R, F> {
        match self.lock.try_lock() {
            Some(held) => Ok(self.with_held(held, section)),
            None => Err(section),
        }
    }

    /// Runs `section`; `_held` is the guard of this lock, and is dropped afterwards.
    #[inline]
    fn with_held<R>(&self, _held: NodeGuard<'_>, section: impl FnOnce(&mut T) -> R) -> R {
        self.value.with_mut(|value| {
            // SAFETY: this thread holds the lock, so it has the only reference to the value; the
            // section cannot keep it, since it accepts any lifetime.
            section(unsafe { &mut *value })
        })
    }

    /// The value, without locking: `&mut self` proves that nobody else has the lock.
    pub(super) fn get_mut(&mut self) -> &mut T {
        self.value.with_mut(|value| {
            // SAFETY: `&mut self` excludes every section, and the result borrows from it.
            unsafe { &mut *value }
        })
    }
}
