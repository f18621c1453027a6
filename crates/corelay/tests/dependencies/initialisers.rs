//! Initialisers of values of a thread, or of the program.

use super::interleaved;
use corelay::fibre::yield_now;
use once_cell::sync::{Lazy, OnceCell};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use thread_local::ThreadLocal;

/// Since 1.1.10 the first value stays. Before, the second overwrote it, as with `thread_local!`.
/// Here that would do no harm, for the value is a number that no fibre borrows while it waits.
#[test]
fn the_first_value_stays_where_two_fibres_wait_in_get_or_of_thread_local() {
    let numbers = Arc::new(ThreadLocal::new());
    let made = Arc::new(AtomicU32::new(0));
    let body = |_| {
        let (numbers, made) = (Arc::clone(&numbers), Arc::clone(&made));
        move |wait: super::Wait| {
            *numbers.get_or(|| {
                wait();
                made.fetch_add(1, Ordering::Relaxed)
            })
        }
    };
    let (first, second) = interleaved(body(1), body(2));
    assert_eq!((first.unwrap(), second.unwrap()), (0, 0));
    assert_eq!(made.load(Ordering::Relaxed), 2, "both have made one");
    assert_eq!(numbers.iter().count(), 1, "one thread has one value");
}

#[test]
fn fibres_share_a_lazy_static() {
    static SUM: Lazy<u64> = Lazy::new(|| (1..=10).sum());
    let sums = super::eight(|_| {
        let first = *SUM;
        yield_now();
        first + *SUM
    });
    assert_eq!(sums, [110; 8]);
}

/// Sound, but to be avoided: whoever else wants the value blocks its thread meanwhile. A fibre of
/// the same processor would block the one that it waits for.
#[test]
fn an_initialiser_of_once_cell_that_waits_blocks_other_threads() {
    static CELL: OnceCell<u64> = OnceCell::new();
    let (ask, asked) = mpsc::channel();
    let (first, second) = interleaved(
        move |wait| {
            CELL.get_or_init(|| {
                ask.send(()).expect("somebody listens");
                wait();
                1
            })
        },
        move |_| {
            asked.recv().expect("the first is inside");
            // A fibre must not call `get_or_init` here; a thread may.
            let thread = thread::spawn(|| *CELL.get_or_init(|| 2));
            assert_eq!(CELL.get(), None);
            thread
        },
    );
    assert_eq!(*first.unwrap(), 1);
    assert_eq!(second.unwrap().join().unwrap(), 1);
}
