//! Checks of a table's content while nobody writes.

use crate::messages::{Kind, fault};
use crate::table::Table;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that the table has these keys with these values, and nothing else.
pub fn is(table: &Table, expected: &BTreeMap<u64, u64>) {
    keys_are(table, &expected.keys().copied().collect());
    for (&key, &value) in expected {
        let got = table.get(key);
        if got != Some(value) {
            let what = format!("get({key}) answers {got:?} and should answer Some({value})");
            fault(Kind::Value, &what);
        }
    }
}

/// Checks that the table has these keys and no others.
pub fn keys_are(table: &Table, expected: &BTreeSet<u64>) {
    let mut keys = table.keys();
    keys.sort_unstable();
    let twice: Vec<u64> = keys
        .windows(2)
        .filter(|two| two[0] == two[1])
        .map(|two| two[0])
        .collect();
    some(Kind::Duplicates, &twice, "more than once in keys()");
    are(&keys.iter().copied().collect(), expected);
    for &key in expected {
        if table.get(key).is_none() {
            fault(
                Kind::Lost,
                &format!("key {key} is in keys(), and get({key}) does not find it"),
            );
        }
    }
    len_is(table, expected.len());
}

/// Checks that the keys that `keys` has returned are the expected ones.
pub fn are(found: &BTreeSet<u64>, expected: &BTreeSet<u64>) {
    let lost: Vec<u64> = expected.difference(found).copied().collect();
    some(Kind::Lost, &lost, "missing in keys()");
    let surplus: Vec<u64> = found.difference(expected).copied().collect();
    some(Kind::Surplus, &surplus, "in keys() and should not be there");
}

/// Checks the number of keys.
pub fn len_is(table: &Table, is: usize) {
    let len = table.len();
    if len != is {
        fault(
            Kind::Length,
            &format!("len() answers {len}, and there are {is} keys"),
        );
    }
}

fn some(kind: Kind, keys: &[u64], are: &str) {
    match keys {
        [] => {}
        [one] => fault(kind, &format!("key {one} is {are}")),
        [one, ..] => fault(
            kind,
            &format!("{} keys are {are}, {one} for instance", keys.len()),
        ),
    }
}
