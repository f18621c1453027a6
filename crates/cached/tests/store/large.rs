//! Values outside of the log that are replaced again and again.

use corelay_cached::store::{Hasher, Properties, Store};

fn put(store: &mut Store, key: &str, value: &[u8]) {
    let hash = store.hash(key.as_bytes());
    let put = store.put(hash, key.as_bytes(), value, Properties::default(), 0);
    put.unwrap_or_else(|full| panic!("{key}: {full}"));
}

fn len(store: &mut Store, key: &str) -> Option<usize> {
    let hash = store.hash(key.as_bytes());
    store
        .get(hash, key.as_bytes(), 0)
        .map(|item| item.value.len())
}

/// A segment is full when its values outside are as large as it is, though it has few records. Such
/// segments must not become more than locations can tell apart, also if each has an item that stays.
#[test]
fn segments_of_large_values_end() {
    let mut store = Store::new(Hasher::default(), 256 << 20, true).unwrap();
    let value = vec![b'x'; 200_000];
    let rounds = 5_000;
    for round in 0..rounds {
        put(&mut store, &format!("small{round}"), b"stays");
        for n in 0..6 {
            let key = format!("large{}", (6 * round + n) % 50);
            put(&mut store, &key, &value);
            assert_eq!(len(&mut store, &key), Some(200_000), "round {round}");
        }
    }
    for round in 0..rounds {
        assert_eq!(len(&mut store, &format!("small{round}")), Some(5));
    }
    for n in 0..50 {
        assert_eq!(len(&mut store, &format!("large{n}")), Some(200_000));
    }
    assert!(store.bytes() <= 256 << 20, "{store:?}");
    assert_eq!(store.counts().evicted, 0);
}

/// A store that may not evict is not full of what has been replaced.
#[test]
fn a_large_value_is_replaced_for_ever_without_evictions() {
    let mut store = Store::new(Hasher::default(), 16 << 20, false).unwrap();
    put(&mut store, "small", b"stays");
    let value = vec![b'x'; 10_000];
    for _ in 0..60_000 {
        put(&mut store, "large", &value);
    }
    assert_eq!(len(&mut store, "small"), Some(5));
    assert_eq!(len(&mut store, "large"), Some(10_000));
    assert!(store.bytes() < 1 << 20, "{store:?}");
}

/// Segments that are nearly all alive make room for others, too: a store with free memory takes more.
#[test]
fn segments_with_few_dead_bytes_are_joined() {
    let mut store = Store::new(Hasher::default(), 256 << 20, false).unwrap();
    let (small, large) = (vec![b's'; 19_000], vec![b'x'; 1_100_000]);
    let rounds = 4_500;
    for round in 0..rounds {
        put(&mut store, &format!("small{round}"), &small);
        put(&mut store, "large", &large);
    }
    for round in 0..rounds {
        assert_eq!(len(&mut store, &format!("small{round}")), Some(19_000));
    }
}
