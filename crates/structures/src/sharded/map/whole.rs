//! Calls on all entries, shard by shard.

use super::{ShardedMap, caught};
use crate::sharded::panics::all_or_first;
use std::panic::resume_unwind;

impl<K: 'static, V: 'static, B> ShardedMap<K, V, B> {
    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.shards.shards().len()
    }

    /// The number of entries: the sum over the shards, each counted at a moment of its own.
    #[track_caller]
    pub fn len(&self) -> usize {
        let lengths = self.shards.map_shards(|table| table.len());
        lengths.into_iter().sum()
    }

    /// Whether all shards were empty, each at a moment of its own.
    #[track_caller]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all entries, and keeps the memory of the tables. Entries that others insert meanwhile
    /// into a shard already cleared stay.
    #[track_caller]
    pub fn clear(&self) {
        let cleared = self.shards.map_shards(|table| caught(|| table.clear()));
        if let Err(payload) = all_or_first(cleared.into_iter()) {
            resume_unwind(payload);
        }
    }

    /// Runs `f` on every entry, shard by shard, in no order within a shard. Each shard is visited
    /// at one moment: nobody writes to it meanwhile, and its trustee serves nobody else.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// # use corelay_structures::sharded::ShardedMap;
    /// # let trustees = Trustees::dedicated(2).start()?;
    /// let stock = ShardedMap::new(&trustees);
    /// stock.insert_many([("apples", 3), ("pears", 4)]);
    /// let mut sum = 0;
    /// stock.for_each(|_, n| sum += n);
    /// assert_eq!(sum, 7);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    #[track_caller]
    pub fn for_each(&self, mut f: impl FnMut(&K, &V) + Send) {
        for shard in self.shards.shards() {
            let visit = |table: &mut super::Table<K, V>| {
                caught(|| table.iter().for_each(|(key, value)| f(key, value)))
            };
            if let Err(payload) = shard.apply(visit) {
                resume_unwind(payload);
            }
        }
    }

    /// Removes the entries for which `keep` returns false, shard by shard, each at one moment as in
    /// [`for_each`](Self::for_each). If `keep` panics, the entries that it has not seen stay.
    #[track_caller]
    pub fn retain(&self, mut keep: impl FnMut(&K, &mut V) -> bool + Send) {
        for shard in self.shards.shards() {
            let visit = |table: &mut super::Table<K, V>| caught(|| table.retain(&mut keep));
            if let Err(payload) = shard.apply(visit) {
                resume_unwind(payload);
            }
        }
    }
}
