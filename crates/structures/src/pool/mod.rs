//! A pool of nodes of one type, for many threads.

mod chunk;
mod depot;
mod heap;
mod inbox;
mod pooled;
mod session;
mod slot;
mod stats;

pub use pooled::Pooled;
pub use session::Session;
pub use stats::Stats;

use chunk::Chunk;
use corelay_sync::facade::sync::Arc;
use depot::Depot;
use std::fmt;

/// Nodes for values of one type; a handle that is cloned and sent around.
///
/// ```
/// use corelay_structures::pool::Pool;
///
/// let pool = Pool::new();
/// std::thread::scope(|s| {
///     for n in 0..2 {
///         let pool = pool.clone();
///         s.spawn(move || {
///             let session = pool.session(); // this thread's own
///             let node = session.alloc(n);
///             session.free(node);
///         });
///     }
/// });
/// ```
pub struct Pool<T> {
    depot: Arc<Depot<T>>,
}

impl<T> Pool<T> {
    /// The most slots that a chunk can have: what fits into 64 KiB, or into as little as holds 8 of them.
    pub const MAX_CHUNK: usize = Chunk::<T>::MOST;

    /// A pool with chunks of about 64 KiB, or of 8 slots where those take more.
    ///
    /// ```
    /// let pool = corelay_structures::pool::Pool::new();
    /// assert_eq!(*pool.session().alloc(7), 7);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_chunk(Chunk::<T>::DEFAULT)
    }

    /// A pool with chunks of so many slots, 1..=[`MAX_CHUNK`](Self::MAX_CHUNK).
    ///
    /// # Panics
    /// Where `slots` is out of that range.
    ///
    /// ```
    /// use corelay_structures::pool::Pool;
    ///
    /// let pool = Pool::with_chunk(100);
    /// let session = pool.session();
    /// let nodes: Vec<_> = (0..101).map(|n| session.alloc(n)).collect();
    /// assert_eq!(pool.stats().slots, 200);
    /// ```
    #[must_use]
    pub fn with_chunk(slots: usize) -> Self {
        let most = Self::MAX_CHUNK;
        assert!(
            (1..=most).contains(&slots),
            "corelay: a chunk of {slots} slots: give 1 to {most} (`Pool::MAX_CHUNK`)"
        );
        Self {
            depot: Arc::new(Depot::new(slots)),
        }
    }

    /// This thread's way to nodes. It takes over the heap of a session that has ended, if there is one:
    /// make one for each thread, not for each node.
    ///
    /// ```
    /// use corelay_structures::pool::Pool;
    ///
    /// let pool = Pool::new();
    /// drop(pool.session().alloc(7));
    /// assert_eq!(*pool.session().alloc(8), 8);
    /// assert_eq!((pool.stats().heaps, pool.stats().adopted), (1, 1));
    /// ```
    #[must_use]
    pub fn session(&self) -> Session<T> {
        Session::new(Arc::clone(&self.depot))
    }

    /// What the pool has done so far. Sessions that work meanwhile may be some counts ahead.
    ///
    /// ```
    /// let pool = corelay_structures::pool::Pool::<u64>::new();
    /// assert_eq!(pool.stats().chunks, 0);
    /// ```
    pub fn stats(&self) -> Stats {
        self.depot.stats()
    }
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self {
            depot: Arc::clone(&self.depot),
        }
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}
