//! `list`: a sorted linked list, in which an operation passes half of the keys.

use super::{Ledger, SharedStructure, Structure, methods, rivals};
use crate::method::Entry;
use corelay_structures::seq::SortedList;

impl Structure for SortedList<u64> {
    const NAME: &'static str = "list";
    const NAME_IF_READ: Option<&'static str> = Some("lazy-list");
    const USUAL_SIZE: &'static str = "1024";
    const BYTES_PER_KEY: u64 = 32;
    const IS_SORTED: bool = true;

    fn empty(_: usize) -> Self {
        Self::new()
    }

    /// From the largest key to the smallest, each of which is then the first.
    fn arrange(keys: &mut [u64]) {
        keys.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn rivals() -> Vec<Entry<SharedStructure<Self>>> {
        rivals::list()
    }

    fn methods() -> Vec<Entry<SharedStructure<Self>>> {
        methods()
    }

    fn look(&self, key: u64) -> Option<u64> {
        self.contains(&key).then_some(key)
    }

    fn insert(&mut self, key: u64, ledger: &mut Ledger) -> bool {
        let is_new = Self::insert(self, key);
        if is_new {
            ledger.came(key);
        }
        is_new
    }

    fn remove(&mut self, key: u64, ledger: &mut Ledger) -> Option<u64> {
        Self::remove(self, &key).inspect(|&key| ledger.went(key))
    }

    fn keys(&self) -> impl Iterator<Item = u64> {
        self.iter().copied()
    }
}
