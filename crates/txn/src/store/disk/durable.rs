//! Which epochs are durable, and who waits for one.

use super::error::DiskFailed;
use crate::store::garbage::discard;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use corelay_sync::facade::sync::{Arc, Mutex};
use corelay_sync::wait::{self, Call, Sleeper, Token};
use corelay_sync::{CachePadded, barrier};
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

/// How far the log thread has come, and what it is asked for.
#[derive(Debug)]
pub(super) struct Progress {
    /// The newest durable epoch. All older ones are durable too.
    durable: CachePadded<AtomicU64>,
    /// The newest epoch that shall end soon.
    wanted: AtomicU64,
    /// The number of waiters for which the log thread holds an epoch open, for a short time.
    expected: AtomicUsize,
    /// Whether the store is being closed.
    is_closing: AtomicBool,
    waiting: Mutex<Waiting>,
    /// The sleep of the log thread, from which waiters wake it.
    logger: std::sync::Arc<Sleeper>,
}

#[derive(Debug)]
struct Waiting {
    waiters: Vec<Waiter>,
    next_id: u64,
    failure: Option<DiskFailed>,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    epoch: u64,
    waker: Waker,
}

impl Progress {
    /// Everything up to epoch `durable` is durable. The log thread sleeps in `logger`.
    pub(super) fn new(durable: u64, logger: std::sync::Arc<Sleeper>) -> Self {
        Self {
            durable: CachePadded::new(AtomicU64::new(durable)),
            wanted: AtomicU64::new(0),
            expected: AtomicUsize::new(1),
            is_closing: AtomicBool::new(false),
            waiting: Mutex::new(Waiting {
                waiters: Vec::new(),
                next_id: 0,
                failure: None,
            }),
            logger,
        }
    }

    pub(super) fn durable(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`; what the log thread did for the epoch is
        // visible.
        self.durable.load(Ordering::Acquire)
    }

    pub(super) fn failure(&self) -> Option<DiskFailed> {
        self.waiting.lock().unwrap().failure.clone()
    }

    /// Wakes the log thread if it sleeps.
    #[cold]
    pub(super) fn wake_logger(&self) {
        self.logger.wake_if_asleep();
    }

    /// Asks the log thread to end `epoch` soon.
    #[cold]
    pub(super) fn want(&self, epoch: u64) {
        // Relaxed: the log thread only compares numbers; the wake-up's barrier orders it before the
        // thread's sleep.
        self.wanted.fetch_max(epoch, Ordering::Relaxed);
        self.logger.wake_if_asleep();
    }

    pub(super) fn is_wanted(&self, epoch: u64) -> bool {
        // Relaxed: as in `want`.
        self.wanted.load(Ordering::Relaxed) >= epoch
    }

    /// Whether this is the log thread.
    fn is_log_thread(&self) -> bool {
        std::sync::Arc::ptr_eq(&self.logger, &Sleeper::current())
    }

    pub(super) fn close(&self) {
        // Relaxed: carries nothing; the wake-up's barrier orders it.
        self.is_closing.store(true, Ordering::Relaxed);
        self.logger.wake_if_asleep();
    }

    pub(super) fn is_closing(&self) -> bool {
        // Relaxed: as in `close`.
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Says for how many waiters the log thread holds the open epoch.
    pub(super) fn expect(&self, waiters: usize) {
        // Relaxed: a hint when to wake the log thread, which looks itself.
        self.expected.store(waiters, Ordering::Relaxed);
    }

    pub(super) fn waiters(&self) -> usize {
        self.waiting.lock().unwrap().waiters.len()
    }

    /// Makes `epoch` durable and wakes its waiters. Returns how many there were.
    pub(super) fn publish(&self, epoch: u64) -> usize {
        // Release: pairs with the Acquire in `durable`.
        self.durable.store(epoch, Ordering::Release);
        // A waiter that registers after this has seen the store: the lock is between.
        let mut waiting = self.waiting.lock().unwrap();
        let woken: Vec<_> = waiting
            .waiters
            .extract_if(.., |waiter| waiter.epoch <= epoch)
            .collect();
        drop(waiting);
        let count = woken.len();
        wake_all(woken);
        count
    }

    /// Gives all waiters an error, those that come later too. Only the first error counts.
    pub(super) fn fail(&self, failure: DiskFailed) {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.failure.get_or_insert(failure);
        let woken = std::mem::take(&mut waiting.waiters);
        drop(waiting);
        wake_all(woken);
    }

    /// Whether it is decided what becomes of `epoch`.
    fn decided(&self, epoch: u64) -> Option<Result<(), DiskFailed>> {
        if self.durable() >= epoch {
            return Some(Ok(()));
        }
        let failure = self.failure()?;
        // It may have become durable before the failure.
        Some(match self.durable() >= epoch {
            true => Ok(()),
            false => Err(failure),
        })
    }

    /// Makes `waker` wake when `epoch` is decided. Returns the waiter's number, or `None` if it is
    /// decided already. `id` is the number of the waiter that this one replaces.
    fn register(&self, epoch: u64, id: Option<u64>, waker: &Waker) -> Option<u64> {
        // Wakers are cloned and dropped with nothing locked. They are code of an executor, and a waker
        // may be the last owner of a task.
        let waker = waker.clone();
        let mut waiting = self.waiting.lock().unwrap();
        if self.durable() >= epoch || waiting.failure.is_some() {
            return None;
        }
        let known = id.and_then(|id| waiting.waiters.iter_mut().find(|w| w.id == id));
        if let Some(waiter) = known {
            let replaced = std::mem::replace(&mut waiter.waker, waker);
            drop(waiting);
            drop(replaced);
            return id;
        }
        let id = waiting.next_id;
        waiting.next_id += 1;
        waiting.waiters.push(Waiter { id, epoch, waker });
        let count = waiting.waiters.len();
        drop(waiting);
        // Relaxed: as in `want`.
        self.wanted.fetch_max(epoch, Ordering::Relaxed);
        // Pairs with the heavy barrier of `Sleeper::sleep`: this thread sees for how many the log
        // thread waits, or the log thread sees `wanted`.
        barrier::light();
        // Relaxed: ordered by the barrier.
        if count >= self.expected.load(Ordering::Relaxed) {
            self.logger.wake_if_asleep();
        }
        Some(id)
    }

    fn unregister(&self, id: u64) {
        let mut waiting = self.waiting.lock().unwrap();
        let place = waiting.waiters.iter().position(|waiter| waiter.id == id);
        let gone = place.map(|place| waiting.waiters.remove(place));
        drop(waiting);
        // With nothing locked: see `register`.
        drop(gone);
    }
}

/// Wakes all waiters. If the waker of one panics, the others are woken nevertheless, and the log goes
/// on: they have nobody else who wakes them.
fn wake_all(waiters: Vec<Waiter>) {
    for Waiter { waker, .. } in waiters {
        if MODEL {
            // A panic is the checker's.
            waker.wake();
        } else if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            discard(payload);
        }
    }
}

/// The durability of a commit, or of what a transaction has seen. It can be asked, waited for on a
/// thread or fibre, and awaited on any executor.
///
/// The store's log thread calls the wakers of those who await. Nothing else becomes durable before a
/// waker returns, so it must not wait itself; waiting for a handle there panics. If a waker panics, nobody
/// else notices.
///
/// Handles of one writer share a count of references, which its thread has mostly for itself.
#[must_use = "the commit is durable only when this says so"]
pub struct Durable {
    progress: Arc<CachePadded<Arc<Progress>>>,
    epoch: u64,
    /// The number of the waiter that the last poll has registered.
    waiter: Option<u64>,
}

impl Durable {
    #[inline]
    pub(super) fn new(progress: Arc<CachePadded<Arc<Progress>>>, epoch: u64) -> Self {
        Self {
            progress,
            epoch,
            waiter: None,
        }
    }

    /// The epoch of the commit. A handle is durable when its epoch is.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the commit is durable.
    #[inline]
    pub fn is_durable(&self) -> bool {
        self.progress.durable() >= self.epoch
    }

    /// Waits until the commit is durable. The commit's epoch ends as soon as the disk is free.
    ///
    /// # Errors
    /// If the store has failed before. The commit is not answered as durable then, and may or may
    /// not be there when the store is opened again.
    ///
    /// # Panics
    /// Inside a [`NoSwitch`](corelay_sync::wait::NoSwitch) guard, or in a waker that the store's log
    /// thread has called, if the commit is not durable yet.
    #[track_caller]
    pub fn wait(&self) -> Result<(), DiskFailed> {
        let call = Call {
            name: "a durable commit",
            at: Location::caller(),
            is_cancellable: true,
        };
        loop {
            if let Some(decided) = self.progress.decided(self.epoch) {
                return decided;
            }
            assert!(
                MODEL || !self.progress.is_log_thread(),
                "corelay: a durable commit is waited for by the log thread that would write it, in a \
                 waker; wake another thread that waits"
            );
            let signal = std::sync::Arc::new(Signal(Token::new()));
            let waker = Waker::from(std::sync::Arc::clone(&signal));
            let Some(id) = self.progress.register(self.epoch, None, &waker) else {
                continue;
            };
            // Also if the wait panics.
            let unregister = Unregister(&self.progress, id);
            let waited = wait::wait_in(call, &signal.0);
            drop(unregister);
            if let Err(cancelled) = waited {
                cancelled.unwind();
            }
        }
    }
}

/// Takes a waiter out when its wait ends, however it ends.
struct Unregister<'a>(&'a Progress, u64);

impl Drop for Unregister<'_> {
    fn drop(&mut self) {
        self.0.unregister(self.1);
    }
}

/// A token as a waker.
struct Signal(Token);

impl Wake for Signal {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.notify();
    }
}

impl Future for Durable {
    type Output = Result<(), DiskFailed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(decided) = self.progress.decided(self.epoch) {
                return Poll::Ready(decided);
            }
            let waker = context.waker();
            let waiter = self.progress.register(self.epoch, self.waiter, waker);
            if waiter.is_some() {
                self.waiter = waiter;
                return Poll::Pending;
            }
        }
    }
}

impl Clone for Durable {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.progress), self.epoch)
    }
}

impl Drop for Durable {
    #[inline]
    fn drop(&mut self) {
        if let Some(id) = self.waiter {
            self.progress.unregister(id);
        }
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable")
            .field("epoch", &self.epoch)
            .field("is_durable", &self.is_durable())
            .finish()
    }
}
