//! Random operations on a store, and on a map that never forgets.
//!
//! The store may have evicted an item, but what it returns is what was written last, it returns
//! nothing that was removed or has expired, and it keeps to its budget.

use corelay_cached::store::{Hasher, Properties, Store};
use proptest::prelude::*;
use std::collections::HashMap;

const BUDGET: usize = 2 << 20;

#[derive(Clone, Debug)]
enum Step {
    Put {
        key: u16,
        len: usize,
        flags: u32,
        lives: u32,
    },
    Get(u16),
    Touch(u16, u32),
    Remove(u16),
    /// Looks for expired items among so many bytes.
    Search(usize),
    /// Looks for expired items until all have been found.
    Reclaim,
    Pass(u32),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || prop_oneof![0u16..40, 0u16..4000];
    let lives = || prop_oneof![Just(0u32), 1u32..20];
    let len = prop_oneof![
        5 => 0usize..200,
        3 => 200usize..5_000,
        1 => 5_000usize..40_000, // outside of the log
    ];
    let put = (key(), len, prop_oneof![Just(0), any::<u32>()], lives());
    let step = prop_oneof![
        60 => put.prop_map(|(key, len, flags, lives)| Step::Put { key, len, flags, lives }),
        30 => key().prop_map(Step::Get),
        5 => (key(), lives()).prop_map(|(key, lives)| Step::Touch(key, lives)),
        5 => key().prop_map(Step::Remove),
        2 => (1usize..50_000).prop_map(Step::Search),
        1 => Just(Step::Reclaim),
        2 => (1u32..5).prop_map(Step::Pass),
        1 => (0u32..60).prop_map(|n| if n == 0 { Step::Clear } else { Step::Reclaim }),
    ];
    prop::collection::vec(step, 1..3_000)
}

/// A value of `len` bytes that tells which write it is of.
fn value(write: u64, len: usize) -> Vec<u8> {
    write
        .to_le_bytes()
        .iter()
        .copied()
        .cycle()
        .take(len)
        .collect()
}

fn run(steps: &[Step], evicts: bool) {
    let mut store = Store::new(Hasher::default(), BUDGET, evicts).unwrap();
    let mut model: HashMap<u16, (Vec<u8>, Properties)> = HashMap::new();
    let mut now = 10;
    let is_over = |properties: &Properties, now| properties.expiry != 0 && properties.expiry <= now;
    let at = |lives, now| if lives == 0 { 0 } else { now + lives };
    for (write, step) in (1..).zip(steps) {
        let name = |key: u16| format!("key {key}").into_bytes();
        let hash = |key: u16| store.hash(&name(key));
        match *step {
            Step::Put {
                key,
                len,
                flags,
                lives,
            } => {
                let properties = Properties {
                    flags,
                    expiry: at(lives, now),
                    cas: write,
                    ..Properties::default()
                };
                let value = value(write, len);
                let put = store.put(hash(key), &name(key), &value, properties, now);
                if put.is_ok() {
                    model.insert(key, (value, properties));
                } else {
                    assert!(!evicts, "there is room for {len} bytes in {BUDGET}");
                }
            }
            Step::Get(key) => {
                let found = store.get(hash(key), &name(key), now);
                let found = found.map(|item| (item.value.to_vec(), item.properties));
                let written = model
                    .get(&key)
                    .filter(|(_, properties)| !is_over(properties, now));
                match (found, written) {
                    (Some(found), written) => assert_eq!(Some(&found), written),
                    (None, Some(_)) => assert!(evicts, "a store that does not evict forgets"),
                    (None, None) => {}
                }
            }
            Step::Touch(key, lives) => {
                if store.touch(hash(key), &name(key), at(lives, now), now) == Ok(true) {
                    let item = model.get_mut(&key).expect("only what was written is found");
                    assert!(!is_over(&item.1, now));
                    item.1.expiry = at(lives, now);
                }
            }
            Step::Remove(key) => {
                if store.remove(hash(key), &name(key)) {
                    assert!(model.contains_key(&key));
                }
                model.remove(&key);
            }
            Step::Search(bytes) => {
                store.reclaim(bytes, now);
            }
            Step::Reclaim => {
                while store.reclaim(10_000, now) {}
                model.retain(|_, (_, properties)| !is_over(properties, now));
                assert!(store.len() <= model.len());
            }
            Step::Pass(seconds) => now += seconds,
            Step::Clear => {
                store.clear().unwrap();
                model.clear();
                assert!(store.is_empty());
            }
        }
        assert!(
            store.bytes() <= BUDGET,
            "{} bytes of {BUDGET}",
            store.bytes()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 50, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn a_store_returns_what_was_written_last(steps in steps()) {
        run(&steps, true);
    }

    #[test]
    fn a_store_that_does_not_evict_forgets_nothing(steps in steps()) {
        run(&steps, false);
    }
}

/// An old item that goes while room is made for its successor.
#[test]
fn an_item_may_evict_its_predecessor() {
    let mut store = Store::new(Hasher::default(), BUDGET, true).unwrap();
    for round in 0..400u64 {
        for key in 0..round % 13 + 1 {
            let name = format!("key {key}").into_bytes();
            let len = 20_000 + (round as usize * 7919 + key as usize * 104_729) % 300_000;
            let hash = store.hash(&name);
            let value = value(round, len);
            let put = store.put(hash, &name, &value, Properties::default(), 1);
            put.expect("there is room");
            assert_eq!(store.get(hash, &name, 1).unwrap().value, value);
        }
    }
}
