//! The mutex, and the point after a lock was released.

use ::std::fmt;
use ::std::ops::{Deref, DerefMut};
use ::std::panic::Location;
use ::std::sync::{self, LockResult, PoisonError, TryLockError, TryLockResult};
use turns::Kind;

/// A point that is passed when it is dropped. The guards have it as their last field, so the lock
/// is already free.
#[derive(Debug)]
pub(crate) struct Released {
    pub(crate) place: &'static Location<'static>,
    pub(crate) address: usize,
}

impl Drop for Released {
    fn drop(&mut self) {
        turns::point(Kind::After, self.place, self.address);
    }
}

/// Puts a guard into one with points, poisoned or not.
pub(crate) fn guarded<G, H>(result: LockResult<G>, guard: impl FnOnce(G) -> H) -> LockResult<H> {
    match result {
        Ok(inner) => Ok(guard(inner)),
        Err(poisoned) => Err(PoisonError::new(guard(poisoned.into_inner()))),
    }
}

/// Returns the result of an attempt, or `None` if another thread has the lock.
pub(crate) fn tried<G>(result: TryLockResult<G>) -> Option<LockResult<G>> {
    match result {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Puts the guard of an attempt into one with points.
pub(crate) fn try_guarded<G, H>(
    result: TryLockResult<G>,
    guard: impl FnOnce(G) -> H,
) -> TryLockResult<H> {
    match tried(result) {
        Some(result) => guarded(result, guard).map_err(TryLockError::Poisoned),
        None => Err(TryLockError::WouldBlock),
    }
}

/// `std::sync::Mutex` with points.
pub struct Mutex<T: ?Sized> {
    inner: sync::Mutex<T>,
}

/// The guard of a [`Mutex`].
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized + 'a> {
    pub(crate) inner: sync::MutexGuard<'a, T>,
    pub(crate) released: Released,
}

impl<T> Mutex<T> {
    /// Makes a mutex.
    pub const fn new(value: T) -> Self {
        Self {
            inner: sync::Mutex::new(value),
        }
    }

    /// Returns the value.
    ///
    /// # Errors
    /// The value of a poisoned mutex.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    fn address(&self) -> usize {
        (&raw const self.inner).cast::<()>() as usize
    }

    fn guard<'a>(
        &self,
        place: &'static Location<'static>,
    ) -> impl FnOnce(sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> + use<'a, T> {
        let released = Released {
            place,
            address: self.address(),
        };
        move |inner| MutexGuard { inner, released }
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// The guard of a poisoned mutex.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let place = Location::caller();
        let attempt = || tried(self.inner.try_lock());
        let result = turns::acquire(place, self.address(), attempt, || self.inner.lock());
        guarded(result, self.guard(place))
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// The mutex is locked, or poisoned.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let place = Location::caller();
        turns::point(Kind::Before, place, self.address());
        try_guarded(self.inner.try_lock(), self.guard(place))
    }

    /// Whether a thread has panicked while it had the lock.
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a thread has panicked.
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// Returns the value; no lock is needed.
    ///
    /// # Errors
    /// The value of a poisoned mutex.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
