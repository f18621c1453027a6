//! The slots of running transactions: which of them may still hold pointers to old memory.
//!
//! A transaction claims a slot, and pins it for as long as it runs. Memory that a commit replaces
//! is *retired* with the epoch of that moment, and freed when the epoch is two further on. The
//! epoch advances only if every pinned slot has seen the present one (Fraser, 2004; the order of
//! the fences is that of `crossbeam-epoch`).
//!
//! Here a pin can be taken back, so that a transaction that sleeps does not keep all memory:
//!
//! ```text
//!            begin            operation           end
//!   QUIET ──────────► BUSY ◄────────────► IDLE ─────────► QUIET
//!                                          │ refuse: the attempt's number, heavy barrier, IDLE still
//!                                          ▼
//!                                       REFUSED: does not hold the epoch; the next operation fails
//! ```
//!
//! **Why a refusal is safe.** An operation stores BUSY, passes a light barrier, and looks whether
//! its attempt has been refused. The refuser writes the attempt's number, passes a heavy barrier,
//! and looks at the state. One of the barriers comes first: either the operation sees that it is
//! refused, and touches nothing; or the refuser sees BUSY, and does not count the slot as refused.
//! Once it has seen IDLE after its barrier, every later operation of this attempt sees the number.

use super::claim::Claim;
use super::limbo::Limbo;
use super::slab::{Cache, Slabs};
use super::sweep::Entry;
use super::work::Work;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence,
};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::thread_local;
use corelay_sync::{CachePadded, barrier};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

pub(super) const QUIET: u64 = 0;
pub(super) const BUSY: u64 = 1;
pub(super) const IDLE: u64 = 2;
/// The epoch stands above the state in a slot's word.
pub(super) const SHIFT: u32 = 2;

/// Slots in the first block; each later block has twice as many as the one before.
const FIRST: usize = if MODEL { 4 } else { 8 };
/// Blocks: enough for half a million transactions at a time.
const BLOCKS: usize = 16;

/// The time of a slot whose transaction is about to draw the time from which it reads.
pub(super) const DRAWING: u64 = 0;
/// The time of a slot whose transaction reads only what is newest.
pub(crate) const NO_TIME: u64 = u64::MAX;

thread_local! {
    /// The number of the slot that this thread had last, in whichever store.
    static HINT: Cell<usize> = const { Cell::new(0) };
}

/// The slot of one running transaction, and the memory that its transactions have retired.
pub(crate) struct Slot {
    pub(super) taken: AtomicBool,
    /// The epoch and the state.
    pub(super) pin: AtomicU64,
    /// The number of attempts that were pinned here, the running one included.
    pub(super) attempt: AtomicU64,
    /// The number of the attempt that must touch nothing more.
    pub(super) refused: AtomicU64,
    /// The number of the attempt that was found idle after it had been refused.
    pub(super) asleep: AtomicU64,
    /// The number of the attempt that was in the way when memory was short.
    pub(super) suspected: AtomicU64,
    /// The number of commits of this slot's transactions.
    pub(super) commits: AtomicU64,
    /// The oldest time at which the running transaction may read.
    pub(super) since: AtomicU64,
    /// Bytes of versions that transactions of this slot have replaced, less those that they have
    /// freed.
    pub(super) retained: AtomicU64,
    /// The part that only the owner of the slot touches.
    pub(super) own: UnsafeCell<Own>,
}

/// The part of a slot that its owner has for itself, and leaves to the next one.
#[derive(Default)]
pub(super) struct Own {
    /// The sets of a transaction. Absent while one runs.
    pub(super) work: Option<Box<Work>>,
    pub(super) limbo: Limbo,
    /// Bytes of versions that this slot's commits have replaced and kept for older readers, less
    /// those that it has cut off: below zero if others have replaced them.
    pub(super) kept: u64,
    pub(super) cache: Cache,
    /// Records whose old versions are to be cut off, the oldest commit first.
    pub(super) queue: VecDeque<Entry>,
}

// SAFETY: `own` is touched only by the transaction that has claimed the slot by `taken`, whose
// Acquire pairs with the Release of the one before; everything else is atomic. `Own` is `Send`.
unsafe impl Sync for Slot {}

/// The slots of a store, and its epoch.
pub(crate) struct Pins {
    pub(super) epoch: CachePadded<AtomicU64>,
    /// Slots that have ever been claimed: those below this number.
    used: CachePadded<AtomicUsize>,
    blocks: [AtomicPtr<CachePadded<Slot>>; BLOCKS],
    /// The memory that slots hand out. Dropped after the slots.
    slabs: Arc<Slabs>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            taken: AtomicBool::new(false),
            pin: AtomicU64::new(QUIET),
            attempt: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            asleep: AtomicU64::new(0),
            suspected: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            since: AtomicU64::new(NO_TIME),
            retained: AtomicU64::new(0),
            own: UnsafeCell::new(Own::default()),
        }
    }
}

/// The block and the place within it of slot `number`.
fn place(number: usize) -> (usize, usize) {
    let above = number + FIRST;
    let block = (above / FIRST).ilog2() as usize;
    (block, above - (FIRST << block))
}

impl Pins {
    pub(crate) fn new() -> Self {
        Self {
            epoch: CachePadded::new(AtomicU64::new(2)),
            used: CachePadded::new(AtomicUsize::new(0)),
            blocks: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            slabs: Arc::new(Slabs::new()),
        }
    }

    pub(crate) fn slabs(&self) -> &Arc<Slabs> {
        &self.slabs
    }

    fn slot(&self, number: usize) -> &Slot {
        let (block, at) = place(number);
        // Acquire: pairs with the Release in `grow`.
        let first = self.blocks[block].load(Ordering::Acquire);
        assert!(!first.is_null(), "a slot in a block that was never made");
        // SAFETY: a block has `FIRST << block` slots, and `at` is less.
        let slot = unsafe { first.add(at) };
        // SAFETY: blocks live as long as the store.
        unsafe { &*slot }
    }

    /// Claims a slot for a transaction, preferably the one that this thread had last.
    pub(crate) fn claim(&self) -> Claim<'_> {
        let hint = HINT.try_with(Cell::get).unwrap_or(0);
        // Acquire: pairs with the Release in `grow`; the block of each slot below it is there.
        let used = self.used.load(Ordering::Acquire);
        if hint < used
            && let Some(claim) = self.try_claim(hint)
        {
            return claim;
        }
        self.claim_any(used)
    }

    #[cold]
    #[inline(never)]
    fn claim_any(&self, mut used: usize) -> Claim<'_> {
        let claim = loop {
            if let Some(claim) = (0..used).find_map(|number| self.try_claim(number)) {
                break claim;
            }
            used = self.grow(used);
        };
        let _ = HINT.try_with(|hint| hint.set(claim.number()));
        claim
    }

    #[inline]
    fn try_claim(&self, number: usize) -> Option<Claim<'_>> {
        let slot = self.slot(number);
        // Acquire: pairs with the Release in `Claim::drop`; the slot's sets and counts are handed
        // over. A failure says nothing.
        let is_free = slot
            .taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        is_free.then(|| Claim::new(self, slot, number))
    }

    /// Makes one slot more than `used` claimable. Returns the number of those that are.
    fn grow(&self, used: usize) -> usize {
        let (block, at) = place(used);
        assert!(block < BLOCKS, "half a million transactions at a time");
        // Relaxed: only compared.
        if at == 0 && self.blocks[block].load(Ordering::Relaxed).is_null() {
            let slots: Box<[CachePadded<Slot>]> = (0..FIRST << block)
                .map(|_| CachePadded::default())
                .collect();
            let first = Box::into_raw(slots).cast();
            // Release: pairs with the Acquire in `slot`.
            let placed = self.blocks[block].compare_exchange(
                std::ptr::null_mut(),
                first,
                Ordering::Release,
                Ordering::Relaxed,
            );
            if placed.is_err() {
                let slots = std::ptr::slice_from_raw_parts_mut(first, FIRST << block);
                // SAFETY: these are the slots that were boxed above, and nobody has seen them.
                drop(unsafe { Box::from_raw(slots) });
            }
        }
        // AcqRel: a thread that reads the new number finds the block, and so does this one if another
        // thread was faster.
        let grown = self
            .used
            .compare_exchange(used, used + 1, Ordering::AcqRel, Ordering::Acquire);
        grown.map_or_else(|now| now, |_| used + 1)
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        // Acquire: pairs with the Release in `grow`.
        (0..self.used.load(Ordering::Acquire)).map(|number| self.slot(number))
    }

    /// Advances the epoch if every pinned slot has seen the present one. Returns the epoch.
    pub(super) fn advance(&self) -> u64 {
        // Acquire: pairs with the Release below, of whoever has advanced it.
        let epoch = self.epoch.load(Ordering::Acquire);
        // SeqCst: pairs with the fences of `Claim::pin` and `Claim::unpin`.
        fence(Ordering::SeqCst);
        if self.slots().any(|slot| slot.holds(epoch)) {
            return epoch;
        }
        // Release: hands on what transactions did that were pinned in older epochs. A failure: another
        // thread has advanced it.
        let advanced =
            self.epoch
                .compare_exchange(epoch, epoch + 1, Ordering::Release, Ordering::Acquire);
        advanced.map_or_else(|now| now, |_| epoch + 1)
    }

    /// Refuses every transaction that sleeps between two operations, keeps old memory from being
    /// freed, and did so already at the last call. Returns their number.
    #[cold]
    pub(crate) fn refuse_sleepers(&self, but: &Slot) -> u64 {
        // Relaxed: an old epoch refuses fewer.
        let epoch = self.epoch.load(Ordering::Relaxed);
        let is_in_the_way = |slot: &Slot| {
            // Relaxed: a guess.
            let reads_old = slot.since.load(Ordering::Relaxed) != NO_TIME;
            !std::ptr::eq(slot, but) && (slot.holds(epoch) || reads_old)
        };
        let mut refused = Vec::new();
        for slot in self.slots().filter(|slot| is_in_the_way(slot)) {
            // Relaxed, all: the barrier orders it, and the attempt's number tells them apart.
            let attempt = slot.attempt.load(Ordering::Relaxed);
            let is_idle = slot.pin.load(Ordering::Relaxed) & 3 == IDLE;
            let was_there = slot.suspected.swap(attempt, Ordering::Relaxed) == attempt;
            if is_idle && was_there && slot.asleep.load(Ordering::Relaxed) != attempt {
                slot.refused.store(attempt, Ordering::Relaxed);
                refused.push((slot, attempt));
            }
        }
        if refused.is_empty() {
            return 0;
        }
        barrier::heavy();
        let mut count = 0;
        for (slot, attempt) in refused {
            // Acquire: pairs with the Release of `Claim::leave`; its reads are over.
            let is_idle = slot.pin.load(Ordering::Acquire) & 3 == IDLE;
            // Relaxed: a later attempt is not refused by this number.
            if is_idle && slot.attempt.load(Ordering::Relaxed) == attempt {
                // Release: whoever reads it knows that the transaction's reads are over.
                slot.asleep.store(attempt, Ordering::Release);
                count += 1;
            }
        }
        count
    }

    /// The oldest time at which a running transaction may read, or `latest` if that is older.
    /// Transactions that begin later read at `latest` or later: the caller has made sure of that.
    pub(crate) fn oldest(&self, latest: u64) -> u64 {
        // SeqCst: pairs with the fence of `Claim::pin`: a transaction whose slot is not seen to be
        // pinned draws its time after `latest` was.
        fence(Ordering::SeqCst);
        let times = self.slots().map(|slot| {
            // Acquire: pairs with the Release in `Claim::read_since` and `unpin`.
            let since = slot.since.load(Ordering::Acquire);
            if since < latest && slot.is_asleep() {
                NO_TIME
            } else {
                since
            }
        });
        times.min().unwrap_or(NO_TIME).min(latest)
    }

    /// The commits of all transactions.
    pub(crate) fn commits(&self) -> u64 {
        // Relaxed: counts.
        self.slots()
            .map(|slot| slot.commits.load(Ordering::Relaxed))
            .sum()
    }

    /// The bytes of old versions and other retired memory that are not yet freed.
    pub(crate) fn retained(&self) -> u64 {
        // Relaxed: counts. A slot that frees another one's memory counts below zero.
        let counts = self
            .slots()
            .map(|slot| slot.retained.load(Ordering::Relaxed));
        counts
            .fold(0, u64::wrapping_add)
            .cast_signed()
            .max(0)
            .cast_unsigned()
    }
}

impl Slot {
    /// Whether the slot is pinned, and has not seen `epoch`.
    fn holds(&self, epoch: u64) -> bool {
        // Acquire: pairs with the Release in `Claim::pin` and `Claim::unpin`; what was done under older
        // pins happened before. Fences of the caller order it otherwise.
        let pin = self.pin.load(Ordering::Acquire);
        pin & 3 != QUIET && pin >> SHIFT != epoch && !self.is_asleep()
    }

    /// Whether the slot's transaction has been refused and touches nothing more.
    fn is_asleep(&self) -> bool {
        // Acquire: pairs with the Release in `refuse_sleepers`. Relaxed: if a later attempt has
        // begun, the numbers differ, or this thread does not see it yet, as with any pin.
        let asleep = self.asleep.load(Ordering::Acquire);
        asleep != 0 && asleep == self.attempt.load(Ordering::Relaxed)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        for (block, first) in self.blocks.iter().enumerate() {
            // Relaxed: nobody else has the store any more.
            let first = first.load(Ordering::Relaxed);
            if first.is_null() {
                continue;
            }
            let slots = std::ptr::slice_from_raw_parts_mut(first, FIRST << block);
            // SAFETY: `grow` boxed them; no transaction runs any more, since each borrows the
            // store.
            drop(unsafe { Box::from_raw(slots) });
        }
    }
}

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pins")
            .field("epoch", &self.epoch)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}
