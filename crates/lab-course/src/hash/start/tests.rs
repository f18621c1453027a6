//! The first tests. Add your own; the checker has many more.

use std::collections::BTreeSet;
use std::thread;
use table::Table;

#[test]
fn a_value_is_kept_replaced_and_taken_out() {
    let table = Table::with_capacity(4);
    assert_eq!(table.get(7), None);
    assert_eq!(table.insert(7, 70), None);
    assert_eq!(table.insert(7, 71), Some(70));
    assert_eq!(table.get(7), Some(71));
    assert_eq!((table.len(), table.keys()), (1, vec![7]));
    assert_eq!(table.remove(7), Some(71));
    assert_eq!(table.remove(7), None);
    assert!(table.is_empty());
}

#[test]
fn more_keys_than_it_was_made_for() {
    let table = Table::with_capacity(1);
    for key in 0..1_000 {
        assert_eq!(table.insert(key << 32, key), None);
    }
    for key in 0..1_000 {
        assert_eq!(table.get(key << 32), Some(key));
    }
    assert_eq!(table.len(), 1_000);
}

#[test]
fn threads_with_keys_of_their_own() {
    let table = Table::with_capacity(64);
    thread::scope(|scope| {
        for thread in 0..4 {
            let table = &table;
            scope.spawn(move || (0..1_000).for_each(|n| _ = table.insert(4 * n + thread, n)));
        }
    });
    let keys = table.keys();
    assert_eq!((keys.len(), table.len()), (4_000, 4_000));
    let different: BTreeSet<u64> = keys.into_iter().collect();
    assert_eq!(different, (0..4_000).collect());
}
