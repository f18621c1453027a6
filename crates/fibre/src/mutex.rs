//! A mutex: entered in order of arrival, with some overtaking.
//!
//! One word: whether it is held, whether somebody waits, whether the first of these has been woken,
//! and the lock of the queue.
//!
//! **Who is next.** Leaving it where somebody waits lets the first go on but leaves the mutex free,
//! so whoever runs can take it meanwhile: handing it over would leave it idle until the woken fibre's
//! turn has come, and every other one would stop for that (a convoy). Who is woken and finds it held
//! goes back to the front; after [`PATIENCE`] times the mutex is handed to it. So nobody is
//! overtaken in more than so many of its turns. One at a time is woken.

use crate::spin::{LOCKED, LockWord};
use crate::wait::{Interrupted, Limit, block_within, unwind};
use crate::wait_queue::{Node, WaitQueue};
use crate::waiter::Waiter;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

const HELD: u64 = 2 * LOCKED;
const WAITED_FOR: u64 = 2 * HELD;
/// The first of the queue has been woken, and has not looked yet.
const WOKEN: u64 = 2 * WAITED_FOR;

/// How often a waiter is woken and finds the mutex taken before it is handed over.
const PATIENCE: u32 = 2;

/// What a waiter is told, and says.
struct Turn {
    /// The mutex has been handed over.
    is_granted: Cell<bool>,
    losses: Cell<u32>,
}

/// A value that one fibre or thread at a time may use.
///
/// A guard may be held over any wait: of fibres, others run meanwhile. As with
/// [`corelay-locks`](https://docs.rs/corelay-locks) a panic does *not* poison it: the guard is
/// dropped on the way, and the next one sees the value as the panic left it.
///
/// First come, first served, but one that runs may overtake those who have been woken and have not
/// run yet, each of them twice at most.
///
/// ```
/// use corelay_fibre::{Cluster, Mutex, yield_now};
/// use std::sync::Arc;
///
/// // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
/// let cluster = unsafe { Cluster::start(2) }?;
/// let sum = Arc::new(Mutex::new(0));
/// let fibres: Vec<_> = (1..=10)
///     .map(|i| {
///         let sum = Arc::clone(&sum);
///         cluster.spawn(move || {
///             let mut sum = sum.lock();
///             let before = *sum;
///             yield_now();
///             *sum = before + i;
///         })
///     })
///     .collect();
/// for fibre in fibres {
///     fibre.join().unwrap();
/// }
/// assert_eq!(*sum.lock(), 55);
/// # Ok::<(), corelay_fibre::StartError>(())
/// ```
pub struct Mutex<T> {
    word: LockWord,
    queue: UnsafeCell<WaitQueue<Turn>>,
    value: UnsafeCell<T>,
}

// SAFETY: one at a time has the value, by HELD; the queue is used under its lock.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: as a cell's.
unsafe impl<T: Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    /// A free one.
    pub fn new(value: T) -> Self {
        Self {
            word: LockWord::new(0),
            queue: UnsafeCell::new(WaitQueue::new()),
            value: UnsafeCell::new(value),
        }
    }

    /// The value: nobody holds the mutex.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// Waits until nobody else holds it.
    ///
    /// # Panics
    /// Where it is held and nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
    #[track_caller]
    #[inline(always)]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if !self.try_enter()
            && let Err(why) = self.enter("Mutex::lock", Limit::None)
        {
            unwind(why);
        }
        MutexGuard::new(self)
    }

    /// Takes it where nobody else holds it.
    ///
    /// ```
    /// let mutex = corelay_fibre::Mutex::new(1);
    /// let guard = mutex.try_lock();
    /// assert!(guard.is_some() && mutex.try_lock().is_none());
    /// drop(guard);
    /// assert_eq!(mutex.try_lock().as_deref(), Some(&1));
    /// ```
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.try_enter().then(|| MutexGuard::new(self))
    }

    /// As [`lock`](Self::lock), until `deadline` at most.
    ///
    /// ```
    /// use corelay_fibre::{Interrupted, Mutex};
    /// use std::time::{Duration, Instant};
    ///
    /// let mutex = Mutex::new(());
    /// let guard = mutex.lock();
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// assert_eq!(mutex.lock_until(soon).err(), Some(Interrupted::TimedOut));
    /// # drop(guard);
    /// ```
    ///
    /// # Errors
    /// The time has come, or the fibre has been cancelled.
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    #[track_caller]
    pub fn lock_until(&self, deadline: Instant) -> Result<MutexGuard<'_, T>, Interrupted> {
        if !self.try_enter() {
            self.enter("Mutex::lock_until", Limit::Until(deadline))?;
        }
        Ok(MutexGuard::new(self))
    }

    /// As [`lock`](Self::lock), also where the fibre has been cancelled.
    #[track_caller]
    pub(crate) fn lock_surely(&self, call: &'static str) -> MutexGuard<'_, T> {
        if !self.try_enter() {
            // Nothing ends this wait early.
            let _ = self.enter(call, Limit::Uncancelled);
        }
        MutexGuard::new(self)
    }

    #[inline]
    fn try_enter(&self) -> bool {
        self.try_change(|word| word | HELD)
    }

    /// False where it is held.
    #[inline]
    fn try_change(&self, change: impl Fn(u64) -> u64) -> bool {
        let mut backoff = Backoff::new();
        // Relaxed: checked by the exchange.
        let mut word = self.word.word().load(Ordering::Relaxed);
        while word & HELD == 0 {
            if word & LOCKED != 0 {
                backoff.wait();
                // Relaxed: as above.
                word = self.word.word().load(Ordering::Relaxed);
                continue;
            }
            // Acquire: pairs with the Release of `exit`; shows the value.
            match self.word.word().compare_exchange_weak(
                word,
                change(word),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Waits for it.
    #[track_caller]
    #[inline(always)]
    fn enter(&self, call: &'static str, limit: Limit) -> Result<(), Interrupted> {
        let node = Node::new(Turn {
            is_granted: Cell::new(false),
            losses: Cell::new(0),
        });
        let has_entered = std::cell::Cell::new(false);
        // WOKEN is ours to clear.
        let is_woken = std::cell::Cell::new(false);
        let remove = |_| self.withdraw(&node);
        loop {
            let ended = block_within(limit, call, &remove, |waiter| {
                self.enqueue(&node, waiter, &is_woken, &has_entered)
            });
            if let Err(why) = ended {
                if is_woken.get() {
                    self.pass_on();
                }
                return Err(why);
            }
            if has_entered.get() || node.payload.is_granted.get() {
                return Ok(());
            }
            if self.try_change(|word| word & !WOKEN | HELD) {
                return Ok(());
            }
            is_woken.set(true);
            node.payload.losses.set(node.payload.losses.get() + 1);
        }
    }

    /// Puts a waiter behind the others, or before them where it was its turn; gives it back where the
    /// mutex is free, which is taken.
    #[inline(always)]
    fn enqueue(
        &self,
        node: &Node<Turn>,
        waiter: Waiter,
        is_woken: &std::cell::Cell<bool>,
        has_entered: &std::cell::Cell<bool>,
    ) -> Option<Waiter> {
        let word = self.word.lock();
        let was_woken = is_woken.replace(false);
        let word = if was_woken { word & !WOKEN } else { word };
        if word & HELD == 0 {
            has_entered.set(true);
            self.word.unlock(word | HELD);
            return Some(waiter);
        }
        self.queue.with_mut(|queue| {
            // SAFETY: locked.
            let queue = unsafe { &mut *queue };
            if was_woken {
                // SAFETY: it has been taken out, and its frame waits.
                unsafe { queue.push_first(node, waiter) };
            } else {
                // SAFETY: as above, or it is new.
                unsafe { queue.push(node, waiter) };
            }
        });
        self.word.unlock(word | WAITED_FOR);
        None
    }

    /// Takes a waiter out, if it is still there.
    fn withdraw(&self, node: &Node<Turn>) -> Option<Waiter> {
        let word = self.word.lock();
        let (waiter, is_empty) = self.queue.with_mut(|queue| {
            // SAFETY: locked.
            let queue = unsafe { &mut *queue };
            // SAFETY: in this queue or in none.
            (unsafe { queue.remove(node) }, queue.is_empty())
        });
        let rest = if is_empty { word & !WAITED_FOR } else { word };
        self.word.unlock(rest);
        waiter
    }

    /// One that has been woken does not want it any more: the next one is.
    #[cold]
    fn pass_on(&self) {
        let word = self.word.lock() & !WOKEN;
        if word & HELD == 0 {
            self.wake_first(word);
        } else {
            self.word.unlock(word);
        }
    }

    /// Leaves it.
    #[inline]
    pub(crate) fn exit(&self) {
        // Release: pairs with the Acquire of `try_change`; publishes the value.
        if self
            .word
            .word()
            .compare_exchange(HELD, 0, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            self.exit_slowly();
        }
    }

    #[cold]
    fn exit_slowly(&self) {
        let word = self.word.lock();
        self.wake_first(word);
    }

    /// Leaves the mutex, or leaves it free, and the lock of the queue, whose word this is: for the
    /// first, if there is one.
    fn wake_first(&self, word: u64) {
        if word & (WAITED_FOR | WOKEN) != WAITED_FOR {
            self.word.unlock(word & !HELD);
            return;
        }
        let (first, is_empty) = self.queue.with_mut(|queue| {
            // SAFETY: locked.
            let queue = unsafe { &mut *queue };
            (queue.pop(), queue.is_empty())
        });
        let rest = if is_empty { word & !WAITED_FOR } else { word };
        let first = first.expect("somebody waits");
        if first.payload().losses.get() < PATIENCE {
            self.word.unlock(rest & !HELD | WOKEN);
        } else {
            first.payload().is_granted.set(true);
            self.word.unlock(rest | HELD);
        }
        first.wake();
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(value) => f.debug_struct("Mutex").field("value", &*value).finish(),
            None => f.debug_struct("Mutex").finish_non_exhaustive(),
        }
    }
}

/// The value of a [`Mutex`], which is left when this is dropped.
#[must_use = "the mutex is left when the guard is dropped"]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    _value: PhantomData<&'a mut T>,
}

impl<'a, T> MutexGuard<'a, T> {
    #[inline(always)]
    fn new(mutex: &'a Mutex<T>) -> Self {
        Self {
            mutex,
            _value: PhantomData,
        }
    }

    /// The mutex, still held.
    pub(crate) fn into_mutex(self) -> &'a Mutex<T> {
        std::mem::ManuallyDrop::new(self).mutex
    }

    /// The guard of a mutex that is held.
    pub(crate) fn of_held(mutex: &'a Mutex<T>) -> Self {
        Self::new(mutex)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: held.
        self.mutex.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: held.
        self.mutex.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.exit();
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
