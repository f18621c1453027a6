//! Tests of the ordered index: against a `BTreeMap`, with bad keys, and with threads.

mod keys;
mod misbehaved;
mod sequence;
mod threads;

use super::*;
use crate::store::garbage::Garbage;
use std::ops::Bound;
use std::ptr::NonNull;

/// A pin of the default collector.
pub(super) struct Pinned(crossbeam_epoch::Guard);

pub(super) fn pin() -> Pinned {
    Pinned(crossbeam_epoch::pin())
}

// SAFETY: the collector calls a deferred function after all present guards have ended.
unsafe impl Guard for Pinned {
    fn retire(&self, garbage: Garbage) {
        // SAFETY: it runs after all guards have ended that could reach the block.
        let free = move || unsafe { garbage.free() };
        // SAFETY: `Garbage::new` demands that any thread may free it then.
        unsafe { self.0.defer_unchecked(free) };
    }
}

/// A record that is its key.
#[derive(Debug)]
pub(super) struct Row<K>(pub(super) K);

impl<K: Eq + Sync + 'static> Keyed for Row<K> {
    type Key = K;

    fn key(&self) -> &K {
        &self.0
    }

    fn hash(&self) -> u64 {
        unreachable!("the index is ordered")
    }
}

/// An index that owns its records.
pub(super) struct Rows<K: OrderedKey + Clone + Send + Sync + 'static, const N: usize>(
    pub(super) Ordered<Row<K>, N>,
);

impl<K: OrderedKey + Clone + Send + Sync + 'static, const N: usize> Rows<K, N> {
    pub(super) fn new() -> Self {
        // SAFETY: all guards are pins of the default collector.
        Self(unsafe { Ordered::new() })
    }

    /// Inserts a key. Returns false if it is there already.
    pub(super) fn insert(&self, key: K, guard: &Pinned) -> bool {
        self.change(key, guard).is_some()
    }

    pub(super) fn change(&self, key: K, guard: &Pinned) -> Option<Changed> {
        // Freed by `drop` if the insertion panics or finds another one.
        let row = Box::new(Row(key));
        // SAFETY: `remove` retires the record after it was unlinked, and `drop` frees the others.
        match unsafe { self.0.insert(NonNull::from(&*row), guard) } {
            Inserted::Done(changed) => {
                let _ = Box::into_raw(row);
                Some(changed)
            }
            Inserted::Exists(other) => {
                assert!(other.0 == row.0);
                None
            }
        }
    }

    pub(super) fn remove<Q: OrderedKey + ?Sized>(&self, key: &Q, guard: &Pinned) -> bool
    where
        K: Borrow<Q>,
    {
        let Ok(row) = self.0.get(key, guard) else {
            return false;
        };
        if !self.0.unlink(row, guard) {
            return false;
        }
        // SAFETY: it was unlinked, by this call alone.
        guard.retire(unsafe { Garbage::boxed(ptr::from_ref(row).cast_mut()) });
        true
    }

    pub(super) fn has<Q: OrderedKey + ?Sized>(&self, key: &Q, guard: &Pinned) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.get(key, guard).is_ok()
    }

    /// The keys of a range, both ways.
    pub(super) fn range<Q: OrderedKey + ?Sized>(
        &self,
        from: Bound<&Q>,
        to: Bound<&Q>,
        guard: &Pinned,
    ) -> Vec<K>
    where
        K: Borrow<Q>,
    {
        let mut range = self.0.range(from, to, guard);
        let leaves = std::iter::from_fn(|| range.next());
        let forward: Vec<&Row<K>> = leaves.flat_map(|leaf| leaf.records.to_vec()).collect();
        let mut range = self.0.range(from, to, guard);
        let leaves = std::iter::from_fn(|| range.next_back());
        let backward =
            leaves.flat_map(|leaf| leaf.records.iter().rev().copied().collect::<Vec<_>>());
        let backward: Vec<&Row<K>> = backward.collect();
        let same = |(one, other): (&&Row<K>, &&Row<K>)| ptr::eq(*one, *other);
        assert_eq!(forward.len(), backward.len());
        assert!(forward.iter().zip(backward.iter().rev()).all(same));
        forward.into_iter().map(|row| row.0.clone()).collect()
    }

    pub(super) fn all(&self, guard: &Pinned) -> Vec<K> {
        self.range::<K>(Bound::Unbounded, Bound::Unbounded, guard)
    }

    /// The nodes of each level, the root's first. Asserts that the tree is as it is to be while
    /// nobody changes it.
    pub(super) fn check(&self, _guard: &Pinned) -> Vec<usize> {
        let mut counts = Vec::new();
        let mut first = self.0.root();
        let mut above: Option<Vec<*const Node<Row<K>, N>>> = None;
        loop {
            let level: Vec<_> =
                std::iter::successors(Some(first), |node| node.block().right()).collect();
            assert!(first.low().is_none());
            let mut below = Vec::new();
            for (at, node) in level.iter().enumerate() {
                let block = node.block();
                assert!(!block.is_dead());
                assert!(block.len() > 0 || block.is_leaf());
                let low = node.low();
                let high = level.get(at + 1).map(|right| right.low().unwrap());
                if let Some(high) = high {
                    assert_eq!(high.prefix(), block.high_prefix());
                }
                let keys: Vec<_> = (0..block.len()).map(|at| block.key(at)).collect();
                assert!(keys.is_sorted_by(|a, b| a < b), "a block is out of order");
                assert!(
                    keys.iter()
                        .all(|key| *key >= low && high.is_none_or(|high| *key < Some(high)))
                );
                if !block.is_leaf() {
                    assert!(keys[0] == low);
                    below.extend((0..block.len()).map(|at| ptr::from_ref(block.child(at))));
                }
            }
            let addresses: Vec<_> = level.iter().map(|node| ptr::from_ref(*node)).collect();
            assert!(
                above.is_none_or(|above| above == addresses),
                "parents miss nodes"
            );
            counts.push(level.len());
            if first.block().is_leaf() {
                return counts;
            }
            above = Some(below);
            first = first.block().child(0);
        }
    }
}

impl<K: OrderedKey + Clone + Send + Sync + 'static, const N: usize> Drop for Rows<K, N> {
    fn drop(&mut self) {
        let guard = pin();
        // By the links, whatever the order of the keys is.
        let mut node = self.0.first(0).ok().map(|(node, _)| node);
        while let Some(leaf) = node {
            for row in leaf.block().records() {
                // SAFETY: it is linked, so nobody has retired it.
                drop(unsafe { Box::from_raw(ptr::from_ref(*row).cast_mut()) });
            }
            node = leaf.block().right();
        }
        drop(guard);
    }
}
