//! The lock of the standard library, `std::sync::Mutex`.
//!
//! A closure that panics poisons a `std` mutex. Here the mark is ignored: the next `apply` gets the
//! value as the panic left it. So it is with every other lock of this crate, and swapping locks
//! does not change what a program does. A program that wants the mark uses `std::sync::Mutex`
//! itself.

#![forbid(unsafe_code)]

use crate::session::sealed::Sealed;
use crate::session::{Exclusive, LockSession};
use corelay_sync::Shared;
use corelay_sync::facade::sync::{Mutex, MutexGuard};
use corelay_sync::wait::NoSwitch;
use std::fmt;
use std::sync::{PoisonError, TryLockError};

/// A value behind a `std::sync::Mutex`, on lines of its own as [`Lock`](crate::Lock) is.
///
/// ```
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::StdMutex::new([0; 7]);
/// lock.session().apply(|a| a[3] = 4);
/// assert_eq!(lock.into_inner(), [0, 0, 0, 4, 0, 0, 0]);
/// assert_eq!(size_of::<corelay_locks::StdMutex<[u64; 7]>>(), 64);
/// ```
#[derive(Default)]
#[repr(align(64))]
pub struct StdMutex<T> {
    mutex: Mutex<T>,
}

impl<T> StdMutex<T> {
    /// Wraps `value`; the lock is free.
    pub fn new(value: T) -> Self {
        Self {
            mutex: Mutex::new(value),
        }
    }

    /// Takes the value out: nobody else can hold the lock now.
    pub fn into_inner(self) -> T {
        self.mutex
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, without locking: `&mut self` proves that nobody else has the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> StdMutex<T> {
    #[inline]
    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, T> {
        if NoSwitch::is_active() {
            return self.lock_or_refuse();
        }
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks, in a place where nothing may wait, if the lock is free. Otherwise panics.
    #[cold]
    #[track_caller]
    fn lock_or_refuse(&self) -> MutexGuard<'_, T> {
        match self.mutex.try_lock() {
            Ok(value) => return value,
            Err(TryLockError::Poisoned(value)) => return value.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
        NoSwitch::refuse("waiting for a `StdMutex`");
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Sealed for StdMutex<T> {}

impl<T> Exclusive for StdMutex<T> {
    type Value = T;

    #[inline]
    #[track_caller]
    fn exclusively<R: Send>(&self, f: impl FnOnce(&mut T) -> R + Send) -> R {
        f(&mut self.lock())
    }
}

impl<T> Shared for StdMutex<T> {
    type Value = T;
    type Session<'a>
        = LockSession<'a, Self>
    where
        Self: 'a;

    #[inline(always)]
    fn session(&self) -> LockSession<'_, Self> {
        LockSession::new(self)
    }
}

impl<T> fmt::Debug for StdMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdMutex").finish_non_exhaustive()
    }
}
