//! corelay's store.

use super::{Engine, Form, Key, Row, Transaction};
use corelay_txn::store::{Abort, Hashed, OrderedTable, Protocol, Store, Table, Tx};
use foldhash::fast::FixedState;
use std::ops::ControlFlow;

/// A table of a store.
pub(in super::super) enum Rows<K: Key, V: Row> {
    Hashed(Table<K, V, Hashed<K, V, FixedState>>),
    Sorted(OrderedTable<K, V>),
}

impl<P: Protocol> Engine for Store<P> {
    type Table<K: Key, V: Row> = Rows<K, V>;
    type Stop = Abort;
    const UNDOES: bool = true;

    fn table<K: Key, V: Row>(&mut self, name: &str, form: Form) -> Rows<K, V> {
        match form {
            Form::Hashed(rows) => self
                .table_with(name, rows, FixedState::default())
                .map(Rows::Hashed),
            Form::Sorted => self.ordered(name).map(Rows::Sorted),
        }
        .expect("the tables of a workload have different names")
    }
}

/// Calls a method of the transaction for either form of table.
macro_rules! on {
    ($table:ident => $call:expr) => {
        match $table {
            Rows::Hashed($table) => $call,
            Rows::Sorted($table) => $call,
        }
    };
}

impl<P: Protocol> Transaction<Store<P>> for Tx<'_, P> {
    #[inline]
    fn read<K: Key, V: Row, R>(
        &mut self,
        table: &Rows<K, V>,
        key: &K,
        f: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>, Abort> {
        on!(table => self.with(table, key, f))
    }

    #[inline]
    fn prefetch<'k, K: Key, V: Row>(
        &mut self,
        table: &Rows<K, V>,
        keys: impl Iterator<Item = &'k K> + Clone,
    ) -> Result<(), Abort> {
        on!(table => Tx::prefetch(self, table, keys))
    }

    #[inline]
    fn update<K: Key, V: Row, R>(
        &mut self,
        table: &Rows<K, V>,
        key: &K,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, Abort> {
        on!(table => self.update_with(table, key, f))
    }

    #[inline]
    fn insert<K: Key, V: Row>(
        &mut self,
        table: &Rows<K, V>,
        key: K,
        row: V,
    ) -> Result<bool, Abort> {
        on!(table => Tx::insert(self, table, key, row))
    }

    #[inline]
    fn remove<K: Key, V: Row>(&mut self, table: &Rows<K, V>, key: &K) -> Result<bool, Abort> {
        on!(table => Tx::remove(self, table, key))
    }

    fn scan<K: Key, V: Row>(
        &mut self,
        table: &Rows<K, V>,
        first: &K,
        last: &K,
        f: impl FnMut(&K, &V) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let Rows::Sorted(table) = table else {
            unreachable!("only sorted tables are scanned");
        };
        self.range(table, first..=last, f).map(drop)
    }

    fn give_up<T>(&mut self) -> Result<T, Abort> {
        self.abort()
    }
}
