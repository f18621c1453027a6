//! Read-log-update: corelay's list, and its hash table for more than one.

use super::{Member, Set, Shape};
use corelay_clock::Clock;
use corelay_lab_measure::schema::{Aborts, Counts};
use corelay_txn::rlu::{Domain, HashSession, ListSession, RluHash, RluList, Stats};

pub(super) struct List<C>(RluList<C>);

impl<C: Clock> List<C> {
    /// Write sets are visible to others when so many are pending.
    pub(super) fn new(clock: C, deferral: usize) -> Self {
        Self(RluList::new_in(&Domain::with_deferral(clock, deferral)))
    }
}

pub(super) struct Table<C> {
    table: RluHash<C>,
    buckets: usize,
}

impl<C: Clock> Table<C> {
    /// As of the list.
    pub(super) fn new(clock: C, deferral: usize, shape: Shape) -> Self {
        let buckets = shape.buckets;
        Self {
            table: RluHash::new_in(&Domain::with_deferral(clock, deferral), buckets),
            buckets,
        }
    }
}

fn counts(stats: Stats) -> Counts {
    Counts {
        aborts: Aborts {
            lock: stats.aborts_locked,
            unknown: stats.aborts - stats.aborts_locked,
            ..Aborts::default()
        },
        uncertain: stats.uncertain,
    }
}

impl<C: Clock + 'static> Set for List<C> {
    type Member<'a> = ListSession<'a, C>;

    fn member(&self) -> Self::Member<'_> {
        self.0.session()
    }

    fn keys(&self) -> Vec<Vec<u64>> {
        let keys = self.0.session().to_vec().into_iter();
        vec![keys.map(|(key, ())| key).collect()]
    }

    fn counts(&self) -> Counts {
        counts(self.0.domain().stats())
    }
}

impl<C: Clock + 'static> Member for ListSession<'_, C> {
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

/// The table finds buckets by its own hash, which others are told: here their bucket is a part of the
/// key.
#[inline(always)]
fn whole(bucket: usize, key: u64) -> u64 {
    (bucket as u64) << 32 | key
}

impl<C: Clock + 'static> Set for Table<C> {
    type Member<'a> = HashSession<'a, C>;

    fn member(&self) -> Self::Member<'_> {
        self.table.session()
    }

    /// Put in order: the table's own is that of its hash. A key that is there twice stays so.
    fn keys(&self) -> Vec<Vec<u64>> {
        let mut keys = vec![Vec::new(); self.buckets];
        for (whole, ()) in self.table.session().to_vec() {
            keys[(whole >> 32) as usize].push(whole & u64::from(u32::MAX));
        }
        keys.iter_mut().for_each(|keys| keys.sort_unstable());
        keys
    }

    fn counts(&self) -> Counts {
        counts(self.table.domain().stats())
    }
}

impl<C: Clock + 'static> Member for HashSession<'_, C> {
    #[inline(always)]
    fn contains(&mut self, bucket: usize, key: u64) -> bool {
        HashSession::contains(self, &whole(bucket, key))
    }

    #[inline(always)]
    fn insert(&mut self, bucket: usize, key: u64) -> bool {
        HashSession::insert(self, whole(bucket, key), ())
    }

    #[inline(always)]
    fn remove(&mut self, bucket: usize, key: u64) -> bool {
        HashSession::remove(self, &whole(bucket, key)).is_some()
    }
}
