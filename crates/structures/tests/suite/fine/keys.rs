//! Keys whose order panics or lies.

use crate::fine_sets::{Set, for_each_set};
use corelay_structures::fine::{ExternalTree, LazyList};
use std::cell::Cell;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The comparisons until one panics.
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

fn count() {
    LEFT.set(LEFT.get() - 1);
    assert!(LEFT.get() > 0, "a comparison panics");
}

#[derive(Debug)]
struct Panics(u32);

impl Clone for Panics {
    fn clone(&self) -> Self {
        count();
        Self(self.0)
    }
}

impl PartialEq for Panics {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Panics {}

impl PartialOrd for Panics {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Panics {
    fn cmp(&self, other: &Self) -> Ordering {
        count();
        self.0.cmp(&other.0)
    }
}

impl Hash for Panics {
    fn hash<H: Hasher>(&self, state: &mut H) {
        count();
        self.0.hash(state);
    }
}

for_each_set!({ a_key_that_panics_leaves_no_lock: Panics });

/// Each call panics at its first, second … comparison or clone, until it gets through. Nothing is
/// left of it then, and no lock: another thread can do it.
fn a_key_that_panics_leaves_no_lock<S: Set<Panics>>() {
    let set = S::make();
    for key in [3, 1, 5, 2, 4] {
        assert!(set.add(Panics(key)));
    }
    type Call<S> = fn(&S, u32) -> bool;
    let calls: [(u32, Call<S>); 3] = [
        (6, |set, key| set.add(Panics(key))),
        (3, |set, key| set.has(&Panics(key))),
        (3, |set, key| set.take(&Panics(key))),
    ];
    for (key, call) in calls {
        let panicked = (2..).take_while(|&left| {
            LEFT.set(left);
            let ended = catch_unwind(AssertUnwindSafe(|| call(&set, key)));
            LEFT.set(u32::MAX);
            ended.is_err()
        });
        assert!(panicked.count() > 0, "{key}");
    }
    // A call may have taken effect and then panicked, as it cloned its answer.
    std::thread::scope(|s| {
        s.spawn(|| {
            set.add(Panics(3));
            set.add(Panics(6));
            let keys: Vec<_> = set.keys().into_iter().map(|key| key.0).collect();
            assert_eq!(keys, [1, 2, 3, 4, 5, 6]);
            assert!((1..7).all(|key| set.take(&Panics(key)) && !set.has(&Panics(key))));
        });
    });
}

/// A key that compares as if by lot.
#[derive(Debug, Clone)]
struct Lies;

impl PartialEq for Lies {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Lies {}

impl PartialOrd for Lies {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Lies {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl Ord for Lies {
    fn cmp(&self, _other: &Self) -> Ordering {
        thread_local!(static RANDOM: Cell<u64> = const { Cell::new(1) });
        let mut x = RANDOM.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        RANDOM.set(x);
        [Ordering::Less, Ordering::Equal, Ordering::Greater][(x % 7 % 3) as usize]
    }
}

/// The answers are nonsense, and memory is safe, which a run under the sanitizers shows. A skip list
/// may not return then.
fn an_order_that_lies<S: Set<Lies>>() {
    let set = S::make();
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for _ in 0..300 {
                    set.add(Lies);
                    set.add(Lies);
                    set.take(&Lies);
                    set.has(&Lies);
                }
            });
        }
    });
    drop(set);
}

#[test]
fn a_lazy_list_stands_an_order_that_lies() {
    an_order_that_lies::<LazyList<Lies>>();
}

#[test]
fn a_tree_stands_an_order_that_lies() {
    // `Set` asserts that a value is found by its key.
    let tree = ExternalTree::new();
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for n in 0..300 {
                    tree.insert(Lies, n);
                    tree.insert(Lies, n);
                    tree.remove(&Lies);
                    tree.get(&Lies);
                }
            });
        }
    });
}
