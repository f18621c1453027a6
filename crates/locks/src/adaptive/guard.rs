//! The guard of a section that stays on its thread.

use super::Adaptive;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::thread;

/// The right to use the value of an [`Adaptive`] lock. Dropping it leaves the lock, and poisons it
/// if this thread panics meanwhile.
///
/// It may be held over any wait, also on a fibre. It stays on its thread:
/// ```compile_fail,E0277
/// let lock = corelay_locks::Adaptive::new(0);
/// let guard = lock.lock().unwrap();
/// std::thread::scope(|s| {
///     s.spawn(move || drop(guard));
/// });
/// ```
#[must_use = "the lock is left when the guard is dropped"]
pub struct AdaptiveGuard<'a, T: ?Sized> {
    lock: &'a Adaptive<T>,
    /// Whether the thread was panicking already when it entered.
    was_panicking: bool,
    /// Neither `Send` nor, of itself, `Sync`.
    on_its_thread: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared references to the value only.
unsafe impl<T: ?Sized + Sync> Sync for AdaptiveGuard<'_, T> {}

impl<'a, T: ?Sized> AdaptiveGuard<'a, T> {
    /// The guard of a thread that has entered.
    ///
    /// # Safety
    /// The calling thread has entered the lock, and has no other guard of it.
    #[inline(always)]
    pub(super) unsafe fn new(lock: &'a Adaptive<T>) -> Self {
        Self {
            lock,
            was_panicking: thread::panicking(),
            on_its_thread: PhantomData,
        }
    }
}

impl<T: ?Sized> Deref for AdaptiveGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: while the guard lives, its thread holds the lock, so nobody else uses the value.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized> DerefMut for AdaptiveGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: while the guard lives, its thread holds the lock, and `&mut self` excludes its
        // other borrows.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized> Drop for AdaptiveGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.was_panicking && thread::panicking() {
            self.lock.word.poison();
        }
        // SAFETY: this thread holds the lock, as `new`'s caller promised, and leaves it once.
        unsafe { self.lock.word.release() };
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for AdaptiveGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for AdaptiveGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
