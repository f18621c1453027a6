//! Random transactions, one after the other, against a `BTreeMap`.

use corelay_clock::Logical;
use corelay_txn::store::{Mvcc, Occ, Protocol, Reason, Silo, Store, TicToc};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

#[derive(Debug, Clone)]
enum Step {
    Get(u8),
    Insert(u8, u32),
    Put(u8, u32),
    Update(u8, u32),
    Remove(u8),
    Rows(u8, u8),
    /// From the highest key down, so many rows.
    Last(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..40_u8;
    prop_oneof![
        key.clone().prop_map(Step::Get),
        (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
        (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Put(key, value)),
        (key.clone(), any::<u32>()).prop_map(|(key, value)| Step::Update(key, value)),
        key.clone().prop_map(Step::Remove),
        (key.clone(), key.clone()).prop_map(|(from, to)| Step::Rows(from, to)),
        (key, 1..5_u8).prop_map(|(to, count)| Step::Last(to, count)),
    ]
}

/// A transaction: its steps, and whether it commits.
fn transactions() -> impl Strategy<Value = Vec<(Vec<Step>, bool)>> {
    let one = (
        prop::collection::vec(step(), 1..12),
        prop::bool::weighted(0.8),
    );
    prop::collection::vec(one, 1..40)
}

fn against_a_map<P: Protocol>(store: &Store<P>, transactions: Vec<(Vec<Step>, bool)>) {
    let hashed = store.table::<u8, u32>("hashed").unwrap();
    let ordered = store.ordered::<u8, u32>("ordered").unwrap();
    let mut map = BTreeMap::new();
    for (steps, commits) in transactions {
        let mut inside = map.clone();
        let ended = store.transact(|tx| {
            for step in &steps {
                match *step {
                    Step::Get(key) => {
                        assert_eq!(tx.get(&hashed, &key)?, inside.get(&key).copied());
                        assert_eq!(tx.get(&ordered, &key)?, inside.get(&key).copied());
                    }
                    Step::Insert(key, value) => {
                        let is_new = !inside.contains_key(&key);
                        assert_eq!(tx.insert(&hashed, key, value)?, is_new);
                        assert_eq!(tx.insert(&ordered, key, value)?, is_new);
                        inside.entry(key).or_insert(value);
                    }
                    Step::Put(key, value) => {
                        tx.put(&hashed, key, value)?;
                        tx.put(&ordered, key, value)?;
                        inside.insert(key, value);
                    }
                    Step::Update(key, value) => {
                        let was = inside.get(&key).copied();
                        let change = |row: &mut u32| std::mem::replace(row, value);
                        assert_eq!(tx.update_with(&hashed, &key, change)?, was);
                        assert_eq!(tx.update_with(&ordered, &key, change)?, was);
                        inside.entry(key).and_modify(|row| *row = value);
                    }
                    Step::Remove(key) => {
                        let was_there = inside.remove(&key).is_some();
                        assert_eq!(tx.remove(&hashed, &key)?, was_there);
                        assert_eq!(tx.remove(&ordered, &key)?, was_there);
                    }
                    Step::Rows(from, to) => {
                        let wanted: Vec<_> = inside
                            .iter()
                            .filter(|(key, _)| (from..=to).contains(*key))
                            .map(|(key, value)| (*key, *value))
                            .collect();
                        assert_eq!(tx.rows(&ordered, from..=to)?, wanted);
                    }
                    Step::Last(to, count) => {
                        let wanted: Vec<_> = inside.range(..to).rev().take(count.into()).collect();
                        let mut found = Vec::new();
                        tx.range_back(&ordered, ..to, |key, value| {
                            found.push((*key, *value));
                            if found.len() == usize::from(count) {
                                ControlFlow::Break(())
                            } else {
                                ControlFlow::Continue(())
                            }
                        })?;
                        let found: Vec<_> = found.iter().map(|(key, value)| (key, value)).collect();
                        assert_eq!(found, wanted);
                    }
                }
            }
            if commits { Ok(()) } else { tx.abort() }
        });
        match ended {
            Ok(()) => map = inside,
            Err(abort) => assert_eq!((abort.reason(), commits), (Reason::Explicit, false)),
        }
    }
    let all = store.read_only(|tx| tx.rows(&ordered, ..)).unwrap();
    assert!(all.into_iter().eq(map));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn silo(transactions in transactions()) {
        against_a_map(&Store::new(Silo), transactions);
    }

    #[test]
    fn tictoc(transactions in transactions()) {
        against_a_map(&Store::new(TicToc), transactions);
    }

    #[test]
    fn occ(transactions in transactions()) {
        against_a_map(&Store::new(Occ::new(Logical::new())), transactions);
    }

    #[test]
    fn mvcc(transactions in transactions()) {
        against_a_map(&Store::new(Mvcc::new(Logical::new())), transactions);
    }
}
