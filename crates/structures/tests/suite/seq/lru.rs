//! The LRU map that is taken from another crate does what the page says of it.

use crate::cases;
use corelay_structures::seq::LruCache;
use proptest::prelude::*;
use std::num::NonZeroUsize;

#[derive(Debug, Clone)]
enum Call {
    Get(u8),
    Peek(u8),
    Push(u8, u32),
    Pop(u8),
    PopLru,
    Resize(NonZeroUsize),
}

fn call() -> impl Strategy<Value = Call> {
    let key = 0..8u8;
    prop_oneof![
        4 => key.clone().prop_map(Call::Get),
        1 => key.clone().prop_map(Call::Peek),
        6 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Call::Push(key, value)),
        2 => key.prop_map(Call::Pop),
        1 => Just(Call::PopLru),
        1 => (1..6usize).prop_map(|n| Call::Resize(NonZeroUsize::new(n).unwrap())),
    ]
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn the_entry_used_least_recently_is_evicted(calls in proptest::collection::vec(call(), 0..80)) {
        let mut map = LruCache::new(NonZeroUsize::new(4).unwrap());
        // The last one was used most recently.
        let mut model: Vec<(u8, u32)> = Vec::new();
        let mut capacity = 4;
        for call in calls {
            let place = |model: &[(u8, u32)], key| model.iter().position(|entry| entry.0 == key);
            match call {
                Call::Get(key) => {
                    let entry = place(&model, key).map(|at| model.remove(at));
                    model.extend(entry);
                    prop_assert_eq!(map.get(&key).copied(), entry.map(|entry| entry.1));
                }
                Call::Peek(key) => {
                    let value = place(&model, key).map(|at| &model[at].1);
                    prop_assert_eq!(map.peek(&key), value);
                    prop_assert_eq!(map.contains(&key), value.is_some());
                }
                Call::Push(key, value) => {
                    let at = place(&model, key).or((model.len() == capacity).then_some(0));
                    let out = at.map(|at| model.remove(at));
                    model.push((key, value));
                    prop_assert_eq!(map.push(key, value), out);
                }
                Call::Pop(key) => {
                    let out = place(&model, key).map(|at| model.remove(at));
                    prop_assert_eq!(map.pop(&key), out.map(|entry| entry.1));
                }
                Call::PopLru => {
                    let out = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(map.pop_lru(), out);
                }
                Call::Resize(size) => {
                    map.resize(size);
                    capacity = size.get();
                    model.drain(..model.len().saturating_sub(capacity));
                }
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert!(map.iter().rev().eq(model.iter().map(|(key, value)| (key, value))));
        }
    }
}
