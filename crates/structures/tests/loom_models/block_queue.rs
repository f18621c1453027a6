//! The queue of blocks under loom, with one or two slots in a block: every interleaving of the
//! shipped source (up to the preemption bound) with every permitted stale read.
//!
//! loom sees a value, and the number of a block, as a cell, which one thread at a time may write,
//! and after the thread before. A block that is emptied to be used again, or freed, counts as
//! written. In the models a pop does not wait before it gives up a slot.

use corelay_structures::lockfree::BlockQueue;
use loom::sync::Arc;
use loom::thread;

/// Values that loom reports if they are lost.
type Values<const SLOTS: usize> = Arc<BlockQueue<Arc<usize>, SLOTS>>;

fn queue<const SLOTS: usize>(values: &[usize]) -> Values<SLOTS> {
    Arc::new(values.iter().copied().map(Arc::new).collect())
}

fn push<const SLOTS: usize>(queue: &Values<SLOTS>, value: usize) {
    queue.push(Arc::new(value));
}

fn pop<const SLOTS: usize>(queue: &Values<SLOTS>) -> Option<usize> {
    queue.pop().map(|value| *value)
}

fn rest<const SLOTS: usize>(queue: &Values<SLOTS>) -> Vec<usize> {
    std::iter::from_fn(|| pop(queue)).collect()
}

/// Two threads push, and a third pops meanwhile.
fn check_two_pushes<const SLOTS: usize>() {
    loom::model(|| {
        let queue = queue::<SLOTS>(&[]);
        let threads = [1, 2].map(|value| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || push(&queue, value))
        });
        let early = pop(&queue);
        for thread in threads {
            thread.join().unwrap();
        }
        let mut all: Vec<_> = early.into_iter().chain(rest(&queue)).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        assert!(queue.is_empty());
    });
}

#[test]
fn two_push_to_two_blocks() {
    check_two_pushes::<1>();
}

#[test]
fn two_push_to_one_block() {
    check_two_pushes::<2>();
}

/// Two threads come to the end of a block, and a third claims what they push into the next ones.
#[test]
fn two_push_at_the_end_of_a_block() {
    loom::model(|| {
        let queue = queue::<1>(&[1]);
        let threads = [2, 3].map(|value| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || push(&queue, value))
        });
        let early = [pop(&queue), pop(&queue)];
        for thread in threads {
            thread.join().unwrap();
        }
        let mut all: Vec<_> = early.into_iter().flatten().collect();
        all.extend(rest(&queue));
        assert_eq!(all[0], 1);
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// What one thread pushes comes out in its order, also if the other one is about to pop, and gives
/// a slot up.
#[test]
fn values_of_a_thread_stay_in_order() {
    loom::model(|| {
        let queue = queue::<2>(&[]);
        let pushes = thread::spawn({
            let queue = Arc::clone(&queue);
            move || [1, 2].map(|value| push(&queue, value))
        });
        let early = [pop(&queue), pop(&queue)];
        pushes.join().unwrap();
        let mut all: Vec<_> = early.into_iter().flatten().collect();
        all.extend(rest(&queue));
        assert_eq!(all, [1, 2]);
    });
}

/// Two threads pop two values from two blocks, while a third one comes in.
#[test]
fn two_pop_and_one_pushes() {
    loom::model(|| {
        let queue = queue::<1>(&[1, 2]);
        let threads = [0; 2].map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || pop(&queue))
        });
        push(&queue, 3);
        let mut all: Vec<_> = threads.map(|thread| thread.join().unwrap()).into();
        all.extend(rest(&queue).into_iter().map(Some));
        all.sort_unstable();
        assert_eq!(all, [Some(1), Some(2), Some(3)]);
    });
}

/// Two threads pop the only value, and may give its slot up.
#[test]
fn two_pop_what_is_being_pushed() {
    loom::model(|| {
        let queue = queue::<1>(&[]);
        let threads = [0; 2].map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || pop(&queue))
        });
        push(&queue, 1);
        let popped = threads.map(|thread| thread.join().unwrap());
        let mut all: Vec<_> = popped.into_iter().flatten().collect();
        all.extend(rest(&queue));
        assert_eq!(all, [1]);
    });
}

/// A thread sees the tail after two pushes. Another one relies on that, gives up the slot of the
/// second, and must not find the tail before its position then.
#[test]
fn one_looks_and_another_pops() {
    loom::model(|| {
        let queue = queue::<2>(&[]);
        let pushes = thread::spawn({
            let queue = Arc::clone(&queue);
            move || [1, 2].map(|value| push(&queue, value))
        });
        let looks = thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.is_empty()
        });
        let mut all = Vec::from_iter(pop(&queue));
        all.extend(pop(&queue));
        pushes.join().unwrap();
        looks.join().unwrap();
        all.extend(rest(&queue));
        assert_eq!(all, [1, 2]);
    });
}

/// Two threads replace the block at the head. A third comes after the slower one, which has moved
/// the head, and finds the new block.
#[test]
fn three_pop_at_the_end_of_a_block() {
    loom::model(|| {
        let queue = queue::<1>(&[1, 2]);
        assert_eq!(pop(&queue), Some(1));
        let threads = [0; 2].map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || pop(&queue))
        });
        let mine = pop(&queue);
        let mut all: Vec<_> = threads.map(|thread| thread.join().unwrap()).into();
        all.push(mine);
        all.sort_unstable();
        assert_eq!(all, [None, None, Some(2)]);
    });
}

/// A block is emptied and used again while another thread comes to the end of it.
#[test]
fn a_block_is_used_again() {
    loom::model(|| {
        let queue = queue::<1>(&[1]);
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                push(&queue, 2);
                pop(&queue)
            }
        });
        let mut all = Vec::new();
        for value in [3, 4] {
            push(&queue, value);
            all.extend(pop(&queue));
        }
        all.extend(other.join().unwrap());
        all.extend(rest(&queue));
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4]);
    });
}

/// Two threads leave blocks at once: one of them frees what both have passed.
#[test]
fn two_pass_the_same_blocks() {
    loom::model(|| {
        let queue = queue::<1>(&[1, 2, 3]);
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || [pop(&queue), pop(&queue)]
        });
        let mine = pop(&queue);
        let theirs = other.join().unwrap();
        let mut all: Vec<_> = theirs.into_iter().chain([mine]).flatten().collect();
        assert!(theirs.is_sorted());
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// Each of two threads pushes to a queue of its own, and then looks into the other's.
#[test]
fn one_of_two_finds_the_others_value() {
    loom::model(|| {
        let [one, other] = [queue::<2>(&[]), queue::<2>(&[])];
        let thread = thread::spawn({
            let (one, other) = (Arc::clone(&one), Arc::clone(&other));
            move || {
                push(&one, 1);
                pop(&other)
            }
        });
        push(&other, 2);
        let mine = pop(&one);
        let theirs = thread.join().unwrap();
        assert!(mine.is_some() || theirs.is_some());
        drop((rest(&one), rest(&other)));
    });
}

/// A thread that sees that there is a value sees what its push came after.
#[test]
fn a_queue_that_is_not_empty_was_pushed_to() {
    use loom::cell::UnsafeCell;
    struct Shared(BlockQueue<(), 2>, UnsafeCell<u8>);
    // SAFETY: the cell is written before the push and read after it, as loom checks.
    unsafe impl Sync for Shared {}
    loom::model(|| {
        let shared = Arc::new(Shared(BlockQueue::with_slots(), UnsafeCell::new(0)));
        let pushes = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                // SAFETY: see `Shared`.
                shared.1.with_mut(|place| unsafe { *place = 1 });
                shared.0.push(());
            }
        });
        if !shared.0.is_empty() {
            // SAFETY: see `Shared`.
            assert_eq!(shared.1.with(|place| unsafe { *place }), 1);
        }
        pushes.join().unwrap();
    });
}
