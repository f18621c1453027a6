//! Ordered tables.

use super::claim::Claim;
use super::hashed::Alone;
use super::index::Gap;
use super::index::ordered::{self, Inserted, OrderedKey};
use super::record::Record;
use super::table::{Index, Lookup};
use super::work::Absence;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Bound;
use std::ops::ControlFlow::{self, Break, Continue};
use std::ptr::NonNull;

/// An ordered table's index: single keys and ranges of keys are found in it.
pub struct Ordered<K, V>
where
    K: OrderedKey + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    records: ordered::Ordered<Record<K, V>>,
}

impl<K, V> Ordered<K, V>
where
    K: OrderedKey + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        Self {
            // SAFETY: all guards of a table are claims of its store: `Tx` refuses other tables.
            records: unsafe { ordered::Ordered::new() },
        }
    }

    fn last_key(&self, claim: &Claim<'_>) -> Option<K> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut leaves = self.records.range::<K, _>(all.0, all.1, claim);
        std::iter::from_fn(|| leaves.next_back())
            .find_map(|leaf| Some(leaf.records.last()?.key().clone()))
    }

    /// The leaves of a range.
    #[inline]
    pub(crate) fn range<'c, 'q, Q>(
        &'c self,
        from: Bound<&'q Q>,
        to: Bound<&'q Q>,
        claim: &'c Claim<'_>,
    ) -> ordered::Range<'c, 'q, Record<K, V>, Q, { ordered::ENTRIES }>
    where
        K: Borrow<Q>,
        Q: OrderedKey + ?Sized,
    {
        self.records.range(from, to, claim)
    }
}

impl<K, V> fmt::Debug for Ordered<K, V>
where
    K: OrderedKey + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ordered").finish_non_exhaustive()
    }
}

#[expect(private_interfaces, reason = "the trait cannot be named outside")]
impl<K, V> Index<K, V> for Ordered<K, V>
where
    K: OrderedKey + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn hash(&self, _key: &K) -> u64 {
        0
    }

    unsafe fn enter(
        &self,
        record: *mut Record<K, V>,
        claim: &Claim<'_>,
        absences: &mut Vec<Absence>,
    ) -> bool {
        // The index hands out shared references, so `unlink` finds the way back by the address.
        record.expose_provenance();
        let Some(record) = NonNull::new(record) else {
            return false;
        };
        // SAFETY: the caller keeps the duties.
        let changed = match unsafe { self.records.insert(record, claim) } {
            Inserted::Done(changed) => changed,
            Inserted::Exists(_) => return false,
        };
        for at in 0..absences.len() {
            if let Some(gap) = changed.patch(&mut absences[at].gap) {
                let meta = absences[at].meta;
                absences.push(Absence { gap, meta });
            }
        }
        true
    }

    fn unlink(&self, record: &Record<K, V>, claim: &Claim<'_>) -> Option<*mut Record<K, V>> {
        let address = std::ptr::from_ref(record).addr();
        let was_there = self.records.unlink(record, claim);
        was_there.then(|| std::ptr::with_exposed_provenance_mut(address))
    }

    /// The last key of the part before, and the last of all when the walk began.
    type Place = Option<(Bound<K>, K)>;

    fn walk(
        &self,
        place: &mut Self::Place,
        claim: &Claim<'_>,
        each: &mut dyn FnMut(&Record<K, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (from, end) = match place {
            Some(place) => place,
            // Without an end, a walk might follow a writer that appends rows for ever.
            None => match self.last_key(claim) {
                Some(end) => place.insert((Bound::Unbounded, end)),
                None => return Break(()),
            },
        };
        let mut leaves = self
            .records
            .range(from.as_ref(), Bound::Included(&*end), claim);
        // Leaves may be empty.
        while let Some(leaf) = leaves.next() {
            let Some(last) = leaf.records.last() else {
                continue;
            };
            leaf.records.iter().copied().try_for_each(each)?;
            *from = Bound::Excluded(last.key().clone());
            return Continue(());
        }
        Break(())
    }

    fn take_all(&mut self) -> Vec<*mut Record<K, V>> {
        let mut leaves = self
            .records
            .range::<K, _>(Bound::Unbounded, Bound::Unbounded, &Alone);
        let mut all = Vec::new();
        while let Some(leaf) = leaves.next() {
            let addresses = leaf
                .records
                .iter()
                .map(|record| std::ptr::from_ref(*record).addr());
            all.extend(addresses.map(std::ptr::with_exposed_provenance_mut));
        }
        all
    }
}

#[expect(private_interfaces, reason = "the trait cannot be named outside")]
impl<Q, K, V> Lookup<Q, K, V> for Ordered<K, V>
where
    Q: OrderedKey + ?Sized,
    K: OrderedKey + Clone + Borrow<Q> + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    #[inline(always)]
    fn find<'c>(&'c self, key: &Q, claim: &'c Claim<'_>) -> Result<&'c Record<K, V>, Gap> {
        self.records.get(key, claim)
    }

    fn is_key(&self, key: &K, wanted: &Q) -> bool {
        key.borrow() == wanted
    }
}
