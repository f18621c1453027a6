//! A data race on purpose: ThreadSanitizer must report it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};

struct Racy(UnsafeCell<u64>);

// SAFETY: none; this is the bug that must be found.
unsafe impl Sync for Racy {}

#[test]
fn race() {
    static WORD: Racy = Racy(UnsafeCell::new(0));
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let add = || {
        // Both threads run from here on, and nothing orders one after the other, even
        // where one is through before the other gets a CPU.
        // Relaxed: a rendezvous that carries nothing, on purpose.
        STARTED.fetch_add(1, Ordering::Relaxed);
        while STARTED.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        // Often: two accesses at the very same time are the ones it may miss.
        for _ in 0..1_000 {
            // SAFETY: none; this is the bug that must be found.
            unsafe { *WORD.0.get() += 1 };
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(add);
        scope.spawn(add);
    });
}
