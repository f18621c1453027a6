//! Panics of user code reach their own caller only, and leave structures in order.

use crate::support::{block_on, dedicated, message, on_both, panic_of};
use corelay_delegate::{AsyncError, Trustees, barrier, poll};
use corelay_structures::sharded::{Sharded, ShardedMap};
use std::any::Any;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The call that panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fuse {
    None,
    Hash,
    Eq,
    Clone,
    Drop,
}

/// A key or value that panics in one of its functions, once it is armed.
#[derive(Debug)]
struct Bomb {
    number: u32,
    fuse: Fuse,
    armed: Arc<AtomicBool>,
}

impl Bomb {
    fn new(number: u32, fuse: Fuse) -> (Self, Arc<AtomicBool>) {
        let armed = Arc::new(AtomicBool::new(false));
        let bomb = Self {
            number,
            fuse,
            armed: Arc::clone(&armed),
        };
        (bomb, armed)
    }

    fn harmless(number: u32) -> Self {
        Self::new(number, Fuse::None).0
    }

    fn call(&self, fuse: Fuse) {
        // Once.
        if self.fuse == fuse && self.armed.swap(false, Ordering::Relaxed) {
            panic!("{fuse:?} of {}", self.number);
        }
    }
}

impl Hash for Bomb {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.call(Fuse::Hash);
        self.number.hash(state);
    }
}

impl PartialEq for Bomb {
    fn eq(&self, other: &Self) -> bool {
        self.call(Fuse::Eq);
        other.call(Fuse::Eq);
        self.number == other.number
    }
}

impl Eq for Bomb {}

impl Clone for Bomb {
    fn clone(&self) -> Self {
        self.call(Fuse::Clone);
        Self::harmless(self.number)
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.call(Fuse::Drop);
    }
}

fn arm(armed: &AtomicBool) {
    armed.store(true, Ordering::Relaxed);
}

/// A map of ten entries, whose value of 3 and key of 4 panic.
fn bombs(trustees: &Trustees, fuse: Fuse) -> (ShardedMap<Bomb, Bomb>, [Arc<AtomicBool>; 2]) {
    let map = ShardedMap::with_shards(trustees, 3);
    let (value, value_armed) = Bomb::new(30, fuse);
    let (key, key_armed) = Bomb::new(4, fuse);
    map.insert(Bomb::harmless(3), value);
    map.insert(key, Bomb::harmless(40));
    for n in [0, 1, 2, 5, 6, 7, 8, 9] {
        map.insert(Bomb::harmless(n), Bomb::harmless(10 * n));
    }
    (map, [value_armed, key_armed])
}

fn check_others(map: &ShardedMap<Bomb, Bomb>, besides: &[u32]) {
    for n in (0..10).filter(|n| !besides.contains(n)) {
        let number = map.get_with(&Bomb::harmless(n), |value| value.number);
        assert_eq!(number, Some(10 * n));
    }
}

#[test]
fn hash_panics_on_the_caller() {
    on_both(|trustees| {
        let (map, _) = bombs(trustees, Fuse::None);
        let (key, armed) = Bomb::new(5, Fuse::Hash);
        arm(&armed);
        assert_eq!(panic_of(|| map.get_with(&key, |_| ())), "Hash of 5");
        arm(&armed);
        let keys = [&Bomb::harmless(1), &key];
        assert_eq!(panic_of(|| map.get_many(keys)), "Hash of 5");
        arm(&armed);
        assert_eq!(
            panic_of(|| map.insert(key, Bomb::harmless(50))),
            "Hash of 5"
        );
        check_others(&map, &[]);
    });
}

#[test]
fn eq_panics_reach_their_caller() {
    on_both(|trustees| {
        let (map, [_, key]) = bombs(trustees, Fuse::Eq);
        let four = &Bomb::harmless(4);
        arm(&key);
        assert_eq!(panic_of(|| map.remove(four)), "Eq of 4");
        arm(&key);
        let insert = || map.insert(Bomb::harmless(4), Bomb::harmless(41));
        assert_eq!(panic_of(insert), "Eq of 4");
        assert_eq!(map.get_with(four, |value| value.number), Some(40));
        assert_eq!(map.len(), 10);
        check_others(&map, &[]);
    });
}

#[test]
fn clone_panics_reach_their_caller() {
    on_both(|trustees| {
        let (map, [value, _]) = bombs(trustees, Fuse::Clone);
        let three = || Bomb::harmless(3);
        arm(&value);
        assert_eq!(panic_of(|| map.get(&three())), "Clone of 30");
        arm(&value);
        match block_on(map.get_async(three())) {
            Err(AsyncError::Panicked(payload)) => assert_eq!(message(&*payload), "Clone of 30"),
            other => panic!("{other:?}"),
        }
        arm(&value);
        let raised = panic_of(|| {
            map.get_then(three(), |_| panic!("no value")); // raises it on a member's own shard
            barrier().expect("the panic is raised instead");
        });
        assert_eq!(raised, "Clone of 30");
        barrier().expect("and only once");
        check_others(&map, &[]);
    });
}

#[test]
fn drop_panics_reach_their_caller() {
    on_both(|trustees| {
        let (map, [value, key]) = bombs(trustees, Fuse::Drop);
        arm(&value);
        let removed = map.remove(&Bomb::harmless(3));
        assert_eq!(panic_of(|| drop(removed)), "Drop of 30"); // the caller's own
        arm(&key);
        assert_eq!(panic_of(|| map.remove(&Bomb::harmless(4))), "Drop of 4");
        check_others(&map, &[3, 4]);
        let (map, [value, _]) = bombs(trustees, Fuse::Drop);
        arm(&value);
        assert_eq!(panic_of(|| map.clear()), "Drop of 30");
        assert!(map.is_empty(), "also the shard with the panic");
        map.insert(Bomb::harmless(1), Bomb::harmless(10));
        assert_eq!(map.len(), 1);
    });
}

#[test]
fn closure_panics_reach_their_caller_and_the_map_goes_on() {
    on_both(|trustees| {
        let map = ShardedMap::with_shards(trustees, 3);
        map.insert_many((0..10).map(|n| (n, 10 * n)));
        let update = |n: &mut i32| -> i32 {
            *n += 1;
            panic!("at {n}")
        };
        assert_eq!(panic_of(|| map.update(&3, update)), "at 31");
        assert_eq!(map.get(&3), Some(31), "as the closure left it");
        assert_eq!(
            panic_of(|| map.get_or_insert_with(77, || panic!("no value"))),
            "no value"
        );
        assert_eq!(map.get(&77), None);
        match block_on(map.update_async(4, update)) {
            Err(AsyncError::Panicked(payload)) => assert_eq!(message(&*payload), "at 41"),
            other => panic!("{other:?}"),
        }
        let mut seen = 0;
        let retained = panic_of(|| {
            map.retain(|_, _| {
                seen += 1;
                assert!(seen < 4, "the fourth");
                false
            });
        });
        assert_eq!((retained.as_str(), map.len()), ("the fourth", 7));
        assert_eq!(panic_of(|| map.for_each(|_, _| panic!("seen"))), "seen");
    });
}

/// All other keys are done, in short batches and in long ones.
#[test]
fn a_panic_in_a_batch_is_that_key_alone() {
    on_both(|trustees| {
        for count in [20, 100] {
            let map = ShardedMap::with_shards(trustees, 3);
            let keys: Vec<i32> = (0..count).collect();
            map.insert_many(keys.iter().map(|n| (*n, *n)));
            let update = |n: &mut i32| {
                assert!(*n % 40 != 7, "seven");
                *n += 1000;
            };
            assert_eq!(panic_of(|| map.update_many(&keys, update)), "seven");
            let expected = |n| Some(if n % 40 == 7 { n } else { n + 1000 });
            assert!(map.get_many(&keys).into_iter().eq((0..count).map(expected)));
        }
    });
}

#[test]
fn a_panic_in_a_batch_of_futures_or_callbacks_is_that_key_alone() {
    on_both(|trustees| {
        let (map, [value, _]) = bombs(trustees, Fuse::Clone);
        let keys = || (0..10).map(Bomb::harmless);
        arm(&value);
        match block_on(map.get_many_async(keys())) {
            Err(AsyncError::Panicked(payload)) => assert_eq!(message(&*payload), "Clone of 30"),
            other => panic!("{other:?}"),
        }
        arm(&value);
        let raised = panic_of(|| {
            map.get_many_then(keys(), |_| panic!("not all have values"));
            barrier().expect("the panic is raised instead");
        });
        assert_eq!(raised, "Clone of 30");
        let all = block_on(map.get_many_async(keys())).expect("not armed");
        assert!(
            all.into_iter()
                .flatten()
                .map(|bomb| bomb.number)
                .eq((0..10).map(|n| 10 * n))
        );
    });
}

/// As with any delegated object. The shards that do not panic have run.
#[test]
fn a_panic_poisons_a_shard_of_sharded() {
    on_both(|trustees| {
        for times in [1, 40] {
            let shards = Sharded::by_range(trustees, [10, 20], |_| 0);
            let run = |bad: i32| {
                shards.apply_many(
                    [5, 15, 25].repeat(times),
                    |key| key,
                    |shard, key| {
                        assert!(key != bad, "bad {key}");
                        *shard += 1;
                        *shard
                    },
                )
            };
            for (n, bad) in [5, 15, 25].into_iter().enumerate() {
                assert_eq!(panic_of(|| run(bad)), format!("bad {bad}"));
                assert!(shards.shards()[n].is_poisoned());
                let poisoned = panic_of(|| run(0));
                assert!(poisoned.contains("poisoned"), "{poisoned}");
                shards.shards()[n].clear_poison();
            }
            // Twice in each round, but for the poisoned shard's none.
            assert_eq!(run(0)[3 * times - 3..], [5 * times; 3]);
            barrier().expect("callers have been told, so barriers are not");
        }
    });
}

/// The caller's frame, from which the items borrow, is not left while other shards work.
#[test]
fn a_panic_waits_for_the_other_shards() {
    on_both(|trustees| {
        for times in [1, 40] {
            for bad in [5, 15, 25] {
                let shards = Sharded::by_range(trustees, [10, 20], |_| ());
                let done = [5, 15, 25].map(|key| (key, AtomicBool::new(false)));
                let items = (0..times).flat_map(|_| &done);
                let run = |(), (key, done): &(i32, AtomicBool)| {
                    assert!(*key != bad, "bad {key}");
                    if !done.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(5));
                        done.store(true, Ordering::Relaxed);
                    }
                };
                let raised =
                    panic_of(|| shards.apply_many(items, |item| &item.0, |(), item| run((), item)));
                assert_eq!(raised, format!("bad {bad}"));
                for (key, done) in done {
                    assert_eq!(done.into_inner(), key != bad);
                }
            }
        }
    });
}

/// A payload whose destructor panics. The one that reaches the caller is to be forgotten.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        panic!("the payload's own");
    }
}

fn catch<R>(f: impl FnOnce() -> R) -> Box<dyn Any + Send> {
    let raised = catch_unwind(AssertUnwindSafe(f));
    raised.map(|_| ()).expect_err("a panic")
}

fn expect_loud(payload: Box<dyn Any + Send>) {
    let payload = payload.downcast::<Loud>();
    let Ok(payload) = payload else {
        panic!("another payload")
    };
    std::mem::forget(payload);
}

/// A value that panics with [`Loud`] when it is cloned or dropped, if it is one of these.
struct Explosive {
    in_clone: bool,
    in_drop: bool,
}

impl Clone for Explosive {
    fn clone(&self) -> Self {
        if self.in_clone {
            panic_any(Loud);
        }
        // The clone of a value that is safe to drop is not: it is a result that nobody takes.
        Self {
            in_clone: false,
            in_drop: true,
        }
    }
}

impl Drop for Explosive {
    fn drop(&mut self) {
        if self.in_drop {
            panic_any(Loud);
        }
    }
}

/// Of the panics of several shards the caller gets one. The destructors of the others panic, too.
#[test]
fn payloads_that_panic_are_dropped_in_order() {
    on_both(|trustees| {
        let shards = Sharded::by_range(trustees, [10, 20], |_| 0);
        let keys = || [5, 15, 25].repeat(3);
        let run = |_: &mut i32, _: i32| -> () { panic_any(Loud) };
        expect_loud(catch(|| shards.apply_many(keys(), |key| key, run)));
        for shard in shards.shards() {
            assert!(shard.is_poisoned());
            shard.clear_poison();
        }
        assert_eq!(shards.map_shards(|n| *n), [0; 3]);
    });
}

#[test]
fn results_that_panic_leave_no_shard_poisoned() {
    on_both(|trustees| {
        let map = ShardedMap::with_shards(trustees, 3);
        let entry = |n: u32| {
            let value = Explosive {
                in_clone: n % 2 == 1,
                in_drop: false,
            };
            (n, value)
        };
        map.insert_many((0..20).map(entry));
        // All clones but one panic, and that one when it is dropped. (Of two in one `Vec`, the second
        // would end the process, as everywhere.)
        let keys = || (0..20).filter(|n| n % 2 == 1 || *n == 8);
        expect_loud(catch(|| map.get_many(&keys().collect::<Vec<_>>())));
        match block_on(map.get_many_async(keys())) {
            Err(AsyncError::Panicked(payload)) => expect_loud(payload),
            other => panic!("{}", other.is_ok()),
        }
        let untaken = map.get_many_async(keys());
        map.len(); // all shards have answered
        drop(untaken);
        for count in [1, 11] {
            expect_loud(catch(|| {
                map.get_many_then(keys().take(count), |_| panic!("not all have values"));
                barrier().expect("the panic is raised instead");
            }));
            // Each shard's callback raises one.
            while let Err(payload) = catch_unwind(barrier) {
                expect_loud(payload);
            }
        }
        assert!(map.contains_key(&1), "no shard is poisoned");
        assert_eq!(map.len(), 20);
        map.update_many(&[0, 1, 2, 3, 4, 5, 6, 7], |value| value.in_drop = true);
        // At most one in each shard.
        for n in 0..8 {
            expect_loud(catch(|| map.retain(|key, _| *key != n)));
        }
        assert_eq!(map.len(), 12);
    });
}

/// A hasher by which keys 0 and 1 belong to different shards of two.
#[derive(Clone, Default)]
struct High(u64);

impl Hasher for High {
    fn finish(&self) -> u64 {
        self.0 << 56
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes[0].into();
    }
}

#[test]
fn every_shard_may_panic_when_a_map_is_cleared() {
    on_both(|trustees| {
        let hasher = BuildHasherDefault::<High>::default();
        let map = ShardedMap::with_shards_and_hasher(trustees, 2, hasher);
        let explosive = || Explosive {
            in_clone: false,
            in_drop: true,
        };
        map.insert_many([(0, explosive()), (1, explosive())]);
        expect_loud(catch(|| map.clear()));
        assert!(map.is_empty());
        // The other shard's panic is dropped when the future is polled, and that ends its wait.
        let bad = || Explosive {
            in_clone: true,
            in_drop: false,
        };
        map.insert_many([(0, bad()), (1, bad())]);
        match block_on(map.get_many_async([0, 1])) {
            Err(AsyncError::Panicked(payload)) => expect_loud(payload),
            other => panic!("{}", other.is_ok()),
        }
    });
}

/// The batch goes on to its end before the callback's panic is raised.
#[test]
fn a_callback_that_panics_in_a_batch_leaves_nothing_behind() {
    let trustees = dedicated(2);
    let shards = Sharded::by_range(&trustees, [10], |_| 0);
    for round in 1..200 {
        for shard in shards.shards() {
            shard.apply_then(|_| (), |()| panic!("a callback"));
        }
        let mut keys = vec![5; 40];
        keys.extend([15; 40]);
        let raised = panic_of(|| {
            shards.apply_many(&keys, |key| *key, |shard, _| *shard += 1);
            // If no answer had come yet.
            loop {
                poll();
            }
        });
        assert_eq!(raised, "a callback");
        let _ = std::panic::catch_unwind(barrier);
        assert_eq!(shards.map_shards(|n| *n), [40 * round; 2]);
    }
}

#[test]
fn zero_shards_are_refused() {
    let trustees = dedicated(1);
    let made = panic_of(|| ShardedMap::<u8, u8>::with_shards(&trustees, 0));
    assert!(
        made.contains("0 shards") && made.contains("give at least 1"),
        "{made}"
    );
}

#[test]
fn shards_beyond_memory_are_refused() {
    let trustees = dedicated(1);
    let made = panic_of(|| ShardedMap::<u8, u8>::with_shards(&trustees, usize::MAX));
    assert!(
        made.contains("shards do not fit into memory") && made.contains("give fewer"),
        "{made}"
    );
}

#[test]
fn a_trustee_that_has_been_shut_down_refuses() {
    let trustees = dedicated(2);
    let map = ShardedMap::new(&trustees);
    map.insert(1, 1);
    trustees.shutdown();
    let refused = [
        panic_of(|| map.get(&1)),
        panic_of(|| map.get_many(&[1, 2, 3, 4, 5, 6, 7])),
        panic_of(|| map.len()),
    ];
    assert!(
        refused.iter().all(|text| text.contains("shut down")),
        "{refused:?}"
    );
    assert!(matches!(
        block_on(map.get_async(1)),
        Err(AsyncError::Closed)
    ));
    assert!(matches!(
        block_on(map.get_many_async([1, 2, 3])),
        Err(AsyncError::Closed)
    ));
}
