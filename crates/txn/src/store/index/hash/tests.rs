//! The hash index against `HashMap`, and under threads.

use super::*;
use crate::store::garbage::Garbage;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A key with a hash of the test's choice.
#[derive(Debug, Clone, Copy)]
struct Key {
    name: u64,
    hash: u64,
}

/// The name of the key whose comparison panics.
const POISON: u64 = u64::MAX;

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        assert!(
            self.name != POISON && other.name != POISON,
            "a poisoned key"
        );
        self.name == other.name
    }
}

impl Eq for Key {}

const LIVES: u64 = 0x11FE;

#[repr(align(32))]
struct Record {
    key: Key,
    /// [`LIVES`] until the record is freed.
    lives: AtomicU64,
}

impl Record {
    fn boxed(key: Key) -> *mut Self {
        let lives = AtomicU64::new(LIVES);
        Box::into_raw(Box::new(Self { key, lives }))
    }

    /// The name of the key of a record that is not freed.
    fn name(&self) -> u64 {
        assert_eq!(self.lives.load(Ordering::Relaxed), LIVES, "a freed record");
        self.key.name
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        *self.lives.get_mut() = 0;
    }
}

impl Keyed for Record {
    type Key = Key;

    fn key(&self) -> &Key {
        &self.key
    }

    fn hash(&self) -> u64 {
        self.key.hash
    }
}

/// The only guard of a single-threaded test. It frees garbage when it ends.
#[derive(Default)]
struct Alone(RefCell<Vec<Garbage>>);

impl Alone {
    fn bytes(&self) -> usize {
        self.0.borrow().iter().map(Garbage::bytes).sum()
    }
}

// SAFETY: the test has no other guard.
unsafe impl Guard for Alone {
    fn retire(&self, garbage: Garbage) {
        self.0.borrow_mut().push(garbage);
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        for garbage in self.0.take() {
            // SAFETY: the only guard ends here.
            unsafe { garbage.free() };
        }
    }
}

/// A guard of the epochs of `crossbeam-epoch`.
struct Pin(crossbeam_epoch::Guard);

// SAFETY: epoch reclamation keeps this promise.
unsafe impl Guard for Pin {
    fn retire(&self, garbage: Garbage) {
        // SAFETY: the guards of this time have ended when this runs.
        let free = move || unsafe { garbage.free() };
        // SAFETY: any thread may free garbage, by the promise of its maker.
        unsafe { self.0.defer_unchecked(free) };
    }
}

fn pin() -> Pin {
    Pin(crossbeam_epoch::pin())
}

/// An index that owns its records.
struct Owning(HashIndex<Record>);

impl Owning {
    fn new() -> Self {
        Self(HashIndex::with_segments(4, 0))
    }

    fn get<'g>(&self, key: Key, guard: &'g impl Guard) -> Result<&'g Record, Gap> {
        let found = self
            .0
            .get(key.hash, |record| record.name() == key.name, guard);
        found.inspect(|record| assert_eq!(record.name(), key.name))
    }

    fn insert<'g>(&self, key: Key, guard: &'g impl Guard) -> Result<Changed, &'g Record> {
        let record = Record::boxed(key);
        // SAFETY: the record is new. It is retired when it was unlinked, or freed with the index.
        let inserted = unsafe { self.0.insert(record, guard) };
        if inserted.is_err() {
            // SAFETY: it was not inserted, so nobody else knows it.
            drop(unsafe { Box::from_raw(record) });
        }
        inserted
    }

    fn remove(&self, key: Key, guard: &impl Guard) -> bool {
        let Ok(record) = self.get(key, guard) else {
            return false;
        };
        let Some(record) = self.0.unlink(record) else {
            return false;
        };
        // SAFETY: `insert` boxed it, and it was unlinked by this call.
        guard.retire(unsafe { Garbage::boxed(record) });
        true
    }
}

impl Drop for Owning {
    fn drop(&mut self) {
        let guard = Alone::default();
        for record in self.0.iter(&guard) {
            // SAFETY: nobody else uses the index, and `unlink` gives each record once.
            guard.retire(unsafe { Garbage::boxed(self.0.unlink(record).expect("linked")) });
        }
    }
}

/// Hash functions from good to useless.
const HASHES: [fn(u64) -> u64; 4] = [
    |name| (name + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
    |name| name % 3,
    |name| ((name % 2) << 63) | (name % 5),
    |_| u64::MAX,
];

fn key(name: u64, hash: fn(u64) -> u64) -> Key {
    Key {
        name,
        hash: hash(name),
    }
}

/// Whether `gap` is unchanged for a transaction that owns nothing.
fn is_unchanged(gap: &Gap) -> bool {
    // SAFETY: each test keeps its index and a guard.
    unsafe { (gap.is_unchanged)(gap, &|_| false) }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Insert(u64),
    Remove(u64),
    Get(u64),
    /// Insert so many others, to be removed at once.
    Churn(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..40u64).prop_map(Step::Insert),
        3 => (0..40u64).prop_map(Step::Remove),
        3 => (0..40u64).prop_map(Step::Get),
        1 => (1..30u64).prop_map(Step::Churn),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn behaves_like_a_map(steps in steps(), hash in 0..HASHES.len()) {
        let hash = HASHES[hash];
        let (index, mut map) = (Owning::new(), HashMap::new());
        // The gaps of names that are absent, and of no record of the same hash.
        let mut gaps: HashMap<u64, Gap> = HashMap::new();
        let guard = Alone::default();
        for step in steps {
            match step {
                Step::Insert(name) => match index.insert(key(name, hash), &guard) {
                    Ok(changed) => {
                        prop_assert!(map.insert(name, changed).is_none());
                        for (&missed, gap) in &gaps {
                            if hash(missed) == hash(name) {
                                prop_assert!(!is_unchanged(gap), "{missed} by {name}");
                            }
                        }
                        gaps.retain(|&missed, _| hash(missed) != hash(name));
                    }
                    Err(record) => {
                        prop_assert_eq!(record.name(), name);
                        prop_assert!(map.contains_key(&name));
                    }
                },
                Step::Remove(name) => {
                    let is_there = map.remove(&name).is_some();
                    prop_assert_eq!(index.remove(key(name, hash), &guard), is_there);
                }
                Step::Get(name) => match index.get(key(name, hash), &guard) {
                    Ok(_) => prop_assert!(map.contains_key(&name)),
                    Err(gap) => {
                        prop_assert!(!map.contains_key(&name));
                        prop_assert!(is_unchanged(&gap));
                        if !map.keys().any(|&other| hash(other) == hash(name)) {
                            gaps.insert(name, gap);
                        }
                    }
                },
                Step::Churn(count) => {
                    // Other names; their hashes may be the same, but they are gone again.
                    for name in 1000..1000 + count {
                        prop_assert!(index.insert(key(name, hash), &guard).is_ok());
                    }
                    for name in 1000..1000 + count {
                        prop_assert!(index.remove(key(name, hash), &guard));
                    }
                }
            }
            for (missed, gap) in &gaps {
                prop_assert!(is_unchanged(gap), "{missed}");
            }
            let mut names: Vec<u64> = index.0.iter(&guard).map(Record::name).collect();
            names.sort_unstable();
            let mut expected: Vec<u64> = map.keys().copied().collect();
            expected.sort_unstable();
            prop_assert_eq!(names, expected);
        }
    }
}

#[test]
fn a_segment_is_one_cache_line() {
    assert_eq!(size_of::<Segment<Record>>(), 64);
    assert_eq!(align_of::<Segment<Record>>(), 64);
}

#[test]
fn an_own_insert_is_no_change() {
    let (index, guard) = (Owning::new(), Alone::default());
    // The same hash for all: the other record is not an own one.
    let hash = HASHES[3];
    index.insert(key(1, hash), &guard).ok();
    let mut gap = index.get(key(2, hash), &guard).err().expect("absent");
    let changed = index.insert(key(2, hash), &guard).ok().expect("absent");
    assert!(!is_unchanged(&gap));
    gap.follow(&changed);
    assert!(is_unchanged(&gap));
    let later = index.insert(key(3, hash), &guard).ok().expect("absent");
    let other = index.insert(key(4, hash), &guard).ok().expect("absent");
    // The insert of 3 is another transaction's: the gap does not follow the one after it.
    gap.follow(&other);
    assert!(!is_unchanged(&gap));
    assert_eq!(later.to, other.from);
}

#[test]
fn an_own_record_is_no_change() {
    let (index, guard) = (Owning::new(), Alone::default());
    let sought = key(1, HASHES[0]);
    let gap = index.get(sought, &guard).err().expect("absent");
    index.insert(sought, &guard).ok();
    let own = index.get(sought, &guard).expect("inserted");
    let is_own = |record: *const ()| record == std::ptr::from_ref(own).cast();
    assert!(!is_unchanged(&gap));
    // SAFETY: index and guard live.
    assert!(unsafe { (gap.is_unchanged)(&gap, &is_own) });
}

#[test]
fn any_insert_changes_a_gap_of_a_scan() {
    let (index, guard) = (Owning::new(), Alone::default());
    let hash = HASHES[0];
    for name in 0..20 {
        index.insert(key(name, hash), &guard).ok();
    }
    let mut gaps = Vec::new();
    let count = index.0.scan(&guard, |gap| gaps.push(gap)).count();
    assert_eq!((count, gaps.len()), (20, 4));
    index.remove(key(3, hash), &guard);
    assert!(gaps.iter().all(is_unchanged));
    let changed = index.insert(key(99, hash), &guard).ok().expect("absent");
    let is_there = |gap: &&Gap| gap.place == changed.place;
    assert_eq!(gaps.iter().filter(is_there).count(), 1);
    assert!(gaps.iter().all(|gap| is_unchanged(gap) != is_there(&gap)));
    gaps.iter_mut().for_each(|gap| gap.follow(&changed));
    assert!(gaps.iter().all(is_unchanged));
}

#[test]
fn churn_keeps_memory_bounded() {
    for (hash, records) in [(HASHES[0], 1000), (HASHES[2], 50), (HASHES[3], 20)] {
        let index = Owning::new();
        let mut most = 0;
        for round in 0..100 {
            let guard = Alone::default();
            for name in 0..records {
                let [new, old] = [round + 1, round].map(|round| key(round * records + name, hash));
                index.insert(new, &guard).ok();
                assert_eq!(index.remove(old, &guard), round > 0);
            }
            if round == 9 {
                most = index.0.bytes(&guard);
            }
            assert!(round < 10 || index.0.bytes(&guard) <= 2 * most, "{round}");
            // A record's share of retired blocks does not grow either.
            assert!(
                guard.bytes() < 1000 * 64 + (records * 1000) as usize,
                "{round}"
            );
        }
    }
}

#[test]
fn a_block_shrinks_by_later_inserts() {
    let index = Owning::new();
    let guard = Alone::default();
    for name in 0..10_000 {
        index.insert(key(name, HASHES[0]), &guard).ok();
    }
    let most = index.0.bytes(&guard);
    for name in 0..10_000 {
        assert!(index.remove(key(name, HASHES[0]), &guard));
    }
    for name in 0..20_000 {
        index.insert(key(name, HASHES[0]), &guard).ok();
        assert!(index.remove(key(name, HASHES[0]), &guard));
    }
    assert!(index.0.bytes(&guard) <= most);
}

#[test]
fn a_key_whose_eq_panics_leaves_the_lock_free() {
    let (index, guard) = (Owning::new(), Alone::default());
    let hash = HASHES[3];
    index.insert(key(POISON, hash), &guard).ok();
    let mut records = Vec::new();
    for name in 0..20 {
        let record = Record::boxed(key(name, hash));
        records.push(record);
        // SAFETY: the record is new, and freed below if it was not inserted.
        let insert = || unsafe { index.0.insert(record, &guard) }.is_ok();
        assert!(catch_unwind(AssertUnwindSafe(insert)).is_err());
    }
    for record in records {
        // SAFETY: no insert has succeeded.
        drop(unsafe { Box::from_raw(record) });
    }
    let poison = index.0.iter(&guard).next().expect("inserted");
    let poison = index.0.unlink(poison).expect("linked");
    // SAFETY: it was unlinked, by this call.
    guard.retire(unsafe { Garbage::boxed(poison) });
    for name in 0..20 {
        assert!(index.insert(key(name, hash), &guard).is_ok());
        assert!(index.get(key(name, hash), &guard).is_ok());
    }
}

#[test]
fn a_prefetch_finds_nothing_and_harms_nothing() {
    let (index, guard) = (Owning::new(), Alone::default());
    for name in 0..100 {
        index.0.prefetch(HASHES[0](name), &guard);
        index.0.prefetch_record(HASHES[0](name), &guard);
        index.insert(key(name, HASHES[0]), &guard).ok();
        index.0.prefetch_record(HASHES[0](name), &guard);
    }
}

fn rounds(base: u64) -> u64 {
    let by = std::env::var("CORELAY_STRESS").ok();
    base * by.and_then(|by| by.parse::<u64>().ok()).unwrap_or(1)
}

/// Pseudo-random numbers (xorshift).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Threads insert, remove, look up and scan. Names below 8 are there throughout.
fn stress(hash: fn(u64) -> u64, names: u64, rounds: u64) {
    let index = Owning::new();
    let there: Vec<AtomicI64> = (0..names).map(|_| AtomicI64::new(0)).collect();
    for (name, count) in there.iter().enumerate().take(8) {
        index.insert(key(name as u64, hash), &pin()).ok();
        count.store(1, Ordering::Relaxed);
    }
    std::thread::scope(|scope| {
        for thread in 1..=4u64 {
            let (index, there) = (&index, &there);
            scope.spawn(move || {
                let mut state = thread.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                for round in 0..rounds {
                    let guard = pin();
                    let name = 8 + random(&mut state) % (names - 8);
                    match random(&mut state) % 4 {
                        0 | 1 => {
                            if index.insert(key(name, hash), &guard).is_ok() {
                                there[name as usize].fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        2 => {
                            if index.remove(key(name, hash), &guard) {
                                there[name as usize].fetch_sub(1, Ordering::Relaxed);
                            }
                        }
                        _ => drop(index.get(key(name, hash), &guard)),
                    }
                    assert!(index.get(key(round % 8, hash), &guard).is_ok());
                    if round % 256 == 0 {
                        let mut seen = HashSet::new();
                        for record in index.0.iter(&guard) {
                            assert!(seen.insert(std::ptr::from_ref(record)), "seen twice");
                            record.name();
                        }
                        let fixed = index.0.iter(&guard).filter(|record| record.name() < 8);
                        assert_eq!(fixed.count(), 8);
                    }
                }
            });
        }
    });
    let guard = pin();
    for name in 0..names {
        let is_there = index.get(key(name, hash), &guard).is_ok();
        let count = there[name as usize].load(Ordering::Relaxed);
        assert_eq!(i64::from(is_there), count, "{name}");
    }
}

#[test]
fn threads_agree_on_what_is_there() {
    stress(HASHES[0], 2000, rounds(20_000));
}

#[test]
fn threads_agree_with_colliding_hashes() {
    stress(HASHES[3], 40, rounds(10_000));
    stress(HASHES[2], 100, rounds(10_000));
}

/// Each thread inserts its own key after it has missed the others' keys. Of two committers at least
/// one sees the other.
#[test]
fn of_two_committers_one_sees_the_other() {
    for round in 0..rounds(300) {
        let index = Arc::new(Owning::new());
        let barrier = std::sync::Barrier::new(2);
        let names = [round * 2, round * 2 + 1];
        let commits: i32 = std::thread::scope(|scope| {
            let commit = |own: usize| {
                let (index, barrier) = (Arc::clone(&index), &barrier);
                move || {
                    let guard = pin();
                    let missed = index.get(key(names[1 - own], HASHES[0]), &guard);
                    let mut gap = missed.err()?;
                    barrier.wait();
                    let changed = index.insert(key(names[own], HASHES[0]), &guard).ok()?;
                    gap.follow(&changed);
                    super::super::order_checks();
                    is_unchanged(&gap).then_some(())
                }
            };
            let threads = [scope.spawn(commit(0)), scope.spawn(commit(1))];
            threads
                .map(|thread| i32::from(thread.join().expect("no panic").is_some()))
                .iter()
                .sum()
        });
        assert!(commits < 2, "a phantom in round {round}");
    }
}
