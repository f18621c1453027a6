//! Where slots come from: a pool per thread and class, in chunks of a page.
//!
//! ```text
//!  chunk    0       64                                                          4096
//!  small    | head  | slot 16 B, slot, … 4 in a line      | waker 16 B, waker, … |
//!  large    | head  | slot 64 B, slot, …                  | waker 16 B, waker, … |
//! ```
//! A result of a word, or a boxed one, takes a small slot. Wakers lie apart: in a stream of
//! futures few are used. A chunk is aligned to its size, so its head, which names the pool,
//! is found from a slot's address.
//!
//! **Life of a slot.** The owner takes slots from a list of its own. What it gives back
//! itself goes there too; what others give back they push to `remote`, which the owner takes
//! whole when its list is empty (so a push need not fear that the first slot has been taken
//! and put back meanwhile).
//!
//! **Life of a pool.** A pool grows to as many slots as its thread had futures at a time, and
//! ends with the thread. Slots may be out then: the owner puts [`ORPHANED`] in place of the
//! remote list and adds their number to `out`, from which each that comes back later takes
//! one, also those that come between the two steps. The step that makes it zero is the last:
//! after it nobody knows the pool, and whoever made it frees all.

use crate::slots::{HEAD, ResultSlot, SlotPtr};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicUsize, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::{MODEL, Shadow, thread_local};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::task::Waker;

/// Bytes of a chunk, and its alignment.
const CHUNK: usize = 4096;

/// Bytes in front of a chunk's first slot.
const CHUNK_HEAD: usize = 64;

/// Words of a result in a large slot.
pub(crate) const LARGE_WORDS: usize = 7;

/// How large a slot is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// One word.
    Small = 0,
    /// [`LARGE_WORDS`].
    Large = 1,
}

impl Class {
    /// For a result of so many words.
    pub(crate) const fn of(words: usize) -> Self {
        if words <= 1 { Self::Small } else { Self::Large }
    }

    /// Bytes from one slot to the next.
    const fn stride(self) -> usize {
        match self {
            Self::Small => HEAD + 8,
            Self::Large => HEAD + 8 * LARGE_WORDS,
        }
    }

    const fn slots_per_chunk(self) -> usize {
        let fit = (CHUNK - CHUNK_HEAD) / (self.stride() + size_of::<Waker>());
        assert!(fit >= 2);
        // Few enough for the models that a second chunk is needed.
        if MODEL { 2 } else { fit }
    }
}

/// What a chunk begins with.
struct Chunk {
    pool: NonNull<Pool>,
    next: *mut Chunk,
}

const _: () = assert!(size_of::<Chunk>() <= CHUNK_HEAD);

/// The slots of one class of one thread.
struct Pool {
    class: Class,
    /// Slots to be taken. The owner's.
    free: Cell<*mut ResultSlot>,
    /// All chunks. The owner's; at last, of whoever frees them.
    chunks: Cell<*mut Chunk>,
    /// Slots in all chunks. The owner's.
    slots: Cell<usize>,
    /// Stands for the cells in the models.
    shadow: Shadow,
    /// Slots that others have given back, or [`ORPHANED`].
    remote: CachePadded<AtomicPtr<ResultSlot>>,
    /// Once orphaned: slots that are out; wraps below zero until the owner has added its
    /// number.
    out: AtomicUsize,
}

/// Stands in `remote` once the owner is gone. Never dereferenced.
const ORPHANED: *mut ResultSlot = ptr::dangling_mut();

thread_local! {
    /// The pools that this thread gives back to without an exchange.
    static OWN: Cell<[*const Pool; 2]> = const { Cell::new([ptr::null(); 2]) };
}

/// A thread's pools, made on first use.
pub(crate) struct Pools([Cell<*mut Pool>; 2]);

impl Default for Pools {
    fn default() -> Self {
        Self([const { Cell::new(ptr::null_mut()) }; 2])
    }
}

impl Pools {
    /// A slot that is in no state yet.
    #[inline(always)]
    pub(crate) fn take(&self, class: Class) -> SlotPtr {
        // SAFETY: null, or made by `make` and freed after `self` at the earliest.
        let slot = unsafe { self.0[class as usize].get().as_ref() }.and_then(Pool::pop);
        slot.unwrap_or_else(|| self.take_slowly(class))
    }

    #[cold]
    fn take_slowly(&self, class: Class) -> SlotPtr {
        let place = &self.0[class as usize];
        if place.get().is_null() {
            place.set(Pool::make(class));
            let _ = OWN.try_with(|own| {
                let mut pools = own.get();
                pools[class as usize] = place.get();
                own.set(pools);
            });
        }
        // SAFETY: as in `take`.
        unsafe { &*place.get() }.refill();
        // SAFETY: as in `take`.
        let slot = unsafe { &*place.get() }.pop();
        slot.expect("just refilled")
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        for pool in self.0.iter().map(Cell::get).filter(|pool| !pool.is_null()) {
            let _ = OWN.try_with(|own| {
                own.set(
                    own.get()
                        .map(|p| if ptr::eq(p, pool) { ptr::null() } else { p }),
                );
            });
            // SAFETY: made by `make`, and this is its owner's last step.
            unsafe { Pool::orphan(pool) };
        }
    }
}

impl Pool {
    #[allow(clippy::arc_with_non_send_sync)] // Of the owner's cells others know nothing.
    fn make(class: Class) -> *mut Self {
        // Never cloned: an `Arc` because loom finds one that is not freed.
        Arc::into_raw(Arc::new(Self {
            class,
            free: Cell::new(ptr::null_mut()),
            chunks: Cell::new(ptr::null_mut()),
            slots: Cell::new(0),
            shadow: Shadow::new(1),
            remote: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
            out: AtomicUsize::new(0),
        }))
        .cast_mut()
    }

    #[inline(always)]
    fn pop(&self) -> Option<SlotPtr> {
        let first = SlotPtr(NonNull::new(self.free.get())?);
        // SAFETY: a free slot links to the next.
        self.free.set(unsafe { first.link().read() });
        Some(first)
    }

    #[inline(always)]
    fn push(&self, slot: SlotPtr) {
        // SAFETY: a free slot links to the next.
        unsafe { slot.link().write(self.free.get()) };
        self.free.set(slot.0.as_ptr());
    }

    /// The list is empty: takes what others have given back, or makes a chunk.
    fn refill(&self) {
        // Acquire: pairs with the Release of `give_back_from_afar` (each push is a
        // read-modify-write, so they form one release sequence).
        let back = self.remote.swap(ptr::null_mut(), Ordering::Acquire);
        if !back.is_null() {
            self.free.set(back);
            return;
        }
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(CHUNK_LAYOUT) };
        let Some(chunk) = NonNull::new(memory.cast::<Chunk>()) else {
            handle_alloc_error(CHUNK_LAYOUT)
        };
        let head = Chunk {
            pool: NonNull::from(self),
            next: self.chunks.replace(chunk.as_ptr()),
        };
        // SAFETY: just allocated.
        unsafe { chunk.write(head) };
        for index in (0..self.class.slots_per_chunk()).rev() {
            let slot = slot_at(chunk, self.class, index);
            // SAFETY: inside the chunk, and nobody's.
            unsafe { SlotPtr::make(slot) };
            self.push(SlotPtr(slot));
        }
        self.slots
            .set(self.slots.get() + self.class.slots_per_chunk());
    }

    /// The owner goes away.
    ///
    /// # Safety
    /// Called once, by the owner, which does not use the pool afterwards.
    unsafe fn orphan(this: *mut Self) {
        // SAFETY: alive: it is freed when `out` has come to zero, below at the earliest.
        let pool = unsafe { &*this };
        pool.shadow.write(0, 1);
        let mut inside = length(pool.free.get());
        // Acquire: as in `refill`.
        inside += length(pool.remote.swap(ORPHANED, Ordering::Acquire));
        let out = pool.slots.get() - inside;
        // Release: pairs with the Acquire of `give_back_from_afar`: whoever frees the pool
        // sees all that its owner did. Acquire: pairs with its Release.
        let before = pool.out.fetch_add(out, Ordering::AcqRel);
        if before.wrapping_add(out) == 0 {
            // SAFETY: no slot is out, and the owner is gone.
            unsafe { Self::free_all(this) };
        }
    }

    /// # Safety
    /// Nobody else knows the pool or a slot of it.
    #[cold]
    unsafe fn free_all(this: *mut Self) {
        // SAFETY: from `Arc::into_raw` in `make`.
        let pool = unsafe { Arc::from_raw(this) };
        pool.shadow.write(0, 1);
        let mut next = pool.chunks.get();
        while let Some(chunk) = NonNull::new(next) {
            // SAFETY: made by `refill`.
            next = unsafe { chunk.read() }.next;
            for index in 0..pool.class.slots_per_chunk() {
                // SAFETY: made by `refill`, and all are back.
                unsafe { SlotPtr(slot_at(chunk, pool.class, index)).unmake() };
            }
            // SAFETY: allocated with this layout.
            unsafe { dealloc(chunk.as_ptr().cast(), CHUNK_LAYOUT) };
        }
    }
}

const CHUNK_LAYOUT: Layout = match Layout::from_size_align(CHUNK, CHUNK) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

fn slot_at(chunk: NonNull<Chunk>, class: Class, index: usize) -> NonNull<ResultSlot> {
    // SAFETY: so many fit into the chunk, see `slots_per_chunk`.
    unsafe { chunk.byte_add(CHUNK_HEAD + index * class.stride()) }.cast()
}

/// The chunk of a slot.
#[inline(always)]
fn chunk_of(slot: SlotPtr) -> *mut Chunk {
    slot.0.as_ptr().map_addr(|at| at & !(CHUNK - 1)).cast()
}

/// The place for the waker that belongs to a slot.
pub(super) fn waker_of(slot: SlotPtr) -> *mut Waker {
    let chunk = chunk_of(slot);
    // SAFETY: the slot is out, so its chunk is there.
    let pool = unsafe { (*chunk).pool };
    // SAFETY: and so is its pool, whose class never changes.
    let class = unsafe { (*pool.as_ptr()).class };
    let offset = slot.0.as_ptr().addr() - chunk.addr() - CHUNK_HEAD;
    let wakers = CHUNK_HEAD + class.slots_per_chunk() * class.stride();
    let at = wakers + offset / class.stride() * size_of::<Waker>();
    chunk.wrapping_byte_add(at).cast()
}

/// Gives a slot back to its pool, from any thread.
///
/// # Safety
/// The slot is out, and nobody else will use it.
#[inline(always)]
pub(crate) unsafe fn give_back(slot: SlotPtr) {
    // SAFETY: the slot is out, so its chunk is there.
    let pool = unsafe { (*chunk_of(slot)).pool };
    let is_own = OWN.try_with(|own| own.get().contains(&pool.as_ptr().cast_const()));
    if is_own.unwrap_or(false) {
        // SAFETY: this thread's own, so it is there and nobody else uses its list.
        unsafe { pool.as_ref() }.push(slot);
    } else {
        // SAFETY: the caller's duty.
        unsafe { give_back_from_afar(pool, slot) };
    }
}

/// # Safety
/// As [`give_back`]; `pool` is the slot's.
#[inline(never)]
unsafe fn give_back_from_afar(pool: NonNull<Pool>, slot: SlotPtr) {
    // SAFETY: there as long as a slot is out. Its cells are the owner's, so no reference to
    // the whole.
    let remote = unsafe { &(*pool.as_ptr()).remote };
    // Relaxed: the exchange below decides; ORPHANED is the last value.
    let mut first = remote.load(Ordering::Relaxed);
    while first != ORPHANED {
        // SAFETY: a free slot links to the next.
        unsafe { slot.link().write(first) };
        // Release: pairs with the Acquire of `refill` and `orphan`; hands the slot over.
        match remote.compare_exchange_weak(
            first,
            slot.0.as_ptr(),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
    // SAFETY: as above.
    let out = unsafe { &(*pool.as_ptr()).out };
    // Release: we are done with the slot. Acquire: pairs with the Release of all others.
    if out.fetch_sub(1, Ordering::AcqRel) == 1 {
        // SAFETY: ours was the last slot, and the owner is gone.
        unsafe { Pool::free_all(pool.as_ptr()) };
    }
}

/// How many slots a list has.
fn length(mut list: *mut ResultSlot) -> usize {
    let mut length = 0;
    while let Some(slot) = NonNull::new(list) {
        length += 1;
        // SAFETY: a free slot links to the next.
        list = unsafe { SlotPtr(slot).link().read() };
    }
    length
}
