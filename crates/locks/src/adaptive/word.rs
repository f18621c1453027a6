//! The words of the lock: who holds it, and who waits.
//!
//! | word | meaning | written by |
//! |---|---|---|
//! | `holder` | `FREE`, `APPLIES`, or whose guard it is | an exchange of `FREE`; a store of `FREE` by the holder |
//! | `published` | the closures that wait, the last one first; a mark if there are sleepers in `queue` | their callers, the sleepers; whoever holds the lock takes all |
//! | `queue` | the callers of `lock` that sleep | they themselves; whoever holds the lock takes one |
//! | `sleeps` | how often anybody has gone to sleep | whoever does |
//!
//! # Entering and leaving
//! A thread enters by an exchange. It leaves by a plain store, for an exchange would cost as much
//! again. Then it looks at `published`, the one word by which it learns that anybody waits. If that is
//! not empty, and nobody else has entered, it enters again and *serves*: it runs *all* closures that
//! it finds, and looks again until it has run `LIMIT`. It wakes one sleeper of the queue, which then
//! tries to enter. And it leaves, unless anybody has gone to sleep meanwhile.
//!
//! # Proof sketch
//! *One at a time.* Closures run, and guards live, only in the thread whose exchange found `FREE`,
//! until it stores `FREE`, or grants the lock to a sleeper.
//! *No waiter is overlooked.* A waiter publishes a closure, or enters the queue and marks `published`
//! (W1). `published` stays so until a holder takes it, and then serves the waiter.
//! *No sleeper is forgotten.* A waiter that goes to sleep says so in its record, or is in the queue;
//! it counts itself in `sleeps` (S1), passes the heavy barrier, and looks at `holder` (S2); if that is
//! `FREE`, it enters and serves. A thread that leaves stores `FREE` (L1), passes the light barrier, and
//! looks (L2): at `published`; after it has served, at `sleeps`, which it has read before it took the
//! waiters (L0). If L2 sees the waiter, the thread tries to enter again and serve, or another thread
//! holds the lock, to which the same applies. If not, then by the barriers S2 sees L1 or what a later
//! thread wrote, to which the same applies; or L0 has seen S1, and the waiter was served.
//! *The queue goes on.* A holder wakes one sleeper of the queue. If there are more, it marks
//! `published`, so that whoever leaves next serves again: at the latest the sleeper that has been
//! woken, or has been granted the lock. If that gives up, it counts itself as one more sleeper, which
//! is then looked after as any other.
//! If its thread is busy with a callback that waits for the lock, that one leaves it before: see
//! [waiting](super::waiting).
//! *Nobody sleeps by a free lock while it spins.* A thread that spins looks at `holder` itself.
//! *No frame dies early.* A record is in `published` from its publication until a holder takes it and
//! runs it; its caller returns after that only.

use super::const_fn;
use super::record::{self, Record, Wakes};
use super::sleeper::{Chosen, Queue, Sleeper};
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::{barrier, prefetch_write};
use std::{mem, ptr};

/// Nobody holds the lock.
const FREE: usize = 0;
/// A thread holds the lock for closures, in which nothing waits.
pub(super) const APPLIES: usize = 1;

/// The number of closures after which a thread leaves the lock, if all those that wait are awake: 64,
/// as for the other combining locks.
const LIMIT: u32 = if MODEL { 1 } else { 64 };

/// The words of an [`Adaptive`](super::Adaptive) lock.
#[derive(Debug)]
pub(super) struct Word {
    holder: AtomicUsize,
    pub(super) published: AtomicPtr<Record>,
    queue: Queue,
    sleeps: AtomicU32,
    poisoned: AtomicBool,
    /// Whether other threads want the CPUs of those that wait: see `waiting`.
    pub(super) crowded: AtomicBool,
}

impl Word {
    const_fn! {
        pub(super) const fn new() -> Self {
            Self {
                holder: AtomicUsize::new(FREE),
                published: AtomicPtr::new(ptr::null_mut()),
                queue: Queue::new(),
                sleeps: AtomicU32::new(0),
                poisoned: AtomicBool::new(false),
                crowded: AtomicBool::new(false),
            }
        }
    }

    /// Enters, and returns true, if nobody holds the lock.
    #[inline(always)]
    pub(super) fn try_enter(&self, owner: usize) -> bool {
        // Acquire: pairs with the Release in `free`; this thread sees what the last holder did.
        // Relaxed: a loser has read nothing that counts.
        self.holder
            .compare_exchange(FREE, owner, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Enters as [`try_enter`](Self::try_enter) does, and looks first, so that a loser does not take
    /// the line from the holder.
    #[inline]
    pub(super) fn look_and_enter(&self, owner: usize) -> bool {
        // Relaxed: only a hint that an exchange may succeed.
        self.holder.load(Ordering::Relaxed) == FREE && self.try_enter(owner)
    }

    /// Whether a guard of `owner` holds the lock.
    pub(super) fn is_held_by(&self, owner: usize) -> bool {
        // Relaxed: `owner` is the calling thread or fibre, which alone writes its name here. It sees
        // that or what came later.
        owner != APPLIES && self.holder.load(Ordering::Relaxed) == owner
    }

    /// Leaves the lock, and serves those that wait for it.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[inline(always)]
    pub(super) unsafe fn release(&self) {
        self.free();
        // Relaxed: ordered by the barrier.
        let last = self.published.load(Ordering::Relaxed);
        if !last.is_null() {
            self.serve_if_free(last);
        }
    }

    /// Leaves the lock, in the order that sleepers need: what the calling thread reads afterwards
    /// shows who sleeps, or the sleeper sees that the lock is free.
    #[inline(always)]
    fn free(&self) {
        // Release: pairs with the Acquire in `try_enter`; publishes what this thread did.
        self.holder.store(FREE, Ordering::Release);
        // Pairs with the heavy barrier of `sleeps`.
        barrier::light();
    }

    /// Poisons the lock, and leaves it.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[cold]
    #[inline(never)]
    unsafe fn leave_poisoned(&self) {
        self.poison();
        // SAFETY: the calling thread holds the lock (the caller's duty).
        unsafe { self.release() };
    }

    #[cold]
    #[inline(never)]
    fn serve_if_free(&self, last: *const Record) {
        // It arrives while this thread enters again.
        prefetch_write(last);
        if self.try_enter(APPLIES) {
            // SAFETY: this thread has entered.
            unsafe { self.serve() };
        }
    }

    /// Runs the published closures, wakes a sleeper, and leaves the lock.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn serve(&self) {
        // Relaxed: the lock stays held. This thread's name goes, for a sleeper may be granted the lock.
        self.holder.store(APPLIES, Ordering::Relaxed);
        let mut wakes = Wakes::default();
        let mut left = LIMIT;
        loop {
            let sleeps = loop {
                // Acquire: pairs with the Release in `sleeps`; waiters that are counted are found.
                let sleeps = self.sleeps.load(Ordering::Acquire);
                // SAFETY: this thread holds the lock.
                left = left.saturating_sub(unsafe { self.run_published(&mut wakes) });
                // Relaxed: whoever is missed here looks at the lock, or is counted before it sleeps.
                if left == 0 || self.published.load(Ordering::Relaxed).is_null() {
                    break sleeps;
                }
            };
            // SAFETY: this thread holds the lock.
            let chosen = unsafe { self.choose() };
            let is_granted = matches!(chosen, Some((_, Chosen::Granted)));
            if !is_granted {
                self.free();
            }
            if let Some((sleeper, _)) = chosen {
                sleeper.token.notify();
            }
            wakes.wake_all();
            // If the lock has been granted, whoever goes to sleep is served when the sleeper leaves.
            // Relaxed: ordered by the barrier. It is read again above.
            if is_granted
                || self.sleeps.load(Ordering::Relaxed) == sleeps
                || !self.try_enter(APPLIES)
            {
                break;
            }
        }
    }

    /// Chooses the sleeper of the queue that came first, and says whether it has been granted the lock
    /// or only woken. In the first case the calling thread holds the lock no more.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    unsafe fn choose(&self) -> Option<(Arc<Sleeper>, Chosen)> {
        loop {
            // SAFETY: this thread holds the lock.
            let first = unsafe { self.queue.pop() }?;
            // SAFETY: as above.
            if !unsafe { self.queue.is_empty() } {
                record::mark(&self.published);
            }
            match first.choose() {
                Chosen::No => {}
                chosen => return Some((first, chosen)),
            }
        }
    }

    /// Puts a sleeper into the queue.
    pub(super) fn enqueue(&self, sleeper: Arc<Sleeper>) {
        self.queue.push(sleeper);
        record::mark(&self.published);
    }

    /// Writes the name of a sleeper that has been granted the lock.
    pub(super) fn is_granted_to(&self, owner: usize) {
        // Relaxed: nobody else writes it while the lock is held, and only `owner` looks for its name.
        self.holder.store(owner, Ordering::Relaxed);
    }

    /// Runs the closures that have been published, and returns their number. The callers that sleep
    /// are added to `wakes`.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[inline]
    unsafe fn run_published(&self, wakes: &mut Wakes) -> u32 {
        let mut number = 0;
        let mut at = record::take(&self.published);
        while let Some(record) = at {
            // SAFETY: this thread holds the lock, and has taken the record out of its list.
            at = unsafe { wakes.run(record) };
            number += 1;
        }
        number
    }

    /// Counts a waiter that goes to sleep, and has said so. Returns true if it has entered for
    /// `owner` instead, because the lock was free.
    pub(super) fn sleeps(&self, owner: usize) -> bool {
        // Release: pairs with the Acquire in `serve`; a holder that sees this count finds the
        // sleeper.
        self.sleeps.fetch_add(1, Ordering::Release);
        // Pairs with the light barrier of `free`.
        barrier::heavy();
        self.look_and_enter(owner)
    }

    #[inline]
    pub(super) fn is_poisoned(&self) -> bool {
        // Relaxed: if the mark counts, its thread has held the lock before this one.
        self.poisoned.load(Ordering::Relaxed)
    }

    #[cold]
    pub(super) fn poison(&self) {
        // Relaxed: published with the rest of the section.
        self.poisoned.store(true, Ordering::Relaxed);
    }

    pub(super) fn clear_poison(&self) {
        // Relaxed: as `std` has it; who must not miss it holds the lock.
        self.poisoned.store(false, Ordering::Relaxed);
    }
}

/// A guard of a thread that runs a closure of its own. If that unwinds, the lock is poisoned and left.
pub(super) struct Held<'a>(&'a Word);

impl<'a> Held<'a> {
    /// # Safety
    /// The calling thread has entered.
    #[inline(always)]
    pub(super) unsafe fn new(word: &'a Word) -> Self {
        Self(word)
    }

    /// Leaves the lock after the closure has returned.
    #[inline(always)]
    pub(super) fn leave(self) {
        let word = self.0;
        mem::forget(self);
        // SAFETY: this thread has entered, as `new`'s caller promised, and leaves once.
        unsafe { word.release() };
    }
}

impl Drop for Held<'_> {
    // The guard stays in a register, since only its word goes to a function.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this thread has entered, as `new`'s caller promised, and leaves once.
        unsafe { self.0.leave_poisoned() };
    }
}
