//! The search for expired items, a part at a time.

use corelay_cached::store::{Hasher, Properties, Store};

/// A store with a segment of 1,000 items that expire at second 20, but for the first 100, which expire
/// at 1,000.
fn store() -> Store {
    let mut store = Store::new(Hasher::default(), 64 << 20, true).unwrap();
    for n in 0..1_000 {
        let key = key(n);
        let properties = Properties {
            expiry: if n < 100 { 1_000 } else { 20 },
            ..Properties::default()
        };
        let hash = store.hash(&key);
        store.put(hash, &key, &[0; 80], properties, 10).unwrap();
    }
    store
}

fn key(n: usize) -> Vec<u8> {
    format!("key {n}").into_bytes()
}

#[test]
fn a_part_of_a_segment_is_searched_at_a_time() {
    let mut store = store();
    assert!(!store.reclaim(20_000, 19), "nothing is due");
    let mut parts = 0;
    while store.reclaim(20_000, 20) {
        parts += 1;
        // A record of such an item has between 80 and 160 bytes.
        let reclaimed = store.counts().reclaimed;
        assert!(reclaimed <= parts * 250, "{reclaimed} in {parts} parts");
    }
    assert!(parts >= 4, "{parts} parts");
    assert_eq!(store.counts().reclaimed, 900);
    assert_eq!(store.len(), 100);
}

#[test]
fn an_expiry_that_is_set_behind_the_search_is_found() {
    let mut store = store();
    assert!(store.reclaim(50_000, 20));
    let first = key(0);
    let hash = store.hash(&first);
    assert_eq!(store.touch(hash, &first, 25, 20), Ok(true));
    while store.reclaim(50_000, 20) {}
    assert_eq!(store.len(), 100);
    assert!(!store.reclaim(50_000, 24));
    assert_eq!(store.len(), 100);
    while store.reclaim(50_000, 25) {}
    assert_eq!(store.len(), 99);
}
