//! What callers on several threads find, and calls on members that ask each other.

use crate::support::{dedicated, flat};
use corelay_structures::sharded::{Sharded, ShardedMap};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn members_ask_each_other_in_batches() {
    for members in [1, 2, 4] {
        let team = flat(members);
        let map = ShardedMap::with_shards(&team, 2 * members);
        let keys: Vec<u64> = (0..300).collect();
        map.insert_many(keys.iter().map(|&key| (key, 0u64)));
        // Short and long ones, which wait in different ways.
        team.run(|_| {
            for round in 0..100 {
                let count = if round % 3 == 0 { 200 } else { 20 };
                let some = &keys[round..][..count];
                map.update_many(some, |n| *n += 1);
            }
        });
        let sum: u64 = map.get_many(&keys).into_iter().flatten().sum();
        assert_eq!(sum, (34 * 200 + 66 * 20) * members as u64);
    }
}

/// Only once a shard's items are done may another thread come in between.
#[test]
fn a_batch_is_atomic_on_each_shard() {
    let trustees = dedicated(2);
    let shards = Sharded::by_range(&trustees, [100], |_| 0u64);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for _ in 0..200 {
                    let seen = shards.apply_many(
                        [1, 2, 3, 101, 102],
                        |key| key,
                        |shard, _| {
                            *shard += 1;
                            *shard
                        },
                    );
                    assert_eq!((seen[1] - seen[0], seen[2] - seen[1]), (1, 1));
                    assert_eq!(seen[4] - seen[3], 1);
                }
            });
        }
    });
    assert_eq!(shards.map_shards(|n| *n), [1800, 1200]);
}

/// Entries that are there all the time are seen once, in order, whatever others write.
#[test]
fn scans_see_what_stays() {
    let trustees = dedicated(2);
    let splits = [100u32, 200, 300];
    let tree = Sharded::by_range(&trustees, splits, |_| BTreeMap::new());
    let even: Vec<u32> = (0..400).step_by(2).collect();
    tree.apply_many(&even, |key| *key, |shard, &key| shard.insert(key, ()));
    let stop = AtomicBool::new(false);
    thread::scope(|s| {
        s.spawn(|| {
            for key in (1..400).step_by(2).cycle() {
                tree.shard_of(&key).apply(|shard| shard.insert(key, ()));
                let far = (key + 202) % 400;
                tree.shard_of(&far).apply(|shard| shard.remove(&far));
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..100 {
            let mut seen = Vec::new();
            tree.for_each_shard_in(50..350, |shard| {
                seen.extend(shard.range(50..350).map(|(key, ())| *key));
            });
            assert!(seen.is_sorted_by(|a, b| a < b));
            let stayed = seen.into_iter().filter(|key| key % 2 == 0);
            assert!(stayed.eq((50..350).step_by(2)));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// `for_each` and `retain` may borrow from their caller; each shard runs on its own trustee.
#[test]
fn visits_of_shards_borrow_and_run_on_trustees() {
    let trustees = dedicated(2);
    let shards = Sharded::by_hash(&trustees, |shard| shard);
    let (mut one_by_one, here) = (Vec::new(), thread::current().id());
    shards.for_each_shard(|shard| one_by_one.push((*shard, thread::current().id())));
    let at_once = shards.map_shards(|shard| (*shard, thread::current().id()));
    assert_eq!(one_by_one, at_once);
    assert!(at_once[0].1 != at_once[1].1 && at_once.iter().all(|(_, thread)| *thread != here));
}

/// A member's own shard is served on its own stack.
#[test]
fn a_members_own_shard_is_served_at_once() {
    let team = flat(2);
    let shards = Sharded::by_hash(&team, |_| 0);
    team.run(|me| {
        let threads = shards.map_shards(|_| thread::current().id());
        assert_eq!(threads[me.number()], thread::current().id());
        let frame = 0u8;
        let near = shards.map_shards(|_| {
            let there = 0u8;
            (&raw const there)
                .addr()
                .abs_diff((&raw const frame).addr())
                < 64 << 10
        });
        // AddressSanitizer keeps such locals elsewhere than on the stack.
        assert!(near[me.number()] || cfg!(corelay_asan));
    });
}
