//! Hit ratios, beside those of an LRU with as many bytes for each item.

use corelay_cached::store::{Hasher, Properties, Store};
use std::collections::{BTreeMap, HashMap};

const KEYS: usize = 200_000;
const BUDGET: usize = 4 << 20;
const VALUE: [u8; 100] = [b'x'; 100];
/// The bytes that the store takes for a key of 12 bytes and that value.
const ITEM: usize = 128;

/// A cache that evicts the least recently used key.
#[derive(Default)]
struct Lru {
    times: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
    time: u64,
}

impl Lru {
    /// Asks for a key, and enters it if it is not there. Returns whether it was.
    fn ask(&mut self, key: u64) -> bool {
        self.time += 1;
        let before = self.times.insert(key, self.time);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.time, key);
        if self.order.len() * ITEM > BUDGET {
            let (_, oldest) = self.order.pop_first().expect("there are many");
            self.times.remove(&oldest);
        }
        before.is_some()
    }
}

fn ask(store: &mut Store, key: u64) -> bool {
    let key = format!("key:{key:08}").into_bytes();
    let hash = store.hash(&key);
    let is_there = store.get(hash, &key, 1).is_some();
    if !is_there {
        let put = store.put(hash, &key, &VALUE, Properties::default(), 1);
        put.expect("there is room for a small item");
    }
    is_there
}

/// The hits of the store and of the LRU, of requests by a Zipf law of 0.9. Before each `every`th one,
/// `len` keys are asked for that nobody asks for again.
fn hits(every: u64, len: u64) -> [u64; 2] {
    let weights = (1..=KEYS).map(|rank| (rank as f64).powf(-0.9));
    let sums: Vec<f64> = weights
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let mut store = Store::new(Hasher::default(), BUDGET, true).unwrap();
    let mut lru = Lru::default();
    let (mut state, mut scanned, mut hits) = (88_172_645_463_325_252u64, 1 << 40, [0, 0]);
    for request in 0..500_000u64 {
        if len > 0 && request % every == 0 {
            for _ in 0..len {
                scanned += 1;
                ask(&mut store, scanned);
                lru.ask(scanned);
            }
        }
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let draw = (state >> 11) as f64 / (1u64 << 53) as f64 * sums[KEYS - 1];
        let key = sums.partition_point(|&sum| sum < draw) as u64;
        hits[0] += u64::from(ask(&mut store, key));
        hits[1] += u64::from(lru.ask(key));
    }
    hits
}

#[test]
fn the_store_hits_more_often_than_an_lru() {
    for (every, len) in [(0, 0), (10_000, 2_000), (20_000, 20_000)] {
        let [store, lru] = hits(every, len);
        assert!(
            store > lru,
            "{store} hits, {lru} with an LRU; {len} of each {every}"
        );
    }
}
