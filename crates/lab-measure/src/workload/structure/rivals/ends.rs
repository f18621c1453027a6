//! Queues and stacks.

use super::Rival;
use corelay_structures::fine::TwoLockQueue;
use corelay_structures::lockfree::{BlockQueue, MsQueue, TreiberStack};
use crossbeam_queue::SegQueue;
use std::iter;

/// Implements [`Rival`] for types with `new`, `push`, `pop` and `is_empty`.
macro_rules! ends {
    ($($type:ty: $new:expr;)*) => {$(
        impl Rival for $type {
            fn empty(_: usize) -> Self {
                $new
            }

            #[inline]
            fn read(&self, _: u64) -> Option<u64> {
                (!self.is_empty()).then_some(1)
            }

            #[inline]
            fn insert(&self, key: u64) -> bool {
                self.push(key);
                true
            }

            #[inline]
            fn remove(&self, _: u64) -> Option<u64> {
                self.pop()
            }

            /// Takes all keys out, and puts them back.
            fn keys(&self) -> Vec<u64> {
                let keys: Vec<u64> = iter::from_fn(|| self.pop()).collect();
                keys.iter().for_each(|&key| self.push(key));
                keys
            }
        }
    )*};
}

ends! {
    TwoLockQueue<u64>: Self::new();
    MsQueue<u64>: Self::new();
    BlockQueue<u64>: Self::new();
    SegQueue<u64>: Self::new();
    TreiberStack<u64, 0>: Self::with_slots();
    TreiberStack<u64>: Self::new();
}
