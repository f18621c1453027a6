//! A counting semaphore: first come first served, by direct hand-off.
//!
//! One word has the count, whether somebody waits, and a lock over the list of waiters, which is
//! held for some instructions only. A release where somebody waits does not raise the count but
//! wakes the first, so nobody overtakes (a barging semaphore hangs churn on one processor).

use crate::spin::{LOCKED, LockWord};
use crate::wait::{Interrupted, Limit, block, block_within, unwind};
use crate::wait_queue::{Node, WaitQueue};
use crate::waiter::Waiter;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::cell::UnsafeCell;
use std::fmt;
use std::time::Instant;

const WAITED_FOR: u64 = 2 * LOCKED;
const ONE: u64 = 2 * WAITED_FOR;

/// A count of permits: taken by [`acquire`](Self::acquire), given by [`release`](Self::release).
pub struct Semaphore {
    word: LockWord,
    queue: UnsafeCell<WaitQueue<()>>,
}

// SAFETY: the queue is used under the lock in the word.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// With so many permits.
    pub fn new(permits: u32) -> Self {
        Self {
            word: LockWord::new(u64::from(permits) * ONE),
            queue: UnsafeCell::new(WaitQueue::new()),
        }
    }

    /// Takes a permit, or waits for one, behind those who wait already.
    ///
    /// # Panics
    /// Where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
    #[track_caller]
    #[inline(always)]
    pub fn acquire(&self) {
        if self.try_acquire() {
            return;
        }
        let node = Node::new(());
        let remove = |_| self.withdraw(&node);
        let ended = block("Semaphore::acquire", &remove, |waiter| {
            self.enqueue(&node, waiter)
        });
        if let Err(why) = ended {
            unwind(why);
        }
    }

    /// As [`acquire`](Self::acquire), until `deadline` at most.
    ///
    /// # Errors
    /// The time has come, or the fibre has been cancelled; no permit was taken.
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_until(&self, deadline: Instant) -> Result<(), Interrupted> {
        if self.try_acquire() {
            return Ok(());
        }
        let node = Node::new(());
        let remove = |_| self.withdraw(&node);
        let limit = Limit::Until(deadline);
        block_within(limit, "Semaphore::acquire_until", &remove, |waiter| {
            self.enqueue(&node, waiter)
        })
    }

    /// Puts a waiter behind the others; gives it back where there is a permit, which is taken.
    #[inline(always)]
    fn enqueue(&self, node: &Node<()>, waiter: Waiter) -> Option<Waiter> {
        let word = self.word.lock();
        if word >= ONE {
            self.word.unlock(word - ONE);
            return Some(waiter);
        }
        self.queue.with_mut(|queue| {
            // SAFETY: locked.
            let queue = unsafe { &mut *queue };
            // SAFETY: in no other; who waits keeps it until it has been taken out.
            unsafe { queue.push(node, waiter) };
        });
        self.word.unlock(word | WAITED_FOR);
        None
    }

    /// Takes a waiter out, if it is still there.
    fn withdraw(&self, node: &Node<()>) -> Option<Waiter> {
        let word = self.word.lock();
        let (waiter, is_empty) = self.queue.with_mut(|queue| {
            // SAFETY: locked.
            let queue = unsafe { &mut *queue };
            // SAFETY: it has been in no other.
            (unsafe { queue.remove(node) }, queue.is_empty())
        });
        self.unlock(word, is_empty);
        waiter
    }

    /// Takes a permit if there is one.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // Relaxed: checked by the exchange.
        let mut word = self.word.word().load(Ordering::Relaxed);
        while word >= ONE && word & LOCKED == 0 {
            // Acquire: pairs with the Release of who gave the permit.
            match self.word.word().compare_exchange_weak(
                word,
                word - ONE,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Gives a permit: to who has waited longest, if somebody waits.
    #[inline]
    pub fn release(&self) {
        // Relaxed: checked by the exchange.
        let word = self.word.word().load(Ordering::Relaxed);
        // Release: pairs with the Acquire of who takes the permit.
        if word & (LOCKED | WAITED_FOR) == 0
            && self
                .word
                .word()
                .compare_exchange(word, word + ONE, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            return;
        }
        let word = self.word.lock();
        if word & WAITED_FOR == 0 {
            self.word.unlock(word + ONE);
            return;
        }
        let (first, is_empty) = self.queue.with_mut(|queue| {
            // SAFETY: locked.
            let queue = unsafe { &mut *queue };
            (queue.pop(), queue.is_empty())
        });
        self.unlock(word, is_empty);
        if let Some(first) = first {
            first.wake();
        }
    }

    /// Gives so many permits.
    pub fn release_many(&self, permits: u32) {
        for _ in 0..permits {
            self.release();
        }
    }

    /// Unlocks the word, which was this; says whether somebody waits still.
    #[inline]
    fn unlock(&self, word: u64, is_empty: bool) {
        let waited_for = if is_empty { 0 } else { WAITED_FOR };
        self.word.unlock(word & !WAITED_FOR | waited_for);
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").finish_non_exhaustive()
    }
}
