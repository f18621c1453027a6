//! The sorted list against `BTreeSet`.

use crate::cases;
use corelay_structures::seq::SortedList;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
enum Call {
    Insert(u8),
    Remove(u8),
    Contains(u8),
    Extend(Vec<u8>),
    RemoveEach(Vec<u8>),
    ContainsEach(Vec<u8>),
    PopFirst,
    Retain(u8),
    Clear,
}

/// Keys in any order, or sorted, with repetitions.
fn batch() -> impl Strategy<Value = Vec<u8>> {
    let keys = proptest::collection::vec(0..40u8, 0..20);
    (keys, any::<bool>()).prop_map(|(mut keys, is_sorted)| {
        if is_sorted {
            keys.sort_unstable();
        }
        keys
    })
}

fn call() -> impl Strategy<Value = Call> {
    let key = 0..40u8;
    prop_oneof![
        6 => key.clone().prop_map(Call::Insert),
        4 => key.clone().prop_map(Call::Remove),
        2 => key.prop_map(Call::Contains),
        2 => batch().prop_map(Call::Extend),
        2 => batch().prop_map(Call::RemoveEach),
        2 => batch().prop_map(Call::ContainsEach),
        1 => Just(Call::PopFirst),
        1 => (1..5u8).prop_map(Call::Retain),
        1 => Just(Call::Clear),
    ]
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn every_method_answers_like_a_set_of_std(calls in proptest::collection::vec(call(), 0..60)) {
        let mut list = SortedList::default();
        let mut model = BTreeSet::new();
        for call in calls {
            match call {
                Call::Insert(key) => prop_assert_eq!(list.insert(key), model.insert(key)),
                Call::Remove(key) => prop_assert_eq!(list.remove(&key), model.take(&key)),
                Call::Contains(key) => prop_assert_eq!(list.contains(&key), model.contains(&key)),
                Call::Extend(keys) => {
                    list.extend(keys.clone());
                    model.extend(keys);
                }
                Call::RemoveEach(keys) => {
                    let removed = keys.iter().filter(|key| model.remove(key)).count();
                    prop_assert_eq!(list.remove_each(&keys), removed);
                }
                Call::ContainsEach(keys) => {
                    let found: Vec<_> = list.contains_each(&keys).collect();
                    let wanted: Vec<_> = keys.iter().map(|key| model.contains(key)).collect();
                    prop_assert_eq!(found, wanted);
                }
                Call::PopFirst => prop_assert_eq!(list.pop_first(), model.pop_first()),
                Call::Retain(divisor) => {
                    list.retain(|key| key % divisor == 0);
                    model.retain(|key| key % divisor == 0);
                }
                Call::Clear => {
                    list.clear();
                    model.clear();
                }
            }
            prop_assert_eq!((list.len(), list.is_empty()), (model.len(), model.is_empty()));
            prop_assert_eq!(list.first(), model.first());
            prop_assert!(list.iter().eq(&model) && (&list).into_iter().clone().eq(&model));
            prop_assert_eq!(format!("{list:?}"), format!("{model:?}"));
        }
        prop_assert!(list.into_iter().eq(model));
    }
}

#[test]
fn a_batch_in_order_compares_each_key_a_few_times() {
    use std::cell::Cell;
    use std::cmp::Ordering;

    thread_local!(static COMPARED: Cell<usize> = const { Cell::new(0) });

    #[derive(PartialEq, Eq)]
    struct Key(u32);
    impl PartialOrd for Key {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Key {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    let keys: Vec<Key> = (0..1_000).map(Key).collect();
    let mut list: SortedList<Key> = (0..1_000).map(|n| Key(2 * n)).collect();
    assert_eq!(
        list.contains_each(&keys).filter(|found| *found).count(),
        500
    );
    list.extend((0..1_000).map(|n| Key(2 * n + 1)));
    assert_eq!(list.remove_each(&keys), 1_000);
    assert_eq!(list.len(), 1_000);
    // One by one it would be a million.
    assert!(COMPARED.get() < 20_000, "{}", COMPARED.get());
}
