//! The ordered index under loom: every interleaving of the shipped source (up to the preemption
//! bound) with every permitted stale read.
//!
//! Nodes have at most two entries, so that few keys make splits and merges. Loom watches each
//! block, and reports a read that nothing orders after the block was written.

use crate::store::garbage::{Garbage, Guard};
use crate::store::index::ordered::{Inserted, Ordered, OrderedKey};
use crate::store::index::{Gap, Keyed};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering, fence};
use loom::thread;
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::Mutex;

loom::lazy_static! {
    /// A word stored to when two keys are compared, and when something is retired. Loom branches off
    /// where threads write to one word; the loads of a lookup alone would cause no branch.
    static ref BETWEEN: AtomicUsize = AtomicUsize::new(0);
}

/// Whether this model branches off there. Each model has a process of its own.
static BRANCHES: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(true);

/// Lets another thread run here.
fn pause() {
    if !BRANCHES.load(std::sync::atomic::Ordering::Relaxed) {
        return;
    }
    // Relaxed: it orders nothing.
    BETWEEN.store(0, Ordering::Relaxed);
}

/// A number that is compared by `Ord` alone, on the way down too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key(u64);

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        pause();
        self.0.cmp(&other.0)
    }
}

impl OrderedKey for Key {}

struct Row(Key);

impl Keyed for Row {
    type Key = Key;

    fn key(&self) -> &Key {
        &self.0
    }

    fn hash(&self) -> u64 {
        unreachable!("the index is ordered")
    }
}

/// Keeps all garbage until the threads have ended.
#[derive(Default)]
struct Bin(Mutex<Vec<Garbage>>);

// SAFETY: a bin frees what it has when it is dropped, and all guards are one bin.
unsafe impl Guard for Bin {
    fn retire(&self, garbage: Garbage) {
        self.0.lock().unwrap().push(garbage);
        pause();
    }
}

impl Bin {
    fn empty(&self) {
        for garbage in self.0.lock().unwrap().drain(..) {
            // SAFETY: the model's threads have ended.
            unsafe { garbage.free() };
        }
    }
}

/// An index with nodes of up to two entries, and the rows 0 to 99, of which some are in it.
struct World {
    index: Ordered<Row, 2>,
    bin: Bin,
    rows: Vec<Row>,
}

impl World {
    fn new(keys: &[u64]) -> Arc<Self> {
        let world = Self {
            // SAFETY: there is one guard.
            index: unsafe { Ordered::new() },
            bin: Bin::default(),
            rows: (0..100).map(|key| Row(Key(key))).collect(),
        };
        for key in keys {
            assert!(world.insert(*key));
        }
        Arc::new(world)
    }

    fn insert(&self, key: u64) -> bool {
        let row = NonNull::from(&self.rows[key as usize]);
        // SAFETY: rows outlive the index.
        let inserted = unsafe { self.index.insert(row, &self.bin) };
        matches!(inserted, Inserted::Done(_))
    }

    fn unlink(&self, key: u64) -> bool {
        self.index.unlink(&self.rows[key as usize], &self.bin)
    }

    fn has(&self, key: u64) -> bool {
        let found = self.index.get(&Key(key), &self.bin);
        found.is_ok_and(|row| row.0 == Key(key))
    }

    /// The gap where the key would be, unless it is there.
    fn gap(&self, key: u64) -> Option<Gap> {
        self.index.get(&Key(key), &self.bin).err()
    }

    fn ascending(&self) -> Vec<u64> {
        let bounds = Bound::<&Key>::Unbounded;
        let mut range = self.index.range(bounds, bounds, &self.bin);
        let leaves = std::iter::from_fn(|| range.next());
        leaves
            .flat_map(|leaf| leaf.records)
            .map(|row| row.0.0)
            .collect()
    }

    fn descending(&self) -> Vec<u64> {
        let bounds = Bound::<&Key>::Unbounded;
        let mut range = self.index.range(bounds, bounds, &self.bin);
        let leaves = std::iter::from_fn(|| range.next_back());
        let rows = leaves.flat_map(|leaf| leaf.records.iter().rev());
        rows.map(|row| row.0.0).collect()
    }

    /// The index's keys when the threads have ended, and the garbage is gone.
    fn end(&self) -> Vec<u64> {
        self.bin.empty();
        let keys = self.ascending();
        assert!(keys.iter().all(|key| self.has(*key)));
        assert!(keys.iter().rev().eq(&self.descending()));
        keys
    }
}

fn is_unchanged(gap: &Gap) -> bool {
    // SAFETY: the bin keeps everything while threads run.
    unsafe { (gap.is_unchanged)(gap, &|_| false) }
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.check(f);
}

fn spawn<T: 'static>(
    world: &Arc<World>,
    run: impl FnOnce(&World) -> T + 'static,
) -> thread::JoinHandle<T> {
    let world = Arc::clone(world);
    thread::spawn(move || run(&world))
}

/// The leaf is split and gets a parent.
#[test]
fn keys_are_found_during_a_split() {
    model(|| {
        let world = World::new(&[10, 30]);
        let writer = spawn(&world, |world| assert!(world.insert(20)));
        assert!(world.has(30));
        assert!(world.has(10));
        writer.join().unwrap();
        assert_eq!(world.end(), [10, 20, 30]);
    });
}

/// The split leaf has a parent, which is split, too.
#[test]
fn ranges_are_whole_during_a_split() {
    model(|| {
        let world = World::new(&[10, 20, 30, 40]);
        let writer = spawn(&world, |world| assert!(world.insert(35)));
        let seen = world.ascending();
        assert!(seen == [10, 20, 30, 40] || seen == [10, 20, 30, 35, 40]);
        writer.join().unwrap();
        assert_eq!(world.end(), [10, 20, 30, 35, 40]);
    });
}

/// The left leaf takes over the range of the right one, which is found dead, and the root goes.
#[test]
fn keys_are_found_during_a_merge() {
    model(|| {
        let world = World::new(&[10, 20, 30]);
        assert!(world.unlink(10));
        let writer = spawn(&world, |world| assert!(world.unlink(20)));
        assert!(world.has(30));
        writer.join().unwrap();
        assert_eq!(world.end(), [30]);
    });
}

#[test]
fn ranges_are_whole_during_a_merge() {
    for is_forward in [true, false] {
        model(move || {
            let world = World::new(&[10, 20, 30]);
            assert!(world.unlink(10));
            let writer = spawn(&world, |world| assert!(world.unlink(20)));
            let seen = match is_forward {
                true => world.ascending(),
                false => world.descending().into_iter().rev().collect(),
            };
            assert!(seen == [20, 30] || seen == [30], "{seen:?}");
            writer.join().unwrap();
            assert_eq!(world.end(), [30]);
        });
    }
}

#[test]
fn two_insertions_in_a_leaf_are_both_there() {
    model(|| {
        let world = World::new(&[10]);
        let other = spawn(&world, |world| {
            assert!(world.insert(20));
            assert!(world.has(20));
        });
        assert!(world.insert(30));
        assert!(world.has(30));
        other.join().unwrap();
        assert_eq!(world.end(), [10, 20, 30]);
    });
}

#[test]
fn a_key_is_inserted_once() {
    model(|| {
        let world = World::new(&[10, 30]);
        let other = spawn(&world, |world| world.insert(20));
        let here = world.insert(20);
        let there = other.join().unwrap();
        assert!(here != there);
        assert_eq!(world.end(), [10, 20, 30]);
    });
}

/// An insertion into a leaf whose range is being taken over is not lost, and it is seen at once.
#[test]
fn an_insertion_during_a_merge_is_there() {
    model(|| {
        let world = World::new(&[10, 20, 30]);
        assert!(world.unlink(10));
        let merger = spawn(&world, |world| assert!(world.unlink(20)));
        assert!(world.insert(40));
        assert!(world.has(40));
        merger.join().unwrap();
        assert_eq!(world.end(), [30, 40]);
    });
}

/// A thread that comes to a dead leaf finds what another one has inserted into the heir.
#[test]
fn an_insertion_into_the_heir_is_seen_from_the_dead_leaf() {
    model(|| {
        let world = World::new(&[10, 20, 30]);
        assert!(world.unlink(10));
        let merger = spawn(&world, |world| assert!(world.unlink(20)));
        let inserter = spawn(&world, |world| assert!(world.insert(40)));
        let is_there = world.has(40);
        assert!(!is_there || world.has(40));
        merger.join().unwrap();
        inserter.join().unwrap();
        assert_eq!(world.end(), [30, 40]);
    });
}

/// Both leaves become empty, and each thread finds that it can merge them.
#[test]
fn two_merges_of_the_same_leaves_end() {
    // Both threads write the nodes themselves: more branches would take minutes.
    BRANCHES.store(false, std::sync::atomic::Ordering::Relaxed);
    model(|| {
        let world = World::new(&[10, 20, 30]);
        assert!(world.unlink(10));
        let other = spawn(&world, |world| assert!(world.unlink(20)));
        assert!(world.unlink(30));
        other.join().unwrap();
        assert_eq!(world.end(), []);
    });
}

/// Each thread inserts into the gap that the other one has seen: one of them notices.
#[test]
fn of_two_that_insert_into_each_others_gaps_one_notices() {
    model(|| {
        let world = World::new(&[10, 20, 30]);
        fn commit(world: &World, see: u64, add: u64) -> bool {
            let gap = world.gap(see);
            assert!(world.insert(add));
            // As committers do between their insertions and their looks.
            fence(Ordering::SeqCst);
            gap.is_some_and(|gap| is_unchanged(&gap))
        }
        let other = spawn(&world, |world| commit(world, 15, 40));
        let here = commit(&world, 40, 15);
        let there = other.join().unwrap();
        assert!(!(here && there));
    });
}
