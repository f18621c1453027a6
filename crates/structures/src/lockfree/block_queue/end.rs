//! An end of the queue: how far it has got, and in which block.
//!
//! Slots are claimed in order, by *positions*. Those of a lap are `SLOTS` slots of one block, and
//! the end of the block, at which the end of the queue stands until it has moved to the next one:
//!
//! ```text
//!   position   0   1   2   3   4   5   6   7      SLOTS = 3
//!   lap        0   0   0   0   1   1   1   1
//!   slot       0   1   2  end  0   1   2  end
//! ```
//!
//! # Why a claimed slot lies in the block that was read
//! The block is replaced while the position is at the end of its lap, and only then does the position
//! enter the next lap. A thread reads the position, then the block, and then claims by a
//! compare-exchange of the position, which has thus not changed meanwhile.
//!
//! * *The block is not too old.* The position enters a lap by a thread that has replaced the block,
//!   or whose compare-exchange has found it replaced. It is written with Release then, and read
//!   with Acquire. By coherence no older block is read after that.
//! * *The block is not too new.* The thread that replaces it has read the end of the lap with
//!   Acquire, from the claims of the lap, which are Release. So the claim comes before it, and with
//!   it the read of the block.
//!
//! Until it has claimed, the thread does not follow the pointer.

use super::block::{Block, Slot};
use crate::step::step;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicU64, Ordering};
use corelay_sync::facade::hint;

/// The longest wait after a lost race is 2 to this power pauses, about a microsecond.
const LONGEST_PAUSE: u32 = 6;

/// Losses until a thread insists, after about 60 microseconds. To take an end from another thread
/// costs some transfers of cache lines, and this makes it rare: two threads that push and pop in
/// turn take 9 ns for a pair of calls (example `rivals`, two virtual CPUs of an AMD EPYC). If the
/// place is always read after the pause, they take more than five times as long.
const PATIENCE: u32 = 64;

/// The head or the tail.
pub(super) struct End<T, const SLOTS: usize> {
    position: AtomicU64,
    block: AtomicPtr<Block<T, SLOTS>>,
}

/// Where an end stood when it was read.
pub(super) struct Place<T, const SLOTS: usize> {
    pub(super) position: u64,
    block: *mut Block<T, SLOTS>,
}

/// What has come of an attempt to claim a slot.
pub(super) enum Claim<T> {
    /// The slot is the caller's.
    Slot(*const Slot<T>),
    /// Another thread was faster.
    Lost,
    /// The block is at its end.
    AtEnd,
}

impl<T, const SLOTS: usize> End<T, SLOTS> {
    /// The positions of a lap.
    const LAP: u64 = SLOTS as u64 + 1;

    /// An end at the first slot of the first block.
    pub(super) fn new(block: *mut Block<T, SLOTS>) -> Self {
        Self {
            position: AtomicU64::new(0),
            block: AtomicPtr::new(block),
        }
    }

    #[inline]
    pub(super) fn position(&self) -> u64 {
        step();
        // Acquire: pairs with the Release in `claim` and `advance`; see the module. Besides, what
        // came before a push is seen by a thread that finds the tail past its value.
        self.position.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn place(&self) -> Place<T, SLOTS> {
        Place {
            position: self.position(),
            // Relaxed: see the module.
            block: self.block.load(Ordering::Relaxed),
        }
    }

    /// Where to try again after a lost race.
    ///
    /// The place is read before a pause, not after it, and pauses grow: a race is lost again unless
    /// the end was at rest meanwhile. So while one thread works at the end without rest, others
    /// hardly take the cache line from it, which costs more than to wait. After some losses the
    /// place is read after the pause, so that a thread gets its turn also if there is no rest.
    #[cold]
    pub(super) fn place_after_loss(&self, losses: &mut u32) -> Place<T, SLOTS> {
        let place = self.place();
        for _ in 0..1u32 << (*losses).min(LONGEST_PAUSE) {
            hint::spin_loop();
        }
        *losses += 1;
        if losses.is_multiple_of(PATIENCE) {
            return self.place();
        }
        place
    }

    /// Claims the slot at `place`.
    #[inline]
    pub(super) fn claim(&self, place: &Place<T, SLOTS>) -> Claim<T> {
        let &Place { position, block } = place;
        let slot = (position % Self::LAP) as usize;
        if slot == SLOTS {
            return Claim::AtEnd;
        }
        // Release: pairs with the Acquire in `position`; see the module.
        let (claimed, lost) = (Ordering::Release, Ordering::Relaxed);
        let next = position + 1;
        if self
            .position
            .compare_exchange(position, next, claimed, lost)
            .is_err()
        {
            return Claim::Lost;
        }
        // SAFETY: the slot lies in the block, see the module, which is not freed before the caller
        // leaves it.
        Claim::Slot(unsafe { &raw const (*block).slots[slot] })
    }

    /// Moves from `end`, the end of a lap, to the first slot of the next block, or by `skip` further.
    /// If the block was not replaced yet, `next` says by which one. All of that another thread may
    /// have done.
    ///
    /// # Safety
    /// The caller is a [visitor](super::stock), and `end` was read from this end.
    pub(super) unsafe fn advance(
        &self,
        end: u64,
        skip: u64,
        next: impl FnOnce(&Block<T, SLOTS>) -> *mut Block<T, SLOTS>,
    ) {
        let block = self.block();
        // SAFETY: the caller is a visitor (its duty).
        let it = unsafe { &*block };
        if it.lap() == end / Self::LAP {
            // Release: pairs with the Acquire in `block`; the next block is initialised. Relaxed: if
            // another thread has replaced the block, coherence is enough; see the module.
            let (replaced, by_another) = (Ordering::Release, Ordering::Relaxed);
            let next = next(it);
            // No block is used again while the caller visits: a block that was replaced does not
            // come back.
            _ = self
                .block
                .compare_exchange(block, next, replaced, by_another);
        }
        // Release: pairs with the Acquire in `position`; see the module.
        let (moved, not) = (Ordering::Release, Ordering::Relaxed);
        let to = end + 1 + skip;
        _ = self.position.compare_exchange(end, to, moved, not);
    }

    /// The block, to be followed by a [visitor](super::stock).
    pub(super) fn block(&self) -> *mut Block<T, SLOTS> {
        step();
        // Acquire: pairs with the Release in `advance`; the block is initialised.
        self.block.load(Ordering::Acquire)
    }
}
