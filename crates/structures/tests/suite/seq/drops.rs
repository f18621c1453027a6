//! Every entry is dropped once: at the end, when it is taken out, and if a drop or a closure panics.

use corelay_structures::seq::{ChainedMap, LruCache, SearchTree, SkipList, SortedList};
use std::cell::Cell;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static ALIVE: Cell<isize> = const { Cell::new(0) };
}

/// A key or a value that counts itself. It is dropped once, or else `ALIVE` does not end at 0.
#[derive(Debug)]
struct Counted {
    number: u32,
    panics: bool,
}

impl Counted {
    fn new(number: u32) -> Self {
        ALIVE.set(ALIVE.get() + 1);
        let panics = false;
        Self { number, panics }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
        assert!(!self.panics, "a drop panics");
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Counted {}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// What the bodies below need of a structure.
trait Structure: IntoIterator + Default {
    fn add(&mut self, entry: Counted);
    fn take(&mut self, number: u32);
    fn refuse(&mut self, is_refused: impl FnMut(u32) -> bool);
    fn empty(&mut self);
    fn count(&self) -> usize;
}

impl Structure for SortedList<Counted> {
    fn add(&mut self, entry: Counted) {
        self.insert(entry);
    }
    fn take(&mut self, number: u32) {
        self.remove(&Counted::new(number));
    }
    fn refuse(&mut self, mut is_refused: impl FnMut(u32) -> bool) {
        self.retain(|key| !is_refused(key.number));
    }
    fn empty(&mut self) {
        self.clear();
    }
    fn count(&self) -> usize {
        assert_eq!(self.len(), self.iter().count());
        self.len()
    }
}

macro_rules! structure_of_entries {
    ($map:ty) => {
        impl Structure for $map {
            fn add(&mut self, entry: Counted) {
                // Some keys panic in their drop, and some values.
                let (mut key, mut value) = (Counted::new(entry.number), entry);
                if key.number % 2 == 0 {
                    std::mem::swap(&mut key.panics, &mut value.panics);
                }
                self.insert(key, value);
            }
            fn take(&mut self, number: u32) {
                self.remove(&Counted::new(number));
            }
            fn refuse(&mut self, mut is_refused: impl FnMut(u32) -> bool) {
                self.retain(|key, _| !is_refused(key.number));
            }
            fn empty(&mut self) {
                self.clear();
            }
            fn count(&self) -> usize {
                assert_eq!(self.len(), self.iter().count());
                self.len()
            }
        }
    };
}

structure_of_entries!(SearchTree<Counted, Counted>);
structure_of_entries!(SkipList<Counted, Counted>);
structure_of_entries!(ChainedMap<Counted, Counted>);

/// 0 to 99 in an order that gives a tree some breadth.
fn numbers() -> impl Iterator<Item = u32> {
    (0..100).map(|n| n * 37 % 100)
}

fn filled<S: Structure>() -> S {
    let mut structure = S::default();
    numbers().for_each(|n| structure.add(Counted::new(n)));
    assert_eq!(structure.count(), 100);
    structure
}

#[track_caller]
fn nothing_is_left() {
    assert_eq!(ALIVE.get(), 0, "alive");
}

fn drops_each_entry_once<S: Structure>() {
    drop(filled::<S>());
    nothing_is_left();

    // Taken out, refused, replaced, cleared.
    let mut structure = filled::<S>();
    let each = ALIVE.get() / 100;
    (0..10).for_each(|n| structure.take(n));
    (0..10).for_each(|n| structure.take(n));
    structure.refuse(|n| n % 2 == 1);
    (0..20).for_each(|n| structure.add(Counted::new(n)));
    assert_eq!(structure.count(), 60);
    assert_eq!(ALIVE.get(), 60 * each);
    structure.empty();
    assert_eq!(structure.count(), 0);
    nothing_is_left();

    // Half of it by an iterator.
    let mut entries = filled::<S>().into_iter();
    assert_eq!(entries.by_ref().take(50).count(), 50);
    assert_eq!(ALIVE.get(), 50 * each);
    drop(entries);
    nothing_is_left();
}

fn a_closure_that_panics_loses_nothing<S: Structure>() {
    let mut structure = filled::<S>();
    let each = ALIVE.get() / 100;
    let mut seen = 0;
    let refused = catch_unwind(AssertUnwindSafe(|| {
        structure.refuse(|n| {
            seen += 1;
            assert!(seen <= 60, "the closure panics");
            n % 2 == 0
        });
    }));
    assert!(refused.is_err());
    assert_eq!(structure.count() as isize * each, ALIVE.get());
    let left = structure.count();
    assert!((40..100).contains(&left), "{left}");
    // All of them can still be found.
    (0..100).for_each(|n| structure.take(n));
    assert_eq!(structure.count(), 0);
    nothing_is_left();
}

/// One drop panics, wherever its entry lies: each of the others is dropped, or still there.
fn a_drop_that_panics_loses_nothing<S: Structure>() {
    let ends: [fn(&mut S, u32); 5] = [
        |structure, bad| structure.take(bad),
        |structure, bad| structure.refuse(|n| n == bad),
        |structure, _| structure.empty(),
        |structure, _| drop(std::mem::take(structure)),
        |structure, _| {
            std::mem::take(structure)
                .into_iter()
                .take(20)
                .for_each(drop)
        },
    ];
    for (bad, end) in [0, 37, 50, 99]
        .into_iter()
        .flat_map(|bad| ends.map(|end| (bad, end)))
    {
        let mut structure = S::default();
        for n in numbers() {
            let mut entry = Counted::new(n);
            entry.panics = n == bad;
            structure.add(entry);
        }
        let each = ALIVE.get() / 100;
        let panicked = catch_unwind(AssertUnwindSafe(|| end(&mut structure, bad))).is_err();
        assert!(panicked, "{bad}");
        assert_eq!(structure.count() as isize * each, ALIVE.get(), "{bad}");
        drop(structure);
        nothing_is_left();
    }
}

macro_rules! for_each_structure {
    ($($name:ident: $structure:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn each_entry_is_dropped_once() {
                drops_each_entry_once::<$structure>();
            }

            #[test]
            fn no_entry_is_lost_if_a_closure_panics() {
                a_closure_that_panics_loses_nothing::<$structure>();
            }

            #[test]
            fn no_entry_is_lost_if_a_drop_panics() {
                a_drop_that_panics_loses_nothing::<$structure>();
            }
        }
    )*};
}

for_each_structure! {
    sorted_list: SortedList<Counted>;
    search_tree: SearchTree<Counted, Counted>;
    skip_list: SkipList<Counted, Counted>;
    chained_map: ChainedMap<Counted, Counted>;
}

#[test]
fn an_lru_map_drops_what_it_evicts() {
    let mut map = LruCache::new(NonZeroUsize::new(10).unwrap());
    (0..100).for_each(|n| drop(map.push(Counted::new(n), Counted::new(n))));
    assert_eq!((map.len(), ALIVE.get()), (10, 20));
    assert_eq!(map.into_iter().take(5).count(), 5);
    nothing_is_left();
}

/// Deep enough to use up the stack of a test's thread, 2 MiB, if anything recursed.
const DEEP: u32 = 200_000;

#[test]
fn a_long_list_ends_without_recursion() {
    let list = || -> SortedList<u32> { (0..DEEP).collect() };
    drop(list());
    let mut entries = list().into_iter();
    assert_eq!(entries.next(), Some(0));
    drop(entries);
    let mut cleared = list();
    assert_eq!(cleared.remove(&(DEEP - 1)), Some(DEEP - 1));
    cleared.clear();
    assert_eq!(format!("{:?}", cleared), "{}");
}

#[test]
fn a_long_chain_in_one_bucket_ends_without_recursion() {
    #[derive(Default)]
    struct Same;
    impl Hasher for Same {
        fn write(&mut self, _bytes: &[u8]) {}
        fn finish(&self) -> u64 {
            0
        }
    }
    // Building it takes quadratic time, so the thread's stack is small instead.
    let mut map = ChainedMap::<_, _, std::hash::BuildHasherDefault<Same>>::default();
    map.extend((0..1_000u32).map(|n| (n, [n; 8])));
    assert_eq!(map.iter().count(), 1_000);
    let small = std::thread::Builder::new().stack_size(64 << 10);
    small.spawn(|| drop(map)).unwrap().join().unwrap();
}

/// Ascending, descending, and zigzag: each makes a list of the tree.
#[test]
fn degenerate_trees_end_without_recursion() {
    let zigzag = |n: u32| {
        if n.is_multiple_of(2) { n } else { u32::MAX - n }
    };
    let order: [&dyn Fn(u32) -> u32; 3] = [&|n| n, &|n| u32::MAX - n, &zigzag];
    // Building one takes quadratic time, so the thread's stack is small instead.
    for order in order {
        let tree =
            || -> SearchTree<u32, [u32; 4]> { (0..1_000).map(|n| (order(n), [n; 4])).collect() };
        let mut retained = tree();
        retained.retain(|_, value| value[0] % 2 == 0);
        assert_eq!(retained.len(), retained.iter().count());
        let trees = [tree(), retained, tree()];
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let thread = small.spawn(move || {
            let [dropped, cleared, iterated] = trees;
            drop(dropped);
            let mut cleared = cleared;
            cleared.clear();
            let mut iterated = iterated.into_iter();
            iterated.next();
            drop(iterated);
        });
        thread.unwrap().join().unwrap();
    }
}
