//! Engines: kinds of tables, and the operations of a transaction on them. Transactions are written
//! once, for any engine.

pub(super) mod dash;
pub(super) mod plain;
pub(super) mod stored;

use corelay_txn::store::OrderedKey;
use std::hash::Hash;
use std::ops::ControlFlow;

/// A key of a table.
pub(super) trait Key: OrderedKey + Hash + Clone + Send + Sync + 'static {}

impl<K: OrderedKey + Hash + Clone + Send + Sync + 'static> Key for K {}

/// A row of a table.
pub(super) trait Row: Clone + Send + Sync + 'static {}

impl<V: Clone + Send + Sync + 'static> Row for V {}

/// How a table finds its rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// By the hash of the key, for about so many rows.
    Hashed(usize),
    /// In the order of keys, so that ranges can be scanned.
    Sorted,
}

/// A kind of tables.
pub(super) trait Engine: Sized + 'static {
    /// A table.
    type Table<K: Key, V: Row>: Send + Sync + 'static;

    /// The error of a transaction that cannot go on.
    type Stop;

    /// Whether a transaction that stops is undone. If not, it may stop only before it has written.
    const UNDOES: bool;

    /// Makes a table.
    fn table<K: Key, V: Row>(&mut self, name: &str, form: Form) -> Self::Table<K, V>;
}

/// A running transaction on tables of `E`.
pub(super) trait Transaction<E: Engine> {
    /// Shows the row of a key to `f`; None if there is none.
    fn read<K: Key, V: Row, R>(
        &mut self,
        table: &E::Table<K, V>,
        key: &K,
        f: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>, E::Stop>;

    /// Says which rows the transaction is going to touch, for engines that can begin to fetch them.
    fn prefetch<'k, K: Key, V: Row>(
        &mut self,
        _table: &E::Table<K, V>,
        _keys: impl Iterator<Item = &'k K> + Clone,
    ) -> Result<(), E::Stop> {
        Ok(())
    }

    /// Changes the row of a key by `f`; None if there is none.
    fn update<K: Key, V: Row, R>(
        &mut self,
        table: &E::Table<K, V>,
        key: &K,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, E::Stop>;

    /// Inserts a row, unless there is one of the key. Returns whether it did.
    fn insert<K: Key, V: Row>(
        &mut self,
        table: &E::Table<K, V>,
        key: K,
        row: V,
    ) -> Result<bool, E::Stop>;

    /// Removes the row of a key. Returns whether there was one.
    fn remove<K: Key, V: Row>(&mut self, table: &E::Table<K, V>, key: &K) -> Result<bool, E::Stop>;

    /// Shows the rows of a sorted table whose keys are `first` to `last` to `f`, in order, until `f`
    /// breaks.
    fn scan<K: Key, V: Row>(
        &mut self,
        table: &E::Table<K, V>,
        first: &K,
        last: &K,
        f: impl FnMut(&K, &V) -> ControlFlow<()>,
    ) -> Result<(), E::Stop>;

    /// Gives the transaction up.
    fn give_up<T>(&mut self) -> Result<T, E::Stop>;
}
