//! Calls that nobody waits for: their results go to a future or to a callback. They own their keys,
//! because the caller goes on.

use super::ShardedMap;
use super::table::Table;
use crate::caught::{CallFuture, caught, raised};
use crate::sharded::later::{ManyFuture, Results};
use crate::sharded::panics::all_or_first;
use std::hash::{BuildHasher, Hash};

/// # Futures
/// Each call makes its request at once if the window has room, as
/// [`Trust::apply_async`](corelay_delegate::Trust::apply_async) does, so the calls of one thread on
/// one key then take effect in their order. Awaiting them blocks no thread.
///
/// ```
/// # use corelay_delegate::{AsyncError, Trustees};
/// # use corelay_structures::sharded::ShardedMap;
/// async fn visit(visits: &ShardedMap<String, u32>, page: &str) -> Result<u32, AsyncError> {
///     let add = |n: &mut u32| { *n += 1; *n };
///     let before = visits.update_or_insert_async(page.to_owned(), add, 1).await?;
///     Ok(before.unwrap_or(1))
/// }
/// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
/// # fn block_on<O>(task: impl Future<Output = O>) -> O {
/// #     let mut task = pin!(task);
/// #     loop {
/// #         let polled = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
/// #         if let Poll::Ready(output) = polled { return output; }
/// #         std::thread::yield_now();
/// #     }
/// # }
/// let trustees = Trustees::dedicated(2).start().unwrap();
/// let visits = ShardedMap::new(&trustees);
/// assert_eq!(block_on(visit(&visits, "/")).unwrap(), 1);
/// assert_eq!(block_on(visit(&visits, "/")).unwrap(), 2);
/// ```
impl<K, V, B> ShardedMap<K, V, B>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    B: BuildHasher,
{
    /// Clones the value of `key`, as [`get`](Self::get) does.
    #[track_caller]
    pub fn get_async(&self, key: K) -> CallFuture<Option<V>>
    where
        V: Clone,
    {
        self.call_async(self.hash(&key), move |table, hash| {
            table.get(hash, &key).cloned()
        })
    }

    /// Inserts a value, as [`insert`](Self::insert) does.
    #[track_caller]
    pub fn insert_async(&self, key: K, value: V) -> CallFuture<Option<V>> {
        self.call_async(self.hash(&key), move |table, hash| {
            table.insert(hash, key, value)
        })
    }

    /// Removes `key`, as [`remove`](Self::remove) does.
    #[track_caller]
    pub fn remove_async(&self, key: K) -> CallFuture<Option<V>> {
        self.call_async(self.hash(&key), move |table, hash| table.remove(hash, &key))
    }

    /// Runs `f` on the value of `key` in its place, as [`update`](Self::update) does.
    #[track_caller]
    pub fn update_async<R>(
        &self,
        key: K,
        f: impl FnOnce(&mut V) -> R + Send + 'static,
    ) -> CallFuture<Option<R>>
    where
        R: Send + 'static,
    {
        self.call_async(self.hash(&key), move |table, hash| {
            table.get_mut(hash, &key).map(f)
        })
    }

    /// Updates or inserts a value, as [`update_or_insert`](Self::update_or_insert) does.
    #[track_caller]
    pub fn update_or_insert_async<R>(
        &self,
        key: K,
        update: impl FnOnce(&mut V) -> R + Send + 'static,
        value: V,
    ) -> CallFuture<Option<R>>
    where
        R: Send + 'static,
    {
        self.call_async(self.hash(&key), move |table, hash| {
            table.update_or_insert(hash, key, update, || value)
        })
    }

    /// Clones the values of `keys`, as [`get_many`](Self::get_many) does.
    #[track_caller]
    pub fn get_many_async(&self, keys: impl IntoIterator<Item = K>) -> ManyFuture<Option<V>>
    where
        V: Clone,
    {
        let keys = self.placed(keys, |key| key);
        self.shards.many_async(keys, each(get))
    }

    /// Inserts entries, as [`insert_many`](Self::insert_many) does.
    #[track_caller]
    pub fn insert_many_async(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> ManyFuture<Option<V>> {
        let entries = self.placed(entries, |(key, _)| key);
        self.shards.many_async(entries, each(insert))
    }

    #[track_caller]
    fn call_async<R: Send + 'static>(
        &self,
        hash: u64,
        f: impl FnOnce(&mut Table<K, V>, u64) -> R + Send + 'static,
    ) -> CallFuture<R> {
        let shard = self.shard(hash);
        CallFuture::new(shard.apply_async(move |table| caught(|| f(table, hash))))
    }
}

/// # Callbacks
/// Each call goes on at once. `then` gets the result later, on the same thread, as in
/// [`Trust::apply_then`](corelay_delegate::Trust::apply_then). So these calls may also be made
/// inside a delegated closure, after whose end they are sent. If user code panics, `then` is
/// dropped, and the call that would have run it raises the panic.
///
/// ```
/// # use corelay_delegate::{Trustees, barrier};
/// # use corelay_structures::sharded::ShardedMap;
/// # let trustees = Trustees::dedicated(2).start().unwrap();
/// let stock = ShardedMap::new(&trustees);
/// stock.insert_then("apples", 3, |before| assert_eq!(before, None));
/// stock.update_then("apples", |n| { *n += 1; *n }, |now| assert_eq!(now, Some(4)));
/// barrier().unwrap(); // both callbacks have run
/// ```
impl<K, V, B> ShardedMap<K, V, B>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    B: BuildHasher,
{
    /// Clones the value of `key`, as [`get`](Self::get) does.
    #[track_caller]
    pub fn get_then(&self, key: K, then: impl FnOnce(Option<V>) + 'static)
    where
        V: Clone,
    {
        let hash = self.hash(&key);
        self.call_then(
            hash,
            move |table, hash| table.get(hash, &key).cloned(),
            then,
        );
    }

    /// Inserts a value, as [`insert`](Self::insert) does.
    #[track_caller]
    pub fn insert_then(&self, key: K, value: V, then: impl FnOnce(Option<V>) + 'static) {
        let hash = self.hash(&key);
        self.call_then(
            hash,
            move |table, hash| table.insert(hash, key, value),
            then,
        );
    }

    /// Removes `key`, as [`remove`](Self::remove) does.
    #[track_caller]
    pub fn remove_then(&self, key: K, then: impl FnOnce(Option<V>) + 'static) {
        let hash = self.hash(&key);
        self.call_then(hash, move |table, hash| table.remove(hash, &key), then);
    }

    /// Runs `f` on the value of `key` in its place, as [`update`](Self::update) does.
    #[track_caller]
    pub fn update_then<R: Send + 'static>(
        &self,
        key: K,
        f: impl FnOnce(&mut V) -> R + Send + 'static,
        then: impl FnOnce(Option<R>) + 'static,
    ) {
        let hash = self.hash(&key);
        let update = move |table: &mut Table<K, V>, hash| table.get_mut(hash, &key).map(f);
        self.call_then(hash, update, then);
    }

    /// Updates or inserts a value, as [`update_or_insert`](Self::update_or_insert) does.
    #[track_caller]
    pub fn update_or_insert_then<R: Send + 'static>(
        &self,
        key: K,
        update: impl FnOnce(&mut V) -> R + Send + 'static,
        value: V,
        then: impl FnOnce(Option<R>) + 'static,
    ) {
        let hash = self.hash(&key);
        let update = move |table: &mut Table<K, V>, hash| {
            table.update_or_insert(hash, key, update, || value)
        };
        self.call_then(hash, update, then);
    }

    /// Clones the values of `keys`, as [`get_many`](Self::get_many) does. If there are no keys,
    /// `then` runs at once.
    #[track_caller]
    pub fn get_many_then(
        &self,
        keys: impl IntoIterator<Item = K>,
        then: impl FnOnce(Vec<Option<V>>) + 'static,
    ) where
        V: Clone,
    {
        let keys = self.placed(keys, |key| key);
        self.shards.many_then(keys, each(get), then);
    }

    /// Inserts entries, as [`insert_many`](Self::insert_many) does. If there are none, `then` runs
    /// at once.
    #[track_caller]
    pub fn insert_many_then(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
        then: impl FnOnce(Vec<Option<V>>) + 'static,
    ) {
        let entries = self.placed(entries, |(key, _)| key);
        self.shards.many_then(entries, each(insert), then);
    }

    #[track_caller]
    fn call_then<R: Send + 'static>(
        &self,
        hash: u64,
        f: impl FnOnce(&mut Table<K, V>, u64) -> R + Send + 'static,
        then: impl FnOnce(R) + 'static,
    ) {
        let shard = self.shard(hash);
        shard.apply_then(
            move |table| caught(|| f(table, hash)),
            move |result| then(raised(result)),
        );
    }

    /// The items with their hashes and the numbers of their shards.
    fn placed<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> &K,
    ) -> impl Iterator<Item = (usize, (u64, T))> {
        items.into_iter().map(move |item| {
            let hash = self.hash(key(&item));
            (self.place(hash), (hash, item))
        })
    }
}

/// Items with the hashes of their keys.
type Hashed<T> = Vec<(u64, T)>;

fn get<K: Eq, V: Clone>(table: &mut Table<K, V>, hash: u64, key: K) -> Option<V> {
    table.get(hash, &key).cloned()
}

fn insert<K: Eq, V>(table: &mut Table<K, V>, hash: u64, (key, value): (K, V)) -> Option<V> {
    table.insert(hash, key, value)
}

/// Runs `f` on each of a shard's items, which come with their hashes. Of their panics the first is
/// returned, when all items are done.
fn each<K, V, T, R>(
    f: impl Fn(&mut Table<K, V>, u64, T) -> R,
) -> impl Fn(&mut Table<K, V>, Hashed<T>) -> Results<R> {
    move |table, items| {
        let items = items.into_iter();
        all_or_first(items.map(|(hash, item)| caught(|| f(table, hash, item))))
    }
}
