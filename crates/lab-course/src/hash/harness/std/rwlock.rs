//! The lock of readers and writers.

use crate::mutex::{Released, guarded, tried, try_guarded};
use ::std::fmt;
use ::std::ops::{Deref, DerefMut};
use ::std::panic::Location;
use ::std::sync::{self, LockResult, TryLockResult};
use turns::Kind;

/// `std::sync::RwLock` with points.
pub struct RwLock<T: ?Sized> {
    inner: sync::RwLock<T>,
}

/// The guard of a reader.
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockReadGuard<'a, T: ?Sized + 'a> {
    inner: sync::RwLockReadGuard<'a, T>,
    #[allow(dead_code, reason = "it acts when it is dropped")]
    released: Released,
}

/// The guard of a writer.
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockWriteGuard<'a, T: ?Sized + 'a> {
    inner: sync::RwLockWriteGuard<'a, T>,
    #[allow(dead_code, reason = "it acts when it is dropped")]
    released: Released,
}

impl<T> RwLock<T> {
    /// Makes a lock.
    pub const fn new(value: T) -> Self {
        Self {
            inner: sync::RwLock::new(value),
        }
    }

    /// Returns the value.
    ///
    /// # Errors
    /// The value of a poisoned lock.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    fn address(&self) -> usize {
        (&raw const self.inner).cast::<()>() as usize
    }

    fn released(&self, place: &'static Location<'static>) -> Released {
        let address = self.address();
        Released { place, address }
    }

    /// Takes the lock to read.
    ///
    /// # Errors
    /// The guard of a poisoned lock.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let place = Location::caller();
        let attempt = || tried(self.inner.try_read());
        let result = turns::acquire(place, self.address(), attempt, || self.inner.read());
        let released = self.released(place);
        guarded(result, |inner| RwLockReadGuard { inner, released })
    }

    /// Takes the lock to read, if no writer has it.
    ///
    /// # Errors
    /// The lock is taken, or poisoned.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let place = Location::caller();
        turns::point(Kind::Before, place, self.address());
        let released = || self.released(place);
        try_guarded(self.inner.try_read(), |inner| RwLockReadGuard {
            inner,
            released: released(),
        })
    }

    /// Takes the lock to write.
    ///
    /// # Errors
    /// The guard of a poisoned lock.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let place = Location::caller();
        let attempt = || tried(self.inner.try_write());
        let result = turns::acquire(place, self.address(), attempt, || self.inner.write());
        let released = self.released(place);
        guarded(result, |inner| RwLockWriteGuard { inner, released })
    }

    /// Takes the lock to write, if it is free.
    ///
    /// # Errors
    /// The lock is taken, or poisoned.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let place = Location::caller();
        turns::point(Kind::Before, place, self.address());
        let released = || self.released(place);
        try_guarded(self.inner.try_write(), |inner| RwLockWriteGuard {
            inner,
            released: released(),
        })
    }

    /// Whether a writer has panicked.
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a writer has panicked.
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// Returns the value; no lock is needed.
    ///
    /// # Errors
    /// The value of a poisoned lock.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Makes a writer a reader; no other writer comes between.
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        let Self { inner, released } = guard;
        RwLockReadGuard {
            inner: sync::RwLockWriteGuard::downgrade(inner),
            released,
        }
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

macro_rules! guard {
    ($($guard:ident)*) => {
        $(impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.inner
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        })*
    };
}

guard! { RwLockReadGuard RwLockWriteGuard }

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
