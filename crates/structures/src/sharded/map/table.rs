//! The table of one shard. Callers pass the hashes, and entries keep them: a trustee calls no
//! hasher, not even when the table grows.

use corelay_sync::prefetch_write;
use hashbrown::HashTable;
use hashbrown::hash_table::{Entry as TableEntry, OccupiedEntry};
use std::borrow::Borrow;
use std::mem::replace;

/// A hash table of keys and values.
pub(in crate::sharded) struct Table<K, V> {
    entries: HashTable<Entry<K, V>>,
}

/// The bytes of entries that a core's cache is taken to hold: half of a usual second-level cache.
const CACHED: usize = 512 << 10;

struct Entry<K, V> {
    hash: u64,
    key: K,
    value: V,
}

impl<K, V> Table<K, V> {
    pub(super) const fn new() -> Self {
        Self {
            entries: HashTable::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it is larger than a core's cache, so that lookups mostly wait for memory.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.entries.capacity() * size_of::<Entry<K, V>>() > CACHED
    }

    /// Fetches the line of the entry that a lookup of this hash will probably find. Compares no
    /// keys.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        // The first entry with the hash's tag.
        if let Some(entry) = self.entries.find(hash, |_| true) {
            prefetch_write(entry);
        }
    }

    /// Removes all entries and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value))
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries
            .retain(|entry| keep(&entry.key, &mut entry.value));
    }

    #[inline]
    pub(super) fn get<Q>(&self, hash: u64, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let entry = self.entries.find(hash, is_for(hash, key))?;
        Some(&entry.value)
    }

    #[inline]
    pub(super) fn get_mut<Q>(&mut self, hash: u64, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let entry = self.entries.find_mut(hash, is_for(hash, key))?;
        Some(&mut entry.value)
    }

    #[inline]
    pub(super) fn remove<Q>(&mut self, hash: u64, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let entry = self.entries.find_entry(hash, is_for(hash, key)).ok()?;
        Some(OccupiedEntry::remove(entry).0.value)
    }

    /// Inserts a value, or replaces the value that the key has. The older key is kept.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, key: K, value: V) -> Option<V>
    where
        K: Eq,
    {
        match self.entry(hash, &key) {
            TableEntry::Occupied(mut entry) => Some(replace(&mut entry.get_mut().value, value)),
            TableEntry::Vacant(entry) => {
                entry.insert(Entry { hash, key, value });
                None
            }
        }
    }

    /// Runs `update` on the value of the key, or inserts one if there is none. Returns the result
    /// of `update`.
    #[inline]
    pub(super) fn update_or_insert<R>(
        &mut self,
        hash: u64,
        key: K,
        update: impl FnOnce(&mut V) -> R,
        insert: impl FnOnce() -> V,
    ) -> Option<R>
    where
        K: Eq,
    {
        match self.entry(hash, &key) {
            TableEntry::Occupied(mut entry) => Some(update(&mut entry.get_mut().value)),
            TableEntry::Vacant(entry) => {
                let value = insert();
                entry.insert(Entry { hash, key, value });
                None
            }
        }
    }

    /// The value of the key. If there is none, inserts the value that `make` returns.
    #[inline]
    pub(super) fn get_or_insert_with(
        &mut self,
        hash: u64,
        key: K,
        make: impl FnOnce() -> V,
    ) -> &mut V
    where
        K: Eq,
    {
        let entry = match self.entry(hash, &key) {
            TableEntry::Occupied(entry) => entry,
            TableEntry::Vacant(entry) => {
                let value = make();
                entry.insert(Entry { hash, key, value })
            }
        };
        &mut entry.into_mut().value
    }

    #[inline]
    fn entry(&mut self, hash: u64, key: &K) -> TableEntry<'_, Entry<K, V>>
    where
        K: Eq,
    {
        self.entries
            .entry(hash, is_for(hash, key), |entry| entry.hash)
    }
}

/// Compares hashes first, so that keys are seldom compared in vain.
#[inline]
fn is_for<K, V, Q>(hash: u64, key: &Q) -> impl FnMut(&Entry<K, V>) -> bool
where
    K: Borrow<Q>,
    Q: Eq + ?Sized,
{
    move |entry| entry.hash == hash && entry.key.borrow() == key
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    enum Operation {
        Insert(u8, u8),
        Remove(u8),
        Update(u8, u8),
        UpdateOrInsert(u8, u8),
        GetOrInsert(u8, u8),
        RetainBelow(u8),
        Clear,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        use Operation::{Clear, GetOrInsert, Insert, Remove, RetainBelow, Update, UpdateOrInsert};
        let entry = || (0u8..40, any::<u8>());
        prop_oneof![
            8 => entry().prop_map(|(key, value)| Insert(key, value)),
            4 => (0u8..40).prop_map(Remove),
            4 => entry().prop_map(|(key, by)| Update(key, by)),
            4 => entry().prop_map(|(key, by)| UpdateOrInsert(key, by)),
            4 => entry().prop_map(|(key, value)| GetOrInsert(key, value)),
            1 => any::<u8>().prop_map(RetainBelow),
            1 => Just(Clear),
        ]
    }

    proptest! {
        /// Hashes are few, so that keys collide.
        #[test]
        fn a_table_is_a_map(
            operations in prop::collection::vec(operation(), 0..200),
            hashes in 1u64..40,
        ) {
            let (mut table, mut map) = (Table::new(), HashMap::new());
            let hash = |key: u8| ((u64::from(key) % hashes) << 57) | (u64::from(key) % 2);
            for operation in operations {
                match operation {
                    Operation::Insert(k, v) => {
                        prop_assert_eq!(table.insert(hash(k), k, v), map.insert(k, v));
                    }
                    Operation::Remove(k) => {
                        prop_assert_eq!(table.remove(hash(k), &k), map.remove(&k));
                    }
                    Operation::Update(k, by) => {
                        let add = |v: &mut u8| *v = v.wrapping_add(by);
                        let found = (table.get_mut(hash(k), &k), map.get_mut(&k));
                        prop_assert_eq!(found.0.map(add), found.1.map(add));
                    }
                    Operation::UpdateOrInsert(k, by) => {
                        let add = |v: &mut u8| *v = v.wrapping_add(by);
                        let was = map.contains_key(&k);
                        map.entry(k).and_modify(add).or_insert(by);
                        prop_assert_eq!(table.update_or_insert(hash(k), k, add, || by).is_some(), was);
                    }
                    Operation::GetOrInsert(k, v) => {
                        let expected = map.entry(k).or_insert(v);
                        prop_assert_eq!(table.get_or_insert_with(hash(k), k, || v), expected);
                    }
                    Operation::RetainBelow(limit) => {
                        table.retain(|_, v| *v < limit);
                        map.retain(|_, v| *v < limit);
                    }
                    Operation::Clear => {
                        table.clear();
                        map.clear();
                    }
                }
                prop_assert_eq!(table.len(), map.len());
            }
            prop_assert!(table.iter().all(|(k, v)| map.get(k) == Some(v)));
            prop_assert!(map.iter().all(|(k, v)| table.get(hash(*k), k) == Some(v)));
        }
    }
}
