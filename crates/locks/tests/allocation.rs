//! No lock allocates when it is used by a thread that has used one before.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod common;

use common::{Lock, for_all_locks, for_combining_locks, for_waiting_locks, tests_of};
use corelay_sync::Session;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: it passes every call on to the system's allocator, which keeps the duties of a
// `GlobalAlloc`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the duties of `alloc`, which are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the duties of `dealloc`, which are the system allocator's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

for_all_locks!({ allocates_nothing: u64 });

fn allocates_nothing<L: Lock<u64>>() {
    let locks: Vec<L> = (0..1_000).map(|_| L::make(0)).collect();
    locks[0].session().apply(|n| *n += 1);
    let before = ALLOCATIONS.get();
    for lock in &locks {
        lock.session().apply(|n| *n += 1);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(locks.into_iter().map(L::unmake).sum::<u64>(), 1_001);
}
