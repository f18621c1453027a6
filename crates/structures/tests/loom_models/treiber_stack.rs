//! Treiber's stack with elimination under loom: every interleaving of the shipped source (up to the
//! preemption bound) with every permitted stale read.
//!
//! loom sees a value as a cell, which one thread at a time may use, and after the thread before.
//! The domain of the models sees a node that is retired twice, and a link that leads to a node that
//! may be freed.

use corelay_structures::lockfree::TreiberStack;
use loom::sync::Arc;
use loom::thread;

/// Values that loom reports if they are lost.
type Values<const SLOTS: usize> = Arc<TreiberStack<Arc<usize>, SLOTS>>;

fn stack<const SLOTS: usize>(values: &[usize]) -> Values<SLOTS> {
    Arc::new(values.iter().copied().map(Arc::new).collect())
}

fn push<const SLOTS: usize>(stack: &Values<SLOTS>, value: usize) {
    stack.push(Arc::new(value));
}

fn pop<const SLOTS: usize>(stack: &Values<SLOTS>) -> Option<usize> {
    stack.pop().map(|value| *value)
}

fn rest<const SLOTS: usize>(stack: &Values<SLOTS>) -> Vec<usize> {
    std::iter::from_fn(|| pop(stack)).collect()
}

/// Two threads push, and a third pops meanwhile.
#[test]
fn two_push_and_one_pops() {
    loom::model(|| {
        let stack = stack::<0>(&[]);
        let threads = [1, 2].map(|value| {
            let stack = Arc::clone(&stack);
            thread::spawn(move || push(&stack, value))
        });
        let early = pop(&stack);
        for thread in threads {
            thread.join().unwrap();
        }
        let mut all: Vec<_> = early.into_iter().chain(rest(&stack)).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
        assert!(stack.is_empty());
    });
}

/// Two threads pop and push back what they have got: the case of ABA.
#[test]
fn two_pop_and_push_back() {
    loom::model(|| {
        let stack = stack::<0>(&[1, 2]);
        let other = thread::spawn({
            let stack = Arc::clone(&stack);
            move || {
                let got = [pop(&stack), pop(&stack)];
                got.into_iter().flatten().for_each(|it| push(&stack, it));
            }
        });
        let mine = pop(&stack);
        other.join().unwrap();
        let mut all: Vec<_> = mine.into_iter().chain(rest(&stack)).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// Two threads push and a third pops twice. Who loses the race meets the other in the only slot.
#[test]
fn a_push_and_a_pop_meet() {
    loom::model(|| {
        let stack = stack::<1>(&[]);
        let threads = [1, 2].map(|value| {
            let stack = Arc::clone(&stack);
            thread::spawn(move || push(&stack, value))
        });
        let early = [pop(&stack), pop(&stack)];
        for thread in threads {
            thread.join().unwrap();
        }
        let mut all: Vec<_> = early.into_iter().flatten().collect();
        all.extend(rest(&stack));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// A push and a pop lose the race to another push, and meet in the only slot.
#[test]
fn a_push_and_a_pop_that_lose_meet() {
    loom::model(|| {
        let stack = stack::<1>(&[0]);
        let threads = [1, 2].map(|value| {
            let stack = Arc::clone(&stack);
            thread::spawn(move || push(&stack, value))
        });
        let mut all = Vec::from_iter(pop(&stack));
        for thread in threads {
            thread.join().unwrap();
        }
        all.extend(rest(&stack));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

/// Two pushes lose the race to a pop and to each other, and one of them may find the slot taken.
#[test]
fn two_push_and_two_pop() {
    loom::model(|| {
        let stack = stack::<1>(&[1]);
        let pushes = [2, 3].map(|value| {
            let stack = Arc::clone(&stack);
            thread::spawn(move || push(&stack, value))
        });
        let pops = thread::spawn({
            let stack = Arc::clone(&stack);
            move || pop(&stack)
        });
        let mine = pop(&stack);
        for thread in pushes {
            thread.join().unwrap();
        }
        let popped = [mine, pops.join().unwrap()];
        let mut all: Vec<_> = popped.into_iter().flatten().collect();
        all.extend(rest(&stack));
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// A thread that sees that there is a value sees what its push came after.
#[test]
fn a_stack_that_is_not_empty_was_pushed_to() {
    use loom::cell::UnsafeCell;
    struct Shared(TreiberStack<(), 0>, UnsafeCell<u8>);
    // SAFETY: the cell is written before the push and read after it, as loom checks.
    unsafe impl Sync for Shared {}
    loom::model(|| {
        let shared = Arc::new(Shared(TreiberStack::with_slots(), UnsafeCell::new(0)));
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
