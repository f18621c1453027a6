//! Values that have a length, for shards that are collections.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};

/// A collection, as a shard of a [`Sharded`](super::Sharded) whose shards have one length together.
pub trait Collection {
    /// The number of elements.
    fn len(&self) -> usize;

    /// Whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all elements.
    fn clear(&mut self);
}

macro_rules! collections {
    ($($name:ident<$($p:ident),*>)*) => {$(
        impl<$($p),*> Collection for $name<$($p),*> {
            fn len(&self) -> usize {
                self.len()
            }

            fn clear(&mut self) {
                self.clear();
            }
        }
    )*};
}

collections! {
    BTreeMap<K, V> BTreeSet<T> BinaryHeap<T> HashMap<K, V, B> HashSet<T, B> LinkedList<T> Vec<T>
    VecDeque<T>
}
