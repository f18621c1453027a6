//! Batches: items with keys, grouped by shard, with one request for each shard.
//!
//! Each item and later its result has a [`Slot`], and the slots of a shard lie together: the
//! trustee reads and writes whole lines that it shares with nobody but the caller.

use super::handle::Sharded;
use super::placement::Placement;
use corelay_sync::wait::Call;

/// The place of an item of a batch, and of its result.
pub(super) enum Slot<T, R> {
    Item(T),
    Result(R),
    /// The item has been taken, and there is no result: the function runs, or has panicked.
    Taken,
}

impl<T, R> Slot<T, R> {
    /// Replaces the item by its result.
    #[inline]
    pub(super) fn run(&mut self, f: impl FnOnce(T) -> R) {
        if let Self::Item(item) = std::mem::replace(self, Self::Taken) {
            *self = Self::Result(f(item));
        }
    }
}

/// The items of a batch, grouped by shard.
pub(super) struct Batch<T, R> {
    slots: Vec<Slot<T, R>>,
    /// The slot of each item.
    places: Vec<usize>,
    /// The end of each shard's slots.
    ends: Vec<usize>,
}

impl<T, R> Batch<T, R> {
    /// Groups items, which come with the numbers of their shards, all below `shards`.
    pub(super) fn new(items: impl Iterator<Item = (usize, T)>, shards: usize) -> Self {
        let items: Vec<_> = items.collect();
        let mut ends = vec![0; shards];
        let mut places = Vec::with_capacity(items.len());
        for &(shard, _) in &items {
            places.push(ends[shard]);
            ends[shard] += 1;
        }
        let mut all = 0;
        for end in &mut ends {
            all += *end;
            *end = all;
        }
        let mut slots: Vec<_> = items.iter().map(|_| Slot::Taken).collect();
        for ((shard, item), place) in items.into_iter().zip(&mut places) {
            if shard > 0 {
                *place += ends[shard - 1];
            }
            slots[*place] = Slot::Item(item);
        }
        Self {
            slots,
            places,
            ends,
        }
    }

    /// The slots of each shard that has items, with the shard's number.
    pub(super) fn groups(&mut self) -> Vec<(usize, &mut [Slot<T, R>])> {
        let (mut rest, mut begin) = (&mut self.slots[..], 0);
        let mut groups = Vec::with_capacity(self.ends.len());
        for (shard, &end) in self.ends.iter().enumerate() {
            let (group, later) = rest.split_at_mut(end - begin);
            if !group.is_empty() {
                groups.push((shard, group));
            }
            (rest, begin) = (later, end);
        }
        groups
    }

    /// All slots, in no order.
    pub(super) fn into_slots(self) -> impl Iterator<Item = Slot<T, R>> {
        self.slots.into_iter()
    }

    /// The results, in the order of the items.
    ///
    /// # Panics
    /// If an item has no result.
    pub(super) fn into_results(mut self) -> Vec<R> {
        let take = |&place: &usize| match std::mem::replace(&mut self.slots[place], Slot::Taken) {
            Slot::Result(result) => result,
            Slot::Item(_) | Slot::Taken => unreachable!("an item without a result"),
        };
        self.places.iter().map(take).collect()
    }
}

impl<S: 'static, P> Sharded<S, P> {
    /// Runs `f` on each of `items` and the shard of its key, which `key` finds in it. Asks all
    /// shards concerned at the same time, each by one request, and waits once. The results come in
    /// the order of the items.
    ///
    /// Items of one shard run in their order. The others may run in any order, and calls of other
    /// threads may come between two shards, but not between items of one shard.
    ///
    /// ```
    /// use corelay_delegate::Trustees;
    /// use corelay_structures::sharded::Sharded;
    /// use std::collections::BTreeMap;
    ///
    /// let trustees = Trustees::dedicated(2).start()?;
    /// let tree = Sharded::by_range(&trustees, [10], |_| BTreeMap::new());
    /// let entries = [(25, "b"), (3, "a"), (25, "c")];
    /// let before = tree.apply_many(entries, |entry| &entry.0, |shard, (k, v)| shard.insert(k, v));
    /// assert_eq!(before, [None, None, Some("b")]);
    ///
    /// let keys = [3, 4, 25]; // may be borrowed
    /// let found = tree.apply_many(&keys, |key| *key, |shard, key| shard.get(key).copied());
    /// assert_eq!(found, [Some("a"), None, Some("c")]);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Panics
    /// With the panic of `f`, which poisons its shard and leaves the later items of that shard
    /// undone. When a shard is poisoned or its trustee has been shut down: the items of the other
    /// shards are done all the same. Inside a delegated closure. Of several panics the caller gets
    /// one.
    #[track_caller]
    pub fn apply_many<T, Q, R>(
        &self,
        items: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> &Q,
        f: impl Fn(&mut S, T) -> R + Sync,
    ) -> Vec<R>
    where
        P: Placement<Q>,
        Q: ?Sized,
        T: Send,
        R: Send,
    {
        let shards = self.shards().len();
        let place = |item| (self.placement().place(key(&item), shards), item);
        let mut batch = Batch::new(items.into_iter().map(place), shards);
        let call = Call::new("Sharded::apply_many");
        self.fan_out(call, batch.groups(), &|shard, slots: &mut [Slot<T, R>]| {
            for slot in slots {
                slot.run(|item| f(shard, item));
            }
        });
        batch.into_results()
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_have_their_items_in_order(
            (shards, items) in (1usize..6).prop_flat_map(|shards| {
                let items = prop::collection::vec((0..shards, any::<u16>()), 0..50);
                (Just(shards), items)
            }),
        ) {
            let mut batch = Batch::new(items.iter().copied(), shards);
            for (shard, slots) in batch.groups() {
                let mut of_shard = items.iter().filter(|(of, _)| *of == shard);
                prop_assert!(!slots.is_empty());
                for slot in slots {
                    let next = of_shard.next().expect("as many items").1;
                    slot.run(|item| (item == next, item));
                }
                prop_assert_eq!(of_shard.next(), None);
            }
            let expected: Vec<_> = items.into_iter().map(|(_, item)| (true, item)).collect();
            prop_assert_eq!(batch.into_results(), expected);
        }
    }
}
