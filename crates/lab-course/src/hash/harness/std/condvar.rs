//! The condition variable.

use crate::mutex::{MutexGuard, guarded};
use ::std::sync::{self, LockResult, PoisonError, WaitTimeoutResult};
use ::std::time::Duration;

/// `std::sync::Condvar` for the mutex with points.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: sync::Condvar,
}

impl Condvar {
    /// Makes a condition variable.
    pub const fn new() -> Self {
        Self {
            inner: sync::Condvar::new(),
        }
    }

    /// Releases the lock, waits, and takes the lock again.
    ///
    /// # Errors
    /// The guard of a poisoned mutex.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let MutexGuard { inner, released } = guard;
        let result = turns::away(|| self.inner.wait(inner));
        guarded(result, |inner| MutexGuard { inner, released })
    }

    /// Waits while a condition holds.
    ///
    /// # Errors
    /// The guard of a poisoned mutex.
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut *guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits for a time at most.
    ///
    /// # Errors
    /// The guard of a poisoned mutex.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let MutexGuard { inner, released } = guard;
        let result = turns::away(|| self.inner.wait_timeout(inner, time));
        let both = |(inner, result)| (MutexGuard { inner, released }, result);
        match result {
            Ok(inner) => Ok(both(inner)),
            Err(poisoned) => Err(PoisonError::new(both(poisoned.into_inner()))),
        }
    }

    /// Waits while a condition holds, for a time at most.
    ///
    /// # Errors
    /// The guard of a poisoned mutex.
    pub fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let MutexGuard { inner, released } = guard;
        let result = turns::away(|| self.inner.wait_timeout_while(inner, time, condition));
        let both = |(inner, result)| (MutexGuard { inner, released }, result);
        match result {
            Ok(inner) => Ok(both(inner)),
            Err(poisoned) => Err(PoisonError::new(both(poisoned.into_inner()))),
        }
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}
