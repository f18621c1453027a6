//! Batches of keys: one request for each shard, and one wait for all.

use super::table::Table;
use super::{Payload, ShardedMap, caught};
use crate::sharded::batch::{Batch, Slot};
use crate::sharded::fan_out::Own;
use crate::sharded::panics::{discard, discard_all};
use corelay_sync::wait::Call;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::panic::resume_unwind;
use std::sync::Mutex;

/// The number of keys whose entries are fetched at the same time.
const AHEAD: usize = 16;

/// The number of keys up to which a batch serves the caller's own shard before its last request: see
/// [`Own`]. On 16 keys, `examples/sharded_speed` measured 1.5 to 1.6 times the rate between near
/// CPUs (2 virtual CPUs of an AMD EPYC) and 1.8 to 1.9 times between far ones.
const SHORT: usize = 64;

impl<K, V, B> ShardedMap<K, V, B>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    B: BuildHasher,
{
    /// The values of `keys`, in their order. Asks all shards concerned at the same time, each by
    /// one request, and waits once.
    ///
    /// As with all batches, keys of one shard are taken in their order, without calls of others in
    /// between. If user code panics at one key, the caller gets that panic when the other keys are
    /// done.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// # use corelay_structures::sharded::ShardedMap;
    /// # let trustees = Trustees::dedicated(2).start()?;
    /// let squares = ShardedMap::new(&trustees);
    /// squares.insert_many((0..100u64).map(|n| (n, n * n)));
    /// assert_eq!(squares.get_many(&[9, 500, 3]), [Some(81), None, Some(9)]);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    #[track_caller]
    pub fn get_many<'a, Q>(&self, keys: impl IntoIterator<Item = &'a Q>) -> Vec<Option<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Sync + ?Sized + 'a,
        V: Clone,
    {
        let keys = keys.into_iter().map(|key| (self.hash(key), key));
        self.many(
            Call::new("ShardedMap::get_many"),
            keys,
            |table, hash, key| table.get(hash, key).cloned(),
        )
    }

    /// Inserts entries as [`insert`](Self::insert) does. Returns the values that they replace.
    #[track_caller]
    pub fn insert_many(&self, entries: impl IntoIterator<Item = (K, V)>) -> Vec<Option<V>> {
        let entries = entries.into_iter();
        let entries = entries.map(|(key, value)| (self.hash(&key), (key, value)));
        let call = Call::new("ShardedMap::insert_many");
        self.many(call, entries, |table, hash, (key, value)| {
            table.insert(hash, key, value)
        })
    }

    /// Removes `keys`. Returns the values that they had.
    #[track_caller]
    pub fn remove_many<'a, Q>(&self, keys: impl IntoIterator<Item = &'a Q>) -> Vec<Option<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Sync + ?Sized + 'a,
    {
        let keys = keys.into_iter().map(|key| (self.hash(key), key));
        let call = Call::new("ShardedMap::remove_many");
        self.many(call, keys, |table, hash, key| table.remove(hash, key))
    }

    /// Runs `f` on the value of each of `keys`, in its place. Returns the results, `None` for keys
    /// without a value.
    #[track_caller]
    pub fn update_many<'a, Q, R>(
        &self,
        keys: impl IntoIterator<Item = &'a Q>,
        f: impl Fn(&mut V) -> R + Sync,
    ) -> Vec<Option<R>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Sync + ?Sized + 'a,
        R: Send,
    {
        let keys = keys.into_iter().map(|key| (self.hash(key), key));
        let call = Call::new("ShardedMap::update_many");
        self.many(call, keys, |table, hash, key| {
            table.get_mut(hash, key).map(&f)
        })
    }

    /// Runs `f` on each item, which comes with its hash, and on the table of its shard.
    fn many<T: Send, R: Send>(
        &self,
        call: Call,
        items: impl Iterator<Item = (u64, T)>,
        f: impl Fn(&mut Table<K, V>, u64, T) -> R + Sync,
    ) -> Vec<R> {
        let items = items.map(|(hash, item)| (self.place(hash), (hash, item)));
        let mut batch = Batch::new(items, self.shards());
        let order = if batch.len() <= SHORT {
            Own::BeforeTheLast
        } else {
            Own::Last
        };
        let panic: Mutex<Option<Payload>> = Mutex::new(None);
        let run = |table: &mut Table<K, V>, slots: &mut [Slot<(u64, T), R>]| {
            for slots in slots.chunks_mut(AHEAD) {
                if table.is_large() {
                    let hashes = slots.iter().filter_map(|slot| Some(slot.item()?.0));
                    hashes.for_each(|hash| table.prefetch(hash));
                }
                let mut slots = slots.iter_mut();
                // A panic ends the closure at one slot; the next round goes on after that.
                while let Err(payload) = caught(|| {
                    let slots = slots.by_ref();
                    slots.for_each(|slot| slot.run(|(hash, item)| f(table, hash, item)));
                }) {
                    let earlier = panic.lock().expect("never poisoned").replace(payload);
                    discard(earlier);
                }
            }
        };
        self.shards.fan_out(call, batch.groups(), order, &run);
        if let Some(payload) = panic.into_inner().expect("never poisoned") {
            // Now: a destructor's panic while this one is raised would end the process.
            discard_all(batch.into_slots());
            resume_unwind(payload);
        }
        batch.into_results()
    }
}
