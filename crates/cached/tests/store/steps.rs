//! What one write does to make room: it moves and evicts some other items, not a whole segment of them.

use corelay_cached::store::{Hasher, Properties, Store};

const BUDGET: usize = 16 << 20;

/// The most items that are moved or evicted for a small one: 4 KiB of them, of 44 bytes. A segment has
/// 1,456.
const MOST: u64 = 100;

/// A full store of items of 32 bytes, the number of items that were written, and the most others that were
/// moved or evicted for one of them.
struct Full {
    store: Store,
    written: u32,
    most: u64,
}

impl Full {
    fn new() -> Self {
        let store = Store::new(Hasher::default(), BUDGET, true).unwrap();
        let mut full = Self {
            store,
            written: 0,
            most: 0,
        };
        while full.store.counts().evicted == 0 {
            full.put(32);
        }
        full
    }

    fn handled(&self) -> u64 {
        let counts = self.store.counts();
        counts.moved + counts.evicted + counts.reclaimed
    }

    fn put(&mut self, len: usize) {
        let (key, before) = (self.written.to_le_bytes(), self.handled());
        self.written += 1;
        let (hash, value) = (self.store.hash(&key), vec![0; len]);
        let put = self
            .store
            .put(hash, &key, &value, Properties::default(), 10);
        assert_eq!(put, Ok(()));
        assert!(self.store.bytes() <= BUDGET);
        self.most = self.most.max(self.handled() - before);
    }

    fn put_small(&mut self, items: usize) {
        for _ in 0..items {
            self.put(32);
        }
    }

    /// Asks for all items that are there so often that none goes before another one of them.
    fn ask_for_all(&mut self) {
        for n in 0..self.written {
            let key = n.to_le_bytes();
            let hash = self.store.hash(&key);
            for _ in 0..4 {
                self.store.get(hash, &key, 10);
            }
        }
    }
}

#[test]
fn a_write_does_not_wait_for_a_segment() {
    let mut full = Full::new();
    full.put_small(100_000);
    assert!(full.most <= MOST, "{} items for one", full.most);
}

#[test]
fn a_write_does_not_wait_although_all_items_are_asked_for() {
    let mut full = Full::new();
    for _ in 0..5 {
        full.ask_for_all();
        full.put_small(20_000);
    }
    assert!(full.most <= MOST, "{} items for one", full.most);
}

#[test]
fn a_large_value_waits_for_about_its_own_size() {
    let mut full = Full::new();
    for _ in 0..20 {
        full.ask_for_all();
        full.most = 0;
        full.put(500_000);
        let bytes = full.most * 48;
        assert!(bytes <= 5 * 500_000, "{bytes} bytes");
        full.most = 0;
        full.put_small(2_000);
        assert!(full.most <= MOST, "{} items for one", full.most);
    }
}

#[test]
fn the_memory_of_a_cleared_store_goes_back_in_parts() {
    let mut full = Full::new();
    let before = full.store.bytes();
    full.store.clear().unwrap();
    assert!(full.store.is_empty());
    let mut parts = 0;
    while full.store.reclaim(1, 10) {
        parts += 1;
    }
    assert!(parts >= 8, "{parts} parts");
    assert!(full.store.bytes() < before / 100);
}

#[test]
fn a_cleared_store_has_room_at_once() {
    let mut full = Full::new();
    for _ in 0..3 {
        full.store.clear().unwrap();
        full.put_small(100_000);
        full.put(5 << 20);
    }
}
