//! The bytes in use, counted by the allocator. Each file of tests that uses this has one test only,
//! so that no other test allocates meanwhile.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

struct Counting;

static IN_USE: AtomicI64 = AtomicI64::new(0);

/// Bytes that have been allocated and not been given back.
pub(crate) fn in_use() -> i64 {
    IN_USE.load(Ordering::Relaxed)
}

// SAFETY: `System` allocates and frees; the count changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which `System` has as well.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which `System` has as well.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
