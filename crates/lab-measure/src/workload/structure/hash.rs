//! `hash`: a hash table with chains.

use super::{Ledger, SharedStructure, Structure, methods, rivals};
use crate::method::Entry;
use corelay_structures::seq::ChainedMap;

/// The structure of the workload.
pub type Map = ChainedMap<u64, u64>;

impl Structure for Map {
    const NAME: &'static str = "hash";
    const BYTES_PER_KEY: u64 = 56;

    fn empty(size: usize) -> Self {
        Self::with_capacity(size)
    }

    fn rivals() -> Vec<Entry<SharedStructure<Self>>> {
        rivals::hash()
    }

    fn methods() -> Vec<Entry<SharedStructure<Self>>> {
        methods()
    }

    fn look(&self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }

    fn insert(&mut self, key: u64, ledger: &mut Ledger) -> bool {
        let is_new = Self::insert(self, key, key).is_none();
        if is_new {
            ledger.came(key);
        }
        is_new
    }

    fn remove(&mut self, key: u64, ledger: &mut Ledger) -> Option<u64> {
        Self::remove(self, &key).inspect(|&key| ledger.went(key))
    }

    fn keys(&self) -> impl Iterator<Item = u64> {
        self.iter().map(|(&key, _)| key)
    }
}
