//! Lists by corelay's read-log-update: its list, or its hash table if there are several.

use super::{Set, SetSession, Shape};
use corelay_clock::Clock;
use corelay_lab_measure::schema::{Aborts, ConflictCounts, TimeOfParts};
use corelay_txn::rlu::{Domain, HashSession, ListSession, RluHash, RluList, Stats};

/// A single list.
pub(super) struct List<C>(RluList<C>);

impl<C: Clock> List<C> {
    /// Makes a list. Write sets become visible to other threads when `deferral` of them are
    /// pending.
    pub(super) fn new(clock: C, deferral: usize) -> Self {
        Self(RluList::new_in(&Domain::with_deferral(clock, deferral)))
    }
}

/// A hash table of lists.
pub(super) struct Table<C> {
    table: RluHash<C>,
    buckets: usize,
}

impl<C: Clock> Table<C> {
    /// Makes a table. Write sets become visible to other threads when `deferral` of them are
    /// pending.
    pub(super) fn new(clock: C, deferral: usize, shape: Shape) -> Self {
        let buckets = shape.buckets;
        Self {
            table: RluHash::new_in(&Domain::with_deferral(clock, deferral), buckets),
            buckets,
        }
    }
}

/// Converts the statistics of an RLU domain into the counts of a result.
fn counts(stats: Stats) -> ConflictCounts {
    ConflictCounts {
        aborts: Aborts {
            lock: stats.aborts_locked,
            unknown: stats.aborts - stats.aborts_locked,
            ..Aborts::default()
        },
        uncertain: stats.uncertain,
        parts: TimeOfParts {
            copying: stats.ticks_copying,
            locking: stats.ticks_locking,
            ordering: stats.ticks_ordering,
            waiting: stats.ticks_waiting,
            whole: 0,
        },
    }
}

impl<C: Clock + 'static> Set for List<C> {
    type Session<'a> = ListSession<'a, C>;

    fn session(&self) -> Self::Session<'_> {
        self.0.session()
    }

    fn keys(&self) -> Vec<Vec<u64>> {
        let keys = self.0.session().to_vec().into_iter();
        vec![keys.map(|(key, ())| key).collect()]
    }

    fn counts(&self) -> ConflictCounts {
        counts(self.0.domain().stats())
    }

    fn is_timed(&self) -> bool {
        corelay_clock::is_timed(self.0.domain().clock())
    }
}

impl<C: Clock + 'static> SetSession for ListSession<'_, C> {
    #[inline(always)]
    fn contains(&mut self, _: usize, key: u64) -> bool {
        ListSession::contains(self, &key)
    }

    #[inline(always)]
    fn insert(&mut self, _: usize, key: u64) -> bool {
        ListSession::insert(self, key, ())
    }

    #[inline(always)]
    fn remove(&mut self, _: usize, key: u64) -> bool {
        ListSession::remove(self, &key).is_some()
    }
}

/// The key in the table. The table finds buckets by a hash of its own, so the workload's bucket is
/// a part of the key.
#[inline(always)]
fn table_key(bucket: usize, key: u64) -> u64 {
    (bucket as u64) << 32 | key
}

impl<C: Clock + 'static> Set for Table<C> {
    type Session<'a> = HashSession<'a, C>;

    fn session(&self) -> Self::Session<'_> {
        self.table.session()
    }

    /// Sorts each list, as the table's order is that of its hash. A duplicate key remains one.
    fn keys(&self) -> Vec<Vec<u64>> {
        let mut keys = vec![Vec::new(); self.buckets];
        for (table_key, ()) in self.table.session().to_vec() {
            keys[(table_key >> 32) as usize].push(table_key & u64::from(u32::MAX));
        }
        keys.iter_mut().for_each(|keys| keys.sort_unstable());
        keys
    }

    fn counts(&self) -> ConflictCounts {
        counts(self.table.domain().stats())
    }

    fn is_timed(&self) -> bool {
        corelay_clock::is_timed(self.table.domain().clock())
    }
}

impl<C: Clock + 'static> SetSession for HashSession<'_, C> {
    #[inline(always)]
    fn contains(&mut self, bucket: usize, key: u64) -> bool {
        HashSession::contains(self, &table_key(bucket, key))
    }

    #[inline(always)]
    fn insert(&mut self, bucket: usize, key: u64) -> bool {
        HashSession::insert(self, table_key(bucket, key), ())
    }

    #[inline(always)]
    fn remove(&mut self, bucket: usize, key: u64) -> bool {
        HashSession::remove(self, &table_key(bucket, key)).is_some()
    }
}
