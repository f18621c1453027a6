//! Batches: items with keys, grouped by shard, with one request for each shard.
//!
//! Each item and later its result has a [`Slot`], and the slots of a shard lie together: the
//! trustee reads and writes whole lines that it shares with nobody but the caller.

use super::fan_out::Own;
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
    /// The item, unless it has been taken.
    #[inline]
    pub(super) fn item(&self) -> Option<&T> {
        match self {
            Self::Item(item) => Some(item),
            Self::Result(_) | Self::Taken => None,
        }
    }

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
    groups: Vec<Group<T, R>>,
    /// The shard of each item.
    places: Vec<usize>,
}

/// The slots of one shard, in the order of their items.
struct Group<T, R> {
    slots: Vec<Slot<T, R>>,
    /// The number of results that have been taken.
    taken: usize,
}

impl<T, R> Batch<T, R> {
    /// Groups items, which come with the numbers of their shards, all below `shards`.
    #[inline]
    pub(super) fn new(items: impl Iterator<Item = (usize, T)>, shards: usize) -> Self {
        let least = items.size_hint().0;
        // Twice the mean, so that most groups allocate once, and on 2 shards all do. With few items
        // for each shard some shards have none, and need no memory.
        let share = least.div_ceil(shards).saturating_mul(2);
        let at_first = if share < 8 { 0 } else { share };
        let group = |_| Group {
            slots: Vec::with_capacity(at_first),
            taken: 0,
        };
        let mut groups: Vec<_> = (0..shards).map(group).collect();
        let mut places = Vec::with_capacity(least);
        for (shard, item) in items {
            places.push(shard);
            let slots = &mut groups[shard].slots;
            if slots.len() == slots.capacity() {
                slots.reserve(share);
            }
            slots.push(Slot::Item(item));
        }
        Self { groups, places }
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The slots of each shard that has items, with the shard's number.
    pub(super) fn groups(&mut self) -> impl Iterator<Item = (usize, &mut [Slot<T, R>])> {
        let groups = self.groups.iter_mut().enumerate();
        let slots = groups.map(|(shard, group)| (shard, &mut group.slots[..]));
        slots.filter(|(_, slots)| !slots.is_empty())
    }

    /// All slots, in no order.
    pub(super) fn into_slots(self) -> impl Iterator<Item = Slot<T, R>> {
        self.groups.into_iter().flat_map(|group| group.slots)
    }

    /// The results, in the order of the items.
    ///
    /// # Panics
    /// If an item has no result.
    #[inline]
    pub(super) fn into_results(mut self) -> Vec<R> {
        let take = |&shard: &usize| {
            let group = &mut self.groups[shard];
            let slot = std::mem::replace(&mut group.slots[group.taken], Slot::Taken);
            group.taken += 1;
            match slot {
                Slot::Result(result) => result,
                Slot::Item(_) | Slot::Taken => unreachable!("an item without a result"),
            }
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
        self.fan_out(call, batch.groups(), Own::Last, &|shard,
                                                        slots: &mut [Slot<
            T,
            R,
        >]| {
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
