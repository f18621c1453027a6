//! Sets and maps against `BTreeSet`, and what many threads leave.

use crate::fine_sets::{Set, for_each_set};
use crate::{Random, cases, stress};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicIsize, Ordering};

for_each_set!({
    answers_like_a_set_of_std: u8,
    threads_leave_what_they_say: u64,
});

#[derive(Debug, Clone)]
enum Call {
    Add(u8),
    Take(u8),
    Has(u8),
}

fn answers_like_a_set_of_std<S: Set<u8>>() {
    let key = 0..24u8;
    let call = prop_oneof![
        key.clone().prop_map(Call::Add),
        key.clone().prop_map(Call::Take),
        key.prop_map(Call::Has),
    ];
    let property = |calls| {
        let (set, mut model) = (S::make(), BTreeSet::new());
        for call in calls {
            match call {
                Call::Add(key) => prop_assert_eq!(set.add(key), model.insert(key)),
                Call::Take(key) => prop_assert_eq!(set.take(&key), model.remove(&key)),
                Call::Has(key) => prop_assert_eq!(set.has(&key), model.contains(&key)),
            }
            prop_assert!(set.keys().iter().eq(&model), "{:?} {:?}", set.keys(), model);
        }
        Ok(())
    };
    let calls = proptest::collection::vec(call, 0..80);
    TestRunner::new(cases(64)).run(&calls, property).unwrap();
}

/// For each key, the calls that say that they added it, less those that say that they removed it,
/// are one if it is there at the end, and else none. More threads than most machines have CPUs.
fn threads_leave_what_they_say<S: Set<u64>>() {
    const KEYS: usize = 16;
    for round in 0..4 * stress() as u64 {
        let set = S::make();
        let kept = [const { AtomicIsize::new(0) }; KEYS];
        std::thread::scope(|s| {
            for thread in 0..8 {
                let (set, kept) = (&set, &kept);
                s.spawn(move || {
                    let mut random = Random::new(8 * round + thread);
                    for _ in 0..1_000 {
                        let key = random.below(KEYS);
                        let change = match random.below(3) {
                            0 => isize::from(set.add(key as u64)),
                            1 => -isize::from(set.take(&(key as u64))),
                            _ => {
                                set.has(&(key as u64));
                                0
                            }
                        };
                        kept[key].fetch_add(change, Ordering::Relaxed);
                    }
                });
            }
        });
        let kept = (0..)
            .zip(kept)
            .filter(|(_, kept)| match kept.load(Ordering::Relaxed) {
                0 => false,
                1 => true,
                other => panic!("added {other} times more than removed"),
            });
        assert!(set.keys().into_iter().eq(kept.map(|(key, _)| key)));
    }
}
