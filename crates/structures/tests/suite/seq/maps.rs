//! The maps against `BTreeMap`: one body for all of them.

use crate::cases;
use corelay_structures::seq::{ChainedMap, SearchTree, SkipList};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Debug, Clone)]
enum Call {
    Insert(u8, u32),
    Remove(u8),
    Get(u8),
    Change(u8),
    GetOrInsert(u8, u32),
    Extend(Vec<(u8, u32)>),
    Retain(u8),
    Clear,
    Rebuild,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let key = 0..40u8;
    let entry = (key.clone(), any::<u32>());
    let call = prop_oneof![
        6 => entry.clone().prop_map(|(key, value)| Call::Insert(key, value)),
        6 => key.clone().prop_map(Call::Remove),
        2 => key.clone().prop_map(Call::Get),
        2 => key.prop_map(Call::Change),
        2 => entry.clone().prop_map(|(key, value)| Call::GetOrInsert(key, value)),
        2 => proptest::collection::vec(entry, 0..20).prop_map(Call::Extend),
        1 => (1..5u8).prop_map(Call::Retain),
        1 => Just(Call::Clear),
        1 => Just(Call::Rebuild),
    ];
    proptest::collection::vec(call, 0..80)
}

type Model = BTreeMap<Box<str>, u32>;

/// A key that is borrowed for look-ups.
fn name(key: u8) -> Box<str> {
    format!("{key:03}").into()
}

/// Whether the entries, in order if the map has one, are the model's.
fn is_like(mut entries: Vec<(Box<str>, u32)>, model: &Model, is_sorted: bool) -> bool {
    if !is_sorted {
        entries.sort();
    }
    entries.into_iter().eq(model.clone())
}

/// A test that makes the calls on a map and on the model.
macro_rules! answers_like_a_map_of_std {
    ($test:ident, $map:ty, is_sorted: $is_sorted:expr, $more:expr) => {
        proptest! {
            #![proptest_config(cases(32))]

            #[test]
            fn $test(calls in calls()) {
                let mut map = <$map>::default();
                let mut model = Model::new();
                let more: fn(&mut $map, &mut Model) -> Result<(), TestCaseError> = $more;
                for call in calls {
                    match call {
                        Call::Insert(key, value) => {
                            prop_assert_eq!(
                                map.insert(name(key), value),
                                model.insert(name(key), value)
                            );
                        }
                        Call::Remove(key) => {
                            prop_assert_eq!(map.remove(&*name(key)), model.remove(&*name(key)));
                        }
                        Call::Get(key) => {
                            let key = &*name(key);
                            prop_assert_eq!(map.get(key), model.get(key));
                            prop_assert_eq!(map.contains_key(key), model.contains_key(key));
                        }
                        Call::Change(key) => {
                            let values = (map.get_mut(&*name(key)), model.get_mut(&*name(key)));
                            prop_assert_eq!(&values.0, &values.1);
                            if let (Some(value), Some(wanted)) = values {
                                *value /= 2;
                                *wanted /= 2;
                            }
                        }
                        Call::GetOrInsert(key, value) => {
                            let found = map.get_or_insert_with(name(key), || value);
                            let wanted = model.entry(name(key)).or_insert(value);
                            prop_assert_eq!(&found, &wanted);
                            *found /= 2;
                            *wanted /= 2;
                        }
                        Call::Extend(entries) => {
                            let entries = entries.iter().map(|(key, value)| (name(*key), *value));
                            map.extend(entries.clone());
                            model.extend(entries);
                        }
                        Call::Retain(divisor) => {
                            let keep = |key: &Box<str>, value: &mut u32| {
                                *value /= 2;
                                key.as_bytes()[2] % divisor == 0
                            };
                            let mut seen = Vec::new();
                            map.retain(|key, value| {
                                seen.push((key.clone(), *value));
                                keep(key, value)
                            });
                            seen.sort();
                            prop_assert!(seen.into_iter().eq(model.clone()), "each once");
                            model.retain(keep);
                        }
                        Call::Clear => {
                            map.clear();
                            model.clear();
                        }
                        Call::Rebuild => map = map.into_iter().collect(),
                    }
                    prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                    let entries = map.iter().map(|(key, value)| (key.clone(), *value)).collect();
                    prop_assert!(is_like(entries, &model, $is_sorted), "{:?} {:?}", map, model);
                    let clone: Vec<_> = map.iter().clone().collect();
                    prop_assert_eq!(clone, (&map).into_iter().collect::<Vec<_>>());
                    more(&mut map, &mut model)?;
                }
                prop_assert!(is_like(map.into_iter().collect(), &model, $is_sorted));
            }
        }
    };
}

/// What sorted maps have beyond the others.
macro_rules! in_order {
    () => {
        |map, model| {
            prop_assert_eq!(map.first_key_value(), model.first_key_value());
            prop_assert_eq!(format!("{map:?}"), format!("{model:?}"));
            for from in ["", "007", "0070", "020", "1"] {
                let wanted = model.iter().filter(|(key, _)| &***key >= from);
                prop_assert!(map.iter_from(from).eq(wanted), "from {}", from);
            }
            if map.len() % 7 == 6 {
                prop_assert_eq!(map.pop_first(), model.pop_first());
            }
            Ok(())
        }
    };
}

answers_like_a_map_of_std!(tree, SearchTree<Box<str>, u32>, is_sorted: true, in_order!());
answers_like_a_map_of_std!(skip_list, SkipList<Box<str>, u32>, is_sorted: true, in_order!());
answers_like_a_map_of_std!(
    chained,
    ChainedMap<Box<str>, u32>,
    is_sorted: false,
    has_room
);
answers_like_a_map_of_std!(
    chained_with_collisions,
    ChainedMap<Box<str>, u32, BuildHasherDefault<Length>>,
    is_sorted: false,
    has_room
);

/// Puts nearly all keys into one bucket.
#[derive(Default)]
struct Length(u64);

impl Hasher for Length {
    fn write(&mut self, bytes: &[u8]) {
        self.0 += bytes.iter().filter(|byte| **byte == b'3').count() as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn has_room<S>(
    map: &mut ChainedMap<Box<str>, u32, S>,
    _model: &mut Model,
) -> Result<(), TestCaseError> {
    prop_assert!(map.len() <= map.buckets());
    prop_assert!(map.buckets() == 0 || map.buckets().is_power_of_two());
    Ok(())
}

#[test]
fn a_chained_map_of_any_capacity_finds_its_keys_after_it_has_doubled() {
    for capacity in 0..5 {
        let mut map = ChainedMap::with_capacity(capacity);
        for key in 0..100 {
            assert_eq!(map.insert(key, key), None);
            for known in 0..=key {
                assert_eq!(map.get(&known), Some(&known), "capacity {capacity}");
            }
        }
    }
}

#[test]
fn a_chained_map_has_room_for_its_capacity() {
    let mut map = ChainedMap::with_capacity_and_hasher(100, RandomState::new());
    let buckets = map.buckets();
    map.extend((0..100).map(|n| (n, n)));
    assert_eq!((map.buckets(), buckets), (128, 128));
    assert_eq!(ChainedMap::<u8, u8>::with_capacity(0).buckets(), 0);
    map.clear();
    assert_eq!((map.buckets(), map.len()), (128, 0));
    map.extend((0..129).map(|n| (n, n)));
    assert_eq!(map.buckets(), 256);
}

#[test]
fn a_skip_list_searches_in_few_comparisons() {
    use std::cell::Cell;
    use std::cmp::Ordering;

    #[derive(PartialEq, Eq)]
    struct Key<'a>(u32, &'a Cell<u32>);
    impl PartialOrd for Key<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Key<'_> {
        fn cmp(&self, other: &Self) -> Ordering {
            self.1.set(self.1.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    let compared = Cell::new(0);
    // In ascending order, which makes a list of a search tree.
    let mut list: SkipList<_, _> = (0..1_000).map(|n| (Key(n, &compared), n)).collect();
    compared.set(0);
    for n in 0..1_000 {
        assert_eq!(list.get(&Key(n, &compared)), Some(&n));
    }
    // About 4 per level, on log₄ 1,000 = 5 levels.
    assert!(compared.get() < 40 * 1_000, "{}", compared.get());
    // Slots are used again.
    for round in 0..2 {
        for n in 0..1_000 {
            assert_eq!(list.remove(&Key(n, &compared)), Some(n + round));
            assert_eq!(list.insert(Key(n, &compared), n + round + 1), None);
        }
    }
    assert_eq!(list.len(), 1_000);
}
