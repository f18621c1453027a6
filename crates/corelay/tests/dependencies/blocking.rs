//! Locks that block their thread.

use super::interleaved;
use parking_lot::{Mutex, ReentrantMutex};
use std::cell::Cell;
use std::sync::Arc;

/// Sound, but to be avoided: the other fibre would block the thread of the one that it waits for.
#[test]
fn a_guard_of_parking_lot_kept_over_a_wait_shuts_other_fibres_out() {
    let lock = Arc::new(Mutex::new(0));
    let (a, b) = (Arc::clone(&lock), lock);
    let (first, second) = interleaved(
        move |wait| {
            let mut guard = a.lock();
            wait();
            *guard += 1;
        },
        move |_| b.try_lock().is_some(), // `lock` would never return
    );
    first.unwrap();
    assert!(!second.unwrap());
}

#[test]
fn locks_of_parking_lot_that_are_left_before_a_wait_are_fine() {
    static SUM: Mutex<u64> = Mutex::new(0);
    super::eight(|i| {
        for _ in 0..10 {
            *SUM.lock() += i;
            corelay::fibre::yield_now();
        }
    });
    assert_eq!(*SUM.lock(), 280);
}

/// Sound for fibres that stay, since both are on one thread; but both are inside at the same time.
#[test]
fn a_reentrant_mutex_admits_all_fibres_of_its_thread() {
    let lock = Arc::new(ReentrantMutex::new(Cell::new(1)));
    let (a, b) = (Arc::clone(&lock), lock);
    let (first, second) = interleaved(
        move |wait| {
            let guard = a.lock();
            let before = guard.get();
            wait();
            (before, guard.get())
        },
        move |_| b.lock().set(2),
    );
    second.unwrap();
    assert_eq!(first.unwrap(), (1, 2), "the other has been there");
}
