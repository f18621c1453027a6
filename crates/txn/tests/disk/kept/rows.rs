//! The rows of kept tables are there when the store is opened again.

use super::{by_every_protocol, open, ordered_rows, rows_of};
use crate::faulty::Faulty;
use crate::history::lazy;
use crate::opening::TempDir;
use corelay_txn::store::disk::Options;
use corelay_txn::store::{OrderedTable, Protocol, Silo, Store, Table};
use proptest::prelude::*;
use std::collections::BTreeMap;

by_every_protocol![
    rows_come_back,
    tables_in_memory_do_not,
    transactions_follow_a_map
];

fn rows_come_back<P: Protocol>(protocol: impl Fn() -> P) {
    let dir = TempDir::new(&format!("kept-rows-{}", P::NAME));
    for round in 0..4_u32 {
        let store = Store::open(protocol(), &dir.0).unwrap();
        // Each table is opened as either kind.
        let (hashed, ordered): (Table<u8, u32>, OrderedTable<u8, u32>) = match round % 2 {
            0 => (
                store.kept_table("left").unwrap(),
                store.kept_ordered("right").unwrap(),
            ),
            _ => (
                store.kept_table("right").unwrap(),
                store.kept_ordered("left").unwrap(),
            ),
        };
        let wanted: BTreeMap<_, _> = (0..round).map(|round| (round as u8, round * 10)).collect();
        let mut left = wanted.clone();
        // Updated last by the round before.
        left.insert(100, round);
        let mut right = wanted;
        right.insert(100, round);
        if round > 0 {
            assert_eq!(rows_of(&store, &hashed), left);
            assert_eq!(ordered_rows(&store, &ordered), right);
        }
        let write = store.transact(|tx| {
            let key = round as u8;
            tx.insert(&hashed, key, round * 10)?;
            tx.insert(&ordered, key, round * 10)?;
            tx.put(&hashed, 200, 1)?;
            tx.put(&ordered, 200, 1)?;
            tx.put(&hashed, 100, round)?;
            tx.put(&ordered, 100, round)
        });
        write.unwrap();
        let change = store.transact(|tx| {
            assert!(tx.remove(&hashed, &200)?);
            assert!(tx.remove(&ordered, &200)?);
            // Inserted and removed by one transaction: nothing.
            tx.insert(&ordered, 201, 1)?;
            tx.remove(&ordered, &201)?;
            assert!(tx.update(&hashed, &100, |row| *row += 1)?);
            tx.update(&ordered, &100, |row| *row += 1)
        });
        assert!(change.unwrap());
        // The store is closed: that makes all of it durable.
    }
}

fn tables_in_memory_do_not<P: Protocol>(protocol: impl Fn() -> P) {
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let kept = store.kept_table::<u8, u32>("kept").unwrap();
    let cache = store.table::<u8, u32>("cache").unwrap();
    let write = |tx: &mut corelay_txn::store::Tx<'_, P>| {
        tx.put(&kept, 1, 1)?;
        tx.put(&cache, 1, 1)
    };
    store.transact_durable(write).unwrap().1.wait().unwrap();
    let before = store.report().disk.unwrap().commits;
    let (_, durable) = store.transact_durable(|tx| tx.put(&cache, 2, 2)).unwrap();
    durable.wait().unwrap();
    assert_eq!(store.report().disk.unwrap().commits, before);
    drop(store);
    let store = open(protocol(), &storage, &lazy());
    let cache = store.table::<u8, u32>("cache").unwrap();
    assert!(rows_of(&store, &cache).is_empty());
    let kept = store.kept_table::<u8, u32>("kept").unwrap();
    assert_eq!(rows_of(&store, &kept), BTreeMap::from([(1, 1)]));
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u32),
    Remove(u8),
    /// Closes the store and opens it again.
    Reopen,
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..12_u8;
    let step = prop_oneof![
        6 => (key.clone(), any::<u32>()).prop_map(|(key, row)| Step::Put(key, row)),
        4 => key.prop_map(Step::Remove),
        1 => Just(Step::Reopen),
        1 => Just(Step::Snapshot),
    ];
    prop::collection::vec(step, 1..60)
}

fn transactions_follow_a_map<P: Protocol>(protocol: impl Fn() -> P) {
    let config = ProptestConfig::with_cases(30 * crate::stress());
    proptest!(config, |(steps in steps(), ordered_first in any::<bool>())| {
        let options = Options { segment_size: 512, ..lazy() };
        let storage = Faulty::default();
        let mut map = BTreeMap::new();
        let mut is_ordered = ordered_first;
        let mut opened = Opened::new(open(protocol(), &storage, &options), is_ordered);
        for step in steps {
            match step {
                Step::Put(key, row) => {
                    opened.put(key, row);
                    map.insert(key, row);
                }
                Step::Remove(key) => {
                    prop_assert_eq!(opened.remove(key), map.remove(&key).is_some());
                }
                Step::Reopen => {
                    drop(opened);
                    is_ordered = !is_ordered;
                    opened = Opened::new(open(protocol(), &storage, &options), is_ordered);
                }
                Step::Snapshot => {
                    let report = opened.store.snapshot().unwrap();
                    prop_assert_eq!(report.entries, map.len() as u64);
                }
            }
            prop_assert_eq!(&opened.rows(), &map);
        }
    });
}

/// A store with one table, of either kind.
struct Opened<P: Protocol> {
    store: Store<P>,
    table: Result<Table<u8, u32>, OrderedTable<u8, u32>>,
}

impl<P: Protocol> Opened<P> {
    fn new(store: Store<P>, is_ordered: bool) -> Self {
        let table = match is_ordered {
            true => Err(store.kept_ordered("numbers").unwrap()),
            false => Ok(store.kept_table("numbers").unwrap()),
        };
        Self { store, table }
    }

    fn put(&self, key: u8, row: u32) {
        let put = self.store.transact(|tx| match &self.table {
            Ok(table) => tx.put(table, key, row),
            Err(table) => tx.put(table, key, row),
        });
        put.unwrap();
    }

    fn remove(&self, key: u8) -> bool {
        let removed = self.store.transact(|tx| match &self.table {
            Ok(table) => tx.remove(table, &key),
            Err(table) => tx.remove(table, &key),
        });
        removed.unwrap()
    }

    fn rows(&self) -> BTreeMap<u8, u32> {
        match &self.table {
            Ok(table) => rows_of(&self.store, table),
            Err(table) => ordered_rows(&self.store, table),
        }
    }
}

/// More rows than the pins of a loading thread, of all sizes.
#[test]
fn many_rows_come_back() {
    let storage = Faulty::default();
    let row = |key: u64| vec![key as u8; key as usize % 700];
    let store = open(Silo, &storage, &lazy());
    let table = store.kept_table::<u64, Vec<u8>>("rows").unwrap();
    for part in 0..20 {
        let put = store.transact(|tx| {
            (part * 250..(part + 1) * 250).try_for_each(|key| tx.put(&table, key, row(key)))
        });
        put.unwrap();
    }
    drop((store, table));
    let store = open(Silo, &storage, &lazy());
    assert_eq!(store.recovered().unwrap().commits, 20);
    let table = store.kept_ordered::<u64, Vec<u8>>("rows").unwrap();
    let rows = store.read_only(|tx| tx.rows(&table, ..)).unwrap();
    assert!(rows.into_iter().eq((0..5_000).map(|key| (key, row(key)))));
}
