//! `skip-list`: a skip list, a sorted map.

use super::{Ledger, SharedStructure, Structure, methods, rivals};
use crate::method::Entry;
use corelay_structures::seq::SkipList;

impl Structure for SkipList<u64, u64> {
    const NAME: &'static str = "skip-list";
    const BYTES_PER_KEY: u64 = 64;
    const IS_SORTED: bool = true;

    fn empty(_: usize) -> Self {
        Self::new()
    }

    fn rivals() -> Vec<Entry<SharedStructure<Self>>> {
        rivals::skip_list()
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
