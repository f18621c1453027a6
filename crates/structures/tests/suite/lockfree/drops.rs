//! Every value is dropped once: where it was popped, with the structure, or, a removed key, later.

use corelay_structures::lockfree::{BlockQueue, HarrisList, MsQueue, TreiberStack};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A value that counts drops. One number panics in its drop.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Counted {
    number: usize,
    drops: Drops,
}

#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn value(&self, number: usize) -> Counted {
        let drops = self.clone();
        Counted { number, drops }
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// All are equal, so that only numbers compare.
impl PartialEq for Drops {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Drops {}
impl PartialOrd for Drops {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Drops {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// The number of a value whose drop panics.
const PANICS: usize = 1_000_000;

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.0.fetch_add(1, Ordering::SeqCst);
        assert!(self.number != PANICS, "a drop panics");
    }
}

/// Runs what is retired by now, and all before, on this thread or another.
fn collect_until(is_done: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_done() {
        // Threads of other tests that are inside a call keep it waiting.
        crossbeam_epoch::pin().flush();
        thread::yield_now();
        assert!(
            begun.elapsed().as_secs() < 60,
            "retired nodes are not freed"
        );
    }
}

macro_rules! for_each_structure {
    (|$make:ident| $body:block) => {{
        {
            fn $make(values: Vec<Counted>) -> MsQueue<Counted> {
                values.into_iter().collect()
            }
            $body
        }
        {
            fn $make(values: Vec<Counted>) -> BlockQueue<Counted, 2> {
                values.into_iter().collect()
            }
            $body
        }
        {
            fn $make(values: Vec<Counted>) -> TreiberStack<Counted, 2> {
                values.into_iter().collect()
            }
            $body
        }
        {
            fn $make(values: Vec<Counted>) -> HarrisList<Counted> {
                values.into_iter().collect()
            }
            $body
        }
    }};
}

#[test]
fn what_is_left_is_dropped_with_the_structure() {
    for_each_structure!(|make| {
        let drops = Drops::default();
        let structure = make((0..10).map(|n| drops.value(n)).collect());
        assert_eq!(drops.count(), 0);
        drop(structure);
        assert_eq!(drops.count(), 10);
    });
}

#[test]
fn what_is_left_is_dropped_with_the_iterator() {
    for_each_structure!(|make| {
        let drops = Drops::default();
        let mut values = make((0..10).map(|n| drops.value(n)).collect()).into_iter();
        let taken: Vec<_> = values.by_ref().take(3).collect();
        assert_eq!((taken.len(), drops.count()), (3, 0));
        drop(values);
        assert_eq!(drops.count(), 7);
    });
}

#[test]
fn a_panic_of_a_drop_does_not_keep_the_others() {
    for_each_structure!(|make| {
        let drops = Drops::default();
        let values = [0, PANICS, PANICS + 1, PANICS + 2].map(|n| drops.value(n));
        let structure = make(values.into());
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(structure)));
        assert!(panicked.is_err());
        assert_eq!(drops.count(), 4);
    });
}

#[test]
fn a_popped_value_is_dropped_by_who_popped_it() {
    let drops = Drops::default();
    let queue = MsQueue::from_iter([drops.value(1)]);
    let blocks = BlockQueue::<_, 1>::from_iter([drops.value(2)]);
    let stack = TreiberStack::<_, 1>::from_iter([drops.value(3)]);
    let popped = [queue.pop(), blocks.pop(), stack.pop()];
    drop((queue, blocks, stack));
    assert_eq!(drops.count(), 0);
    drop(popped);
    assert_eq!(drops.count(), 3);
}

#[test]
fn a_removed_key_is_dropped_later() {
    let drops = Drops::default();
    let list = HarrisList::from_iter((0..4).map(|n| drops.value(n)));
    let searched = [1, 3].map(|n| Drops::default().value(n));
    assert!(searched.iter().all(|key| list.remove(key)));
    // A key that is there already is dropped at once.
    assert!(!list.insert(drops.value(2)));
    assert!(drops.count() >= 1);
    drop(list);
    collect_until(|| drops.count() == 5);
}

/// A panic of a removed key's drop does not come out of the call of another structure.
#[test]
fn a_panic_of_a_removed_key_goes_nowhere() {
    let drops = Drops::default();
    let list = HarrisList::from_iter([PANICS, 1].map(|n| drops.value(n)));
    assert!(list.remove(&Drops::default().value(1)));
    let searched = std::mem::ManuallyDrop::new(Drops::default().value(PANICS));
    assert!(list.remove(&*searched));
    collect_until(|| drops.count() == 2);
}

/// A long chain of nodes is dropped without recursion.
#[test]
fn long_structures_do_not_use_up_the_stack() {
    let small = thread::Builder::new().stack_size(64 << 10);
    let work = || {
        const LONG: u32 = 100_000;
        drop(MsQueue::from_iter(0..LONG));
        drop(BlockQueue::<_, 1>::from_iter(0..LONG));
        drop(TreiberStack::<_, 0>::from_iter(0..LONG));
        // In descending order each insertion takes one step.
        drop(HarrisList::from_iter((0..LONG).rev()));
    };
    small.spawn(work).unwrap().join().unwrap();
}

/// A value that pushes another one to the structure it was in, when it is dropped.
#[test]
fn a_drop_uses_its_structure() {
    struct Again(Arc<Places>, u8);
    #[derive(Default)]
    struct Places {
        queue: MsQueue<Again>,
        blocks: BlockQueue<Again, 1>,
        stack: TreiberStack<Again, 1>,
    }
    impl Drop for Again {
        fn drop(&mut self) {
            if let Some(less) = self.1.checked_sub(1) {
                self.0.queue.push(Again(Arc::clone(&self.0), less));
                self.0.blocks.push(Again(Arc::clone(&self.0), less));
                self.0.stack.push(Again(Arc::clone(&self.0), less));
            }
        }
    }
    let places = Arc::new(Places::default());
    drop(Again(Arc::clone(&places), 3));
    let mut drops = 1;
    let pop = || {
        let queued = places.queue.pop().or_else(|| places.blocks.pop());
        queued.or_else(|| places.stack.pop())
    };
    while let Some(value) = pop() {
        drop(value);
        drops += 1;
    }
    assert_eq!(drops, 1 + 3 + 9 + 27);
    assert_eq!(Arc::strong_count(&places), 1);
}

/// A removed key that inserts another one into its list, from whichever thread collects.
#[test]
fn a_late_drop_of_a_key_uses_its_list() {
    static LIST: HarrisList<Again> = HarrisList::new();
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct Again(u8);
    impl Drop for Again {
        fn drop(&mut self) {
            if self.0 == 1 {
                LIST.insert(Again(2));
            }
        }
    }
    LIST.insert(Again(1));
    assert!(LIST.remove(&*std::mem::ManuallyDrop::new(Again(1))));
    collect_until(|| LIST.contains(&Again(2)));
    assert_eq!(LIST.len(), 1);
}

/// Values may borrow: none of them is left in a node that is freed later.
#[test]
fn values_borrow_from_the_caller() {
    let words = String::from("one two three");
    let queue = MsQueue::from_iter(words.split(' '));
    let blocks = BlockQueue::<_, 1>::from_iter(words.split(' '));
    let stack = TreiberStack::<_, 1>::from_iter(words.split(' '));
    thread::scope(|s| {
        s.spawn(|| assert_eq!(queue.pop(), Some("one")));
        s.spawn(|| assert_eq!(blocks.pop(), Some("one")));
        s.spawn(|| assert_eq!(stack.pop(), Some("three")));
    });
}

/// Blocks are made in place: one that is larger than the stack is no problem.
#[test]
fn values_are_large() {
    let small = thread::Builder::new().stack_size(192 << 10);
    let work = || {
        let queue = BlockQueue::<[u8; 4 << 10], 63>::with_slots();
        (0..100).for_each(|n| queue.push([n; 4 << 10]));
        assert!((0..100).all(|n| queue.pop().is_some_and(|value| value == [n; 4 << 10])));
    };
    small.spawn(work).unwrap().join().unwrap();
}

/// Thread-locals are destroyed in an order that nobody knows: before or after what reclaims nodes
/// keeps for the thread.
#[test]
fn destructors_of_thread_locals_make_calls() {
    static QUEUE: MsQueueOnce = MsQueueOnce::new(MsQueue::new);
    static STACK: TreiberStack<u8> = TreiberStack::new();
    static LIST: HarrisList<u8> = HarrisList::new();
    static SEEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    type MsQueueOnce = std::sync::LazyLock<MsQueue<u8>>;

    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            QUEUE.push(1);
            STACK.push(2);
            let popped = QUEUE.pop().into_iter().chain(STACK.pop());
            let removed = (LIST.insert(3) && LIST.remove(&3)).then_some(3);
            SEEN.lock().unwrap().extend(popped.chain(removed));
        }
    }
    thread_local!(static LOCAL: RefCell<Option<AtExit>> = const { RefCell::new(None) });
    for is_first in [true, false] {
        let exits = thread::spawn(move || {
            let enter = || LOCAL.with(|local| *local.borrow_mut() = Some(AtExit));
            if is_first {
                enter();
            }
            STACK.push(0);
            assert_eq!(STACK.pop(), Some(0));
            if !is_first {
                enter();
            }
        });
        exits.join().unwrap();
    }
    assert_eq!(*SEEN.lock().unwrap(), [1, 2, 3, 1, 2, 3]);
}
