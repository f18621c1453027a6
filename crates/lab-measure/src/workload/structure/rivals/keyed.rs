//! Sets and maps. A map's value is its key.

use super::Rival;
use corelay_structures::fine::{BucketMap, ExternalTree, LazyList, OptimisticSkipList};
use corelay_structures::lockfree::HarrisList;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use crossbeam_skiplist::SkipMap;
use dashmap::DashMap;
use std::cell::Cell;

/// Implements [`Rival`] for sets with `contains`, `insert` and `remove`.
macro_rules! sets {
    ($($type:ident)*) => {$(
        impl Rival for $type<u64> {
            fn empty(_: usize) -> Self {
                Self::new()
            }

            #[inline]
            fn read(&self, key: u64) -> Option<u64> {
                self.contains(&key).then_some(key)
            }

            #[inline]
            fn insert(&self, key: u64) -> bool {
                Self::insert(self, key)
            }

            #[inline]
            fn remove(&self, key: u64) -> Option<u64> {
                Self::remove(self, &key).then_some(key)
            }

            fn keys(&self) -> Vec<u64> {
                let mut keys = Vec::new();
                self.for_each(|&key| keys.push(key));
                keys
            }
        }
    )*};
}

sets!(LazyList HarrisList);

/// Implements [`Rival`] for maps with `get`, `insert` and `remove`; `insert` says whether a key is
/// new.
macro_rules! maps {
    ($($type:ident: |$size:ident| $empty:expr, |$inserted:ident| $is_new:expr;)*) => {$(
        impl Rival for $type<u64, u64> {
            fn empty($size: usize) -> Self {
                $empty
            }

            #[inline]
            fn read(&self, key: u64) -> Option<u64> {
                self.get(&key)
            }

            #[inline]
            fn insert(&self, key: u64) -> bool {
                let $inserted = Self::insert(self, key, key);
                $is_new
            }

            #[inline]
            fn remove(&self, key: u64) -> Option<u64> {
                Self::remove(self, &key)
            }

            fn keys(&self) -> Vec<u64> {
                let mut keys = Vec::new();
                self.for_each(|&key, _| keys.push(key));
                keys
            }
        }
    )*};
}

maps! {
    BucketMap: |size| Self::new(size), |old| old.is_none();
    OptimisticSkipList: |_size| Self::new(), |is_new| is_new;
    ExternalTree: |_size| Self::new(), |is_new| is_new;
}

impl Rival for DashMap<u64, u64> {
    fn empty(size: usize) -> Self {
        Self::with_capacity(size)
    }

    #[inline]
    fn read(&self, key: u64) -> Option<u64> {
        self.get(&key).map(|entry| *entry)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        Self::insert(self, key, key).is_none()
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        Self::remove(self, &key).map(|(key, _)| key)
    }

    fn keys(&self) -> Vec<u64> {
        self.iter().map(|entry| *entry.key()).collect()
    }
}

impl Rival for papaya::HashMap<u64, u64> {
    fn empty(size: usize) -> Self {
        Self::with_capacity(size)
    }

    #[inline]
    fn read(&self, key: u64) -> Option<u64> {
        self.pin().get(&key).copied()
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.pin().insert(key, key).is_none()
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.pin().remove(&key).copied()
    }

    fn keys(&self) -> Vec<u64> {
        self.pin().keys().copied().collect()
    }
}

impl Rival for scc::HashMap<u64, u64> {
    fn empty(size: usize) -> Self {
        Self::with_capacity(size)
    }

    #[inline]
    fn read(&self, key: u64) -> Option<u64> {
        self.read_sync(&key, |_, value| *value)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.insert_sync(key, key).is_ok()
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.remove_sync(&key).map(|(key, _)| key)
    }

    fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        self.iter_sync(|key, _| {
            keys.push(*key);
            true
        });
        keys
    }
}

/// Removes a key with [`scc::TreeIndex::remove`], which does not return the value; that is the key.
impl Rival for scc::TreeIndex<u64, u64> {
    fn empty(_: usize) -> Self {
        Self::new()
    }

    #[inline]
    fn read(&self, key: u64) -> Option<u64> {
        self.peek_with(&key, |_, value| *value)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.insert_sync(key, key).is_ok()
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.remove_sync(&key).then_some(key)
    }

    fn keys(&self) -> Vec<u64> {
        let guard = scc::Guard::new();
        self.iter(&guard).map(|(key, _)| *key).collect()
    }
}

/// The crate does not say whether an insertion was the one that brought the key, and two removals
/// of one entry both return it. So each insertion brings a value of its own, by which it knows its
/// entry again, and a removal looks the entry up first.
impl Rival for SkipMap<u64, u64> {
    fn empty(_: usize) -> Self {
        Self::new()
    }

    #[inline]
    fn read(&self, key: u64) -> Option<u64> {
        self.get(&key).map(|entry| *entry.key())
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        let own = unique();
        *self.get_or_insert(key, own).value() == own
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.get(&key)?.remove().then_some(key)
    }

    fn keys(&self) -> Vec<u64> {
        self.iter().map(|entry| *entry.key()).collect()
    }
}

/// A number that no other call returns, of any thread.
fn unique() -> u64 {
    /// Numbers that a thread takes at once.
    const BLOCK: u64 = 1 << 32;
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    let next = match NEXT.get() {
        // Relaxed: the number only has to be unique.
        taken if taken % BLOCK == 0 => BLOCKS.fetch_add(BLOCK, Ordering::Relaxed),
        next => next,
    };
    NEXT.set(next + 1);
    next
}
