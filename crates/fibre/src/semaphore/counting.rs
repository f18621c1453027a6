//! A counting semaphore: first come first served, by direct hand-off.
//!
//! One word has the count, whether somebody waits, and a lock over the list of waiters, which is
//! held for some instructions only. A release where somebody waits does not raise the count but
//! wakes the first, so nobody overtakes (a barging semaphore hangs churn on one processor).

use crate::wait::{Interrupted, block, block_until, unwind};
use crate::waiter::Waiter;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::cell::{UnsafeCell, place_of};
use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::time::Instant;

const LOCKED: u64 = 1;
const WAITED_FOR: u64 = 2;
const ONE: u64 = 4;

/// A count of permits: taken by [`acquire`](Self::acquire), given by [`release`](Self::release).
pub struct Semaphore {
    word: AtomicU64,
    /// Under the lock.
    list: UnsafeCell<List>,
}

struct List {
    first: *const Node,
    last: *const Node,
}

/// In the frame of who waits.
struct Node {
    /// Null where it is not in the list.
    waiter: Cell<*mut u8>,
    before: Cell<*const Node>,
    next: Cell<*const Node>,
}

impl Node {
    fn new() -> Self {
        Self {
            waiter: Cell::new(ptr::null_mut()),
            before: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        }
    }
}

// SAFETY: the list is used under the lock; its nodes stay until they are taken out of it.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// With so many permits.
    pub fn new(permits: u32) -> Self {
        Self {
            word: AtomicU64::new(u64::from(permits) * ONE),
            list: UnsafeCell::new(List {
                first: ptr::null(),
                last: ptr::null(),
            }),
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
        let node = Node::new();
        let remove = || self.withdraw(&node);
        let ended = block("Semaphore::acquire", &remove, &mut |waiter| {
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
        let node = Node::new();
        let remove = || self.withdraw(&node);
        block_until(
            "Semaphore::acquire_until",
            deadline,
            &remove,
            &mut |waiter| self.enqueue(&node, waiter),
        )
    }

    /// Puts a waiter behind the others; gives it back where there is a permit, which is taken.
    #[inline(always)]
    fn enqueue(&self, node: &Node, waiter: Waiter) -> Option<Waiter> {
        let word = self.lock();
        if word >= ONE {
            self.unlock(word - ONE);
            return Some(waiter);
        }
        node.waiter.set(waiter.into_word());
        // SAFETY: locked.
        let list = unsafe { &mut *place_of(&self.list) };
        node.before.set(list.last);
        // SAFETY: nodes in the list live.
        match unsafe { list.last.as_ref() } {
            Some(last) => last.next.set(node),
            None => list.first = node,
        }
        list.last = node;
        self.unlock(word | WAITED_FOR);
        None
    }

    /// Takes a waiter out, if it is still there.
    fn withdraw(&self, node: &Node) -> Option<Waiter> {
        let word = self.lock();
        let waiter = node.waiter.replace(ptr::null_mut());
        if waiter.is_null() {
            self.unlock(word);
            return None;
        }
        // SAFETY: locked.
        let list = unsafe { &mut *place_of(&self.list) };
        let (before, next) = (node.before.get(), node.next.get());
        // SAFETY: nodes in the list live.
        match unsafe { before.as_ref() } {
            Some(before) => before.next.set(next),
            None => list.first = next,
        }
        // SAFETY: as above.
        match unsafe { next.as_ref() } {
            Some(next) => next.before.set(before),
            None => list.last = before,
        }
        let is_empty = list.first.is_null();
        self.unlock(if is_empty { word & !WAITED_FOR } else { word });
        // SAFETY: taken out of the list.
        Some(unsafe { Waiter::from_word(waiter) })
    }

    /// Takes a permit if there is one.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // Relaxed: checked by the exchange.
        let mut word = self.word.load(Ordering::Relaxed);
        while word >= ONE && word & LOCKED == 0 {
            // Acquire: pairs with the Release of who gave the permit.
            match self.word.compare_exchange_weak(
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
        let word = self.word.load(Ordering::Relaxed);
        // Release: pairs with the Acquire of who takes the permit.
        if word & (LOCKED | WAITED_FOR) == 0
            && self
                .word
                .compare_exchange(word, word + ONE, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            return;
        }
        let word = self.lock();
        if word & WAITED_FOR == 0 {
            self.unlock(word + ONE);
            return;
        }
        // SAFETY: locked.
        let list = unsafe { &mut *place_of(&self.list) };
        // SAFETY: somebody waits, so there is a first, which lives.
        let first = unsafe { &*list.first };
        let waiter = first.waiter.replace(ptr::null_mut());
        list.first = first.next.get();
        // SAFETY: as above.
        match unsafe { list.first.as_ref() } {
            Some(next) => {
                next.before.set(ptr::null());
                self.unlock(word);
            }
            None => {
                list.last = ptr::null();
                self.unlock(word & !WAITED_FOR);
            }
        }
        // SAFETY: taken out of the list.
        unsafe { Waiter::from_word(waiter) }.wake();
    }

    /// Gives so many permits.
    pub fn release_many(&self, permits: u32) {
        for _ in 0..permits {
            self.release();
        }
    }

    /// Locks the list; the word without the lock.
    #[inline]
    fn lock(&self) -> u64 {
        let mut backoff = Backoff::new();
        loop {
            // Relaxed: checked by the exchange.
            let word = self.word.load(Ordering::Relaxed);
            // Acquire: pairs with the Release of `unlock` and of permits.
            if word & LOCKED == 0
                && self
                    .word
                    .compare_exchange_weak(
                        word,
                        word | LOCKED,
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                return word;
            }
            backoff.wait();
        }
    }

    #[inline]
    fn unlock(&self, word: u64) {
        // Release: pairs with the Acquire of `lock`. Nobody changes a locked word.
        self.word.store(word, Ordering::Release);
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").finish_non_exhaustive()
    }
}
