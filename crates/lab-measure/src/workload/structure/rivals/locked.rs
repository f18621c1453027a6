//! Sequential structures behind locks that need to know their operations: reader-writer locks, and
//! mutexes around shards.

use super::{Ledger, Rival, Structure};
use crate::method::rwlock::ReadWrite;
use crate::workload::operation::Aligned;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

/// A structure behind one reader-writer lock, which its readers share.
pub(crate) struct Locked<L>(pub(super) L);

impl<L: ReadWrite<Value: Structure>> Rival for Locked<L> {
    fn empty(size: usize) -> Self {
        assert!(
            !L::Value::READS_CHANGE,
            "readers would change what they share"
        );
        Self(L::new(L::Value::empty(size)))
    }

    #[inline]
    fn read(&self, key: u64) -> Option<u64> {
        self.0.read(|structure| structure.look(key))
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.write(|structure| insert(structure, key))
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.0.write(|structure| remove(structure, key))
    }

    fn keys(&self) -> Vec<u64> {
        self.0.read(|structure| structure.keys().collect())
    }
}

/// Inserts a key. The caller keeps the ledger.
#[inline(always)]
pub(super) fn insert(structure: &mut impl Structure, key: u64) -> bool {
    structure.insert(key, &mut Ledger::default())
}

/// Removes a key. The caller keeps the ledger.
#[inline(always)]
pub(super) fn remove(structure: &mut impl Structure, key: u64) -> Option<u64> {
    structure.remove(key, &mut Ledger::default())
}

/// Structures that divide the keys by a hash, each behind a mutex on cache lines of its own.
///
/// There are four shards for each CPU, rounded up to a power of two, as `dashmap` has.
pub(crate) struct Sharded<S> {
    shards: Box<[Aligned<Mutex<S>>]>,
}

impl<S: Structure> Sharded<S> {
    /// Locks the shard of `key`.
    #[inline]
    fn shard(&self, key: u64) -> MutexGuard<'_, S> {
        // Fibonacci hashing: the golden ratio of 2^64, and the upper bits of the product (Knuth,
        // "The Art of Computer Programming", volume 3, 6.4). There are at least four shards.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let shard = hash >> (u64::BITS - self.shards.len().ilog2());
        lock(&self.shards[shard as usize])
    }
}

fn lock<S>(shard: &Aligned<Mutex<S>>) -> MutexGuard<'_, S> {
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Structure> Rival for Sharded<S> {
    fn empty(size: usize) -> Self {
        const { assert!(S::HAS_KEYS && !S::EVICTS) };
        let cpus = available_parallelism().map_or(1, usize::from);
        let shards = (4 * cpus).next_power_of_two();
        let shard = |_| Aligned(Mutex::new(S::empty(size.div_ceil(shards))));
        Self {
            shards: (0..shards).map(shard).collect(),
        }
    }

    #[inline]
    fn read(&self, key: u64) -> Option<u64> {
        self.shard(key).read(key)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        insert(&mut *self.shard(key), key)
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        remove(&mut *self.shard(key), key)
    }

    fn keys(&self) -> Vec<u64> {
        self.parts().concat()
    }

    fn parts(&self) -> Vec<Vec<u64>> {
        let keys = |shard| lock::<S>(shard).keys().collect();
        self.shards.iter().map(keys).collect()
    }
}
