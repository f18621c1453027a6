//! A data race on purpose: ThreadSanitizer must report it.

use std::cell::UnsafeCell;

struct Racy(UnsafeCell<u64>);

// SAFETY: none; this is the bug that must be found.
unsafe impl Sync for Racy {}

#[test]
fn race() {
    static WORD: Racy = Racy(UnsafeCell::new(0));
    let add = || {
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
