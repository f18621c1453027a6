//! Plain maps, of which one transaction at a time has the use: behind a mutex or on a trustee.

use super::{Engine, Form, Key, Row, Transaction};
use foldhash::fast::FixedState;
use std::any::Any;
use std::collections::{BTreeMap, HashMap, btree_map, hash_map};
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// The standard library's maps: all tables, by number.
#[derive(Default)]
pub(in super::super) struct Plain(Vec<Box<dyn Any + Send>>);

/// The error of a transaction that gave itself up.
pub(in super::super) struct GivenUp;

/// The number of a table, with its types.
pub(in super::super) struct Number<K, V>(usize, PhantomData<fn(K, V)>);

enum Map<K, V> {
    Hashed(HashMap<K, V, FixedState>),
    Sorted(BTreeMap<K, V>),
}

impl Plain {
    #[inline]
    fn map<K: Key, V: Row>(&mut self, table: &Number<K, V>) -> &mut Map<K, V> {
        let map = self.0[table.0].downcast_mut();
        map.expect("the number of a table is used for that table")
    }
}

impl Engine for Plain {
    type Table<K: Key, V: Row> = Number<K, V>;
    type Stop = GivenUp;
    const UNDOES: bool = false;

    fn table<K: Key, V: Row>(&mut self, _: &str, form: Form) -> Number<K, V> {
        let map: Map<K, V> = match form {
            Form::Hashed(rows) => {
                let hasher = FixedState::default();
                Map::Hashed(HashMap::with_capacity_and_hasher(rows, hasher))
            }
            Form::Sorted => Map::Sorted(BTreeMap::new()),
        };
        self.0.push(Box::new(map));
        Number(self.0.len() - 1, PhantomData)
    }
}

impl Transaction<Self> for Plain {
    #[inline]
    fn read<K: Key, V: Row, R>(
        &mut self,
        table: &Number<K, V>,
        key: &K,
        f: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>, GivenUp> {
        Ok(match self.map(table) {
            Map::Hashed(map) => map.get(key),
            Map::Sorted(map) => map.get(key),
        }
        .map(f))
    }

    #[inline]
    fn update<K: Key, V: Row, R>(
        &mut self,
        table: &Number<K, V>,
        key: &K,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, GivenUp> {
        Ok(match self.map(table) {
            Map::Hashed(map) => map.get_mut(key),
            Map::Sorted(map) => map.get_mut(key),
        }
        .map(f))
    }

    fn insert<K: Key, V: Row>(
        &mut self,
        table: &Number<K, V>,
        key: K,
        row: V,
    ) -> Result<bool, GivenUp> {
        match self.map(table) {
            Map::Hashed(map) => match map.entry(key) {
                hash_map::Entry::Vacant(place) => place.insert(row),
                hash_map::Entry::Occupied(_) => return Ok(false),
            },
            Map::Sorted(map) => match map.entry(key) {
                btree_map::Entry::Vacant(place) => place.insert(row),
                btree_map::Entry::Occupied(_) => return Ok(false),
            },
        };
        Ok(true)
    }

    fn remove<K: Key, V: Row>(&mut self, table: &Number<K, V>, key: &K) -> Result<bool, GivenUp> {
        Ok(match self.map(table) {
            Map::Hashed(map) => map.remove(key).is_some(),
            Map::Sorted(map) => map.remove(key).is_some(),
        })
    }

    fn scan<K: Key, V: Row>(
        &mut self,
        table: &Number<K, V>,
        first: &K,
        last: &K,
        mut f: impl FnMut(&K, &V) -> ControlFlow<()>,
    ) -> Result<(), GivenUp> {
        let Map::Sorted(map) = self.map(table) else {
            unreachable!("only sorted tables are scanned");
        };
        let _ = map.range(first..=last).try_for_each(|(k, v)| f(k, v));
        Ok(())
    }

    fn give_up<T>(&mut self) -> Result<T, GivenUp> {
        Err(GivenUp)
    }
}
