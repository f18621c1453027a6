//! Epochs: which commits are written to the log together (Tu et al., "Speedy Transactions in
//! Multicore In-Memory Databases", SOSP 2013, §4.9 and §4.10).
//!
//! A committer enters an epoch when it holds the locks of everything that it writes, and before it
//! validates what it has read. It leaves after it has installed its writes and handed over their
//! bytes. The log thread opens the next epoch, waits until all committers have left the old one,
//! and takes the bytes.
//!
//! # The protocol
//! ```text
//!  committer                                 log thread
//!
//!  OUT ─ entered := word.epoch; light        closing epoch e:
//!      ─ now := word                           word := (e + 1, switching)
//!  IN    now is switching: heavy               heavy
//!        the epoch is now.epoch                word := (e + 1)
//!      ─ validates, installs, hands over       each slot: wait while 0 < entered ≤ e
//!      ─ entered := 0 ────────────► OUT        take the bytes of epoch e
//! ```
//!
//! **A closed epoch has the bytes of all its commits.** Let a committer have read epoch e, and H be
//! the log thread's barrier when it closes e. The committer's light barrier came before H, or it
//! would have read e + 1. So after H the log thread sees `entered`, which is no more than e, and
//! waits; or sees a later value of it, which the committer wrote when it had left.
//!
//! **A commit that depends on another is never in an older epoch.** Let T be in epoch t, and U in
//! an epoch u < t. U does not depend on T:
//!
//! * *U read or overwrote what T had written.* U reads and locks before it enters. So it read the
//!   word after T had installed its writes, and T had read the word before that: u ≥ t.
//! * *U overwrote what T had read.* Then T validated a record x that was not locked by U, and U
//!   locked x before its light barrier. T read the word before it validated x. If T saw the word
//!   settled, the log thread's H lies between; if it saw it switching, T's own heavy barrier does:
//!   call it H. U's light barrier came before H, or U would have read t. So U's lock was visible
//!   before H ended, and T validated after that: it saw the lock.
//!
//! So the commits up to the end of an epoch are a prefix of the serial order.
//!
//! # Who may touch a slot's bytes
//! A slot has two buffers, of odd and of even epochs. A committer uses its epoch's between entering
//! and leaving. The log thread uses that of epoch e from when it has found all committers out of e
//! until it opens e + 2. It is the only one that opens epochs, so those times do not overlap.

use super::durable::{Durable, Progress};
use super::error::DiskFailed;
use super::record;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::sync::{Arc, Mutex};
use corelay_sync::{Backoff, CachePadded, barrier};
use std::time::Duration;

/// The open epoch, and what committers have to know about the log thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    /// The epoch has just been opened; a committer that sees this passes the heavy barrier itself.
    const SWITCHING: u64 = 1;
    /// The log thread sleeps until a committer wakes it.
    const IDLE: u64 = 2;
    /// No more commits are taken.
    const FAILED: u64 = 4;
    const FLAGS: u64 = 7;
    const SHIFT: u32 = 3;

    fn new(epoch: u64, flags: u64) -> Self {
        Self(epoch << Self::SHIFT | flags)
    }

    #[inline(always)]
    fn epoch(self) -> u64 {
        self.0 >> Self::SHIFT
    }

    #[inline(always)]
    fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }
}

/// The value of [`Slot::entered`] while its writer is not in an epoch. Epochs begin with 1.
const OUT: u64 = 0;

/// The bytes of a writer in an epoch at which it asks for the epoch to end.
const MANY: usize = 256 << 10;

/// The bytes of a writer in an epoch at which its next commit has to wait for the disk.
const TOO_MANY: usize = 8 << 20;

/// The memory that a slot keeps for the commits of an epoch, in bytes.
const KEPT: usize = 1 << 20;

/// The open epoch and the slots of all writers.
#[derive(Debug)]
pub(super) struct Epochs {
    /// A [`Word`]. Only the log thread writes it.
    word: CachePadded<AtomicU64>,
    slots: Mutex<Vec<Arc<CachePadded<Slot>>>>,
    progress: Arc<Progress>,
}

/// The words that one writer shares with the log thread.
#[derive(Debug)]
struct Slot {
    /// [`OUT`], or a lower bound of the epoch in which the writer is.
    entered: AtomicU64,
    /// The last epoch for which the writer has handed over bytes.
    handed: AtomicU64,
    /// Whether a writer has claimed the slot.
    is_claimed: AtomicBool,
    /// The bytes of the last even and the last odd epoch.
    pending: [UnsafeCell<Pending>; 2],
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    commits: u32,
}

// SAFETY: the writer and the log thread never use a buffer at the same time: see the module.
unsafe impl Sync for Slot {}

impl Epochs {
    /// The epochs from `first` on, which is open, and the one that closes them.
    pub(super) fn new(first: u64, progress: Arc<Progress>) -> (Arc<Self>, Closer) {
        let epochs = Arc::new(Self {
            word: CachePadded::new(AtomicU64::new(Word::new(first, 0).0)),
            slots: Mutex::new(Vec::new()),
            progress,
        });
        let closer = Closer {
            epochs: Arc::clone(&epochs),
            open: first,
        };
        (epochs, closer)
    }

    /// A writer, with a slot that another one has left, or a new slot.
    pub(super) fn writer(epochs: &Arc<Self>) -> Writer {
        let mut slots = epochs.slots.lock().unwrap();
        let left = slots.iter().find(|slot| {
            // Relaxed: slots are claimed under the lock.
            !slot.is_claimed.load(Ordering::Relaxed)
                // Acquire: pairs with the Release of the drop of `Writer`; this writer comes after
                // the one that has left.
                && !slot.is_claimed.swap(true, Ordering::Acquire)
        });
        let slot = match left {
            Some(slot) => Arc::clone(slot),
            None => {
                let slot = Arc::new(CachePadded::new(Slot {
                    entered: AtomicU64::new(OUT),
                    handed: AtomicU64::new(0),
                    is_claimed: AtomicBool::new(true),
                    pending: Default::default(),
                }));
                slots.push(Arc::clone(&slot));
                slot
            }
        };
        drop(slots);
        Writer {
            slot,
            durable: Arc::new(CachePadded::new(Arc::clone(&epochs.progress))),
            epochs: Arc::clone(epochs),
            last: 0,
            filled: 0,
        }
    }

    /// An epoch that no commit exceeds that happened before.
    pub(super) fn now(&self) -> u64 {
        Word(self.word.load(Ordering::Acquire)).epoch()
    }

    /// Whether a writer is in an epoch, or has handed over bytes for `epoch` or a later one.
    fn is_used(&self, epoch: u64) -> bool {
        let slots = self.slots.lock().unwrap();
        slots.iter().any(|slot| {
            // Acquire: pairs with the Release in `Writer::leave`; shows that bytes were handed over.
            slot.entered.load(Ordering::Acquire) != OUT
                // Relaxed: ordered by the Acquire above; only a number.
                || slot.handed.load(Ordering::Relaxed) >= epoch
        })
    }
}

/// The maker of a store's writers.
#[derive(Debug, Clone)]
pub struct Writers(pub(super) Arc<Epochs>);

impl Writers {
    /// A writer. A transaction that commits has one for itself.
    pub fn writer(&self) -> Writer {
        Epochs::writer(&self.0)
    }
}

/// The right to commit with one slot. A transaction that commits has one for itself.
#[derive(Debug)]
pub struct Writer {
    slot: Arc<CachePadded<Slot>>,
    epochs: Arc<Epochs>,
    /// For the handles of this writer's commits.
    durable: Arc<CachePadded<Arc<Progress>>>,
    /// The epoch of the last commit.
    last: u64,
    /// The bytes that this writer has handed over in that epoch.
    filled: usize,
}

impl Writer {
    /// Waits while the disk is too far behind. Call this before a transaction locks anything.
    ///
    /// # Errors
    /// If the store has failed or has been closed.
    ///
    /// # Panics
    /// Inside a [`NoSwitch`](corelay_sync::wait::NoSwitch) guard, if it has to wait.
    #[inline]
    #[track_caller]
    pub fn admit(&mut self) -> Result<(), DiskFailed> {
        // Relaxed: `enter` asks again.
        let word = Word(self.epochs.word.load(Ordering::Relaxed));
        if word.has(Word::FAILED) || self.filled > TOO_MANY {
            return self.admit_late(word);
        }
        Ok(())
    }

    #[cold]
    #[track_caller]
    fn admit_late(&mut self, word: Word) -> Result<(), DiskFailed> {
        if word.has(Word::FAILED) {
            return Err(self.failure());
        }
        self.filled = 0;
        Durable::new(Arc::clone(&self.durable), self.last).wait()
    }

    /// Enters the open epoch. Call this after the transaction has locked everything that it writes,
    /// and before it validates what it has read. It never waits.
    ///
    /// # Errors
    /// If the store has failed or has been closed.
    #[inline(always)]
    pub fn enter(&mut self) -> Result<Entered<'_>, DiskFailed> {
        // Relaxed: a lower bound of the epoch that is read below, by coherence.
        let before = Word(self.epochs.word.load(Ordering::Relaxed));
        // Release: pairs with the Acquire in `Closer::close`, which may find this in place of the
        // value that `leave` wrote before; hands over what that did. Ordered by the barrier, too.
        self.slot.entered.store(before.epoch(), Ordering::Release);
        // Pairs with the heavy barriers of `Closer::close` and of `enter_flagged`.
        barrier::light();
        // Acquire: pairs with the Release in `Closer::close`; the log thread has emptied the
        // epoch's buffer, and what it saw before its barrier is visible.
        let now = Word(self.epochs.word.load(Ordering::Acquire));
        if now.has(Word::FLAGS) {
            self.enter_flagged(now)?;
        }
        Ok(Entered {
            epoch: now.epoch(),
            wakes: now.has(Word::IDLE),
            writer: self,
        })
    }

    #[cold]
    #[inline(never)]
    fn enter_flagged(&mut self, now: Word) -> Result<(), DiskFailed> {
        if now.has(Word::FAILED) {
            self.leave();
            return Err(self.failure());
        }
        if now.has(Word::SWITCHING) {
            // Pairs with the light barrier of a committer that is still in the old epoch: what it
            // has locked is visible from here on.
            barrier::heavy();
        }
        Ok(())
    }

    #[inline(always)]
    fn leave(&self) {
        // Release: pairs with the Acquire in `Closer::close`; hands the buffer over.
        self.slot.entered.store(OUT, Ordering::Release);
    }

    /// The durability of everything that the caller has seen so far: of what a transaction has read
    /// that writes nothing.
    #[inline]
    pub fn seen(&self) -> Durable {
        Durable::new(Arc::clone(&self.durable), self.epochs.now())
    }

    fn failure(&self) -> DiskFailed {
        let failure = self.epochs.progress.failure();
        failure.unwrap_or_else(DiskFailed::closed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Epochs::writer`.
        self.slot.is_claimed.store(false, Ordering::Release);
    }
}

/// A commit that has entered an epoch. If it is dropped, it leaves the epoch without having written
/// anything: for a transaction that aborts.
#[derive(Debug)]
#[must_use = "dropping it leaves the epoch"]
pub struct Entered<'a> {
    writer: &'a mut Writer,
    epoch: u64,
    /// Whether the log thread sleeps until it is woken.
    wakes: bool,
}

impl Entered<'_> {
    /// The epoch of the commit.
    #[inline(always)]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether this wakes the log thread when it leaves. For models.
    #[cfg(any(corelay_loom, corelay_shuttle))]
    pub fn wakes(&self) -> bool {
        self.wakes
    }

    /// Hands over the bytes of the transaction and leaves the epoch. Call this after the
    /// transaction has installed its writes; they may be unlocked already.
    ///
    /// `order` must grow from one commit of an entry to the next, as long as the store stays open.
    #[inline]
    pub fn commit(self, order: u64, records: &super::Records) -> Durable {
        let epoch = self.epoch;
        let slot = &*self.writer.slot;
        let filled = slot.pending[(epoch & 1) as usize].with_mut(|pending| {
            // SAFETY: this writer is in `epoch`, so the log thread does not use the buffer before
            // `leave`, and `self` borrows the writer exclusively.
            let pending = unsafe { &mut *pending };
            record::append_commit(&mut pending.bytes, order, records.bytes());
            pending.commits += 1;
            pending.bytes.len()
        });
        // Relaxed: published by the Release of `leave`.
        slot.handed.store(epoch, Ordering::Relaxed);
        self.writer.last = epoch;
        self.writer.filled = filled;
        let durable = Durable::new(Arc::clone(&self.writer.durable), epoch);
        let progress = &self.writer.epochs.progress;
        if filled > MANY && !progress.is_wanted(epoch) {
            progress.want(epoch);
        }
        // Leaves the epoch.
        drop(self);
        durable
    }
}

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.writer.leave();
        if self.wakes {
            self.writer.epochs.progress.wake_logger();
        }
    }
}

/// The right to close epochs. There is one for all epochs of a store: the log thread has it.
#[derive(Debug)]
pub(super) struct Closer {
    epochs: Arc<Epochs>,
    /// The open epoch.
    open: u64,
}

/// The fate of commits after the epoch that is being closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// They are in the next epoch.
    Open,
    /// They are refused.
    Refuse,
}

impl Closer {
    /// The open epoch.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// Whether a commit is in the open epoch, or may be.
    pub(super) fn is_used(&self) -> bool {
        self.epochs.is_used(self.open)
    }

    /// Says whether committers have to wake the log thread.
    pub(super) fn set_idle(&self, is_idle: bool) {
        let flags = if is_idle { Word::IDLE } else { 0 };
        self.set(self.open, flags);
    }

    fn set(&self, epoch: u64, flags: u64) {
        let word = Word::new(epoch, flags);
        // Release: pairs with the Acquire in `Writer::enter`; hands the buffer back that was emptied
        // for the epoch before last.
        self.epochs.word.store(word.0, Ordering::Release);
    }

    /// Refuses all later commits, and takes nothing.
    pub(super) fn refuse(&self) {
        self.set(self.open, Word::FAILED);
    }

    /// Closes the open epoch: opens the next one, waits until no committer is left in the old one,
    /// and calls `take` with the bytes of each writer and the number of its commits.
    pub(super) fn close(&mut self, next: Next, mut take: impl FnMut(&[u8], u32)) {
        let closed = self.open;
        self.open += 1;
        match next {
            Next::Open => self.set(self.open, Word::SWITCHING),
            Next::Refuse => self.set(self.open, Word::FAILED),
        }
        // Pairs with the light barrier of `Writer::enter`.
        barrier::heavy();
        if next == Next::Open {
            self.set(self.open, 0);
        }
        // A writer that makes a slot later than this finds the next epoch open: the lock is between.
        let slots = self.epochs.slots.lock().unwrap().clone();
        for slot in &slots {
            let mut backoff = Backoff::new();
            // Acquire: pairs with the Release in `Writer::leave` and in the next `Writer::enter`;
            // the buffer is handed over.
            while (OUT + 1..=closed).contains(&slot.entered.load(Ordering::Acquire)) {
                if backoff.is_spent() && !MODEL {
                    // Its thread does not run.
                    std::thread::sleep(Duration::from_micros(20));
                } else {
                    backoff.wait();
                }
            }
            // Relaxed: ordered by the Acquire above.
            if slot.handed.load(Ordering::Relaxed) < closed {
                continue;
            }
            slot.pending[(closed & 1) as usize].with_mut(|pending| {
                // SAFETY: no writer is in `closed`, or can enter it any more, and this is before
                // the next epoch of the same parity is opened: `&mut self` is the only closer.
                let pending = unsafe { &mut *pending };
                take(&pending.bytes, pending.commits);
                pending.bytes.clear();
                pending.bytes.shrink_to(KEPT);
                pending.commits = 0;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_keep_their_fields(epoch in 0..1u64 << 61, flags in 0..=Word::FLAGS) {
            let word = Word::new(epoch, flags);
            prop_assert_eq!(word.epoch(), epoch);
            for flag in [Word::SWITCHING, Word::IDLE, Word::FAILED] {
                prop_assert_eq!(word.has(flag), flags & flag != 0);
            }
        }
    }
}
