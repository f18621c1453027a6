//! A hash table with a chain of nodes in each bucket.

use super::chain::Link;
use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::iter::Flatten;
use std::{slice, vec};

/// A map, kept as a hash table whose buckets are chains of nodes.
///
/// It is the hash table of the figures: a search reads the bucket's pointer, and then node after
/// node. Use it to compare with tables that have a lock for each bucket; if you only need a map,
/// use `HashMap`, whose entries lie in one array.
///
/// The number of buckets is a power of two. It doubles when there are more entries than buckets, so
/// that `get`, `insert` and `remove` take O(1), expected; doubling hashes every key again, but
/// moves no entry in memory. It never shrinks.
///
/// If a key's `Hash` or `Eq` panics, the map stays usable, but entries may not be found any more.
///
/// ```
/// use corelay_structures::seq::ChainedMap;
///
/// let mut ages = ChainedMap::new();
/// assert_eq!(ages.insert("Ada".to_owned(), 36), None);
/// *ages.get_mut("Ada").unwrap() += 1;
/// assert_eq!(ages.get("Ada"), Some(&37));
/// assert_eq!(ages.remove("Ada"), Some(37));
/// ```
pub struct ChainedMap<K, V, S = RandomState> {
    /// None, or a power of two.
    buckets: Vec<Link<(K, V)>>,
    len: usize,
    hasher: S,
}

impl<K, V> ChainedMap<K, V> {
    /// Makes an empty map. It allocates nothing before the first entry.
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    ///
    /// assert!(ChainedMap::<u64, u64>::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty map that has room for `entries` before its buckets double.
    ///
    /// # Panics
    /// If the buckets would take more than `isize::MAX` bytes.
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    ///
    /// assert_eq!(ChainedMap::<u64, u64>::with_capacity(1_000).buckets(), 1_024);
    /// ```
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        Self::with_capacity_and_hasher(entries, RandomState::new())
    }
}

impl<K, V, S> ChainedMap<K, V, S> {
    /// Makes an empty map whose keys are hashed by `hasher`. A bucket is chosen by the lowest bits
    /// of the hash.
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    ///
    /// let same_in_every_run = BuildHasherDefault::<DefaultHasher>::new();
    /// let mut map = ChainedMap::with_hasher(same_in_every_run);
    /// map.insert(1, 'a');
    /// ```
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        Self {
            buckets: Vec::new(),
            len: 0,
            hasher,
        }
    }

    /// Makes an empty map that has room for `entries`, and hashes keys by `hasher`.
    ///
    /// # Panics
    /// If the buckets would take more than `isize::MAX` bytes.
    #[must_use]
    pub fn with_capacity_and_hasher(entries: usize, hasher: S) -> Self {
        let mut map = Self::with_hasher(hasher);
        if entries > 0 {
            let buckets = entries.checked_next_power_of_two();
            let buckets = buckets.expect("corelay: more buckets than memory can hold");
            map.buckets.resize_with(buckets, || Link::END);
        }
        map
    }

    /// The number of entries, in O(1).
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of buckets: 0 before the first entry, then a power of two.
    pub const fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Drops all entries, and keeps the buckets.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// The entries, in the order of the buckets.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.buckets.iter().flatten())
    }

    /// Drops the entries that `keep` refuses. It may change the values of the others. It takes
    /// O(entries + buckets).
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    ///
    /// let mut map = ChainedMap::from([(1, 10), (2, 20)]);
    /// map.retain(|key, value| {
    ///     *value += 1;
    ///     *key == 2
    /// });
    /// assert!(map.into_iter().eq([(2, 21)]));
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        for bucket in &mut self.buckets {
            bucket.retain(&mut self.len, |(key, value)| keep(key, value));
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> ChainedMap<K, V, S> {
    /// The value of `key`.
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    ///
    /// let map = ChainedMap::from([("a".to_owned(), 1)]);
    /// assert_eq!((map.get("a"), map.get("b")), (Some(&1), None));
    /// ```
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut chain = self.buckets.get(self.bucket(key))?.into_iter();
        let (_, value) = chain.find(|(it, _)| it.borrow() == key)?;
        Some(value)
    }

    /// The value of `key`, to be changed in place.
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    ///
    /// let mut map = ChainedMap::from([(1, 10)]);
    /// *map.get_mut(&1).unwrap() += 1;
    /// assert_eq!(map.get(&1), Some(&11));
    /// ```
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (_, value) = self.seek(key)?.first_mut()?;
        Some(value)
    }

    /// Whether there is an entry for `key`.
    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Sets the value of `key`, and returns the value that it had before. The map keeps the key
    /// that it has, if any.
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    ///
    /// let mut map = ChainedMap::new();
    /// assert_eq!((map.insert(1, 10), map.insert(1, 11)), (None, Some(10)));
    /// ```
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (link, len) = self.seek_with_room(&key);
        if let Some((_, old)) = link.first_mut() {
            return Some(std::mem::replace(old, value));
        }
        link.push((key, value));
        *len += 1;
        None
    }

    /// The value of `key`, which `make` makes if there is none yet.
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    ///
    /// let mut counts = ChainedMap::new();
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     *counts.get_or_insert_with(word, || 0) += 1;
    /// }
    /// assert_eq!(counts.get("be"), Some(&2));
    /// ```
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let (link, len) = self.seek_with_room(&key);
        if link.first().is_none() {
            link.push((key, make()));
            *len += 1;
        }
        &mut link.first_mut().expect("is there").1
    }

    /// Removes `key`, and returns its value.
    ///
    /// ```
    /// use corelay_structures::seq::ChainedMap;
    ///
    /// let mut map = ChainedMap::from([("a".to_owned(), 1)]);
    /// assert_eq!((map.remove("a"), map.remove("a")), (Some(1), None));
    /// ```
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, value) = self.seek(key)?.pop()?;
        self.len -= 1;
        // If this panics, the length is right, and the value is dropped too.
        drop(key);
        Some(value)
    }

    /// The index of the bucket for `key`. Any number if there are no buckets.
    fn bucket<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.hasher.hash_one(key) as usize & self.buckets.len().wrapping_sub(1)
    }

    /// The link of the entry for `key`, or the end of its chain. `None` if there are no buckets.
    fn seek<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut Link<(K, V)>>
    where
        K: Borrow<Q>,
    {
        let bucket = self.bucket(key);
        let chain = self.buckets.get_mut(bucket)?;
        Some(chain.seek(|(it, _)| it.borrow() == key))
    }

    /// Makes room for one more entry. Returns the link of the entry for `key`, or the end of its
    /// chain, and the number of entries.
    fn seek_with_room(&mut self, key: &K) -> (&mut Link<(K, V)>, &mut usize) {
        if self.len == self.buckets.len() {
            self.double();
        }
        let bucket = self.bucket(key);
        let link = self.buckets[bucket].seek(|(it, _)| it == key);
        (link, &mut self.len)
    }

    /// Divides each bucket into two, by the next bit of the hash.
    fn double(&mut self) {
        let old = self.buckets.len();
        // Not more than twice as many: the loop below divides by one bit of the hash.
        let new = if old == 0 { 4 } else { old * 2 };
        self.buckets.resize_with(new, || Link::END);
        let (low, high) = self.buckets.split_at_mut(old);
        for (low, high) in low.iter_mut().zip(high) {
            low.divide(high, |(key, _)| {
                self.hasher.hash_one(key) as usize & old != 0
            });
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Extend<(K, V)> for ChainedMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher + Default> FromIterator<(K, V)> for ChainedMap<K, V, S> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Hash + Eq, V, const N: usize> From<[(K, V); N]> for ChainedMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        Self::from_iter(entries)
    }
}

impl<K, V, S: Default> Default for ChainedMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for ChainedMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The entries of a [`ChainedMap`], in the order of its buckets.
#[derive(Clone)]
pub struct Iter<'a, K, V>(Flatten<slice::Iter<'a, Link<(K, V)>>>);

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        Some((key, value))
    }
}

impl<'a, K, V, S> IntoIterator for &'a ChainedMap<K, V, S> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

/// The entries of a [`ChainedMap`], in the order of its buckets, taken out of it.
pub struct IntoIter<K, V>(Flatten<vec::IntoIter<Link<(K, V)>>>);

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.0.next()
    }
}

impl<K, V, S> IntoIterator for ChainedMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter(self.buckets.into_iter().flatten())
    }
}
