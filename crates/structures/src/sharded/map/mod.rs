//! A map that is split over trustees by the hashes of its keys.

mod later;
mod many;
mod table;
mod whole;

use self::table::Table;
use super::handle::Sharded;
use super::panics::{Payload, caught};
use super::placement::ByHash;
use corelay_delegate::{Trust, Trustees};
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::panic::resume_unwind;

/// A hash map for many threads. Each trustee owns a shard of it.
///
/// Clones are handles to the same map. Keys are hashed once, by the caller. Every call on one key is
/// atomic; the [module's page](super) says what calls on several keys mean while others write.
///
/// ```
/// use corelay_delegate::Trustees;
/// use corelay_structures::sharded::ShardedMap;
///
/// let trustees = Trustees::dedicated(2).start()?;
/// let stock = ShardedMap::new(&trustees); // clone it, send it to other threads
/// stock.insert(String::from("apples"), 3);
/// stock.update_or_insert(String::from("pears"), |n| *n += 1, 1);
/// assert_eq!(stock.update("apples", |n| { *n -= 1; *n }), Some(2)); // a borrowed key
/// assert_eq!(stock.get_many(["pears", "plums"]), [Some(1), None]); // one wait for all
/// assert_eq!(stock.len(), 2);
/// # Ok::<(), corelay_delegate::StartError>(())
/// ```
///
/// # Panics
/// Every call that waits panics inside a delegated closure, and when a trustee has been shut down:
/// see [`Trust::apply`].
///
/// A panic of `Hash`, `Eq`, `Clone`, `Drop` or a closure of the caller's reaches that caller alone.
/// The map stays usable: no entry is lost or half inserted, a value whose update has panicked is as
/// the closure left it, and what a panicking destructor has not dropped may be leaked.
pub struct ShardedMap<K, V, B = RandomState> {
    shards: Sharded<Table<K, V>, ByHash<B>>,
}

impl<K: Send + 'static, V: Send + 'static> ShardedMap<K, V> {
    /// An empty map with a shard for each trustee. Its hasher is that of `std`'s maps, which keeps
    /// keys chosen by an attacker from meeting in one shard or bucket.
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn new(trustees: &Trustees) -> Self {
        Self::with_shards(trustees, trustees.len())
    }

    /// An empty map with a number of shards, which the trustees get in turn. More shards than
    /// trustees make calls on whole shards, such as [`retain`](Self::retain), hold up their
    /// trustee for shorter times.
    ///
    /// # Panics
    /// If `shards` is 0, or more than fit into memory; inside a delegated closure.
    #[track_caller]
    pub fn with_shards(trustees: &Trustees, shards: usize) -> Self {
        Self::with_shards_and_hasher(trustees, shards, RandomState::new())
    }
}

impl<K: Send + 'static, V: Send + 'static, B> ShardedMap<K, V, B> {
    /// An empty map with a shard for each trustee, and a hasher: see [`ByHash::with_hasher`].
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn with_hasher(trustees: &Trustees, hasher: B) -> Self
    where
        B: BuildHasher,
    {
        Self::with_shards_and_hasher(trustees, trustees.len(), hasher)
    }

    /// An empty map with a number of shards and a hasher.
    ///
    /// # Panics
    /// The same as for [`with_shards`](Self::with_shards).
    #[track_caller]
    pub fn with_shards_and_hasher(trustees: &Trustees, shards: usize, hasher: B) -> Self
    where
        B: BuildHasher,
    {
        let by_hash = ByHash::with_hasher(hasher);
        let shards = Sharded::with_placement(trustees, shards, by_hash, |_| Table::new());
        Self { shards }
    }
}

impl<K, V, B> ShardedMap<K, V, B>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    B: BuildHasher,
{
    /// The value of `key`, cloned by its trustee.
    #[track_caller]
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Sync + ?Sized,
        V: Clone,
    {
        self.get_with(key, V::clone)
    }

    /// Runs `f` on the value of `key`, and returns its result.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// # use corelay_structures::sharded::ShardedMap;
    /// # let trustees = Trustees::dedicated(1).start()?;
    /// let pages = ShardedMap::new(&trustees);
    /// pages.insert(7, String::from("a long page"));
    /// assert_eq!(pages.get_with(&7, |page| page.len()), Some(11)); // nothing is cloned
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    #[track_caller]
    pub fn get_with<Q, R>(&self, key: &Q, f: impl FnOnce(&V) -> R + Send) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Sync + ?Sized,
        R: Send,
    {
        self.call(self.hash(key), |table, hash| table.get(hash, key).map(f))
    }

    /// Whether the map has a value for `key`.
    #[track_caller]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Sync + ?Sized,
    {
        self.get_with(key, |_| ()).is_some()
    }

    /// Inserts a value for `key`. Returns the value that it replaces.
    #[track_caller]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.call(self.hash(&key), |table, hash| {
            table.insert(hash, key, value)
        })
    }

    /// Removes `key`, and returns the value that it had.
    #[track_caller]
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Sync + ?Sized,
    {
        self.call(self.hash(key), |table, hash| table.remove(hash, key))
    }

    /// Runs `f` on the value of `key` in its place, and returns the result. Returns `None` if there
    /// is no value.
    #[track_caller]
    pub fn update<Q, R>(&self, key: &Q, f: impl FnOnce(&mut V) -> R + Send) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Sync + ?Sized,
        R: Send,
    {
        self.call(self.hash(key), |table, hash| {
            table.get_mut(hash, key).map(f)
        })
    }

    /// Runs `update` on the value of `key` in its place, and returns the result. If there is no
    /// value, inserts `value` and returns `None`.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// # use corelay_structures::sharded::ShardedMap;
    /// # let trustees = Trustees::dedicated(1).start()?;
    /// let words = ShardedMap::new(&trustees);
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     words.update_or_insert(word, |n| *n += 1, 1);
    /// }
    /// assert_eq!((words.get("to"), words.get("or")), (Some(2), Some(1)));
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    #[track_caller]
    pub fn update_or_insert<R>(
        &self,
        key: K,
        update: impl FnOnce(&mut V) -> R + Send,
        value: V,
    ) -> Option<R>
    where
        R: Send,
    {
        self.call(self.hash(&key), |table, hash| {
            table.update_or_insert(hash, key, update, || value)
        })
    }

    /// The value of `key`, cloned. If there is none, the trustee inserts the value that `make`
    /// returns: of several callers at a time one makes it, and holds up the shard's trustee
    /// meanwhile.
    #[track_caller]
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V + Send) -> V
    where
        V: Clone,
    {
        self.call(self.hash(&key), |table, hash| {
            table.get_or_insert_with(hash, key, make).clone()
        })
    }

    #[inline]
    fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.shards.placement().hash(key)
    }
}

impl<K, V, B: BuildHasher> ShardedMap<K, V, B> {
    #[inline]
    fn place(&self, hash: u64) -> usize {
        ByHash::<B>::place_hash(hash, self.shards.shards().len())
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Trust<Table<K, V>> {
        &self.shards.shards()[self.place(hash)]
    }

    /// Runs `f` on the table of the shard for `hash`. A panic of user code is caught on the trustee
    /// and raised here, so that the shard is not poisoned: a table is in order whenever user code
    /// runs.
    #[inline]
    #[track_caller]
    fn call<R: Send>(&self, hash: u64, f: impl FnOnce(&mut Table<K, V>, u64) -> R + Send) -> R {
        let result = self
            .shard(hash)
            .apply(move |table| caught(|| f(table, hash)));
        result.unwrap_or_else(|payload| resume_unwind(payload))
    }
}

impl<K, V, B> Clone for ShardedMap<K, V, B> {
    fn clone(&self) -> Self {
        Self {
            shards: self.shards.clone(),
        }
    }
}

impl<K, V, B> fmt::Debug for ShardedMap<K, V, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedMap")
            .field("shards", &self.shards.shards().len())
            .finish_non_exhaustive()
    }
}
