//! The hash index of the store under loom. It is private: see `main.rs`.
//!
//! Keys have colliding hashes where nothing else is said: two slots are a block.

use crate::store::garbage::{Garbage, Guard};
use crate::store::index::hash::HashIndex;
use crate::store::index::{Changed, Gap, Keyed};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::sync::Mutex;

/// A record. Loom reports a race if a thread reads it that has not acquired its insert.
#[repr(align(64))]
struct Record {
    key: u64,
    made: UnsafeCell<u64>,
}

// SAFETY: `made` is written before the record is inserted, and otherwise read only.
unsafe impl Sync for Record {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Record {}

impl Record {
    fn check(&self) {
        // SAFETY: nobody writes it any more.
        assert_eq!(self.made.with(|made| unsafe { *made }), self.key + 1);
    }
}

impl Keyed for Record {
    type Key = u64;

    fn key(&self) -> &u64 {
        &self.key
    }

    fn hash(&self) -> u64 {
        self.check();
        hash(self.key)
    }
}

/// Keys of the same tens share a hash.
fn hash(key: u64) -> u64 {
    (key / 10) << 32
}

/// A guard of the whole model: what is retired is freed with the world.
#[derive(Default)]
struct Whole(Mutex<Vec<Garbage>>);

// SAFETY: it frees nothing before it ends, and no other guard is there.
unsafe impl Guard for Whole {
    fn retire(&self, garbage: Garbage) {
        self.0.lock().unwrap().push(garbage);
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        for garbage in self.0.get_mut().unwrap().drain(..) {
            // SAFETY: the only guard ends.
            unsafe { garbage.free() };
        }
    }
}

/// The index comes first: it is dropped before the blocks and records that were retired.
struct World {
    index: HashIndex<Record>,
    guard: Whole,
    /// A word stored to between steps. Loom branches off where threads write to one word; the loads
    /// of a reader would cause no branch.
    between: AtomicUsize,
    /// Written by a remover before its removal, or by a committer.
    side: UnsafeCell<u64>,
}

// SAFETY: loom checks the accesses of `side`.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new(segments: usize) -> Arc<Self> {
        Arc::new(Self {
            index: HashIndex::with_segments(segments, 0),
            guard: Whole::default(),
            between: AtomicUsize::new(0),
            side: UnsafeCell::new(0),
        })
    }

    /// Lets another thread run here.
    fn pause(&self) {
        // Relaxed: it orders nothing.
        self.between.store(0, Ordering::Relaxed);
    }

    fn insert(&self, key: u64) -> Result<Changed, &Record> {
        let made = UnsafeCell::new(key + 1);
        let record = Box::into_raw(Box::new(Record { key, made }));
        // SAFETY: the record is freed with the guard, whether it is inserted or not.
        let inserted = unsafe { self.index.insert(record, &self.guard) };
        // SAFETY: nobody else frees it. The guard lives as long as the index.
        self.guard.retire(unsafe { Garbage::placed(record) });
        inserted
    }

    fn get(&self, key: u64) -> Result<&Record, Gap> {
        let is_key = |record: &Record| {
            record.check();
            record.key == key
        };
        self.index.get(hash(key), is_key, &self.guard)
    }

    fn is_unchanged(&self, gap: &Gap) -> bool {
        // SAFETY: the world has the index and the guard.
        unsafe { (gap.is_unchanged)(gap, &|_| false) }
    }
}

fn model(run: impl Fn(Arc<World>) + Sync + Send + 'static) {
    loom::model(move || run(World::new(1)));
}

fn spawn<T: 'static>(
    world: &Arc<World>,
    run: impl FnOnce(&World) -> T + 'static,
) -> thread::JoinHandle<T> {
    let world = Arc::clone(world);
    thread::spawn(move || run(&world))
}

/// A record that is there throughout is found while others make the block grow.
#[test]
fn lookup_during_growth() {
    model(|world| {
        world.insert(1).ok();
        let writer = spawn(&world, |world| {
            world.insert(2).ok();
            world.pause();
            world.insert(3).ok();
        });
        world.pause();
        assert!(world.get(1).is_ok());
        if world.get(3).is_ok() {
            assert!(world.get(2).is_ok());
        }
        assert!(world.index.iter(&world.guard).any(|record| record.key == 1));
        writer.join().unwrap();
        assert!((1..=3).all(|key| world.get(key).is_ok()));
    });
}

/// The same key is inserted once.
#[test]
fn one_of_two_inserts_wins() {
    model(|world| {
        let other = spawn(&world, |world| world.insert(1).is_ok());
        let own = world.insert(1);
        if let Err(record) = own {
            record.check();
        }
        let own = own.is_ok();
        assert!(own != other.join().unwrap());
        assert_eq!(world.index.iter(&world.guard).count(), 1);
    });
}

/// Writers of other keys lose nothing.
#[test]
fn two_inserts_of_two_keys() {
    model(|world| {
        let other = spawn(&world, |world| world.insert(1).is_ok());
        assert!(world.insert(2).is_ok());
        assert!(other.join().unwrap());
        assert!(world.get(1).is_ok() && world.get(2).is_ok());
    });
}

/// Looks up a key, inserts another one, and returns whether the gap is unchanged.
fn commit(world: &World, missed: u64, own: u64) -> bool {
    let Err(mut gap) = world.get(missed) else {
        return false;
    };
    world.pause();
    if let Ok(changed) = world.insert(own) {
        gap.follow(&changed);
    }
    crate::store::index::order_checks();
    world.is_unchanged(&gap)
}

/// One of two committers that have missed each other's record finds its gap changed.
fn no_phantom(keys: [u64; 2], segments: usize) {
    loom::model(move || {
        let world = World::new(segments);
        let other = spawn(&world, move |world| commit(world, keys[0], keys[1]));
        let own = commit(&world, keys[1], keys[0]);
        assert!(!(other.join().unwrap() && own), "a phantom");
    });
}

#[test]
fn no_phantom_in_one_segment() {
    no_phantom([10, 20], 1);
}

#[test]
fn no_phantom_in_two_segments() {
    // The highest bit of the hash chooses the segment.
    no_phantom([10, 10 << 31], 2);
}

/// A gap is not taken for unchanged by a transaction that sees what the inserting one did later.
#[test]
fn a_later_check_finds_the_insert() {
    model(|world| {
        let inserted = Arc::new(AtomicUsize::new(0));
        let writer = spawn(&world, {
            let inserted = Arc::clone(&inserted);
            move |world| {
                world.insert(1).ok();
                // Release: pairs with the Acquire below.
                inserted.store(1, Ordering::Release);
            }
        });
        let missed = world.get(1);
        world.pause();
        // Acquire: pairs with the Release above.
        let is_later = inserted.load(Ordering::Acquire) == 1;
        if let (Err(gap), true) = (missed, is_later) {
            assert!(!world.is_unchanged(&gap));
        }
        writer.join().unwrap();
    });
}

/// A lookup finds a record as it was inserted, or sees what its remover did before.
#[test]
fn unlink_against_get() {
    model(|world| {
        world.insert(1).ok();
        world.insert(2).ok();
        let remover = spawn(&world, |world| {
            let record = world.get(1).ok().expect("inserted");
            // SAFETY: the reader does so only if it sees the removal.
            world.side.with_mut(|side| unsafe { *side = 1 });
            world.pause();
            assert!(world.index.unlink(record).is_some());
            world.pause();
            assert!(world.index.unlink(record).is_none());
        });
        world.pause();
        if world.get(1).is_err() {
            // SAFETY: the remover has written it before.
            world.side.with(|side| assert_eq!(unsafe { *side }, 1));
        }
        assert!(world.get(2).is_ok());
        remover.join().unwrap();
        assert!(world.get(1).is_err() && world.get(2).is_ok());
    });
}

/// A record is read by a lookup as it was inserted, also in the place of another one.
#[test]
fn a_tombstone_is_used_again() {
    model(|world| {
        world.insert(1).ok();
        world.insert(2).ok();
        let record = world.get(1).ok().expect("inserted");
        assert!(world.index.unlink(record).is_some());
        let writer = spawn(&world, |world| {
            world.pause();
            world.insert(3).ok();
            world.pause();
        });
        world.pause();
        world.get(3).ok();
        world.pause();
        assert!(world.get(2).is_ok());
        writer.join().unwrap();
        assert!(world.get(3).is_ok());
    });
}

/// A scan finds records as they were inserted, and one that is there throughout once.
#[test]
fn scan_during_inserts() {
    model(|world| {
        world.insert(1).ok();
        world.insert(2).ok();
        let writer = spawn(&world, |world| {
            world.pause();
            world.insert(3).ok();
            world.pause();
        });
        world.pause();
        let records = world.index.iter(&world.guard);
        let old = records.filter(|record| {
            record.check();
            record.key < 3
        });
        assert_eq!(old.count(), 2);
        writer.join().unwrap();
        assert_eq!(world.index.iter(&world.guard).count(), 3);
    });
}

/// A removal and an insert of the same key, while another thread inserts a key of the same hash.
#[test]
fn a_key_comes_again() {
    model(|world| {
        world.insert(1).ok();
        let other = spawn(&world, |world| world.insert(2).is_ok());
        let record = world.get(1).ok().expect("inserted");
        assert!(world.index.unlink(record).is_some());
        assert!(world.insert(1).is_ok());
        assert!(world.get(1).is_ok());
        assert!(other.join().unwrap());
        assert!(world.get(2).is_ok());
    });
}
