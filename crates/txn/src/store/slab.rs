//! Memory for records and versions: blocks of a few sizes, cut from large chunks.
//!
//! A store replaces its rows all the time, on every thread. A general allocator then spends more
//! time than the transaction, and spreads rows over so many pages that each read misses the
//! translation cache. Here chunks are large pages where the system gives them, and a slot hands out
//! the block that it has freed last. Blocks that a slot frees beyond what it keeps go to a depot
//! that all share. Chunks are freed with the store and its tables.
//!
//! Large values, and those of unusual alignment, come from the global allocator.

use corelay_sync::facade::sync::Mutex;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;

/// The size of a chunk in bytes: a large page of x86-64, and of aarch64 with 4 KiB pages.
const CHUNK: usize = 2 << 20;

/// The line that sizes and addresses of blocks are multiples of, except for the smallest.
const LINE: usize = 64;

/// The largest block in bytes.
const LARGEST: usize = 4096;

/// The classes: 32 bytes, and every multiple of a line up to [`LARGEST`].
const CLASSES: usize = 1 + LARGEST / LINE;

/// Bytes that move between a slot and the depot at a time.
const BATCH: usize = 32 << 10;

/// A size of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    /// The class of blocks for a `T`. None if it comes from the global allocator.
    pub(crate) const fn of<T>() -> Option<Self> {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        // Sanitizers and checkers watch the global allocator.
        if cfg!(any(corelay_asan, corelay_loom, corelay_shuttle)) || size > LARGEST || align > LINE
        {
            return None;
        }
        if size <= 32 && align <= 32 && size != 0 {
            return Some(Self(0));
        }
        Some(Self(if size == 0 {
            1
        } else {
            size.div_ceil(LINE) as u8
        }))
    }

    const fn bytes(self) -> usize {
        if self.0 == 0 {
            32
        } else {
            self.0 as usize * LINE
        }
    }

    /// Blocks that move between a slot and the depot at a time.
    const fn batch(self) -> usize {
        BATCH / self.bytes()
    }
}

/// The chunks of a store, and the blocks that no slot keeps.
pub(crate) struct Slabs {
    depot: Mutex<Depot>,
}

struct Depot {
    chunks: Vec<NonNull<u8>>,
    /// The rest of the youngest chunk: its first byte and its length.
    rest: (usize, usize),
    free: Vec<Vec<NonNull<u8>>>,
}

// SAFETY: the depot owns its blocks; which thread uses them does not matter.
unsafe impl Send for Depot {}

/// Blocks that one slot keeps.
pub(crate) struct Cache {
    free: [Vec<NonNull<u8>>; CLASSES],
}

// SAFETY: the cache owns its blocks; which thread uses them does not matter.
unsafe impl Send for Cache {}

impl Default for Cache {
    fn default() -> Self {
        Self {
            free: [const { Vec::new() }; CLASSES],
        }
    }
}

impl Slabs {
    pub(crate) fn new() -> Self {
        let free = (0..CLASSES).map(|_| Vec::new()).collect();
        let (chunks, rest) = (Vec::new(), (0, 0));
        Self {
            depot: Mutex::new(Depot { chunks, rest, free }),
        }
    }

    /// The bytes of all chunks.
    pub(crate) fn bytes(&self) -> usize {
        self.with(|depot| depot.chunks.len() * CHUNK)
    }

    fn with<R>(&self, f: impl FnOnce(&mut Depot) -> R) -> R {
        f(&mut self
            .depot
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Fills a slot's list of free blocks.
    #[cold]
    #[inline(never)]
    fn fill(&self, class: Class, list: &mut Vec<NonNull<u8>>) {
        self.with(|depot| {
            let kept = &mut depot.free[usize::from(class.0)];
            list.extend(kept.drain(kept.len().saturating_sub(class.batch())..));
            if list.is_empty() {
                depot.cut(class, list);
            }
        });
    }

    /// Takes blocks that a slot does not keep.
    #[cold]
    #[inline(never)]
    fn take(&self, class: Class, list: &mut Vec<NonNull<u8>>) {
        // The oldest, which are in no cache any more.
        let blocks = list.drain(..class.batch());
        self.with(|depot| depot.free[usize::from(class.0)].extend(blocks));
    }
}

impl Depot {
    /// Cuts a batch of blocks off the youngest chunk, or a new one.
    fn cut(&mut self, class: Class, list: &mut Vec<NonNull<u8>>) {
        let bytes = class.bytes();
        if self.rest.1 < bytes {
            self.chunks.push(chunk());
            self.rest = (0, CHUNK);
        }
        let Some(chunk) = self.chunks.last() else {
            return;
        };
        let count = class.batch().min(self.rest.1 / bytes);
        // The next block to be taken is the last.
        for at in (0..count).rev() {
            // SAFETY: within the chunk: `rest` is what is left of it.
            list.push(unsafe { chunk.add(self.rest.0 + at * bytes) });
        }
        // Blocks of whole lines begin at a line.
        let used = (count * bytes).next_multiple_of(LINE);
        self.rest = (self.rest.0 + used, self.rest.1.saturating_sub(used));
    }
}

const LAYOUT: Layout = match Layout::from_size_align(CHUNK, CHUNK) {
    Ok(layout) => layout,
    Err(_) => panic!("a chunk's layout"),
};

fn chunk() -> NonNull<u8> {
    // SAFETY: the layout has a size.
    let chunk = unsafe { alloc(LAYOUT) };
    let Some(chunk) = NonNull::new(chunk) else {
        handle_alloc_error(LAYOUT)
    };
    #[cfg(target_os = "linux")]
    {
        // Advice: without large pages everything works, slower.
        // SAFETY: the chunk was allocated just now, with this size.
        let _ = unsafe { libc::madvise(chunk.as_ptr().cast(), CHUNK, libc::MADV_HUGEPAGE) };
    }
    chunk
}

impl Drop for Depot {
    fn drop(&mut self) {
        for chunk in self.chunks.drain(..) {
            // SAFETY: allocated by `chunk` with this layout. The store and its tables are gone, so
            // no block is in use.
            unsafe { dealloc(chunk.as_ptr(), LAYOUT) };
        }
    }
}

impl Cache {
    /// A block for a `T`, or the memory of a box.
    #[inline(always)]
    pub(crate) fn block<T>(&mut self, slabs: &Slabs) -> *mut T {
        let Some(class) = (const { Class::of::<T>() }) else {
            return Box::into_raw(Box::<T>::new_uninit()).cast();
        };
        let list = &mut self.free[usize::from(class.0)];
        if list.is_empty() {
            slabs.fill(class, list);
        }
        let Some(block) = list.pop() else {
            unreachable!("a fill leaves at least one block");
        };
        block.cast().as_ptr()
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// The block is of this class and these slabs; its value was dropped, and nobody has it.
    #[inline]
    pub(crate) unsafe fn free(&mut self, slabs: &Slabs, class: Class, block: NonNull<u8>) {
        let list = &mut self.free[usize::from(class.0)];
        list.push(block);
        if list.len() > 4 * class.batch() {
            slabs.take(class, list);
        }
    }
}

impl fmt::Debug for Slabs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slabs")
            .field("bytes", &self.bytes())
            .finish()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept: usize = self.free.iter().map(Vec::len).sum();
        f.debug_struct("Cache").field("kept", &kept).finish()
    }
}
