//! Panics and lies of the code that a list calls.

use corelay_structures::lockfree::HarrisList;
use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::catch_unwind;

thread_local!(static COMPARISONS: Cell<u32> = const { Cell::new(u32::MAX) });

/// A key whose comparison panics after some on this thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Touchy(u32);

impl PartialOrd for Touchy {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Touchy {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = COMPARISONS.get().checked_sub(1);
        COMPARISONS.set(left.expect("a comparison panics"));
        self.0.cmp(&other.0)
    }
}

/// Whichever comparison panics, the list is as before, or the call has taken effect.
#[test]
fn a_panic_of_a_comparison_leaves_the_list_whole() {
    type Call = fn(&HarrisList<Touchy>) -> bool;
    let calls: [(Call, &[u32]); 3] = [
        (|list| list.insert(Touchy(5)), &[2, 4, 5, 6]),
        (|list| list.remove(&Touchy(4)), &[2, 6]),
        (|list| list.get(&Touchy(4)).is_some(), &[2, 4, 6]),
    ];
    for (call, after) in calls {
        for allowed in 0.. {
            let list = HarrisList::from_iter([2, 4, 6].map(Touchy));
            COMPARISONS.set(allowed);
            let panicked = catch_unwind(|| call(&list)).is_err();
            COMPARISONS.set(u32::MAX);
            let mut keys = Vec::new();
            list.for_each(|key| keys.push(key.0));
            assert!(keys == [2, 4, 6] || keys == after, "{keys:?}");
            assert!(list.insert(Touchy(3)) && list.contains(&Touchy(6)));
            if !panicked {
                assert_eq!(keys, after);
                break;
            }
        }
    }
}

/// A key whose order changes with every look. The list has no use for it, and stays safe.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Liar(u32);

impl PartialOrd for Liar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Liar {
    fn cmp(&self, _other: &Self) -> Ordering {
        let count = COMPARISONS
            .get()
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        COMPARISONS.set(count);
        [Ordering::Less, Ordering::Equal, Ordering::Greater][(count >> 16) as usize % 3]
    }
}

#[test]
fn a_contradictory_order_is_safe() {
    let list = HarrisList::new();
    std::thread::scope(|s| {
        for thread in 0..3 {
            let list = &list;
            s.spawn(move || {
                for n in 0..1_000 {
                    list.insert(Liar(n * 3 + thread));
                    list.remove(&Liar(n));
                    list.contains(&Liar(n));
                }
            });
        }
    });
    let len = list.len();
    assert_eq!(list.into_iter().count(), len);
}
