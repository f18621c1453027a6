//! A hash table with a lock for each bucket.
//!
//! It is the table that the literature measures as "a lock per bucket": an array of chains, each
//! with a lock and on a cache line of its own (David, Guerraoui and Trigonakis, "Everything you
//! always wanted to know about synchronization but were afraid to ask", SOSP 2013).
//! The chains are those of [`ChainedMap`](crate::seq::ChainedMap).

use super::lock::Locked;
use crate::seq::chain::Link;
use corelay_sync::wait::{CodeName, NoSwitch};
use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// A map, kept as a hash table with a lock for each bucket.
///
/// The number of buckets is fixed when the map is made: calls take O(1), expected, as long as there
/// are not many more entries than buckets, and O(entries / buckets) beyond. Threads that use
/// different buckets do not disturb each other. For a table that grows, or whose look-ups take no
/// lock, use a crate such as `dashmap` or `papaya`.
///
/// Each call on a key takes effect while it holds the lock of the bucket.
///
/// # Closures
/// The closures of [`get_with`](Self::get_with), [`update`](Self::update) and
/// [`for_each`](Self::for_each), and the keys' `Eq`, run while the bucket is locked. They may not
/// wait: a wait of corelay panics there, and so does a call of this map, or of another, whose
/// bucket is taken. A panic unlocks the bucket; the value stays as the closure left it.
///
/// ```
/// use corelay_structures::fine::BucketMap;
///
/// let hits = BucketMap::new(16);
/// std::thread::scope(|s| {
///     for _ in 0..3 {
///         s.spawn(|| {
///             hits.insert("other".to_owned(), 0);
///             hits.get_or_insert_with("page".to_owned(), || 0, |n| *n += 1);
///         });
///     }
/// });
/// assert_eq!(hits.get("page"), Some(3));
/// assert_eq!(hits.remove("other"), Some(0));
/// ```
///
/// One thread at a time has an entry, so keys and values need not be `Sync`; but they are `Send`:
/// ```compile_fail,E0277
/// use corelay_structures::fine::BucketMap;
///
/// let map = BucketMap::<u64, std::rc::Rc<u64>>::new(16);
/// std::thread::scope(|s| {
///     s.spawn(|| drop(&map));
/// });
/// ```
pub struct BucketMap<K, V, S = RandomState> {
    /// A power of two of them.
    buckets: Box<[Bucket<K, V>]>,
    hasher: S,
}

// 64 bytes: the line of x86-64 and of most aarch64 machines.
#[repr(align(64))]
struct Bucket<K, V>(Locked<Link<(K, V)>>);

impl<K, V> BucketMap<K, V> {
    /// Makes an empty map with this many buckets, or the next power of two. A bucket takes 64
    /// bytes, and an entry one allocation.
    ///
    /// # Panics
    /// If the buckets would take more than `isize::MAX` bytes.
    ///
    /// ```
    /// use corelay_structures::fine::BucketMap;
    ///
    /// assert_eq!(BucketMap::<u64, u64>::new(1_000).buckets(), 1_024);
    /// ```
    #[must_use]
    pub fn new(buckets: usize) -> Self {
        Self::with_hasher(buckets, RandomState::new())
    }
}

impl<K, V, S> BucketMap<K, V, S> {
    /// Makes an empty map with this many buckets, or the next power of two, whose keys are hashed
    /// by `hasher`. A bucket is chosen by the lowest bits of the hash.
    ///
    /// # Panics
    /// If the buckets would take more than `isize::MAX` bytes.
    #[must_use]
    pub fn with_hasher(buckets: usize, hasher: S) -> Self {
        let buckets = buckets.checked_next_power_of_two();
        let buckets = buckets.expect("corelay: more buckets than memory can hold");
        let empty = |_| Bucket(Locked::new(Link::END));
        Self {
            buckets: (0..buckets).map(empty).collect(),
            hasher,
        }
    }

    /// The number of buckets, a power of two.
    pub const fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Calls `f` on the entries, bucket by bucket. Entries that are there from the beginning to the
    /// end are among them; of those that come or go meanwhile some may be.
    ///
    /// ```
    /// use corelay_structures::fine::BucketMap;
    ///
    /// let map = BucketMap::new(16);
    /// map.insert('a', 1);
    /// map.for_each(|_, value| *value += 1);
    /// assert_eq!(map.get(&'a'), Some(2));
    /// ```
    #[track_caller]
    pub fn for_each(&self, mut f: impl FnMut(&K, &mut V)) {
        for bucket in &self.buckets {
            bucket.section(|chain| chain.for_each(|(key, value)| f(key, value)));
        }
    }
}

impl<K, V> Bucket<K, V> {
    /// Runs `section`, which has code of users, on the bucket's chain. If nothing may wait here and
    /// the bucket is taken, panics instead of waiting.
    #[inline]
    #[track_caller]
    fn section<R>(&self, section: impl FnOnce(&mut Link<(K, V)>) -> R) -> R {
        let section = |chain: &mut _| {
            let name = const { &CodeName::fixed(&"a section of a `BucketMap`") };
            // SAFETY: dropped at the end of this block, and the name is a constant.
            let _no_switch = unsafe { NoSwitch::enter(name) };
            section(chain)
        };
        if !NoSwitch::is_active() {
            return self.0.with(section);
        }
        match self.0.try_with(section) {
            Ok(result) => result,
            Err(section) => {
                NoSwitch::refuse("waiting for a bucket of a `BucketMap`");
                self.0.with(section)
            }
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> BucketMap<K, V, S> {
    fn bucket<Q: Hash + ?Sized>(&self, key: &Q) -> &Bucket<K, V> {
        let hash = self.hasher.hash_one(key) as usize;
        &self.buckets[hash & (self.buckets.len() - 1)]
    }

    /// Sets the value of `key`, and returns the value that it had before. The map keeps the key
    /// that it has, if any.
    ///
    /// ```
    /// use corelay_structures::fine::BucketMap;
    ///
    /// let map = BucketMap::new(16);
    /// assert_eq!((map.insert(1, 10), map.insert(1, 11)), (None, Some(10)));
    /// ```
    #[track_caller]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        let bucket = self.bucket(&key);
        // A key that is not needed is dropped after the section.
        let replaced = bucket.section(|chain| {
            let link = chain.seek(|(it, _)| *it == key);
            if let Some((_, old)) = link.first_mut() {
                return Some((key, std::mem::replace(old, value)));
            }
            link.push((key, value));
            None
        });
        let (key, value) = replaced?;
        drop(key);
        Some(value)
    }

    /// Calls `f` on the value of `key`, which `make` makes if there is none yet.
    ///
    /// ```
    /// use corelay_structures::fine::BucketMap;
    ///
    /// let counts = BucketMap::new(16);
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     counts.get_or_insert_with(word, || 0, |n| *n += 1);
    /// }
    /// assert_eq!(counts.get("be"), Some(2));
    /// ```
    #[track_caller]
    pub fn get_or_insert_with<R>(
        &self,
        key: K,
        make: impl FnOnce() -> V,
        f: impl FnOnce(&mut V) -> R,
    ) -> R {
        let bucket = self.bucket(&key);
        // A key that is not needed is dropped after the section.
        let (result, _key) = bucket.section(|chain| {
            let link = chain.seek(|(it, _)| *it == key);
            let mut key = Some(key);
            if link.first().is_none() {
                link.push((key.take().expect("is there"), make()));
            }
            (f(&mut link.first_mut().expect("is there").1), key)
        });
        result
    }

    /// Calls `f` on the value of `key`, which it may change. `None` if there is none.
    ///
    /// ```
    /// use corelay_structures::fine::BucketMap;
    ///
    /// let map = BucketMap::new(16);
    /// map.insert("a", 1);
    /// assert_eq!(map.update("a", |value| { *value += 1; *value }), Some(2));
    /// ```
    #[track_caller]
    pub fn update<Q, R>(&self, key: &Q, f: impl FnOnce(&mut V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.bucket(key).section(|chain| {
            let link = chain.seek(|(it, _)| it.borrow() == key);
            link.first_mut().map(|(_, value)| f(value))
        })
    }

    /// Calls `f` on the value of `key`. `None` if there is none.
    ///
    /// ```
    /// use corelay_structures::fine::BucketMap;
    ///
    /// let map = BucketMap::new(16);
    /// map.insert("a", "one".to_owned());
    /// assert_eq!(map.get_with("a", |value| value.len()), Some(3));
    /// ```
    #[track_caller]
    pub fn get_with<Q, R>(&self, key: &Q, f: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.update(key, |value| f(value))
    }

    /// A clone of the value of `key`.
    ///
    /// ```
    /// use corelay_structures::fine::BucketMap;
    ///
    /// assert_eq!(BucketMap::<u64, u64>::new(16).get(&1), None);
    /// ```
    #[track_caller]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        self.get_with(key, V::clone)
    }

    /// Whether there is an entry for `key`.
    #[track_caller]
    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get_with(key, |_| ()).is_some()
    }

    /// Removes `key`, and returns its value.
    ///
    /// ```
    /// use corelay_structures::fine::BucketMap;
    ///
    /// let map = BucketMap::new(16);
    /// map.insert("a".to_owned(), 1);
    /// assert_eq!((map.remove("a"), map.remove("a")), (Some(1), None));
    /// ```
    #[track_caller]
    pub fn remove<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // The key is dropped after the section.
        let entry = self
            .bucket(key)
            .section(|chain| chain.seek(|(it, _)| it.borrow() == key).pop());
        let (key, value) = entry?;
        drop(key);
        Some(value)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Extend<(K, V)> for BucketMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V, S> fmt::Debug for BucketMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketMap")
            .field("buckets", &self.buckets())
            .finish_non_exhaustive()
    }
}
