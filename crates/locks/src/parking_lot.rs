//! The lock of the crate `parking_lot`.
//!
//! It takes one byte beside the value. Waiters spin briefly, then sleep in a table shared by the
//! whole process. A panic releases it without a mark, as with all locks of this crate.

#![forbid(unsafe_code)]

use crate::session::sealed::Sealed;
use crate::session::{Exclusive, LockSession};
use ::parking_lot::{Mutex, MutexGuard};
use corelay_sync::Shared;
use corelay_sync::wait::NoSwitch;
use std::fmt;

/// A value behind a `parking_lot::Mutex`, on lines of its own as [`Lock`](crate::Lock) is.
///
/// ```
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::ParkingLot::new(Some(1));
/// assert_eq!(lock.session().apply(Option::take), Some(1));
/// assert_eq!(size_of::<corelay_locks::ParkingLot<[u64; 7]>>(), 64);
/// ```
#[derive(Default)]
#[repr(align(64))]
pub struct ParkingLot<T> {
    mutex: Mutex<T>,
}

impl<T> ParkingLot<T> {
    /// Wraps `value`; the lock is free.
    pub fn new(value: T) -> Self {
        Self {
            mutex: Mutex::new(value),
        }
    }

    /// Takes the value out: nobody else can hold the lock now.
    pub fn into_inner(self) -> T {
        self.mutex.into_inner()
    }

    /// The value, without locking: `&mut self` proves that nobody else has the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut()
    }
}

impl<T> ParkingLot<T> {
    #[inline]
    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, T> {
        if NoSwitch::is_active() {
            return self.lock_or_refuse();
        }
        self.mutex.lock()
    }

    /// Locks, in a place where nothing may wait, if the lock is free. Otherwise panics.
    #[cold]
    #[track_caller]
    fn lock_or_refuse(&self) -> MutexGuard<'_, T> {
        if let Some(value) = self.mutex.try_lock() {
            return value;
        }
        NoSwitch::refuse("waiting for a `ParkingLot`");
        self.mutex.lock()
    }
}

impl<T> Sealed for ParkingLot<T> {}

impl<T> Exclusive for ParkingLot<T> {
    type Value = T;

    #[inline]
    #[track_caller]
    fn exclusively<R: Send>(&self, f: impl FnOnce(&mut T) -> R + Send) -> R {
        f(&mut self.lock())
    }
}

impl<T> Shared for ParkingLot<T> {
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

impl<T> fmt::Debug for ParkingLot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkingLot").finish_non_exhaustive()
    }
}
