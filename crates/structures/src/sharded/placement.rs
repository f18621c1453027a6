//! Placements: which shard a key belongs to.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};
use std::ops::{Bound, Range, RangeBounds};

/// A rule that says which shard a key of type `Q` belongs to.
///
/// A key's shard must never change: the same key, in whatever form it is borrowed, has the same
/// shard always.
pub trait Placement<Q: ?Sized> {
    /// The number of the shard of `key`, below `shards`.
    fn place(&self, key: &Q, shards: usize) -> usize;
}

/// The placement by hash: keys are spread evenly, in no order.
///
/// ```
/// use corelay_structures::sharded::{ByHash, Placement};
///
/// let by_hash = ByHash::new();
/// assert_eq!(by_hash.place("key", 4), by_hash.place(&String::from("key"), 4));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ByHash<B = RandomState> {
    hasher: B,
}

/// The bits of a hash that a shard's table compares as tags: its highest seven. The shard is chosen
/// by the bits below them, or the entries of a shard would have few different tags.
const TAG_BITS: u32 = 7;

impl ByHash {
    /// A placement by the hashes of `std`'s hasher, with new random keys.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<B: BuildHasher> ByHash<B> {
    /// A placement by the hashes of `hasher`. These must be good in their high bits: a hasher that
    /// returns small integers unchanged puts all of them into shard 0.
    pub fn with_hasher(hasher: B) -> Self {
        Self { hasher }
    }

    /// The hash of `key`.
    #[inline]
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The shard of a key with this hash: its high bits as a fraction of the number of shards.
    #[inline]
    pub(super) fn place_hash(hash: u64, shards: usize) -> usize {
        ((u128::from(hash << TAG_BITS) * shards as u128) >> 64) as usize
    }
}

impl<Q: Hash + ?Sized, B: BuildHasher> Placement<Q> for ByHash<B> {
    #[inline]
    fn place(&self, key: &Q, shards: usize) -> usize {
        Self::place_hash(self.hash(key), shards)
    }
}

/// The placement by range: each shard has the keys between two splits, so that the shards are in
/// the order of their keys.
///
/// ```
/// use corelay_structures::sharded::{ByRange, Placement};
///
/// let by_range = ByRange::new(["g", "p"]); // three shards: below "g", from "g", from "p"
/// let places = ["apple", "g", "melon", "pear"].map(|key| by_range.place(key, 3));
/// assert_eq!(places, [0, 1, 1, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct ByRange<K> {
    splits: Box<[K]>,
}

impl<K: Ord> ByRange<K> {
    /// A placement with these splits. Each is the least key of its shard; the first shard has the
    /// keys below the first split. So there is one shard more than splits.
    ///
    /// # Panics
    /// If the splits do not ascend.
    #[track_caller]
    pub fn new(splits: impl IntoIterator<Item = K>) -> Self {
        let splits: Box<[K]> = splits.into_iter().collect();
        let unordered = splits.windows(2).position(|pair| pair[0] >= pair[1]);
        if let Some(at) = unordered {
            panic!(
                "corelay: split {} is not greater than split {at}; sort the splits, without equal \
                 ones",
                at + 1
            );
        }
        Self { splits }
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.splits.len() + 1
    }

    /// The shards that may have keys in `range`, in the order of their keys.
    pub(super) fn places<Q>(&self, range: &impl RangeBounds<Q>) -> Range<usize>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let place = |key| self.place(key, self.shards());
        let first = match range.start_bound() {
            Bound::Included(key) | Bound::Excluded(key) => place(key),
            Bound::Unbounded => 0,
        };
        let last = match range.end_bound() {
            Bound::Included(key) => place(key),
            Bound::Excluded(key) => self.splits.partition_point(|split| split.borrow() < key),
            Bound::Unbounded => self.splits.len(),
        };
        first..last + 1
    }
}

impl<K: Borrow<Q>, Q: Ord + ?Sized> Placement<Q> for ByRange<K> {
    #[inline]
    fn place(&self, key: &Q, _shards: usize) -> usize {
        self.splits.partition_point(|split| split.borrow() <= key)
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn hashes_are_placed_below_the_number_of_shards(hash: u64, shards in 1usize..1000) {
            prop_assert!(ByHash::<RandomState>::place_hash(hash, shards) < shards);
        }

        #[test]
        fn places_of_a_range_are_those_of_its_keys(
            splits in prop::collection::btree_set(0u8..40, 0..6),
            (start, end) in (0u8..45, 0u8..45),
        ) {
            let by_range = ByRange::new(splits);
            let of = |keys: &mut dyn Iterator<Item = u8>| -> BTreeSet<usize> {
                keys.map(|key| by_range.place(&key, by_range.shards())).collect()
            };
            let all = |places: Range<usize>| places.collect::<BTreeSet<_>>();
            if start < end {
                prop_assert_eq!(all(by_range.places(&(start..end))), of(&mut (start..end)));
            }
            if start <= end {
                prop_assert_eq!(all(by_range.places(&(start..=end))), of(&mut (start..=end)));
            }
            let rest = all(by_range.places(&(start..)));
            prop_assert!(of(&mut (start..=255)).is_subset(&rest));
            prop_assert_eq!(by_range.places::<u8>(&(..)), 0..by_range.shards());
        }
    }

    #[test]
    fn the_shards_of_good_hashes_are_even() {
        let by_hash = ByHash::new();
        let mut counts = [0; 7];
        (0..70_000u32).for_each(|key| counts[by_hash.place(&key, 7)] += 1);
        // 10,000 each, with a standard deviation of 93.
        assert!(
            counts.iter().all(|n| (9_000..11_000).contains(n)),
            "{counts:?}"
        );
    }

    #[test]
    #[should_panic(expected = "split 2 is not greater than split 1")]
    fn splits_that_do_not_ascend_are_refused() {
        ByRange::new([1, 5, 5]);
    }
}
