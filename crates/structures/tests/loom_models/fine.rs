//! The lock-based structures under loom: every interleaving of the shipped source (up to the
//! preemption bound) with every permitted stale read.
//!
//! Each node has a shadow cell, and a value behind a lock is a cell. Loom reports a race if a node
//! is read that is not ordered after its making, or a value that is not ordered after the section
//! before. The stand-in for epochs panics if a link leads to a node that may be freed.

use crate::fine_sets::{Set, for_each_set};
use corelay_structures::fine::TwoLockQueue;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

for_each_set!({
    a_key_is_added_after_one_that_is_removed: u64,
    a_key_is_added_beside_one_that_is_removed: u64,
    two_add_one_key: u64,
    two_remove_one_key: u64,
    neighbours_are_removed: u64,
    a_key_that_stays_is_found: u64,
    a_key_comes_again: u64,
    a_key_that_is_found_can_be_removed: u64,
});

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.check(body);
}

/// What two threads share. Another thread may run before and after each call: loom branches where
/// threads write to one word and remembers one access of a word, so that the loads with which a
/// call begins hide those of the other thread.
struct Beside<S> {
    shared: S,
    between: AtomicUsize,
}

impl<S> Beside<S> {
    fn new(shared: S) -> Arc<Self> {
        let between = AtomicUsize::new(0);
        Arc::new(Self { shared, between })
    }

    fn call<R>(&self, call: impl FnOnce(&S) -> R) -> R {
        // Relaxed: it orders nothing.
        self.between.store(0, Ordering::Relaxed);
        let result = call(&self.shared);
        self.between.store(0, Ordering::Relaxed);
        result
    }
}

impl<S: Set<u64>> Beside<S> {
    fn add(&self, key: u64) -> bool {
        self.call(|set| set.add(key))
    }

    fn take(&self, key: u64) -> bool {
        self.call(|set| set.take(&key))
    }

    fn has(&self, key: u64) -> bool {
        self.call(|set| set.has(&key))
    }
}

/// Makes a set of `keys`, and runs `other` beside `this`. Returns what they say, and the keys that
/// are left.
fn beside<S: Set<u64>, A: Send + 'static, B>(
    keys: &[u64],
    other: impl FnOnce(&Beside<S>) -> A + Send + 'static,
    this: impl FnOnce(&Beside<S>) -> B,
) -> (A, B, Vec<u64>) {
    let set = Beside::new(S::make());
    for key in keys {
        assert!(set.shared.add(*key));
    }
    let thread = thread::spawn({
        let set = Arc::clone(&set);
        move || other(&set)
    });
    let this = this(&set);
    (thread.join().unwrap(), this, set.shared.keys())
}

/// The node that was removed does not take the new one with it.
fn a_key_is_added_after_one_that_is_removed<S: Set<u64>>() {
    model(|| {
        let (taken, added, keys) = beside(&[1], |s: &Beside<S>| s.take(1), |s| s.add(2));
        assert!(taken && added);
        assert_eq!(keys, [2]);
    });
}

/// In a tree, below the inner node that goes with the removed one.
fn a_key_is_added_beside_one_that_is_removed<S: Set<u64>>() {
    model(|| {
        let (taken, added, keys) = beside(&[1, 2], |s: &Beside<S>| s.take(1), |s| s.add(3));
        assert!(taken && added);
        assert_eq!(keys, [2, 3]);
    });
}

fn two_add_one_key<S: Set<u64>>() {
    model(|| {
        let (one, other, keys) = beside(&[1], |s: &Beside<S>| s.add(2), |s| s.add(2));
        // A table replaces the value; it says so to the second of them.
        assert!(one != other);
        assert_eq!(keys, [1, 2]);
    });
}

fn two_remove_one_key<S: Set<u64>>() {
    model(|| {
        let (one, other, keys) = beside(&[1, 2], |s: &Beside<S>| s.take(1), |s| s.take(1));
        assert!(one != other);
        assert_eq!(keys, [2]);
    });
}

/// A node that is unlinked by one thread does not come back by the other.
fn neighbours_are_removed<S: Set<u64>>() {
    model(|| {
        let (one, other, keys) = beside(&[1, 2], |s: &Beside<S>| s.take(1), |s| s.take(2));
        assert!(one && other);
        assert_eq!(keys, []);
    });
}

/// A look-up that stands on a removed node finds what follows.
fn a_key_that_stays_is_found<S: Set<u64>>() {
    model(|| {
        let changes = |s: &Beside<S>| assert!(s.take(1) && s.add(1));
        let ((), found, keys) = beside(&[1, 2], changes, |s| s.has(2));
        assert!(found);
        assert_eq!(keys, [1, 2]);
    });
}

/// What the threads say they did explains what is left.
fn a_key_comes_again<S: Set<u64>>() {
    model(|| {
        let changes = |s: &Beside<S>| (s.take(1), s.add(1));
        let (theirs, taken, keys) = beside(&[1], changes, |s| s.take(1));
        match (theirs, taken, keys.as_slice()) {
            // Taken before, in between, or at the end.
            ((false, true), true, [1]) | ((true, true), false, [1]) | ((true, true), true, []) => {}
            other => panic!("{other:?}"),
        }
    });
}

/// A key that one look-up finds is there on all its levels.
fn a_key_that_is_found_can_be_removed<S: Set<u64>>() {
    model(|| {
        let changes = |s: &Beside<S>| s.has(1).then(|| s.take(1));
        let (added, taken, keys) = beside(&[], |s: &Beside<S>| s.add(1), changes);
        assert!(added && taken != Some(false));
        assert_eq!(keys.is_empty(), taken == Some(true));
    });
}

/// The queue is empty at first and in between, so that both ends meet at one node.
#[test]
fn a_queue_with_one_value() {
    model(|| {
        let queue = Beside::new(TwoLockQueue::new());
        let theirs = Arc::clone(&queue);
        let thread = thread::spawn(move || {
            theirs.call(|queue| queue.push(1));
            theirs.call(|queue| queue.push(2));
        });
        let pops = [(); 2].map(|()| queue.call(TwoLockQueue::pop));
        let mut seen = Vec::from_iter(pops.into_iter().flatten());
        thread.join().unwrap();
        seen.extend(std::iter::from_fn(|| queue.shared.pop()));
        assert_eq!(seen, [1, 2]);
    });
}

/// Two push and two pop.
#[test]
fn a_queue_with_two_at_each_end() {
    model(|| {
        let queue = Beside::new(TwoLockQueue::from_iter([0]));
        let push = |n| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.call(|queue| queue.push(n)))
        };
        let pop = || {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.call(TwoLockQueue::pop))
        };
        let (pushes, pops) = ([push(1), push(2)], pop());
        let mut seen = Vec::from_iter(queue.call(TwoLockQueue::pop));
        seen.extend(pops.join().unwrap());
        assert!(!seen.is_empty());
        for push in pushes {
            push.join().unwrap();
        }
        seen.extend(std::iter::from_fn(|| queue.shared.pop()));
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2]);
    });
}
