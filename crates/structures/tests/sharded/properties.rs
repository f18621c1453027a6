//! Sequences of calls, against the maps of `std`.

use crate::support::{block_on, dedicated, flat};
use corelay_delegate::{Team, Trustees, barrier};
use corelay_structures::sharded::{Sharded, ShardedMap};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::LazyLock;

static DEDICATED: LazyLock<Trustees> = LazyLock::new(|| dedicated(2));
static FLAT: LazyLock<Team> = LazyLock::new(|| flat(3));

/// The form of a call.
#[derive(Clone, Copy, Debug)]
enum Form {
    Waits,
    Future,
    Callback,
}

#[derive(Clone, Debug)]
enum Operation {
    Get(Form, String),
    Insert(Form, String, u32),
    Remove(Form, String),
    Update(Form, String, u32),
    UpdateOrInsert(Form, String, u32),
    GetOrInsert(String, u32),
    GetMany(Form, Vec<String>),
    InsertMany(Form, Vec<(String, u32)>),
    RemoveMany(Vec<String>),
    UpdateMany(Vec<String>, u32),
    Retain(u32),
    Sum,
    Clear,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    use Operation as O;
    let form = || prop_oneof![Just(Form::Waits), Just(Form::Future), Just(Form::Callback)];
    let key = || "[a-e]{1,2}";
    let keys = || prop::collection::vec(key(), 0..12);
    let value = || 0u32..100;
    let entry = || (form(), key(), value());
    let operation = prop_oneof![
        4 => (form(), key()).prop_map(|(form, key)| O::Get(form, key)),
        8 => entry().prop_map(|(form, key, value)| O::Insert(form, key, value)),
        2 => (form(), key()).prop_map(|(form, key)| O::Remove(form, key)),
        4 => entry().prop_map(|(form, key, by)| O::Update(form, key, by)),
        4 => entry().prop_map(|(form, key, by)| O::UpdateOrInsert(form, key, by)),
        2 => (key(), value()).prop_map(|(key, value)| O::GetOrInsert(key, value)),
        3 => (form(), keys()).prop_map(|(form, keys)| O::GetMany(form, keys)),
        3 => (form(), prop::collection::vec((key(), value()), 0..12))
            .prop_map(|(form, entries)| O::InsertMany(form, entries)),
        2 => keys().prop_map(O::RemoveMany),
        2 => (keys(), value()).prop_map(|(keys, by)| O::UpdateMany(keys, by)),
        1 => value().prop_map(O::Retain),
        1 => Just(O::Sum),
        1 => Just(O::Clear),
    ];
    prop::collection::vec(operation, 0..60)
}

/// The result that a call gives to its callback.
fn called_back<R: 'static>(call: impl FnOnce(Box<dyn FnOnce(R)>)) -> R {
    let result = Rc::new(RefCell::new(None));
    let note = Rc::clone(&result);
    call(Box::new(move |r| *note.borrow_mut() = Some(r)));
    barrier().expect("nothing panics");
    result.take().expect("the callback has run")
}

fn add(by: u32) -> impl Fn(&mut u32) -> u32 + Copy + Send + Sync + 'static {
    move |n| {
        *n += by;
        *n
    }
}

fn check_map(trustees: &Trustees, shards: usize, operations: &[Operation]) -> TestCaseResult {
    let sharded = ShardedMap::with_shards(trustees, shards);
    let mut map = HashMap::new();
    for operation in operations.iter().cloned() {
        match operation {
            Operation::Get(form, key) => {
                let expected = map.get(&key).copied();
                let got = match form {
                    Form::Waits => sharded.get(key.as_str()),
                    Form::Future => block_on(sharded.get_async(key)).expect("well"),
                    Form::Callback => called_back(|then| sharded.get_then(key, then)),
                };
                prop_assert_eq!(got, expected);
            }
            Operation::Insert(form, key, value) => {
                let expected = map.insert(key.clone(), value);
                let before = match form {
                    Form::Waits => sharded.insert(key, value),
                    Form::Future => block_on(sharded.insert_async(key, value)).expect("well"),
                    Form::Callback => called_back(|then| sharded.insert_then(key, value, then)),
                };
                prop_assert_eq!(before, expected);
            }
            Operation::Remove(form, key) => {
                let expected = map.remove(&key);
                let before = match form {
                    Form::Waits => sharded.remove(key.as_str()),
                    Form::Future => block_on(sharded.remove_async(key)).expect("well"),
                    Form::Callback => called_back(|then| sharded.remove_then(key, then)),
                };
                prop_assert_eq!(before, expected);
            }
            Operation::Update(form, key, by) => {
                let expected = map.get_mut(&key).map(add(by));
                let now = match form {
                    Form::Waits => sharded.update(key.as_str(), add(by)),
                    Form::Future => block_on(sharded.update_async(key, add(by))).expect("well"),
                    Form::Callback => called_back(|then| sharded.update_then(key, add(by), then)),
                };
                prop_assert_eq!(now, expected);
            }
            Operation::UpdateOrInsert(form, key, by) => {
                let expected = map.get_mut(&key).map(add(by));
                map.entry(key.clone()).or_insert(by);
                let now = match form {
                    Form::Waits => sharded.update_or_insert(key, add(by), by),
                    Form::Future => {
                        block_on(sharded.update_or_insert_async(key, add(by), by)).expect("well")
                    }
                    Form::Callback => called_back(|then| {
                        sharded.update_or_insert_then(key, add(by), by, then);
                    }),
                };
                prop_assert_eq!(now, expected);
            }
            Operation::GetOrInsert(key, value) => {
                let expected = *map.entry(key.clone()).or_insert(value);
                prop_assert_eq!(sharded.get_or_insert_with(key, || value), expected);
            }
            Operation::GetMany(form, keys) => {
                let expected: Vec<_> = keys.iter().map(|key| map.get(key).copied()).collect();
                let got = match form {
                    Form::Waits => sharded.get_many(keys.iter().map(String::as_str)),
                    Form::Future => block_on(sharded.get_many_async(keys)).expect("well"),
                    Form::Callback => called_back(|then| sharded.get_many_then(keys, then)),
                };
                prop_assert_eq!(got, expected);
            }
            Operation::InsertMany(form, entries) => {
                let insert = |(key, value): &(String, u32)| map.insert(key.clone(), *value);
                let expected: Vec<_> = entries.iter().map(insert).collect();
                let before = match form {
                    Form::Waits => sharded.insert_many(entries),
                    Form::Future => block_on(sharded.insert_many_async(entries)).expect("well"),
                    Form::Callback => called_back(|then| sharded.insert_many_then(entries, then)),
                };
                prop_assert_eq!(before, expected);
            }
            Operation::RemoveMany(keys) => {
                let expected: Vec<_> = keys.iter().map(|key| map.remove(key)).collect();
                prop_assert_eq!(sharded.remove_many(&keys), expected);
            }
            Operation::UpdateMany(keys, by) => {
                let update = |key: &String| map.get_mut(key).map(add(by));
                let expected: Vec<_> = keys.iter().map(update).collect();
                prop_assert_eq!(sharded.update_many(&keys, add(by)), expected);
            }
            Operation::Retain(limit) => {
                let mut seen = 0;
                sharded.retain(|_, n| {
                    seen += 1;
                    *n < limit
                });
                prop_assert_eq!(seen, map.len());
                map.retain(|_, n| *n < limit);
            }
            Operation::Sum => {
                let mut all = HashMap::new();
                sharded.for_each(|key, n| assert_eq!(all.insert(key.clone(), *n), None));
                prop_assert_eq!(&all, &map);
            }
            Operation::Clear => {
                sharded.clear();
                map.clear();
            }
        }
        prop_assert_eq!(sharded.len(), map.len());
    }
    Ok(())
}

fn check_tree(
    trustees: &Trustees,
    splits: &[u8],
    batches: &[Vec<(u8, u32)>],
    (start, end): (u8, u8),
) -> TestCaseResult {
    let sharded = Sharded::by_range(trustees, splits.to_owned(), |_| BTreeMap::new());
    let mut map = BTreeMap::new();
    for batch in batches {
        let insert = |&(key, value): &(u8, u32)| map.insert(key, value);
        let expected: Vec<_> = batch.iter().map(insert).collect();
        let before = sharded.apply_many(
            batch,
            |entry| &entry.0,
            |shard, &(key, value)| shard.insert(key, value),
        );
        prop_assert_eq!(before, expected);
    }
    let (mut all, mut some) = (Vec::new(), Vec::new());
    sharded.for_each_shard(|shard| all.extend(shard.clone()));
    prop_assert!(all.iter().copied().eq(map.clone()), "in order");
    let range = || start.min(end)..end;
    sharded.for_each_shard_in(range(), |shard| {
        some.extend(shard.range(range()).map(|(key, value)| (*key, *value)));
    });
    prop_assert!(
        some.into_iter()
            .eq(map.range(range()).map(|(k, v)| (*k, *v)))
    );

    let keys: Vec<u8> = (0..60).collect();
    let get = |shard: &mut BTreeMap<u8, u32>, key: u8| shard.get(&key).copied();
    let expected: Vec<_> = keys.iter().map(|key| map.get(key).copied()).collect();
    let asked = sharded.apply_many_async(keys.clone(), |key| key, get);
    let told = called_back(|then| sharded.apply_many_then(keys, |key| key, get, then));
    prop_assert_eq!(&block_on(asked).expect("nothing panics"), &expected);
    prop_assert_eq!(&told, &expected);

    prop_assert_eq!(sharded.len(), map.len());
    sharded.clear();
    prop_assert!(sharded.is_empty());
    Ok(())
}

/// Runs `check` on a member of a flat team.
fn on_member(check: impl Fn() -> TestCaseResult + Sync) -> TestCaseResult {
    let results = FLAT.run(|me| if me.number() == 1 { check() } else { Ok(()) });
    results.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_sharded_map_is_a_map(shards in 1usize..6, operations in operations()) {
        check_map(&DEDICATED, shards, &operations)?;
        on_member(|| check_map(&FLAT, shards, &operations))?;
    }

    #[test]
    fn a_sharded_tree_is_a_tree(
        splits in prop::collection::btree_set(0u8..60, 0..5),
        batches in prop::collection::vec(prop::collection::vec((0u8..60, any::<u32>()), 0..20), 0..4),
        range in (0u8..70, 0u8..70),
    ) {
        let splits: Vec<_> = splits.into_iter().collect();
        check_tree(&DEDICATED, &splits, &batches, range)?;
        on_member(|| check_tree(&FLAT, &splits, &batches, range))?;
    }
}
