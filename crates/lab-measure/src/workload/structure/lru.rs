//! `lru`: a cache that holds `size` keys, and drops the one that was not used for longest.

use super::{Ledger, SharedStructure, Structure, methods};
use crate::method::Entry;
use corelay_structures::seq::LruCache;
use std::num::NonZeroUsize;

impl Structure for LruCache<u64, u64> {
    const NAME: &'static str = "lru";
    const BYTES_PER_KEY: u64 = 96;
    const EVICTS: bool = true;
    const READS_CHANGE: bool = true;

    fn empty(size: usize) -> Self {
        Self::new(NonZeroUsize::new(size).unwrap_or(NonZeroUsize::MIN))
    }

    fn methods() -> Vec<Entry<SharedStructure<Self>>> {
        methods()
    }

    fn look(&self, key: u64) -> Option<u64> {
        self.peek(&key).copied()
    }

    fn read(&mut self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }

    fn insert(&mut self, key: u64, ledger: &mut Ledger) -> bool {
        let gone = self.push(key, key).map(|(gone, _)| gone);
        if gone == Some(key) {
            return false;
        }
        ledger.came(key);
        gone.inspect(|&gone| ledger.went(gone));
        true
    }

    fn remove(&mut self, key: u64, ledger: &mut Ledger) -> Option<u64> {
        self.pop(&key).inspect(|&key| ledger.went(key))
    }

    fn keys(&self) -> impl Iterator<Item = u64> {
        self.iter().map(|(&key, _)| key)
    }
}
