//! Sharded structures on fibres and in launched closures.

use crate::promise;
use corelay::fibre::{self, yield_now};
use corelay::structures::sharded::{Sharded, ShardedMap};
use corelay::{AsyncError, Trustees, barrier};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fibres, which may migrate or may not, make single calls and batches of keys that they borrow.
#[test]
fn fibres_share_a_map() {
    const FIBRES: u64 = 16;
    for (is_migrating, processors) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        let trustees = Trustees::dedicated(2).start().expect("threads");
        let map = ShardedMap::with_shards(&trustees, 3);
        map.insert_many((0..40u64).map(|key| (key, 0u64)));
        let cluster = promise::cluster(processors);
        let spawn = |number: u64| {
            let map = map.clone();
            let work = move || {
                for round in 0..50 {
                    let keys: Vec<u64> = (0..20).map(|n| (n + round) % 40).collect();
                    let seen = map.update_many(&keys, |n| {
                        *n += 1;
                        *n
                    });
                    assert!(seen.iter().all(Option::is_some));
                    map.insert(100 + number, round);
                    yield_now();
                    assert_eq!(map.get(&(100 + number)), Some(round));
                    assert!(map.get_many(&keys) >= seen, "counts only grow");
                }
            };
            let mut builder = cluster.fibre();
            if is_migrating {
                // SAFETY: nothing here is held over a wait that must stay on its thread.
                builder = unsafe { builder.migrating() };
            }
            builder.spawn(work).expect("there is memory")
        };
        let fibres: Vec<_> = (0..FIBRES).map(spawn).collect();
        fibres.into_iter().for_each(|f| f.join().expect("no panic"));
        let keys: Vec<_> = (0..40).collect();
        let sum: u64 = map.get_many(&keys).into_iter().flatten().sum();
        assert_eq!(sum, FIBRES * 50 * 20);
        assert_eq!(map.len() as u64, 40 + FIBRES);
    }
}

/// While a fibre waits for a batch, the others of its processor run.
#[test]
fn others_run_while_a_fibre_waits_for_a_batch() {
    let trustees = Trustees::dedicated(2).start().expect("threads");
    let shards = Sharded::by_range(&trustees, [10], |_| 0);
    let go_on = Arc::new(AtomicBool::new(false));
    for shard in shards.shards() {
        let go_on = Arc::clone(&go_on);
        shard.post(move |_| {
            while !go_on.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        });
    }
    let cluster = promise::cluster(1);
    let theirs = shards.clone();
    let waits = cluster.spawn(move || {
        theirs.apply_many(
            [5, 15, 6],
            |key| key,
            |shard, key| {
                *shard += key;
                *shard
            },
        )
    });
    let runs = cluster.spawn(move || go_on.store(true, Ordering::Release));
    runs.join().expect("it runs");
    assert_eq!(waits.join().expect("no panic"), [5, 15, 11]);
}

fn hosted(n: usize) -> Trustees {
    // SAFETY: the tests wait nowhere inside a thread-local's initialiser, destructor or scope.
    let host = unsafe { fibre::host() };
    Trustees::dedicated(n).host(host).start().expect("threads")
}

/// A launched closure asks all shards, with others and with its own trustee among them.
#[test]
fn launched_closures_make_batches() {
    let trustees = hosted(2);
    let map = ShardedMap::with_shards(&trustees, 4);
    map.insert_many((0..40u64).map(|key| (key, 0u64)));
    let objects = trustees.entrust_all([(); 6]);
    let launch = |object: &corelay::Trust<()>| {
        let map = map.clone();
        object.launch(move |()| {
            let keys: Vec<u64> = (0..40).collect();
            for _ in 0..50 {
                map.update_many(&keys, |n| *n += 1);
                yield_now();
            }
        })
    };
    let launches: Vec<_> = objects.iter().map(launch).collect();
    launches
        .into_iter()
        .for_each(|l| l.join().expect("no panic"));
    assert_eq!(map.get_many(&[0, 13, 39]), [Some(300); 3]);
}

/// A launched closure that holds a shard asks for it, among others: the batch is refused, whether
/// that shard comes last in it or not, and borrows nothing any more.
#[test]
fn a_batch_that_would_wait_for_its_own_caller_is_refused() {
    let trustees = hosted(2);
    let shards = Sharded::by_range(&trustees, [10, 20], |_| 0);
    for held in 0..3 {
        let theirs = shards.clone();
        let launch = shards.shards()[held].launch(move |_| {
            let items: Vec<_> = [5, 15, 25].map(|n| (n, n.to_string())).into();
            theirs.apply_many(
                &items,
                |item| &item.0,
                |shard, (_, text)| *shard += text.len(),
            );
        });
        match launch.join() {
            Err(AsyncError::Panicked(payload)) => {
                let text = payload.downcast::<String>().expect("a message");
                assert!(text.contains("in a ring"), "{text}");
            }
            other => panic!("{other:?}"),
        }
        shards.shards()[held].clear_poison();
    }
    // Each shard has run its item in the two rounds in which it was not held.
    assert_eq!(shards.map_shards(|n| *n), [2, 4, 4]);
}

/// Callbacks of a fibre's thread run beside its batches.
#[test]
fn callbacks_run_beside_batches_of_fibres() {
    let trustees = Trustees::dedicated(2).start().expect("threads");
    let map = ShardedMap::new(&trustees);
    map.insert_many((0..10).map(|n| (n, n)));
    let cluster = promise::cluster(1);
    let fibre = cluster.spawn(move || {
        let ran = Rc::new(Cell::new(0));
        for round in 0..100 {
            let note = Rc::clone(&ran);
            map.get_then(round % 10, move |n| {
                note.set(note.get() + usize::from(n.is_some()))
            });
            assert_eq!(map.get_many(&[0, 3, 5, 7]), [0, 3, 5, 7].map(Some));
        }
        barrier().expect("no panic");
        ran.get()
    });
    assert_eq!(fibre.join().expect("no panic"), 100);
}
