//! Ranges of an ordered table, as a transaction sees them.

use super::error::Abort;
use super::index::ordered::OrderedKey;
use super::ordered::Ordered;
use super::protocol::Protocol;
use super::record::{Record, Row, Version};
use super::table::{Inner, Table};
use super::tx::{Result, Tx};
use super::work::{State, Work};
use std::borrow::Borrow;
use std::ops::ControlFlow::{self, Break};
use std::ops::{Bound, RangeBounds};

/// The direction of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl<P: Protocol> Tx<'_, P> {
    /// Shows the rows whose keys are in `range` to `each`, in ascending order, until it breaks.
    /// Returns what it breaks with.
    ///
    /// The transaction only commits if nobody has put another row into the part of the range that
    /// was shown, or changed one there.
    ///
    /// ```
    /// use corelay_txn::store::{Silo, Store};
    /// use std::ops::ControlFlow::{Break, Continue};
    ///
    /// let store = Store::new(Silo);
    /// let squares = store.ordered::<u64, u64>("squares")?;
    /// store.transact(|tx| (0..100).try_for_each(|n| tx.put(&squares, n, n * n)))?;
    /// let first_above = |tx: &mut corelay_txn::store::Tx<'_, Silo>, limit| {
    ///     tx.range(&squares, 10.., |n, &square| {
    ///         if square > limit { Break(*n) } else { Continue(()) }
    ///     })
    /// };
    /// assert_eq!(store.transact(|tx| first_above(tx, 500))?, Some(23));
    /// assert_eq!(store.transact(|tx| first_above(tx, 10_000))?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store.
    pub fn range<Q, K, V, B>(
        &mut self,
        table: &Table<K, V, Ordered<K, V>>,
        range: impl RangeBounds<Q>,
        each: impl FnMut(&K, &V) -> ControlFlow<B>,
    ) -> Result<Option<B>>
    where
        Q: OrderedKey + ?Sized,
        K: OrderedKey + Clone + Borrow<Q> + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.walk(table, range.start_bound(), range.end_bound(), Way::Up, each)
    }

    /// Shows the rows whose keys are in `range` to `each`, in descending order, until it breaks.
    /// Otherwise as [`range`](Self::range).
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store.
    pub fn range_back<Q, K, V, B>(
        &mut self,
        table: &Table<K, V, Ordered<K, V>>,
        range: impl RangeBounds<Q>,
        each: impl FnMut(&K, &V) -> ControlFlow<B>,
    ) -> Result<Option<B>>
    where
        Q: OrderedKey + ?Sized,
        K: OrderedKey + Clone + Borrow<Q> + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.walk(
            table,
            range.start_bound(),
            range.end_bound(),
            Way::Down,
            each,
        )
    }

    /// The rows whose keys are in `range`, cloned, in ascending order.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store.
    pub fn rows<Q, K, V>(
        &mut self,
        table: &Table<K, V, Ordered<K, V>>,
        range: impl RangeBounds<Q>,
    ) -> Result<Vec<(K, V)>>
    where
        Q: OrderedKey + ?Sized,
        K: OrderedKey + Clone + Borrow<Q> + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let mut rows = Vec::new();
        self.range(table, range, |key, row| {
            rows.push((key.clone(), row.clone()));
            ControlFlow::<()>::Continue(())
        })?;
        Ok(rows)
    }

    fn walk<Q, K, V, B>(
        &mut self,
        table: &Table<K, V, Ordered<K, V>>,
        from: Bound<&Q>,
        to: Bound<&Q>,
        way: Way,
        mut each: impl FnMut(&K, &V) -> ControlFlow<B>,
    ) -> Result<Option<B>>
    where
        Q: OrderedKey + ?Sized,
        K: OrderedKey + Clone + Borrow<Q> + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let inner = &**table.inner();
        let operation = self.operate(inner)?;
        let tx = &mut *operation.tx;
        let mut made = made(&tx.work, inner, (from, to), way);
        let mut leaves = inner.index.range(from, to, &tx.claim);
        loop {
            let leaf = match way {
                Way::Up => leaves.next(),
                Way::Down => leaves.next_back(),
            };
            let Some(leaf) = leaf else { break };
            if tx.store.protocol().checks_absences(tx.is_read_only) {
                tx.work.miss(leaf.gap, &inner.meta);
                if let Err(reason) = tx.store.protocol().missed(&mut tx.work) {
                    tx.doom = Some(reason);
                    return Err(Abort::new(reason));
                }
            }
            for at in 0..leaf.records.len() {
                let record = match way {
                    Way::Up => leaf.records[at],
                    Way::Down => leaf.records[leaf.records.len() - 1 - at],
                };
                while let Some(own) = made.pop_if(|own| way.is_before(own.key(), record.key())) {
                    let write = tx.work.write_of(own.head());
                    let version = write.map(|at| tx.work.writes[at].new);
                    if let Some(Break(end)) = show(own, version, &mut each) {
                        return Ok(Some(end));
                    }
                }
                let version = match tx.work.write_of(record.head()) {
                    Some(write) => tx.work.writes[write].new,
                    None => match tx
                        .store
                        .protocol()
                        .read(&tx.claim, &mut tx.work, record.head())
                    {
                        Ok(version) => version,
                        Err(reason) => {
                            inner.meta.count(reason);
                            tx.doom = Some(reason);
                            return Err(Abort::new(reason));
                        }
                    },
                };
                if let Some(Break(end)) = show(record, Some(version), &mut each) {
                    return Ok(Some(end));
                }
            }
        }
        while let Some(own) = made.pop() {
            let write = tx.work.write_of(own.head());
            let version = write.map(|at| tx.work.writes[at].new);
            if let Some(Break(end)) = show(own, version, &mut each) {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }
}

impl Way {
    /// Whether `key` comes before `other` on this way.
    fn is_before<K: Ord>(self, key: &K, other: &K) -> bool {
        match self {
            Self::Up => key < other,
            Self::Down => key > other,
        }
    }
}

/// The records within bounds that the transaction is going to insert; the next to be shown is the
/// last.
fn made<'r, Q, K, V>(
    work: &Work,
    table: &Inner<K, V, Ordered<K, V>>,
    bounds: (Bound<&Q>, Bound<&Q>),
    way: Way,
) -> Vec<&'r Record<K, V>>
where
    Q: OrderedKey + ?Sized,
    K: OrderedKey + Clone + Borrow<Q> + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    if work.made == 0 {
        return Vec::new();
    }
    let own = work.writes.iter().filter_map(|write| {
        // SAFETY: the record of a write lives until the attempt ends.
        let meta = unsafe { &*write.head }.meta_pointer();
        let is_of_table = write.state == State::Made && std::ptr::eq(meta, &raw const table.meta);
        // SAFETY: a record of this table, whose head is its first field by `repr(C)`. The caller
        // uses it within the attempt.
        is_of_table.then(|| unsafe { &*write.head.cast::<Record<K, V>>() })
    });
    let mut own: Vec<_> = own
        .filter(|own| bounds.contains(own.key().borrow()))
        .collect();
    own.sort_unstable_by(|one, other| match way {
        Way::Up => other.key().cmp(one.key()),
        Way::Down => one.key().cmp(other.key()),
    });
    own
}

/// Shows a row, if there is one in the version.
#[inline(always)]
fn show<K, V, B>(
    record: &Record<K, V>,
    version: Option<*mut Version>,
    each: &mut impl FnMut(&K, &V) -> ControlFlow<B>,
) -> Option<ControlFlow<B>> {
    // SAFETY: a version of the record's table; the transaction is pinned, or it is its own.
    let value = unsafe { Row::<V>::value(version?) }?;
    Some(each(record.key(), value))
}
