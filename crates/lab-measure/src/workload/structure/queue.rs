//! `queue`: a FIFO queue.

use super::{Ledger, SharedStructure, Structure, methods, rivals};
use crate::method::Entry;
use corelay_structures::seq::VecDeque;

impl Structure for VecDeque<u64> {
    const NAME: &'static str = "queue";
    const USUAL_SIZE: &'static str = "1024";
    const USUAL_UPDATES: &'static str = "100";
    const BYTES_PER_KEY: u64 = 16;
    const HAS_KEYS: bool = false;

    fn empty(size: usize) -> Self {
        Self::with_capacity(size)
    }

    fn rivals() -> Vec<Entry<SharedStructure<Self>>> {
        rivals::queue()
    }

    fn methods() -> Vec<Entry<SharedStructure<Self>>> {
        methods()
    }

    fn look(&self, _: u64) -> Option<u64> {
        self.front().copied()
    }

    fn insert(&mut self, key: u64, ledger: &mut Ledger) -> bool {
        self.push_back(key);
        ledger.came(key);
        true
    }

    fn remove(&mut self, _: u64, ledger: &mut Ledger) -> Option<u64> {
        self.pop_front().inspect(|&key| ledger.went(key))
    }

    fn keys(&self) -> impl Iterator<Item = u64> {
        self.iter().copied()
    }
}
