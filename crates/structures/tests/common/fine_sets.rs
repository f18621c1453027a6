//! The lock-based sets and maps behind one face: a body of a test runs on each of them.

use corelay_structures::fine::{BucketMap, ExternalTree, LazyList, OptimisticSkipList};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash};

/// A set of keys: what the bodies of the tests need. A map has its keys as values too.
pub(crate) trait Set<K>: Send + Sync + 'static {
    fn make() -> Self;
    /// Adds a key, and says whether it was missing.
    fn add(&self, key: K) -> bool;
    /// Removes a key, and says whether it was there.
    fn take(&self, key: &K) -> bool;
    fn has(&self, key: &K) -> bool;
    /// The keys, in the order of the structure.
    fn keys(&self) -> Vec<K>;
}

/// A key that every structure takes.
pub(crate) trait Key: Ord + Hash + Clone + std::fmt::Debug + Send + Sync + 'static {}
impl<K: Ord + Hash + Clone + std::fmt::Debug + Send + Sync + 'static> Key for K {}

impl<K: Key> Set<K> for LazyList<K> {
    fn make() -> Self {
        Self::new()
    }
    fn add(&self, key: K) -> bool {
        self.insert(key)
    }
    fn take(&self, key: &K) -> bool {
        self.remove(key)
    }
    fn has(&self, key: &K) -> bool {
        self.contains(key)
    }
    fn keys(&self) -> Vec<K> {
        let mut keys = Vec::new();
        self.for_each(|key| keys.push(key.clone()));
        keys
    }
}

macro_rules! set_of_a_map {
    ($map:ty) => {
        impl<K: Key> Set<K> for $map {
            fn make() -> Self {
                Self::new()
            }
            fn add(&self, key: K) -> bool {
                self.insert(key.clone(), key)
            }
            fn take(&self, key: &K) -> bool {
                let value = self.remove(key);
                assert!(value.iter().all(|value| value == key), "{value:?}");
                value.is_some()
            }
            fn has(&self, key: &K) -> bool {
                let value = self.get(key);
                assert!(value.iter().all(|value| value == key), "{value:?}");
                value.is_some()
            }
            fn keys(&self) -> Vec<K> {
                let mut keys = Vec::new();
                self.for_each(|key, _| keys.push(key.clone()));
                keys
            }
        }
    };
}

set_of_a_map!(OptimisticSkipList<K, K>);
set_of_a_map!(ExternalTree<K, K>);

/// Its keys are in the same buckets in every run.
pub(crate) type Buckets<K> = BucketMap<K, K, BuildHasherDefault<DefaultHasher>>;

impl<K: Key> Set<K> for Buckets<K> {
    fn make() -> Self {
        // Few, so that keys share them.
        Self::with_hasher(2, BuildHasherDefault::new())
    }
    fn add(&self, key: K) -> bool {
        self.insert(key.clone(), key).is_none()
    }
    fn take(&self, key: &K) -> bool {
        self.remove(key).is_some()
    }
    fn has(&self, key: &K) -> bool {
        self.contains_key(key)
    }
    fn keys(&self) -> Vec<K> {
        let mut keys = Vec::new();
        self.for_each(|key, _| keys.push(key.clone()));
        keys.sort();
        keys
    }
}

/// Makes a module for each structure with a test for each body, which has a key's type.
macro_rules! for_each_set {
    ({ $($body:ident: $key:ty),* $(,)? }) => {
        for_each_set!(@ lazy_list, corelay_structures::fine::LazyList::<_>, { $($body: $key),* });
        for_each_set!(@ skip_list, corelay_structures::fine::OptimisticSkipList::<_, _>, { $($body: $key),* });
        for_each_set!(@ tree, corelay_structures::fine::ExternalTree::<_, _>, { $($body: $key),* });
        for_each_set!(@ buckets, crate::fine_sets::Buckets::<_>, { $($body: $key),* });
    };
    (@ $name:ident, $structure:ty, { $($body:ident: $key:ty),* }) => {
        mod $name {
            $(
                #[test]
                fn $body() {
                    super::$body::<$structure>();
                }
            )*
        }
    };
}
pub(crate) use for_each_set;
