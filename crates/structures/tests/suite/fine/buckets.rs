//! What closures may and may not do while they have a bucket.

use corelay_structures::fine::BucketMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn message(panics: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(panics)).expect_err("it panics");
    *payload.downcast().expect("a formatted message")
}

#[test]
fn a_closure_may_not_call_its_own_bucket() {
    let map = BucketMap::new(1);
    map.insert(1, 10);
    let refused = message(|| {
        map.update(&1, |_| map.get(&1));
    });
    let wanted = "waiting for a bucket of a `BucketMap` at ";
    assert!(
        refused.contains(wanted) && refused.contains(file!()),
        "{refused}"
    );
    assert!(refused.ends_with("inside a section of a `BucketMap`: this code may not wait"));
    assert_eq!(map.get(&1), Some(10));
}

#[test]
fn a_closure_may_call_a_free_bucket() {
    let (here, there) = (BucketMap::new(1), BucketMap::new(1));
    here.insert(1, 10);
    there.insert(1, 20);
    assert_eq!(
        here.update(&1, |value| std::mem::replace(value, there.get(&1).unwrap())),
        Some(10)
    );
    assert_eq!(here.get(&1), Some(20));
}

#[test]
fn a_panic_of_a_closure_unlocks_the_bucket() {
    let map = BucketMap::new(1);
    map.insert(1, 10);
    let panics = || {
        map.update(&1, |value| {
            *value += 1;
            assert!(*value == 0, "a closure panics");
        });
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    let makes = || map.get_or_insert_with(2, || panic!("no value"), |_| ());
    assert!(catch_unwind(AssertUnwindSafe(makes)).is_err());
    assert_eq!((map.get(&1), map.get(&2)), (Some(11), None));
}

#[test]
fn it_replaces_updates_and_makes_values() {
    let map = BucketMap::with_hasher(3, std::hash::RandomState::new());
    assert_eq!(map.buckets(), 4);
    assert_eq!((map.insert("a", 1), map.insert("a", 2)), (None, Some(1)));
    assert_eq!(map.get_or_insert_with("a", || 0, |value| *value), 2);
    assert_eq!(map.get_or_insert_with("b", || 5, |value| *value), 5);
    assert_eq!(map.update("c", |value| *value += 1), None);
    map.for_each(|_, value| *value *= 10);
    assert_eq!(
        (map.get("a"), map.get("b"), map.contains_key("c")),
        (Some(20), Some(50), false)
    );
    assert_eq!(BucketMap::<u8, u8>::new(0).buckets(), 1);
}

/// One thread at a time has a value, which need not be `Sync`.
#[test]
fn values_need_not_be_sync() {
    let map = BucketMap::new(2);
    map.insert(1, std::cell::Cell::new(0));
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                (0..100).for_each(|_| {
                    map.get_with(&1, |value| value.set(value.get() + 1));
                })
            });
        }
    });
    assert_eq!(map.remove(&1).unwrap().get(), 400);
}
