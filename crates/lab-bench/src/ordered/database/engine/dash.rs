//! The crate `dashmap`: a hash table in shards with a lock each. It has no transactions, so that
//! only a transaction of one request is one.

use super::plain::GivenUp;
use super::{Engine, Form, Key, Row, Transaction};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use foldhash::fast::FixedState;
use std::ops::ControlFlow;

/// The tables of `dashmap`.
pub(in super::super) struct Shards;

impl Engine for Shards {
    type Table<K: Key, V: Row> = DashMap<K, V, FixedState>;
    type Stop = GivenUp;
    const UNDOES: bool = false;

    fn table<K: Key, V: Row>(&mut self, _: &str, form: Form) -> Self::Table<K, V> {
        let Form::Hashed(rows) = form else {
            unreachable!("a workload without ranges");
        };
        DashMap::with_capacity_and_hasher(rows, FixedState::default())
    }
}

impl Transaction<Self> for Shards {
    #[inline]
    fn read<K: Key, V: Row, R>(
        &mut self,
        table: &DashMap<K, V, FixedState>,
        key: &K,
        f: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>, GivenUp> {
        Ok(table.get(key).map(|row| f(&row)))
    }

    #[inline]
    fn update<K: Key, V: Row, R>(
        &mut self,
        table: &DashMap<K, V, FixedState>,
        key: &K,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, GivenUp> {
        Ok(table.get_mut(key).map(|mut row| f(&mut row)))
    }

    fn insert<K: Key, V: Row>(
        &mut self,
        table: &DashMap<K, V, FixedState>,
        key: K,
        row: V,
    ) -> Result<bool, GivenUp> {
        match table.entry(key) {
            Entry::Vacant(place) => drop(place.insert(row)),
            Entry::Occupied(_) => return Ok(false),
        }
        Ok(true)
    }

    fn remove<K: Key, V: Row>(
        &mut self,
        table: &DashMap<K, V, FixedState>,
        key: &K,
    ) -> Result<bool, GivenUp> {
        Ok(table.remove(key).is_some())
    }

    fn scan<K: Key, V: Row>(
        &mut self,
        _: &DashMap<K, V, FixedState>,
        _: &K,
        _: &K,
        _: impl FnMut(&K, &V) -> ControlFlow<()>,
    ) -> Result<(), GivenUp> {
        unreachable!("a workload without ranges")
    }

    fn give_up<T>(&mut self) -> Result<T, GivenUp> {
        Err(GivenUp)
    }
}
