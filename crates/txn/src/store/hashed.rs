//! Tables by hash.

use super::claim::Claim;
use super::garbage::{Garbage, Guard};
use super::index::Gap;
use super::index::hash::HashIndex;
use super::record::Record;
use super::table::{Index, Lookup};
use super::work::Absence;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};
use std::ops::ControlFlow::{self, Break};

/// A table's index by hash: single keys are found in it, in no order.
pub struct Hashed<K, V, S = RandomState> {
    records: HashIndex<Record<K, V>>,
    hasher: S,
}

impl<K, V, S> Hashed<K, V, S>
where
    K: Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// An index for about `rows` rows; it grows beyond that.
    pub(crate) fn new(rows: usize, hasher: S) -> Self {
        Self {
            records: HashIndex::with_capacity(rows),
            hasher,
        }
    }
}

impl<K, V, S> std::fmt::Debug for Hashed<K, V, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hashed").finish_non_exhaustive()
    }
}

#[expect(private_interfaces, reason = "the trait cannot be named outside")]
impl<K, V, S> Index<K, V> for Hashed<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn hash(&self, key: &K) -> u64 {
        self.hasher.hash_one(key)
    }

    unsafe fn enter(
        &self,
        record: *mut Record<K, V>,
        claim: &Claim<'_>,
        absences: &mut Vec<Absence>,
    ) -> bool {
        // SAFETY: the caller keeps the duties.
        match unsafe { self.records.insert(record, claim) } {
            Ok(changed) => {
                for absence in absences {
                    absence.gap.follow(&changed);
                }
                true
            }
            Err(_) => false,
        }
    }

    fn unlink(&self, record: &Record<K, V>, _claim: &Claim<'_>) -> Option<*mut Record<K, V>> {
        self.records.unlink(record)
    }

    /// The number of a segment.
    type Place = usize;

    fn walk(
        &self,
        place: &mut usize,
        claim: &Claim<'_>,
        each: &mut dyn FnMut(&Record<K, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(mut records) = self.records.part(*place, claim) else {
            return Break(());
        };
        *place += 1;
        records.try_for_each(each)
    }

    fn take_all(&mut self) -> Vec<*mut Record<K, V>> {
        let all: Vec<&Record<K, V>> = self.records.iter(&Alone).collect();
        all.into_iter()
            .filter_map(|record| self.records.unlink(record))
            .collect()
    }
}

#[expect(private_interfaces, reason = "the trait cannot be named outside")]
impl<Q, K, V, S> Lookup<Q, K, V> for Hashed<K, V, S>
where
    Q: Hash + Eq + ?Sized,
    K: Hash + Eq + Borrow<Q> + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    #[inline(always)]
    fn find<'c>(&'c self, key: &Q, claim: &'c Claim<'_>) -> Result<&'c Record<K, V>, Gap> {
        let hash = self.hasher.hash_one(key);
        self.records
            .get(hash, |record| record.key().borrow() == key, claim)
    }

    #[inline(always)]
    fn prefetch(&self, key: &Q, step: u32, claim: &Claim<'_>) {
        let hash = self.hasher.hash_one(key);
        match step {
            0 => self.records.prefetch(hash, claim),
            _ => self.records.prefetch_record(hash, claim),
        }
    }

    fn is_key(&self, key: &K, wanted: &Q) -> bool {
        key.borrow() == wanted
    }
}

/// The guard of a thread that has a table for itself.
pub(super) struct Alone;

// SAFETY: nobody else has the table, so what is retired may be freed at once.
unsafe impl Guard for Alone {
    fn retire(&self, garbage: Garbage) {
        // SAFETY: as above.
        unsafe { garbage.free() };
    }
}
