//! The ready fibres of a processor that others may take: one pushes, all take, first come first
//! served.
//!
//! A ring of slots that doubles when it is full; positions are 64-bit counts and never wrap.
//! Whoever takes moves `head` by an exchange, the owner too, and several items at once, so that
//! its exchange is paid for by a batch.
//!
//! An item may be read before the exchange that makes it ours: a slot is written again only
//! when `head` has passed it, and then the exchange fails. An old buffer keeps what it had, so a
//! taker that still reads there reads what its position holds in the new one too; buffers are
//! freed with the ring, all old ones together are smaller than the last.

use corelay_sync::CachePadded;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicU64, Ordering, load_own};
use corelay_sync::facade::cell::{Cell, UnsafeCell, place_of};
use std::ptr::NonNull;

/// Slots at first.
const SLOTS: usize = if MODEL { 2 } else { 64 };

pub(crate) struct Ring<T> {
    head: CachePadded<AtomicU64>,
    end: CachePadded<End<T>>,
}

/// The owner's end, where only it writes.
struct End<T> {
    tail: AtomicU64,
    buffer: AtomicPtr<Buffer<T>>,
    // What only the owner looks at.
    /// The slots of the buffer, and their number less one.
    slots: Cell<*const AtomicPtr<T>>,
    mask: Cell<u64>,
    /// The tail at which there may be no room: takers have moved the head since.
    full_at: Cell<u64>,
    /// All buffers, the current one last.
    #[expect(clippy::vec_box, reason = "takers hold their addresses")]
    buffers: UnsafeCell<Vec<Box<Buffer<T>>>>,
}

struct Buffer<T> {
    slots: Box<[AtomicPtr<T>]>,
}

// SAFETY: items are passed on whole, from the one that pushes to the one that takes; `buffers` and
// the cells are the owner's.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Buffer<T> {
    fn new(slots: usize) -> Box<Self> {
        Box::new(Self {
            slots: (0..slots).map(|_| AtomicPtr::default()).collect(),
        })
    }

    /// The slot of a position.
    #[inline(always)]
    fn at(&self, position: u64) -> &AtomicPtr<T> {
        // A power of two.
        &self.slots[position as usize & (self.slots.len() - 1)]
    }
}

impl<T> Ring<T> {
    pub(crate) fn new() -> Self {
        let buffer = Buffer::new(SLOTS);
        let first = (&raw const *buffer).cast_mut();
        Self {
            head: CachePadded::new(AtomicU64::new(0)),
            end: CachePadded::new(End {
                tail: AtomicU64::new(0),
                slots: Cell::new(buffer.slots.as_ptr()),
                mask: Cell::new(SLOTS as u64 - 1),
                full_at: Cell::new(SLOTS as u64),
                buffer: AtomicPtr::new(first),
                buffers: UnsafeCell::new(vec![buffer]),
            }),
        }
    }

    /// About how many items there are: exactly, for the owner, where nobody takes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        // Relaxed: a guess.
        let head = self.head.load(Ordering::Relaxed);
        self.end.tail.load(Ordering::Relaxed).saturating_sub(head) as usize
    }

    /// Adds `item` behind the others; false where it does not know of any room, which
    /// [`make_room`](Self::make_room) finds.
    ///
    /// # Safety
    /// Only the owner.
    #[inline(always)]
    pub(crate) unsafe fn try_push(&self, item: NonNull<T>) -> bool {
        let end = &self.end;
        let tail = load_own(&end.tail);
        if tail == end.full_at.get() {
            return false;
        }
        let slot = (end.slots.get()).wrapping_add((tail & end.mask.get()) as usize);
        // SAFETY: a slot of the current buffer, which lives as long as the ring.
        let slot = unsafe { &*slot };
        // Relaxed: published by the tail.
        slot.store(item.as_ptr(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `claim`; publishes the slot, the item and the buffer.
        end.tail.store(tail + 1, Ordering::Release);
        true
    }

    /// Sees what has been taken; where nothing has, there are more slots from now on.
    ///
    /// # Safety
    /// Only the owner.
    #[cold]
    pub(crate) unsafe fn make_room(&self) {
        let tail = load_own(&self.end.tail);
        // Acquire: pairs with the Release in `claim`: slots have been read by who took them.
        let head = self.head.load(Ordering::Acquire);
        // Relaxed: our own store.
        let buffer = self.end.buffer.load(Ordering::Relaxed);
        // SAFETY: the current buffer, which lives as long as the ring.
        let mut buffer = unsafe { &*buffer };
        if tail - head == buffer.slots.len() as u64 {
            // SAFETY: the owner.
            buffer = unsafe { self.grow(buffer, head, tail) };
            self.end.slots.set(buffer.slots.as_ptr());
            self.end.mask.set(buffer.slots.len() as u64 - 1);
        }
        self.end.full_at.set(head + buffer.slots.len() as u64);
    }

    /// Twice as many slots.
    ///
    /// # Safety
    /// Only the owner.
    #[cold]
    unsafe fn grow(&self, old: &Buffer<T>, head: u64, tail: u64) -> &Buffer<T> {
        let new = Buffer::new(2 * old.slots.len());
        for position in head..tail {
            // Relaxed: our own stores; published by the tail, with the buffer.
            let item = old.at(position).load(Ordering::Relaxed);
            new.at(position).store(item, Ordering::Relaxed);
        }
        let buffer = &raw const *new;
        // SAFETY: only the owner uses the list.
        unsafe { &mut *place_of(&self.end.buffers) }.push(new);
        // Release: pairs with the Acquire in `claim`; publishes the slots.
        self.end.buffer.store(buffer.cast_mut(), Ordering::Release);
        // SAFETY: it lives as long as the ring.
        unsafe { &*buffer }
    }

    /// Takes the first items, as many as `count` says of the number there are, [`MAX_BATCH`] at most,
    /// and passes them to `give`, first to last. The number taken: 0 where there are none or
    /// another one has been faster.
    #[inline]
    pub(crate) fn take(
        &self,
        count: impl FnOnce(usize) -> usize,
        mut give: impl FnMut(NonNull<T>),
    ) -> usize {
        let mut items = [std::ptr::null_mut(); MAX_BATCH];
        let n = self.claim(
            |there| count(there).min(MAX_BATCH),
            |at, item| items[at] = item,
        );
        for item in items[..n].iter().copied().filter_map(NonNull::new) {
            give(item);
        }
        n
    }

    /// As [`take`](Self::take), without a limit: `show` gets each item and its place among them
    /// before they are taken, and not for good where the result is 0.
    #[inline(always)]
    pub(crate) fn claim(
        &self,
        count: impl FnOnce(usize) -> usize,
        mut show: impl FnMut(usize, *mut T),
    ) -> usize {
        // Acquire: pairs with the Release below; the tail that is read next is not older.
        let head = self.head.load(Ordering::Acquire);
        // Acquire: pairs with the Release in `try_push`.
        let tail = self.end.tail.load(Ordering::Acquire);
        let there = tail.saturating_sub(head) as usize;
        let n = count(there).min(there);
        if n == 0 {
            return 0;
        }
        // Acquire: pairs with the Release in `grow`.
        let buffer = self.end.buffer.load(Ordering::Acquire);
        // SAFETY: a buffer lives as long as the ring.
        let buffer = unsafe { &*buffer };
        let slots = &*buffer.slots;
        for at in 0..n {
            // A power of two.
            let slot = &slots[(head as usize + at) & (slots.len() - 1)];
            // Relaxed: shown by the tail. Where it has been written again, the exchange fails.
            show(at, slot.load(Ordering::Relaxed));
        }
        // Release: pairs with the Acquire in `make_room`: the slots have been read. Acquire: pairs
        // with the Release of takers before, so that the order of takers is one.
        let taken =
            self.head
                .compare_exchange(head, head + n as u64, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_ok() { n } else { 0 }
    }
}

/// Items taken at once, at most.
pub(crate) const MAX_BATCH: usize = if MODEL { 2 } else { 32 };
