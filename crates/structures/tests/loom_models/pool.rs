//! The pool under loom: every interleaving of the shipped source (up to the preemption bound)
//! with every permitted stale read.
//!
//! loom sees values and links as cells, and chunks as allocations. It reports an access that is not
//! ordered with the one before, and a chunk that is not freed, or freed twice. The thread that
//! frees a chunk declares that it writes all of its slots.

use corelay_structures::pool::{Pool, Pooled};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// A point at which another thread may run. loom branches where threads write to one word, and an
/// owner that only looks whether something has come back would not make it branch.
#[derive(Clone, Default)]
struct Between(Arc<AtomicUsize>);

impl Between {
    fn pause(&self) {
        // Relaxed: it orders nothing.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Nodes that another thread frees come back while the owner allocates.
#[test]
fn freed_elsewhere_is_used_again() {
    loom::model(|| {
        let pool = Pool::with_chunk(1);
        let mine = pool.session();
        let node = mine.alloc(1_usize);
        let between = Between::default();
        let other = thread::spawn({
            let (pool, between) = (pool.clone(), between.clone());
            move || {
                let theirs = pool.session();
                assert_eq!(*node, 1);
                theirs.free(node);
                theirs.flush();
                between.pause();
            }
        });
        between.pause();
        let mut again = mine.alloc(2);
        *again += 1;
        other.join().unwrap();
        let third = mine.alloc(4);
        assert_eq!((*again, *third), (3, 4));
        mine.free(again);
        mine.free(third);
        // The second or the third node has found the first one's place.
        assert!(pool.stats().chunks == 2, "{:?}", pool.stats());
    });
}

/// Two threads give back, one a batch of two and one a plain drop, while the owner collects.
#[test]
fn a_batch_and_a_drop() {
    loom::model(|| {
        let pool = Pool::with_chunk(3);
        let mine = pool.session();
        let [a, b, c] = [1_usize, 2, 3].map(|n| mine.alloc(n));
        let between = Between::default();
        let batch = thread::spawn({
            let (pool, between) = (pool.clone(), between.clone());
            move || {
                let theirs = pool.session();
                theirs.free(a);
                theirs.free(b);
                between.pause();
            }
        });
        let single = thread::spawn({
            let between = between.clone();
            move || {
                drop(c);
                between.pause();
            }
        });
        between.pause();
        let nodes = [4, 5].map(|n| mine.alloc(n));
        batch.join().unwrap();
        single.join().unwrap();
        assert_eq!(nodes.each_ref().map(|node| **node), [4, 5]);
    });
}

/// Two threads that are not the owner give back; the owner collects in between and at the end.
#[test]
fn two_drop_while_the_owner_collects() {
    loom::model(|| {
        let pool = Pool::with_chunk(2);
        let mine = pool.session();
        let [a, b] = [1_usize, 2].map(|n| mine.alloc(n));
        let between = Between::default();
        let threads = [a, b].map(|node| {
            let between = between.clone();
            thread::spawn(move || {
                let value = Pooled::into_inner(node);
                between.pause();
                value
            })
        });
        between.pause();
        let early = mine.alloc(3);
        let sum: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(sum, 3);
        let late = [4, 5, 6].map(|n| mine.alloc(n));
        assert_eq!(*early + late.iter().map(|node| **node).sum::<usize>(), 18);
        // Four nodes at one time, with two in a chunk; loom reports one that is given out twice.
        assert_eq!(pool.stats().chunks, 2);
    });
}

/// The last handle goes while another thread drops the last node. Whichever comes last frees what
/// the other has used.
#[test]
fn the_pool_ends_beside_a_drop() {
    loom::model(|| {
        let pool = Pool::with_chunk(2);
        let mine = pool.session();
        let node = mine.alloc(1_usize);
        let other = thread::spawn(move || drop(node));
        mine.free(mine.alloc(2));
        drop((mine, pool));
        other.join().unwrap();
    });
}

/// The last handle goes while two threads drop the last nodes: one of the three frees the heap.
#[test]
fn the_pool_ends_beside_two_drops() {
    loom::model(|| {
        let pool = Pool::with_chunk(2);
        let mine = pool.session();
        let threads = [1_usize, 2].map(|n| {
            let node = mine.alloc(n);
            thread::spawn(move || assert_eq!(*node, n))
        });
        drop(mine);
        drop(pool);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// A node waits in the session of another pool, to go back with others, while its heap ends.
#[test]
fn a_batch_outlives_the_pool() {
    loom::model(|| {
        let (pool, others) = (Pool::with_chunk(2), Pool::with_chunk(1));
        let mine = pool.session();
        let [a, b] = [1_usize, 2].map(|n| mine.alloc(n));
        let batch = thread::spawn(move || {
            let theirs = others.session();
            theirs.free(a);
            assert_eq!(*theirs.alloc(3), 3);
        });
        drop((mine, pool));
        drop(b);
        batch.join().unwrap();
    });
}

/// A session ends, and another takes over its heap, with what comes back meanwhile.
#[test]
fn a_heap_is_taken_over() {
    loom::model(|| {
        let pool = Pool::with_chunk(2);
        let mine = pool.session();
        let [a, b] = [1_usize, 2].map(|n| mine.alloc(n));
        let drops = thread::spawn(move || drop(a));
        let adopts = thread::spawn({
            let pool = pool.clone();
            move || {
                let theirs = pool.session();
                let node = theirs.alloc(3);
                assert_eq!(*node, 3);
                theirs.free(node);
            }
        });
        mine.free(b);
        drop(mine);
        drops.join().unwrap();
        adopts.join().unwrap();
        let stats = pool.stats();
        assert_eq!(stats.heaps + stats.adopted, 2, "{stats:?}");
    });
}

/// A node is passed on through a word of the user's, written again by its next owner, and dropped
/// there.
#[test]
fn a_node_is_handed_on() {
    loom::model(|| {
        let pool = Pool::with_chunk(1);
        let mine = pool.session();
        let place = Arc::new(AtomicUsize::new(0));
        let other = thread::spawn({
            let place = Arc::clone(&place);
            move || {
                // Acquire: pairs with the Release below.
                let raw = place.load(Ordering::Acquire);
                if let Some(value) = std::ptr::NonNull::new(raw as *mut usize) {
                    // SAFETY: the pointer was given up below, and this exchange took it out, once.
                    let mut node = unsafe { Pooled::from_raw(value) };
                    *node += 1;
                    assert_eq!(*node, 2);
                    drop(node);
                    return true;
                }
                false
            }
        });
        let raw = Pooled::into_raw(mine.alloc(1));
        place.store(raw.as_ptr() as usize, Ordering::Release);
        let next = mine.alloc(5);
        if !other.join().unwrap() {
            // SAFETY: nobody has taken the pointer, as the exchange shows.
            drop(unsafe { Pooled::from_raw(raw) });
        }
        assert_eq!(*next, 5);
    });
}
