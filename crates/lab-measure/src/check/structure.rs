//! The structures that are checked: the plain ones of `structures::seq`, which every method
//! shares, and their rivals of `structures::fine` and `structures::lockfree`, which threads use
//! directly. Maps behind locks that know their operations, and `dashmap`, are checked as the sets
//! that `bench` measures.

use super::action::{Action, Reply, entry};
use super::kind::{CAPACITY, KEYS, Kind};
use crate::workload::structure::rivals::{Locked, Rival, Sharded, concurrent};
use Action::{Get, Insert, Peek, Pop, Push, Remove};
use corelay::structures::fine::{
    BucketMap, ExternalTree, LazyList, OptimisticSkipList, TwoLockQueue,
};
use corelay::structures::lockfree::{BlockQueue, HarrisList, MsQueue, TreiberStack};
use corelay::structures::seq::{
    BinaryHeap, ChainedMap, LruCache, SearchTree, SkipList, SortedList, VecDeque,
};
use dashmap::DashMap;
use std::sync::RwLock;

/// A sequential structure: a closure that owns it and runs an action on it.
pub(super) type Plain = Box<dyn FnMut(Action) -> Reply + Send>;

/// A structure that threads use at once.
pub(super) type Concurrent = Box<dyn Fn(Action) -> Reply + Send + Sync>;

/// A structure, by name.
#[derive(Debug)]
pub struct Structure {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) make: Make,
}

/// Makes an empty structure.
#[derive(Clone, Copy, Debug)]
pub(super) enum Make {
    Plain(fn() -> Plain),
    Concurrent(fn() -> Concurrent),
}

impl Structure {
    /// The structure's name on the command line and in results.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether threads use the structure without a method that shares it.
    pub fn is_concurrent(&self) -> bool {
        matches!(self.make, Make::Concurrent(_))
    }

    const fn plain(name: &'static str, kind: Kind, make: fn() -> Plain) -> Self {
        let make = Make::Plain(make);
        Self { name, kind, make }
    }

    /// A set of keys as `bench` measures it.
    const fn measured<R: Rival>(name: &'static str) -> Self {
        Self::concurrent(name, Kind::Set, || Box::new(concurrent::<R>(KEYS as usize)))
    }

    const fn concurrent(name: &'static str, kind: Kind, make: fn() -> Concurrent) -> Self {
        let make = Make::Concurrent(make);
        Self { name, kind, make }
    }
}

/// A closure that runs actions on `$it`, which is `$new`.
macro_rules! runs {
    ($new:expr, |$($it:ident)+| { $($what:pat => $does:expr,)+ }) => {
        || {
            let $($it)+ = $new;
            Box::new(move |action| match action {
                $($what => $does,)+
                other => other.refuse(),
            })
        }
    };
}

/// All structures, in the order of tables.
pub static STRUCTURES: [Structure; 22] = [
    Structure::plain(
        "list",
        Kind::Set,
        runs!(SortedList::new(), |mut list| {
            Get(key) => list.contains(&key).then_some(key),
            Insert(key, _) => list.insert(key).then_some(key),
            Remove(key) => list.remove(&key),
        }),
    ),
    Structure::plain(
        "queue",
        Kind::Queue,
        runs!(VecDeque::new(), |mut queue| {
            Push(value) => { queue.push_back(value); None },
            Pop => queue.pop_front(),
        }),
    ),
    Structure::plain(
        "stack",
        Kind::Stack,
        runs!(Vec::new(), |mut stack| {
            Push(value) => { stack.push(value); None },
            Pop => stack.pop(),
        }),
    ),
    Structure::plain(
        "hash",
        Kind::Map,
        runs!(ChainedMap::new(), |mut map| {
            Get(key) => map.get(&key).copied(),
            Insert(key, value) => map.insert(key, value),
            Remove(key) => map.remove(&key),
        }),
    ),
    Structure::plain(
        "tree",
        Kind::Map,
        runs!(SearchTree::new(), |mut tree| {
            Get(key) => tree.get(&key).copied(),
            Insert(key, value) => tree.insert(key, value),
            Remove(key) => tree.remove(&key),
        }),
    ),
    Structure::plain(
        "skip-list",
        Kind::Map,
        runs!(SkipList::new(), |mut list| {
            Get(key) => list.get(&key).copied(),
            Insert(key, value) => list.insert(key, value),
            Remove(key) => list.remove(&key),
        }),
    ),
    Structure::plain(
        "heap",
        Kind::Heap,
        runs!(BinaryHeap::new(), |mut heap| {
            Push(value) => { heap.push(value); None },
            Pop => heap.pop(),
            Peek => heap.peek().copied(),
        }),
    ),
    Structure::plain(
        "lru",
        Kind::Lru,
        runs!(LruCache::new(CAPACITY), |mut lru| {
            Get(key) => lru.get(&key).copied(),
            Insert(key, value) => lru.push(key, value).map(entry),
            Remove(key) => lru.pop(&key),
            Pop => lru.pop_lru().map(entry),
        }),
    ),
    Structure::concurrent(
        "two-lock-queue",
        Kind::Queue,
        runs!(TwoLockQueue::new(), |queue| {
            Push(value) => { queue.push(value); None },
            Pop => queue.pop(),
        }),
    ),
    Structure::concurrent(
        "ms-queue",
        Kind::Queue,
        runs!(MsQueue::new(), |queue| {
            Push(value) => { queue.push(value); None },
            Pop => queue.pop(),
        }),
    ),
    Structure::concurrent(
        "block-queue",
        Kind::Queue,
        runs!(BlockQueue::<u64>::new(), |queue| {
            Push(value) => { queue.push(value); None },
            Pop => queue.pop(),
        }),
    ),
    Structure::concurrent(
        "treiber-stack",
        Kind::Stack,
        runs!(TreiberStack::<u64>::new(), |stack| {
            Push(value) => { stack.push(value); None },
            Pop => stack.pop(),
        }),
    ),
    Structure::concurrent(
        "lazy-list",
        Kind::Set,
        runs!(LazyList::new(), |list| {
            Get(key) => list.contains(&key).then_some(key),
            Insert(key, _) => list.insert(key).then_some(key),
            Remove(key) => list.remove(&key).then_some(key),
        }),
    ),
    Structure::concurrent(
        "harris-list",
        Kind::Set,
        runs!(HarrisList::new(), |list| {
            Get(key) => list.contains(&key).then_some(key),
            Insert(key, _) => list.insert(key).then_some(key),
            Remove(key) => list.remove(&key).then_some(key),
        }),
    ),
    Structure::concurrent(
        "bucket-map",
        Kind::Map,
        // Fewer buckets than keys, so that some share one.
        runs!(BucketMap::new(2), |map| {
            Get(key) => map.get(&key),
            Insert(key, value) => map.insert(key, value),
            Remove(key) => map.remove(&key),
        }),
    ),
    Structure::concurrent(
        "optimistic-skip-list",
        Kind::PutIfAbsent,
        runs!(OptimisticSkipList::new(), |list| {
            Get(key) => list.get(&key),
            Insert(key, value) => list.insert(key, value).then_some(key),
            Remove(key) => list.remove(&key),
        }),
    ),
    Structure::concurrent(
        "external-tree",
        Kind::PutIfAbsent,
        runs!(ExternalTree::new(), |tree| {
            Get(key) => tree.get(&key),
            Insert(key, value) => tree.insert(key, value).then_some(key),
            Remove(key) => tree.remove(&key),
        }),
    ),
    Structure::measured::<Locked<RwLock<ChainedMap<u64, u64>>>>("rwlock-hash"),
    Structure::measured::<Locked<parking_lot::RwLock<ChainedMap<u64, u64>>>>(
        "parking-lot-rwlock-hash",
    ),
    Structure::measured::<Sharded<ChainedMap<u64, u64>>>("sharded-hash"),
    Structure::measured::<Sharded<SortedList<u64>>>("sharded-list"),
    Structure::measured::<DashMap<u64, u64>>("dashmap"),
];
