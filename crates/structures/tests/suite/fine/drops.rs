//! Every entry is dropped once: when the structure ends, and when it was removed and all threads
//! have left the calls that may read it.

use crate::Random;
use crate::fine_sets::{Set, for_each_set};
use corelay_structures::fine::{ExternalTree, LazyList, OptimisticSkipList, TwoLockQueue};
use std::cmp::Ordering::{self as Order};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A key that counts itself, and knows whether it was dropped.
#[derive(Debug)]
struct Counted {
    alive: Arc<AtomicUsize>,
    number: u64,
    again: u64,
}

impl Counted {
    fn new(alive: &Arc<AtomicUsize>, number: u64) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self {
            alive: Arc::clone(alive),
            number,
            again: !number,
        }
    }

    fn number(&self) -> u64 {
        assert_eq!(self.number, !self.again, "it was dropped");
        self.number
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(&self.alive, self.number())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.again = self.number();
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

impl Eq for Counted {}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Order {
        self.number().cmp(&other.number())
    }
}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number().hash(state);
    }
}

/// Waits until the epochs have freed what was retired. Tests beside this one may hold them up.
fn all_are_dropped(alive: &AtomicUsize) {
    for _ in 0..1_000_000 {
        if alive.load(Ordering::Relaxed) == 0 {
            return;
        }
        crossbeam_epoch::pin().flush();
        thread::yield_now();
    }
    panic!("{} are left", alive.load(Ordering::Relaxed));
}

for_each_set!({
    each_entry_is_dropped_once: Counted,
});

fn each_entry_is_dropped_once<S: Set<Counted>>() {
    let alive = Arc::new(AtomicUsize::new(0));
    let set = S::make();
    thread::scope(|s| {
        for seed in 0..4 {
            let (alive, set) = (&alive, &set);
            s.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..1_000 {
                    let key = Counted::new(alive, random.below(20) as u64);
                    match random.below(3) {
                        0 => drop(set.add(key)),
                        1 => drop(set.take(&key)),
                        _ => drop(set.has(&key)),
                    }
                }
                drop(set.keys());
            });
        }
    });
    set.add(Counted::new(&alive, 0));
    drop(set);
    all_are_dropped(&alive);
}

#[test]
fn a_queue_drops_what_is_left_in_it() {
    let alive = Arc::new(AtomicUsize::new(0));
    let queue: TwoLockQueue<_> = (0..10).map(|n| Counted::new(&alive, n)).collect();
    assert_eq!(queue.pop().map(|value| value.number()), Some(0));
    assert_eq!(alive.load(Ordering::Relaxed), 9);
    drop(queue);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

/// Runs on a thread whose stack a recursion would use up.
fn on_a_small_stack(drops: impl FnOnce() + Send + 'static) {
    let small = thread::Builder::new().stack_size(64 << 10);
    small.spawn(drops).unwrap().join().unwrap();
}

#[test]
fn long_structures_end_without_recursion() {
    // In descending order, so that each key is the first of the list.
    let list: LazyList<u32> = (0..20_000).rev().collect();
    let skip_list: OptimisticSkipList<_, _> = (0..20_000).map(|n| (n, n)).collect();
    let queue: TwoLockQueue<u32> = (0..20_000).collect();
    // As deep as it has entries.
    let [ascending, descending] = [0, u32::MAX]
        .map(|flip| -> ExternalTree<u32, u32> { (0..1_000).map(|n| (n ^ flip, n)).collect() });
    on_a_small_stack(move || {
        assert_eq!(format!("{ascending:?}").matches(": ").count(), 1_000);
        drop((list, skip_list, queue, ascending, descending));
    });
}
