//! Every block that a pool has asked for is freed once the pool and its nodes are gone, and every
//! node of a lock-free structure or a skip list once no thread is in a call. A queue of blocks frees
//! them itself, and one with two locks, even if the drop of a value panics.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_structures::fine::{OptimisticSkipList, TwoLockQueue};
use corelay_structures::lockfree::{BlockQueue, HarrisList, MsQueue, TreiberStack};
use corelay_structures::pool::{Pool, Pooled};
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::thread;

/// Counts the blocks that are aligned like chunks, those that are aligned like heaps, and those that
/// are aligned like nodes with a [`Wide`]; the test makes no others of the kind.
struct Counting;

static CHUNKS: AtomicIsize = AtomicIsize::new(0);
static HEAPS: AtomicIsize = AtomicIsize::new(0);
static NODES: AtomicIsize = AtomicIsize::new(0);

/// A value whose alignment nothing else has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(align(32))]
struct Wide(usize);

fn count(layout: Layout, sign: isize) {
    match layout.align() {
        32 => NODES.fetch_add(sign, Ordering::SeqCst),
        ..64 => 0,
        64..65_536 => HEAPS.fetch_add(sign, Ordering::SeqCst),
        65_536.. => CHUNKS.fetch_add(sign, Ordering::SeqCst),
    };
}

// SAFETY: it passes every call on to the system's allocator, which keeps the duties of a
// `GlobalAlloc`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        // SAFETY: the caller keeps the duties of `alloc`, which are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: the caller keeps the duties of `dealloc`, which are the system allocator's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn chunks() -> isize {
    CHUNKS.load(Ordering::SeqCst)
}

fn heaps() -> isize {
    HEAPS.load(Ordering::SeqCst)
}

/// There is one test in this file, because the counts are those of the process.
#[test]
fn nothing_is_left() {
    // The test harness has a channel, which stays.
    HEAPS.store(0, Ordering::SeqCst);

    // No node is out when the pool ends.
    let pool = Pool::with_chunk(4);
    let session = pool.session();
    session.reserve(9);
    session.free(session.alloc(String::from("freed")));
    drop(session.alloc(String::from("dropped")));
    assert_eq!((chunks(), heaps()), (3, 1));
    drop((session, pool));
    assert_eq!((chunks(), heaps()), (0, 0));

    // Nodes outlive the pool: each heap goes with the last of its own.
    let pool = Pool::with_chunk(1);
    let (one, other) = (pool.session(), pool.session());
    let mut mine: Vec<_> = (0..3).map(|n| one.alloc(n)).collect();
    let theirs = other.alloc(9);
    drop((one, other, pool));
    assert_eq!((chunks(), heaps()), (4, 2));
    drop(theirs);
    assert_eq!((chunks(), heaps()), (3, 1));
    mine.truncate(1);
    assert_eq!((chunks(), *mine[0]), (3, 0));
    drop(mine);
    assert_eq!(chunks(), 0);

    // A batch of another pool's nodes waits even longer.
    let (pool, others) = (Pool::new(), Pool::<u8>::new());
    let session = others.session();
    session.free(pool.session().alloc(1));
    drop(pool);
    assert_eq!(chunks(), 1);
    session.flush();
    assert_eq!(chunks(), 0);
    drop((session, others));

    // Four threads drop nodes at once, while the pool ends, many times.
    for _ in 0..200 {
        let pool = Pool::with_chunk(3);
        let session = pool.session();
        thread::scope(|s| {
            for _ in 0..4 {
                let nodes: Vec<Pooled<_>> = (0..5).map(|n| session.alloc([n; 3])).collect();
                s.spawn(|| drop(nodes));
            }
            drop(session);
            drop(pool);
        });
        assert_eq!((chunks(), heaps()), (0, 0));
    }

    blocks_of_a_queue();
    nodes_of_a_queue_whose_values_panic();
    nodes_of_lock_free_structures();
}

fn blocks() -> isize {
    NODES.load(Ordering::SeqCst)
}

/// One at least, one to be used again, and one whose last value was just taken.
fn blocks_of_a_queue() {
    let queue = BlockQueue::<_, 3>::from_iter([Wide(0)]);
    assert_eq!(blocks(), 1);
    for n in 0..1_000 {
        queue.push(Wide(n));
        assert!(queue.pop().is_some() && blocks() <= 3);
    }
    (0..1_000).for_each(|n| queue.push(Wide(n)));
    assert!(blocks() > 1_000 / 3);
    assert_eq!((0..1_000).filter_map(|_| queue.pop()).count(), 1_000);
    assert!(blocks() <= 3);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for n in 0..2_000 {
                    queue.push(Wide(n));
                    if n % 3 > 0 {
                        queue.pop();
                    }
                }
            });
        }
    });
    // What threads could not free because others were in the way is freed by those that come later.
    while queue.pop().is_some() {}
    (0..4).for_each(|n| queue.push(Wide(n)));
    while queue.pop().is_some() {}
    assert!(blocks() <= 3);
    queue.push(Wide(1));
    let mut values = queue.into_iter();
    assert!(values.next().is_some() && values.next().is_none());
    drop(values);
    assert_eq!(blocks(), 0);
}

/// A value of the queue panics when the queue drops it, and another when a pop's caller does.
fn nodes_of_a_queue_whose_values_panic() {
    struct Touchy(Wide);
    impl Drop for Touchy {
        fn drop(&mut self) {
            assert!(self.0.0 != 3, "a drop panics");
        }
    }
    let queue: TwoLockQueue<_> = (0..6).map(|n| Touchy(Wide(n))).collect();
    drop(queue.pop());
    assert_eq!(blocks(), 6);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(queue))).is_err());
    assert_eq!(blocks(), 0);
}

/// The last part of the test: collectors of epochs are aligned like heaps.
fn nodes_of_lock_free_structures() {
    let queue = MsQueue::from_iter([Wide(0)]);
    let stack = TreiberStack::<_, 2>::from_iter([Wide(0)]);
    let list = HarrisList::from_iter([Wide(0)]);
    let skip_list = OptimisticSkipList::from_iter([(Wide(0), 0)]);
    let work = |thread: usize| {
        for n in 0..2_000 {
            queue.push(Wide(n));
            stack.push(Wide(n));
            list.insert(Wide((n + thread) % 7));
            skip_list.insert(Wide((n + thread) % 700), n);
            if n % 3 > 0 {
                queue.pop();
                stack.pop();
                list.remove(&Wide((n + thread * 2) % 7));
                skip_list.remove(&Wide((n + thread * 2) % 70));
            }
        }
    };
    thread::scope(|s| {
        let work = &work;
        let threads: Vec<_> = (0..4).map(|n| s.spawn(move || work(n))).collect();
        // A scope's end does not wait for the thread-locals of its threads, and crossbeam's keeps
        // up to 64 retired nodes until it is dropped; a join does.
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    // Every third of the calls from the first on does not pop.
    let left = 4 * 2_000 + 1 - 4 * 1_333;
    assert_eq!(queue.into_iter().count(), left);
    assert_eq!(stack.into_iter().take(9).count(), 9);
    drop((list, skip_list));
    // No thread is in a call: after some rounds every retired node is freed.
    for _ in 0..10_000 {
        crossbeam_epoch::pin().flush();
    }
    assert_eq!(NODES.load(Ordering::SeqCst), 0);
}
