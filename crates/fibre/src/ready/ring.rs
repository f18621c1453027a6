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
use corelay_sync::facade::cell::{UnsafeCell, place_of};
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
    /// All buffers, the current one last.
    #[expect(clippy::vec_box, reason = "takers hold their addresses")]
    buffers: UnsafeCell<Vec<Box<Buffer<T>>>>,
}

struct Buffer<T> {
    slots: Box<[AtomicPtr<T>]>,
}

// SAFETY: items are passed on whole, from the one that pushes to the one that takes; `buffers`
// is the owner's.
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

    /// Adds `item` behind the others.
    ///
    /// # Safety
    /// Only the owner.
    #[inline]
    pub(crate) unsafe fn push(&self, item: NonNull<T>) {
        let tail = load_own(&self.end.tail);
        // Acquire: pairs with the Release in `take`: the slot has been read by who took it.
        let head = self.head.load(Ordering::Acquire);
        // Relaxed: our own store.
        let buffer = self.end.buffer.load(Ordering::Relaxed);
        // SAFETY: the current buffer, which lives as long as the ring.
        let mut buffer = unsafe { &*buffer };
        if tail - head == buffer.slots.len() as u64 {
            // SAFETY: the owner.
            buffer = unsafe { self.grow(buffer, head, tail) };
        }
        // Relaxed: published by the tail.
        buffer.at(tail).store(item.as_ptr(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `take`; publishes the slot, the item and the buffer.
        self.end.tail.store(tail + 1, Ordering::Release);
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
        // Release: pairs with the Acquire in `take`; publishes the slots.
        self.end.buffer.store(buffer.cast_mut(), Ordering::Release);
        // SAFETY: it lives as long as the ring.
        unsafe { &*buffer }
    }

    /// Takes the first items, as many as `count` says of the number there are, [`MOST`] at most,
    /// and passes them to `give`, first to last. The number taken: 0 where there are none or
    /// another one has been faster.
    #[inline]
    pub(crate) fn take(
        &self,
        count: impl FnOnce(usize) -> usize,
        mut give: impl FnMut(NonNull<T>),
    ) -> usize {
        // Acquire: pairs with the Release below; the tail that is read next is not older.
        let head = self.head.load(Ordering::Acquire);
        // Acquire: pairs with the Release in `push`.
        let tail = self.end.tail.load(Ordering::Acquire);
        let there = tail.saturating_sub(head) as usize;
        let n = count(there).min(there).min(MOST);
        if n == 0 {
            return 0;
        }
        // Acquire: pairs with the Release in `grow`.
        let buffer = self.end.buffer.load(Ordering::Acquire);
        // SAFETY: a buffer lives as long as the ring.
        let buffer = unsafe { &*buffer };
        let mut items = [std::ptr::null_mut(); MOST];
        for (position, item) in (head..).zip(&mut items[..n]) {
            // Relaxed: shown by the tail. Where it has been written again, the exchange fails.
            *item = buffer.at(position).load(Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `push`: the slots have been read. Acquire: pairs
        // with the Release of takers before, so that the order of takers is one.
        if self
            .head
            .compare_exchange(head, head + n as u64, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return 0;
        }
        for item in items[..n].iter().copied().filter_map(NonNull::new) {
            give(item);
        }
        n
    }
}

/// Items taken at once, at most.
pub(crate) const MOST: usize = if MODEL { 2 } else { 32 };
