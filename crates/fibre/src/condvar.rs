//! A condition: a wait until another fibre or thread says that a mutex's value has changed.
//!
//! A waiter enters the queue before it leaves the mutex, and does both after the fibre has stopped.
//! So a notifier that has changed the value under the mutex finds it. By the time it waits for the
//! mutex again, it is in no queue any more, and that wait is not interrupted: a notification is not
//! lost once a waiter has got it, and the guard always comes back.

use crate::mutex::{Mutex, MutexGuard};
use crate::spin::Spin;
use crate::wait::{Interrupted, Limit, block_within, unwind};
use crate::wait_queue::{Node, WaitQueue};
use std::cell::Cell;
use std::fmt;
use std::time::Instant;

/// A condition variable: a wait with the guard of a [`Mutex`], which is left meanwhile.
///
/// Waiters are notified first come, first served. A wait ends by a notification only, never by
/// itself. But the value may have changed again before the waiter gets the mutex back, so check the
/// value, or call [`wait_while`](Self::wait_while).
///
/// ```
/// use corelay_fibre::{Cluster, Condvar, Mutex};
/// use std::sync::Arc;
///
/// // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
/// let cluster = unsafe { Cluster::start(2) }?;
/// let door = Arc::new((Mutex::new(false), Condvar::new()));
/// let guest = cluster.spawn({
///     let door = Arc::clone(&door);
///     move || {
///         let (is_open, opened) = &*door;
///         *opened.wait_while(is_open.lock(), |is_open| !*is_open)
///     }
/// });
/// *door.0.lock() = true;
/// door.1.notify_all();
/// assert!(guest.join().unwrap());
/// # Ok::<(), corelay_fibre::StartError>(())
/// ```
pub struct Condvar {
    queue: Spin<WaitQueue<()>>,
}

/// The mutex of a waiter, which holds it until the wait has been published. Dropping this leaves
/// the mutex if that has not happened.
struct Lent<'a, T> {
    mutex: &'a Mutex<T>,
    has_left: Cell<bool>,
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if !self.has_left.get() {
            self.mutex.exit();
        }
    }
}

impl Condvar {
    /// A condition that nobody waits for.
    pub fn new() -> Self {
        Self {
            queue: Spin::new(WaitQueue::new()),
        }
    }

    /// Leaves the mutex, waits for a notification, and takes the mutex again.
    ///
    /// If the fibre is cancelled it unwinds, and the mutex is left.
    ///
    /// # Panics
    /// In a place where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
    #[track_caller]
    #[inline(always)]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let (lent, ended) = self.wait_within("Condvar::wait", Limit::None, guard);
        if let Err(why) = ended {
            drop(lent);
            unwind(why);
        }
        Self::guard_of(lent, "Condvar::wait")
    }

    /// Waits while `condition` is true of the value.
    ///
    /// # Panics
    /// As for [`wait`](Self::wait).
    #[track_caller]
    #[inline(always)]
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// Waits as [`wait`](Self::wait) does, until `deadline` at most or until the fibre is
    /// cancelled; the second result says how the wait ended. In a destructor while the fibre
    /// unwinds it does not wait. The guard comes back in any case, however long others hold the
    /// mutex.
    ///
    /// ```
    /// use corelay_fibre::{Condvar, Interrupted, Mutex};
    /// use std::time::{Duration, Instant};
    ///
    /// let mutex = Mutex::new(1);
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// let (guard, ended) = Condvar::new().wait_until(mutex.lock(), soon);
    /// assert_eq!((*guard, ended), (1, Err(Interrupted::TimedOut)));
    /// ```
    ///
    /// # Panics
    /// As for [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Instant,
    ) -> (MutexGuard<'a, T>, Result<(), Interrupted>) {
        let call = "Condvar::wait_until";
        let (lent, ended) = self.wait_within(call, Limit::Until(deadline), guard);
        (Self::guard_of(lent, call), ended)
    }

    #[track_caller]
    #[inline(always)]
    fn wait_within<'a, T>(
        &self,
        call: &'static str,
        limit: Limit,
        guard: MutexGuard<'a, T>,
    ) -> (Lent<'a, T>, Result<(), Interrupted>) {
        let lent = Lent {
            mutex: guard.into_mutex(),
            has_left: Cell::new(false),
        };
        let node = Node::new(());
        let queue = &self.queue;
        // SAFETY: this condition alone enqueues the node.
        let remove = |_| queue.with(|queue| unsafe { queue.remove(&node) });
        let ended = block_within(limit, call, &remove, |waiter| {
            lent.has_left.set(true);
            // Read before the node is in the queue: then the waiter may go on, and its frame end.
            let mutex = lent.mutex;
            // SAFETY: the node is new, and its frame waits until it has been taken out.
            queue.with(|queue| unsafe { queue.push(&node, waiter) });
            // The mutex lives on: the waiter does not go on before it has the mutex.
            mutex.exit();
            None
        });
        (lent, ended)
    }

    #[track_caller]
    #[inline(always)]
    fn guard_of<'a, T>(lent: Lent<'a, T>, call: &'static str) -> MutexGuard<'a, T> {
        let mutex = lent.mutex;
        if lent.has_left.replace(true) {
            mutex.lock_surely(call)
        } else {
            MutexGuard::of_held(mutex)
        }
    }

    /// Ends the wait of the fibre or thread that has waited longest, if one waits.
    pub fn notify_one(&self) {
        if let Some(first) = self.queue.with(WaitQueue::pop) {
            first.wake();
        }
    }

    /// Ends the waits of all that wait now.
    pub fn notify_all(&self) {
        self.queue.with(WaitQueue::take_all).wake();
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
