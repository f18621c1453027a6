//! The queue of Michael and Scott under loom: every interleaving of the shipped source (up to the
//! preemption bound) with every permitted stale read.
//!
//! loom sees a value as a cell, which one thread at a time may use, and after the thread before.
//! The domain of the models sees a node that is retired twice, and a link that leads to a node that
//! may be freed.

use corelay_structures::lockfree::MsQueue;
use loom::sync::Arc;
use loom::thread;

/// Values that loom reports if they are lost.
type Values = Arc<MsQueue<Arc<usize>>>;

fn queue(values: &[usize]) -> Values {
    Arc::new(values.iter().copied().map(Arc::new).collect())
}

fn push(queue: &Values, value: usize) {
    queue.push(Arc::new(value));
}

fn pop(queue: &Values) -> Option<usize> {
    queue.pop().map(|value| *value)
}

fn rest(queue: &Values) -> Vec<usize> {
    std::iter::from_fn(|| pop(queue)).collect()
}

/// Two threads push, and a third pops meanwhile.
#[test]
fn two_push_and_one_pops() {
    loom::model(|| {
        let queue = queue(&[]);
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

/// What one thread pushes comes out in its order, also if the other one is about to pop.
#[test]
fn values_of_a_thread_stay_in_order() {
    loom::model(|| {
        let queue = queue(&[]);
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

/// Two threads pop two values, while a third one comes in.
#[test]
fn two_pop_and_one_pushes() {
    loom::model(|| {
        let queue = queue(&[1, 2]);
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

/// A push is stopped before it moves the tail. Another thread pops its value, and its node with it,
/// and then pushes: it must not find that node by the tail. A third one comes to a head that it has
/// not seen being pushed.
#[test]
fn the_tail_is_moved_before_its_node_is_retired() {
    loom::model(|| {
        let queue = queue(&[]);
        let pushes = thread::spawn({
            let queue = Arc::clone(&queue);
            move || push(&queue, 1)
        });
        let passes = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let first = pop(&queue);
                push(&queue, 2);
                [first, pop(&queue)]
            }
        });
        let mine = pop(&queue);
        pushes.join().unwrap();
        let passed = passes.join().unwrap();
        let mut all: Vec<_> = passed.into_iter().chain([mine]).flatten().collect();
        all.extend(rest(&queue));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// A thread asks whether there is a value, while another one moves the head to nodes of its own.
#[test]
fn one_asks_while_the_head_moves() {
    loom::model(|| {
        let queue = queue(&[1]);
        let other = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                push(&queue, 2);
                push(&queue, 3);
                [pop(&queue), pop(&queue)]
            }
        });
        assert!(!queue.is_empty());
        assert_eq!(other.join().unwrap(), [Some(1), Some(2)]);
        assert_eq!(rest(&queue), [3]);
    });
}

/// A thread that sees that there is a value sees what its push came after.
#[test]
fn a_queue_that_is_not_empty_was_pushed_to() {
    use loom::cell::UnsafeCell;
    struct Shared(MsQueue<()>, UnsafeCell<u8>);
    // SAFETY: the cell is written before the push and read after it, as loom checks.
    unsafe impl Sync for Shared {}
    loom::model(|| {
        let shared = Arc::new(Shared(MsQueue::new(), UnsafeCell::new(0)));
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
