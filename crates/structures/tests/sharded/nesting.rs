//! Calls from inside delegated closures and callbacks.

use crate::support::{on_both, panic_of};
use corelay_delegate::barrier;
use corelay_structures::sharded::{Sharded, ShardedMap};
use std::cell::Cell;
use std::rc::Rc;

/// Every call that waits.
fn calls(map: &ShardedMap<u32, u32>) -> Vec<Box<dyn Fn() + '_>> {
    vec![
        Box::new(|| _ = map.get(&1)),
        Box::new(|| _ = map.insert(1, 2)),
        Box::new(|| _ = map.update(&1, |_| ())),
        Box::new(|| _ = map.get_many(&[1, 2, 3, 4, 5, 6, 7, 8])),
        Box::new(|| _ = map.insert_many([(1, 2)])),
        Box::new(|| _ = map.len()),
        Box::new(|| map.clear()),
        Box::new(|| map.retain(|_, _| true)),
        Box::new(|| map.for_each(|_, _| ())),
        Box::new(|| _ = map.get_async(1)),
        Box::new(|| _ = map.get_many_async([1, 2, 3])),
    ]
}

#[test]
fn calls_that_wait_are_refused_inside_a_delegated_closure() {
    on_both(|trustees| {
        let map = ShardedMap::new(trustees);
        map.insert(1, 1);
        let object = trustees.entrust(());
        let inner = map.clone();
        let refused = object.apply(move |()| {
            let refused: Vec<_> = calls(&inner).iter().map(panic_of).collect();
            refused
        });
        assert!(
            refused.iter().all(|text| text.contains("may not wait")
                || text.contains("a delegated closure is a leaf"))
        );
        // A closure that is given to the map is a delegated one, too. Its panic is the caller's.
        let inner = map.clone();
        let refused = panic_of(|| map.update(&1, move |_| inner.get(&1)));
        assert!(refused.contains("a leaf"), "{refused}");
        assert_eq!(map.get(&1), Some(1));
    });
}

#[test]
fn callbacks_are_sent_after_the_closure() {
    on_both(|trustees| {
        let map = ShardedMap::new(trustees);
        map.insert_many((0..10).map(|n| (n, 1)));
        let inner = map.clone();
        map.update(&0, move |value| {
            *value = 2;
            for n in 1..10 {
                inner.update_then(n, |value| *value = 2, |_| ());
            }
        });
        while map.get_many(&[1, 2, 3, 4, 5, 6, 7, 8, 9]) != [Some(2); 9] {
            std::thread::yield_now();
        }
    });
}

#[test]
fn calls_wait_inside_a_callback() {
    on_both(|trustees| {
        let map = ShardedMap::with_shards(trustees, 4);
        map.insert_many((0..100).map(|n| (n, n)));
        let (inner, seen) = (map.clone(), Rc::new(Cell::new(0)));
        let note = Rc::clone(&seen);
        map.get_then(1, move |_| {
            let keys: Vec<_> = (0..100).collect();
            let got: u32 = inner.get_many(&keys).into_iter().flatten().sum();
            note.set(got + inner.get(&50).unwrap_or(0));
        });
        barrier().expect("nothing panics");
        assert_eq!(seen.get(), 4950 + 50);
    });
}

/// A window that is full of the thread's own requests, so that a batch finds no room.
#[test]
fn a_batch_makes_room_in_a_full_window() {
    let builder = corelay_delegate::Trustees::dedicated(2).window(2);
    let trustees = builder.start().expect("there are threads");
    let shards = Sharded::by_range(&trustees, [10], |_| 0u64);
    let ran = Rc::new(Cell::new(0));
    for _ in 0..100 {
        let (inner, note) = (shards.clone(), Rc::clone(&ran));
        for shard in shards.shards() {
            shard.post(|n| *n += 1);
        }
        shards.shards()[0].apply_then(
            |_| (),
            move |()| {
                inner.apply_many([5, 15, 5], |key| key, |shard, _| *shard += 1);
                note.set(note.get() + 1);
            },
        );
        shards.apply_many([5, 15], |key| key, |shard, _| *shard += 1);
    }
    barrier().expect("nothing panics");
    assert_eq!(
        (ran.get(), shards.map_shards(|n| *n)),
        (100, vec![400, 300])
    );
}
