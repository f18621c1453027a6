//! The lock: a lock word, a value, and the only code that touches the value.

use crate::session::sealed::Sealed;
use crate::session::{Exclusive, LockSession};
use corelay_sync::Shared;
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::wait::NoSwitch;
use std::fmt;

/// Decides who enters next. Implemented by this crate's lock words alone.
///
/// # Safety
/// * From the return of [`acquire`](Self::acquire) to the call of
///   [`release`](Self::release) no other `acquire` of the same lock word returns.
/// * Everything before a `release` happens before everything after the next `acquire`.
/// * An algorithm does not touch an acquisition after its `release` has returned.
pub unsafe trait Algorithm: Default + Send + Sync + Sealed {
    /// The state of one acquisition: an MCS node, a ticket. It lies in the frame of `apply` from
    /// before `acquire` until after `release`.
    #[doc(hidden)]
    type Acquisition: Default;

    /// The name of the wait, such as "waiting for an `Mcs` lock". The panic in a place where
    /// nothing may wait shows it.
    #[doc(hidden)]
    const WAIT: &'static str;

    /// Waits until the caller may enter.
    ///
    /// # Safety
    /// `acquisition` is fresh from `Default`. It stays where it is, untouched by the caller, until
    /// `release(acquisition)` has returned.
    #[doc(hidden)]
    unsafe fn acquire(&self, acquisition: &Self::Acquisition);

    /// Enters, and returns true, if no thread is inside or waits. Otherwise returns false without
    /// having joined the queue.
    ///
    /// # Safety
    /// As for [`acquire`](Self::acquire). If it returns false, `acquisition` is still fresh.
    #[doc(hidden)]
    unsafe fn try_acquire(&self, acquisition: &Self::Acquisition) -> bool;

    /// Lets the next thread enter.
    ///
    /// # Safety
    /// The caller entered by `acquire(acquisition)` on this same lock word and has not released
    /// it since.
    #[doc(hidden)]
    unsafe fn release(&self, acquisition: &Self::Acquisition);
}

/// A value behind a spin lock of algorithm `A`: see [`Tas`](crate::Tas),
/// [`Ttas`](crate::Ttas), [`Ticket`](crate::Ticket), [`Mcs`](crate::Mcs) and [`Clh`](crate::Clh).
///
/// # Layout
/// The word comes first, the value follows at its natural alignment, and the whole
/// starts on a 64-byte line:
/// ```text
/// byte 0        8                                                    64
///      | word   | value, up to 56 bytes (aligned to 8 or less)        |  one line
///      | word   | padding                                             |
///      | value of 64 bytes, aligned to 64                             |  two lines
/// ```
/// So a million locks around counters take 64 MB, and each operation on a cold one takes one miss.
/// Neighbours in an array do not share a line. To separate word and value (for long sections with
/// many waiters at the word), make the value `CachePadded`.
///
/// ```
/// use corelay_locks::{Clh, Mcs, Ticket, Ttas};
/// use corelay_sync::CachePadded;
///
/// assert_eq!(size_of::<Ttas<[u64; 7]>>(), 64);
/// assert_eq!(size_of::<Ticket<[u64; 7]>>(), 64);
/// assert_eq!(size_of::<Mcs<[u64; 7]>>(), 64);
/// assert_eq!(size_of::<Clh<[u64; 7]>>(), 64);
/// assert!(size_of::<Mcs<CachePadded<u64>>>() > 64);
/// ```
// 64 bytes: the line of x86-64 and of most aarch64 machines. The 128 of `CachePadded`
// (pairs of lines are prefetched) would double the memory of millions of locks.
#[repr(C, align(64))]
pub struct Lock<A, T> {
    algorithm: A,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value (`Algorithm`'s first duty). It may be any thread,
// so the value has to be `Send` and need not be `Sync`.
unsafe impl<A: Algorithm, T: Send> Sync for Lock<A, T> {}

impl<A: Algorithm, T> Lock<A, T> {
    /// Wraps `value`; the lock is free.
    ///
    /// ```
    /// assert_eq!(corelay_locks::Ticket::new(5).into_inner(), 5);
    /// ```
    pub fn new(value: T) -> Self {
        Self {
            algorithm: A::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the value out: nobody else can hold the lock now.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// The value, without locking: `&mut self` proves that nobody else has the lock.
    ///
    /// ```
    /// let mut lock = corelay_locks::Clh::new(1);
    /// *lock.get_mut() += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.value.with_mut(|value| {
            // SAFETY: `&mut self` excludes every session, and the result borrows from it.
            unsafe { &mut *value }
        })
    }
}

/// A guard that holds the lock, so that return and unwinding alike release it.
struct Hold<'a, A: Algorithm> {
    algorithm: &'a A,
    acquisition: &'a A::Acquisition,
}

impl<'a, A: Algorithm> Hold<'a, A> {
    /// Acquires the lock. In a place where nothing may wait, panics if the lock is taken.
    ///
    /// # Safety
    /// `acquisition` is fresh, and the hold is dropped, not leaked.
    #[inline(always)]
    #[track_caller]
    unsafe fn new(algorithm: &'a A, acquisition: &'a A::Acquisition) -> Self {
        // Checked before joining the queue, for a thread cannot leave the queue any more.
        let mut entered = false;
        if NoSwitch::is_active() {
            // SAFETY: the acquisition is fresh (the caller's duty), and borrowed as long as this
            // hold lives, whose end releases it.
            entered = unsafe { algorithm.try_acquire(acquisition) };
            if !entered {
                NoSwitch::refuse(A::WAIT);
            }
        }
        if !entered {
            // SAFETY: the acquisition is fresh (the caller's duty, and a failed `try_acquire`
            // leaves it so), and borrowed as long as this hold lives, whose end releases it.
            unsafe { algorithm.acquire(acquisition) };
        }
        Self {
            algorithm,
            acquisition,
        }
    }
}

impl<A: Algorithm> Drop for Hold<'_, A> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `new` acquired this lock word with this acquisition, and `drop` runs once.
        unsafe { self.algorithm.release(self.acquisition) };
    }
}

impl<A: Algorithm, T> Sealed for Lock<A, T> {}

impl<A: Algorithm, T> Exclusive for Lock<A, T> {
    type Value = T;

    #[inline]
    #[track_caller]
    fn exclusively<R: Send>(&self, f: impl FnOnce(&mut T) -> R + Send) -> R {
        let acquisition = A::Acquisition::default();
        // SAFETY: the acquisition is fresh, and the hold is dropped below, before the acquisition
        // is.
        let hold = unsafe { Hold::new(&self.algorithm, &acquisition) };
        let result = self.value.with_mut(|value| {
            // SAFETY: the lock is held, so this is the only reference to the value; `f`
            // cannot keep it, for it must accept any lifetime.
            f(unsafe { &mut *value })
        });
        drop(hold);
        result
    }
}

impl<A: Algorithm, T> Shared for Lock<A, T> {
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

impl<A: Algorithm, T: Default> Default for Lock<A, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<A, T> fmt::Debug for Lock<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}
