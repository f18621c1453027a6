//! Combining: a waiter hands its closure over, and the thread that holds the lock runs it.
//!
//! [`Combining`] pairs an algorithm's word with a value and a limit. An algorithm is a [`Combiner`],
//! in a file of its own. It sees [requests](operation), which are addresses of closures in the
//! frames of their callers, and the queues wait by
//! [signals](signal).

pub(crate) mod asleep;
mod operation;
mod session;
pub(crate) mod signal;

pub use session::CombiningSession;

use crate::session::sealed::Sealed;
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::{CachePadded, Shared};
pub(crate) use operation::{Operation, Request, name_of};
use std::fmt;

/// Decides which thread runs the next request. Implemented by this crate's words alone.
///
/// # Safety
/// * Each request is run exactly once, before the call that brought it returns.
/// * No two requests of the same word run at a time. Everything before the end of one happens
///   before everything in the next.
/// * What a request's run has done happens before the return of the call that brought it.
pub unsafe trait Combiner: Default + Send + Sync + Sealed {
    /// What the algorithm remembers of a session.
    #[doc(hidden)]
    type Seat: Default;

    /// The name of the wait, such as "waiting for a `CcSynch` lock". The panic in a place where
    /// nothing may wait shows it.
    #[doc(hidden)]
    const WAIT: &'static str;

    /// Has `request` run, here or on another thread, and returns when it has been. While it runs
    /// requests, this thread starts at most `limit` of them before it looks for a thread that spins to
    /// go on, and at most `PATIENCE` times as many before it looks for one that sleeps.
    ///
    /// # Safety
    /// The request's operation stays where it is until this returns, and nobody has run it. The seat
    /// is of a session with this word, whose requests come one after another.
    #[doc(hidden)]
    #[track_caller]
    unsafe fn apply(&self, seat: &mut Self::Seat, request: Request, limit: u32);

    /// Does as [`apply`](Self::apply) does, and returns true, if no other request runs or waits.
    /// Otherwise returns false without having joined the queue.
    ///
    /// # Safety
    /// As for [`apply`](Self::apply).
    #[doc(hidden)]
    unsafe fn try_apply(&self, seat: &mut Self::Seat, request: Request, limit: u32) -> bool;
}

/// The limit of [`Combining::new`]: 64 requests. With sections of some 10 ns a thread combines for
/// about a microsecond, so that its own caller does not wait long, and a change of the combiner,
/// which costs a transfer of a cache line or two, is rare beside 64 requests.
const LIMIT: u32 = 64;

/// A value behind a combining lock of algorithm `C`: see [`CcSynch`](crate::CcSynch),
/// [`DsmSynch`](crate::DsmSynch) and [`FlatCombining`](crate::FlatCombining).
///
/// The thread that holds the lock, the *combiner*, also runs the closures of the threads that wait.
/// So the value stays in the combiner's cache, and a closure costs the transfer of its frame instead
/// of a hand-over of the lock.
///
/// # What a closure may rely on
/// * **Its thread is any thread** that uses the lock: closure and result are `Send`. Thread-locals
///   are those of the combiner, and some may be gone if that thread is ending. The stack is the
///   combiner's, too: if fibres use the lock, it may be as small as theirs.
/// * **It may not wait.** A closure runs under [`NoSwitch`](corelay_sync::wait::NoSwitch): a wait
///   inside panics and names the closure, since others wait behind it. A free lock can still be
///   entered, so different locks nest as long as nobody else holds the inner one. An `apply` on the
///   *same* lock inside is always refused, also in a destructor that the closure runs. A request to a
///   trustee, made by a combiner that is a plain thread, is not refused: it waits while the lock is
///   held.
/// * **Its panic** reaches the caller whose closure it was, and nobody else: the combiner goes on,
///   even while it unwinds itself. The value is not poisoned. The payload is dropped by that caller,
///   so its destructor may use the lock. The panic's message names the combiner's thread.
///
/// # The limit
/// A combiner works for others while its own caller waits. After `limit` closures in a row
/// ([`with_limit`](Self::with_limit), 64 by default) it stops as soon as a spinning waiter can go on,
/// and after four times as many as soon as a sleeping one can. A larger limit moves the value and the
/// lock less often between caches; a smaller one bounds how long one call can take.
///
/// # How a thread waits
/// It spins for about a microsecond. Then it waits by the [seam](corelay_sync::wait): a thread yields
/// and sleeps, a fibre is suspended. The combiner runs the closure of such a waiter, even beyond the
/// limit. After four times the limit it wakes the next one that is a thread, to combine in its place.
///
/// *The exception:* a fibre that is suspended is not made to combine, nor is a thread whose wait may
/// run callbacks, which is one that is a client of trustees. For a callback may wait for the same lock,
/// and the wait below it goes on only afterwards. So if all the others are such waiters and sleep, a
/// combiner goes on as long as they keep coming.
///
/// # Layout
/// The word and the value have 128-byte blocks of their own: threads that arrive write the word
/// while the combiner works on the value.
#[repr(C)]
pub struct Combining<C, T> {
    combiner: CachePadded<C>,
    value: CachePadded<Limited<T>>,
}

/// The value, and beside it the limit, which only combiners read.
struct Limited<T> {
    limit: u32,
    value: UnsafeCell<T>,
}

// SAFETY: one request at a time reaches the value (`Combiner`'s second duty). It may run on any
// thread, so the value has to be `Send` and need not be `Sync`.
unsafe impl<C: Combiner, T: Send> Sync for Combining<C, T> {}

impl<C: Combiner, T> Combining<C, T> {
    /// Wraps `value`; the lock is free. A thread combines up to 64 closures in a row.
    ///
    /// ```
    /// assert_eq!(corelay_locks::CcSynch::new(5).into_inner(), 5);
    /// ```
    pub fn new(value: T) -> Self {
        Self::with_limit(value, LIMIT)
    }

    /// Wraps `value`; the lock is free. A thread that combines runs up to `limit` closures in a row,
    /// its own included, and then makes a spinning waiter the next combiner; after four times as many
    /// a sleeping one. With a limit of 1 each thread runs its own closure, unless it sleeps.
    ///
    /// ```
    /// use corelay_sync::{Session, Shared};
    ///
    /// let lock = corelay_locks::CcSynch::with_limit(5, 1);
    /// assert_eq!(lock.session().apply(|n| *n + 1), 6);
    /// ```
    ///
    /// # Panics
    /// If `limit` is 0.
    pub fn with_limit(value: T, limit: u32) -> Self {
        assert!(
            limit > 0,
            "corelay: a combining limit of 0 runs no closure; give at least 1"
        );
        let value = UnsafeCell::new(value);
        Self {
            combiner: CachePadded::default(),
            value: CachePadded::new(Limited { limit, value }),
        }
    }

    /// Takes the value out: nobody else can hold the lock now.
    pub fn into_inner(self) -> T {
        self.value.into_inner().value.into_inner()
    }

    /// The value, without locking: `&mut self` proves that nobody else has the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.value.with_mut(|value| {
            // SAFETY: `&mut self` excludes every session, and the result borrows from it.
            unsafe { &mut *value }
        })
    }
}

impl<C: Combiner, T> Shared for Combining<C, T> {
    type Value = T;
    type Session<'a>
        = CombiningSession<'a, C, T>
    where
        Self: 'a;

    #[inline(always)]
    fn session(&self) -> CombiningSession<'_, C, T> {
        CombiningSession::new(self)
    }
}

impl<C: Combiner, T: Default> Default for Combining<C, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<C, T> fmt::Debug for Combining<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Combining").finish_non_exhaustive()
    }
}
