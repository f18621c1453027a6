//! One session type for all locks.
//!
//! A lock's session remembers nothing but the lock: whatever a waiter needs (an MCS node, a ticket)
//! lies in the frame of `apply` or in a pool of its thread. So opening a session is free, however
//! many locks there are.

#![forbid(unsafe_code)]

use corelay_sync::Session;
use std::fmt;
use std::marker::PhantomData;

/// The interface that the locks of this crate share: a value that one closure at a time gets.
///
/// Callers use [`Shared`](corelay_sync::Shared) and [`Session`]; this trait is only how
/// [`LockSession`] reaches its lock, and cannot be implemented elsewhere.
pub trait Exclusive: sealed::Sealed {
    /// The shared value.
    type Value;

    /// Runs `f` with the lock held; releases the lock when `f` returns or panics. In a place where
    /// nothing may wait, panics instead of waiting.
    #[doc(hidden)]
    fn exclusively<R: Send>(&self, f: impl FnOnce(&mut Self::Value) -> R + Send) -> R;
}

pub(crate) mod sealed {
    /// Keeps [`Exclusive`](super::Exclusive) inside this crate.
    pub trait Sealed {}
}

/// The session of a thread with a lock, by which the thread runs closures on the lock's value. Like
/// every session it stays on the thread that opened it, although this one keeps nothing of that
/// thread.
///
/// Nesting in one session does not compile:
/// ```compile_fail,E0499
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::Ttas::new(0);
/// let mut session = lock.session();
/// session.apply(|_| session.apply(|n| *n += 1));
/// ```
/// nor does sending a session to another thread:
/// ```compile_fail,E0277
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::Ttas::new(0);
/// let mut session = lock.session();
/// std::thread::scope(|s| {
///     s.spawn(move || session.apply(|n| *n += 1));
/// });
/// ```
/// nor does taking a reference to the value out of the closure:
/// ```compile_fail
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::Ttas::new(0);
/// let escaped: &mut i32 = lock.session().apply(|n| n);
/// ```
/// nor a lock around a value that must stay on its thread:
/// ```compile_fail,E0277
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::Ttas::new(std::rc::Rc::new(0));
/// std::thread::scope(|s| {
///     s.spawn(|| lock.session().apply(|_| ()));
/// });
/// ```
pub struct LockSession<'a, L> {
    lock: &'a L,
    /// Neither `Send` nor `Sync`.
    on_its_thread: PhantomData<*const ()>,
}

impl<'a, L> LockSession<'a, L> {
    #[inline(always)]
    pub(crate) fn new(lock: &'a L) -> Self {
        Self {
            lock,
            on_its_thread: PhantomData,
        }
    }
}

impl<L: Exclusive> Session for LockSession<'_, L> {
    type Value = L::Value;

    /// # Panics
    /// With the panic of `f`. In a place where nothing may wait (inside a delegated closure), if
    /// the lock is taken: the message names this call's place and what runs.
    #[inline]
    #[track_caller]
    fn apply<R: Send, F: FnOnce(&mut L::Value) -> R + Send>(&mut self, f: F) -> R {
        self.lock.exclusively(f)
    }
}

impl<L> fmt::Debug for LockSession<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockSession").finish_non_exhaustive()
    }
}
