//! Pools: where a thread keeps its queue nodes between locks, for the algorithms whose nodes outlive
//! the calls that bring them ([`Clh`](crate::Clh), [`CcSynch`](crate::CcSynch)).
//!
//! A hand-over leaves the releasing thread one node short and the successor with one too many. So
//! nodes wander from the threads that come first to those that come last. Each thread has a small
//! stack of nodes. When it overflows, half of it goes to a depot of the process, from which a
//! thread without nodes takes as many (the magazines of Bonwick and Adams, USENIX 2001, section 3).
//! A thread allocates a node only if its stack and the depot are empty. So in the long run a lock
//! is taken without allocating, whichever way nodes wander, and there are never more nodes than the
//! stacks held and the queues used at their peak. The depot keeps its nodes for ever.
//!
//! Nobody else knows a node in a pool, and it is as [`Pooled::new`] made it.

use corelay_sync::facade::MODEL;
// std's cells, not the facade's: no other thread ever reaches them.
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
use std::sync::Mutex;

/// A kind of node that threads keep in pools: [`pooled!`] implements it.
pub(crate) trait Pooled: Sized + 'static {
    /// A fresh node.
    fn fresh() -> Self;

    /// Runs `f` with the pool of the calling thread.
    fn with_pool<R>(f: impl FnOnce(&Pool<Self>) -> R) -> R;

    /// Runs `f` with the pool of the calling thread, unless a model has taken the pool away.
    fn try_with_pool(f: impl FnOnce(&Pool<Self>));

    /// Makes the calling thread empty its pool when it ends. Returns false if it has done so
    /// already.
    fn register() -> bool;

    /// The nodes of the process that no thread keeps.
    #[cfg(not(any(corelay_loom, corelay_shuttle)))]
    fn depot() -> &'static Mutex<Vec<depot::Spare<Self>>>;
}

/// Gives a kind of node its pools: `pooled!(Node, new)`, where `new()` makes a fresh node.
macro_rules! pooled {
    ($node:ident, $new:expr) => {
        const _: () = {
            use crate::pool::{Owner, Pool, Pooled};

            #[cfg(not(any(corelay_loom, corelay_shuttle, corelay_lines)))]
            std::thread_local! {
                static POOL: Pool<$node> = const { Pool::new() };
                static OWNER: Owner<$node> = const { Owner::new() };
            }

            #[cfg(any(corelay_loom, corelay_shuttle, corelay_lines))]
            corelay_sync::facade::thread_local! {
                static POOL: Pool<$node> = Pool::new();
                static OWNER: Owner<$node> = Owner::new();
            }

            #[cfg(not(any(corelay_loom, corelay_shuttle)))]
            static DEPOT: std::sync::Mutex<Vec<crate::pool::depot::Spare<$node>>> =
                std::sync::Mutex::new(Vec::new());

            impl Pooled for $node {
                fn fresh() -> Self {
                    $new()
                }

                #[inline(always)]
                fn with_pool<R>(f: impl FnOnce(&Pool<Self>) -> R) -> R {
                    POOL.with(f)
                }

                fn try_with_pool(f: impl FnOnce(&Pool<Self>)) {
                    let _ = POOL.try_with(f);
                }

                fn register() -> bool {
                    OWNER.try_with(|_| ()).is_ok()
                }

                #[cfg(not(any(corelay_loom, corelay_shuttle)))]
                fn depot() -> &'static std::sync::Mutex<Vec<crate::pool::depot::Spare<Self>>> {
                    &DEPOT
                }
            }
        };
    };
}
pub(crate) use pooled;

/// The most nodes that a thread keeps. A thread that nests so many locks, or as often takes over a
/// node as it leaves one behind, does not need the depot.
const STACK: usize = 16;

/// Nodes moved to or from the depot at once: half a stack, so that the stack is then as far from
/// full as from empty.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
const BATCH: usize = STACK / 2;

/// The nodes that one thread keeps: a stack.
pub(crate) struct Pool<N> {
    /// The first `len` are this thread's nodes.
    nodes: [Cell<NonNull<N>>; STACK],
    /// Number of nodes; [`CLOSED`] once the thread has ended, and then nothing goes in or out any
    /// more.
    len: Cell<usize>,
}

/// The length of a pool whose thread has ended: no index of `nodes` reaches it.
const CLOSED: usize = usize::MAX;

/// Empties the thread's pool when the thread ends.
///
/// It is separate from the pool so that the pool itself needs no destructor, and no check on each
/// access whether the destructor is registered. [`refill`] makes one, and a thread has no node
/// before its first `refill`.
pub(crate) struct Owner<N: Pooled>(PhantomData<N>);

/// Takes a fresh node for one acquisition by the calling thread: from its pool, else from the depot,
/// else a new one.
#[inline(always)]
pub(crate) fn take<N: Pooled>() -> NonNull<N> {
    match N::with_pool(Pool::pop) {
        Some(node) => node,
        None => refill(),
    }
}

/// Keeps `node` in the calling thread's pool for its next acquisition. If the pool is full, half of
/// it goes to the depot; if the thread is ending, frees the node.
///
/// # Safety
/// `node` came from [`take`], on any thread. Nobody else knows it any more, and it is fresh again.
/// The calling thread has called `take` before.
#[inline(always)]
pub(crate) unsafe fn put<N: Pooled>(node: NonNull<N>) {
    if !N::with_pool(|pool| pool.push(node)) {
        // SAFETY: nobody else knows the node, and it is fresh (the caller's duties).
        unsafe { overflow(node) };
    }
}

/// Keeps `node` as [`put`] does, in code that may have been suspended since it called [`take`]: a
/// fibre that migrates goes on on a thread that may have no pool yet.
///
/// # Safety
/// As for [`put`], but the calling thread need not have called `take`.
// Not inlined: the caller may have kept the address of another thread's pool.
#[inline(never)]
pub(crate) unsafe fn put_after_wait<N: Pooled>(node: NonNull<N>) {
    N::register();
    // SAFETY: nobody else knows the node, and it is fresh (the caller's duties). The pool has its
    // owner, for which `put` wants a `take` before.
    unsafe { put(node) };
}

impl<N> Pool<N> {
    pub(crate) const fn new() -> Self {
        Self {
            nodes: [const { Cell::new(NonNull::dangling()) }; STACK],
            len: Cell::new(0),
        }
    }

    #[inline(always)]
    fn pop(&self) -> Option<NonNull<N>> {
        let top = self.len.get().wrapping_sub(1);
        // `get` returns none if the pool is empty (`top` has wrapped) or closed.
        let node = self.nodes.get(top)?.get();
        self.len.set(top);
        Some(node)
    }

    /// Puts a node in. Returns false if the pool is full or closed.
    #[inline(always)]
    fn push(&self, node: NonNull<N>) -> bool {
        let len = self.len.get();
        let Some(slot) = self.nodes.get(len) else {
            return false;
        };
        slot.set(node);
        self.len.set(len + 1);
        true
    }
}

impl<N: Pooled> Owner<N> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<N: Pooled> Drop for Owner<N> {
    fn drop(&mut self) {
        if MODEL && std::thread::panicking() {
            // A model that has failed has taken the pool away.
            return;
        }
        // Without a destructor the pool is still there; only a model destroys it before.
        N::try_with_pool(|pool| {
            while let Some(node) = pool.pop() {
                // SAFETY: nobody else knows a node in a pool.
                unsafe { free(node) };
            }
            pool.len.set(CLOSED);
        });
    }
}

/// Gets a node for a thread whose pool is empty or closed: from the depot, with more nodes for the
/// pool, or else a new one. Registers the [`Owner`] of the pool.
#[cold]
#[inline(never)]
fn refill<N: Pooled>() -> NonNull<N> {
    // The first use registers `Owner` to be dropped when the thread ends. If it has been dropped
    // already, the destructor of another thread-local takes a lock, and the pool stays closed.
    let open = N::register();
    if open && let Some(node) = N::with_pool(depot::take_batch) {
        node
    } else {
        allocate()
    }
}

/// Finds another place for `node`, for which the pool has no room.
///
/// # Safety
/// As for [`put`].
#[cold]
#[inline(never)]
unsafe fn overflow<N: Pooled>(node: NonNull<N>) {
    let open = N::register();
    if open && N::with_pool(depot::give_batch) {
        N::with_pool(|pool| pool.push(node));
    } else {
        // SAFETY: nobody else knows the node (the caller's duty), which came from `allocate`.
        unsafe { free(node) };
    }
}

fn allocate<N: Pooled>() -> NonNull<N> {
    #[cfg(test)]
    tests::count(1);
    NonNull::from(Box::leak(Box::new(N::fresh())))
}

/// Frees a node.
///
/// # Safety
/// `node` came from [`allocate`], and nobody else knows it.
unsafe fn free<N: Pooled>(node: NonNull<N>) {
    #[cfg(test)]
    tests::count(-1);
    // SAFETY: `allocate` leaked the box, and nobody else knows it (the caller's duties).
    drop(unsafe { Box::from_raw(node.as_ptr()) });
}

/// The nodes of the process that no thread keeps.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
pub(crate) mod depot {
    use super::{BATCH, NonNull, Pool, Pooled};
    use std::sync::{MutexGuard, PoisonError};

    /// A node that no thread has.
    pub(crate) struct Spare<N>(NonNull<N>);

    // SAFETY: a spare node is as if new, and belongs to the thread that takes it out.
    unsafe impl<N> Send for Spare<N> {}

    fn depot<N: Pooled>() -> MutexGuard<'static, Vec<Spare<N>>> {
        // A panic cannot leave the list half changed.
        N::depot().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a node and, into the empty `pool`, up to `BATCH - 1` more. Returns none if the depot
    /// is empty.
    pub(super) fn take_batch<N: Pooled>(pool: &Pool<N>) -> Option<NonNull<N>> {
        let mut depot = depot();
        let Spare(node) = depot.pop()?;
        let from = depot.len().saturating_sub(BATCH - 1);
        depot
            .drain(from..)
            .for_each(|Spare(node)| _ = pool.push(node));
        Some(node)
    }

    /// Moves `BATCH` nodes out of the full `pool`. Returns true: there is room now.
    pub(super) fn give_batch<N: Pooled>(pool: &Pool<N>) -> bool {
        depot().extend(std::iter::from_fn(|| pool.pop()).take(BATCH).map(Spare));
        true
    }
}

/// The depot under a model checker: none, because a static must not outlive one execution. Threads
/// allocate and free instead.
#[cfg(any(corelay_loom, corelay_shuttle))]
mod depot {
    use super::{NonNull, Pool};

    pub(super) fn take_batch<N>(_pool: &Pool<N>) -> Option<NonNull<N>> {
        None
    }

    pub(super) fn give_batch<N>(_pool: &Pool<N>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicIsize, Ordering};
    use std::sync::mpsc::sync_channel;
    use std::thread;

    /// A node of this test's own kind.
    struct Node(#[expect(dead_code, reason = "nodes have a size")] u8);

    pooled!(Node, || Node(0));

    std::thread_local! {
        /// Nodes that this thread has allocated and not freed.
        static LIVE: Cell<isize> = const { Cell::new(0) };
    }

    pub(super) fn count(change: isize) {
        LIVE.set(LIVE.get() + change);
    }

    struct Given(NonNull<Node>);

    // SAFETY: a given node belongs to the receiver.
    unsafe impl Send for Given {}

    /// One thread always comes first and loses a node each time, and the other gains it.
    #[test]
    fn nodes_that_wander_one_way_come_back() {
        let (give, given) = sync_channel::<Given>(0);
        let allocated = thread::scope(|s| {
            let first = s.spawn(move || {
                (0..10_000).for_each(|_| give.send(Given(take())).unwrap());
                LIVE.get()
            });
            s.spawn(move || {
                // A thread that puts a node must have taken one before.
                let own = take::<Node>();
                for Given(node) in given {
                    // SAFETY: the sender took the node and passed it on, so nobody else knows it.
                    unsafe { put(node) };
                }
                // SAFETY: this thread took the node, and nobody else knows it.
                unsafe { put(own) };
            });
            first.join().unwrap()
        });
        // The nodes that the other thread keeps, and two batches on the way.
        assert!(allocated <= (2 * STACK) as isize, "allocated {allocated}");
    }

    /// Nodes used by destructors that run after the pool's own are freed, too.
    #[test]
    fn an_ended_thread_keeps_no_node() {
        struct AtExit(Arc<AtomicIsize>);
        impl Drop for AtExit {
            fn drop(&mut self) {
                let nodes = [take::<Node>(), take()];
                for node in nodes {
                    // SAFETY: this thread took the node, and nobody else knows it.
                    unsafe { put(node) };
                }
                // Relaxed: read after the thread has been joined. The last store stays.
                self.0.store(LIVE.get(), Ordering::Relaxed);
            }
        }
        std::thread_local! {
            static EARLY: RefCell<Option<AtExit>> = const { RefCell::new(None) };
            static LATE: RefCell<Option<AtExit>> = const { RefCell::new(None) };
        }
        let live = Arc::new(AtomicIsize::new(-1));
        let at_exit = [AtExit(live.clone()), AtExit(live.clone())];
        thread::spawn(move || {
            let [early, late] = at_exit;
            EARLY.set(Some(early));
            // SAFETY: this thread took the node, and nobody else knows it.
            unsafe { put(take::<Node>()) };
            LATE.set(Some(late));
        })
        .join()
        .unwrap();
        // Fewer than none if the thread also freed a batch that another test's threads had shared.
        let live = live.load(Ordering::Relaxed);
        assert!(live <= 0, "{live} nodes are kept");
    }
}
