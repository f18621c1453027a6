//! Every key, value and shard is dropped once.

use crate::support::{block_on, on_both};
use corelay_delegate::barrier;
use corelay_structures::sharded::{Sharded, ShardedMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

/// A value that counts itself while it lives.
struct Counted {
    alive: Arc<AtomicIsize>,
}

impl Counted {
    fn new(alive: &Arc<AtomicIsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self {
            alive: Arc::clone(alive),
        }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(&self.alive)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.alive.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "dropped twice");
    }
}

/// Waits until only `n` values live. Trustees drop shards by themselves.
fn settle(alive: &AtomicIsize, n: isize) {
    while alive.load(Ordering::Relaxed) != n {
        corelay_delegate::poll();
        std::thread::yield_now();
    }
}

#[test]
fn a_map_drops_its_values_once() {
    on_both(|trustees| {
        let alive = Arc::new(AtomicIsize::new(0));
        let new = || Counted::new(&alive);
        let map = ShardedMap::with_shards(trustees, 3);
        map.insert_many((0..100).map(|n| (n, new())));
        assert_eq!(alive.load(Ordering::Relaxed), 100);
        drop(map.insert_many((50..150).map(|n| (n, new()))));
        settle(&alive, 150);
        let keys: Vec<_> = (100..200).collect();
        let got = map.get_many(&keys);
        assert_eq!(alive.load(Ordering::Relaxed), 200);
        drop((got, map.remove_many(&keys)));
        settle(&alive, 100);
        map.retain(|n, _| n % 2 == 0);
        settle(&alive, 50);
        drop(map.get_many_async(keys)); // taken back by nobody
        map.get_then(0, drop);
        drop(block_on(map.insert_async(0, new())));
        barrier().expect("nothing panics");
        settle(&alive, 50);
        map.clear();
        settle(&alive, 0);
        map.insert_many((0..100).map(|n| (n, new())));
        let other = map.clone();
        drop(map);
        assert_eq!(other.len(), 100);
        drop(other);
        settle(&alive, 0);
    });
}

#[test]
fn a_batch_drops_what_a_panic_leaves() {
    on_both(|trustees| {
        let alive = Arc::new(AtomicIsize::new(0));
        let shards = Sharded::by_range(trustees, [10, 20], |_| Vec::new());
        for bad in [0, 7, 12, 25, 29] {
            let items: Vec<_> = (0..30).map(|n| (n, Counted::new(&alive))).collect();
            let run = std::panic::AssertUnwindSafe(|| {
                shards.apply_many(
                    items,
                    |item| &item.0,
                    |shard, (n, counted)| {
                        assert!(n != bad, "bad");
                        shard.push(counted.clone());
                        counted
                    },
                )
            });
            assert!(std::panic::catch_unwind(run).is_err());
            shards
                .shards()
                .iter()
                .for_each(|shard| shard.clear_poison());
            let kept: usize = shards.len();
            settle(&alive, kept as isize);
            shards.clear();
            settle(&alive, 0);
        }
    });
}

/// The last handle goes where the shards are, while another map's call runs.
#[test]
fn the_last_handle_may_be_dropped_on_a_trustee() {
    on_both(|trustees| {
        let alive = Arc::new(AtomicIsize::new(0));
        let map = ShardedMap::with_shards(trustees, 3);
        map.insert_many((0..100).map(|n| (n, Counted::new(&alive))));
        let other = ShardedMap::new(trustees);
        other.insert(1, Some(map));
        other.update(&1, |handle| drop(handle.take()));
        settle(&alive, 0);
        assert_eq!(other.len(), 1);
    });
}
