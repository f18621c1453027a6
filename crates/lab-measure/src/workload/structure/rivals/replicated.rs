//! Sequential structures by node replication: writes go through a log, reads to the copy of the
//! reader's memory node.

use super::locked::{insert, remove};
use super::{Rival, Structure};
use crate::method::replication::{Place, Replicated, copies_here};
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_topology::{current_cpu, node_of_cpu};
use node_replication::Dispatch;
use std::cell::RefCell;

/// A structure of which every memory node has a copy.
pub(crate) struct Copies<S: Structure> {
    copies: Replicated<Copy<S>>,
    /// The number by which threads find their places at this structure.
    id: u64,
}

/// A copy of the structure.
struct Copy<S>(S);

/// A change in the log.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Insert(u64),
    Remove(u64),
}

impl<S: Structure> Dispatch for Copy<S> {
    type ReadOperation = u64;
    type WriteOperation = Change;
    type Response = Option<u64>;

    fn dispatch(&self, key: u64) -> Option<u64> {
        self.0.look(key)
    }

    fn dispatch_mut(&mut self, change: Change) -> Option<u64> {
        match change {
            Change::Insert(key) => insert(&mut self.0, key).then_some(key),
            Change::Remove(key) => remove(&mut self.0, key),
        }
    }
}

/// Structures whose places a thread remembers at most; older ones are gone in all likelihood.
const REMEMBERED: usize = 64;

thread_local! {
    /// The places of this thread, with the numbers of their structures, the latest last.
    static PLACES: RefCell<Vec<(u64, Place)>> = const { RefCell::new(Vec::new()) };
}

impl<S: Structure> Copies<S> {
    /// Makes a structure with so many copies.
    fn with(copies: usize, size: usize) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        assert!(!S::READS_CHANGE, "readers would change what they share");
        Self {
            copies: Replicated::new(copies, || Copy(S::empty(size))),
            // Relaxed: the number only has to be unique.
            id: IDS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Runs `f` with this thread's place, which it takes at the first call.
    ///
    /// # Panics
    /// As many threads as a copy admits, 255, have taken a place.
    #[inline]
    fn placed<R>(&self, f: impl FnOnce(&mut Place) -> R) -> R {
        PLACES.with_borrow_mut(|places| {
            let mine = |(id, _): &(u64, Place)| *id == self.id;
            let at = places.iter().rposition(mine).unwrap_or_else(|| {
                let node = current_cpu().and_then(node_of_cpu).unwrap_or(0);
                let place = self
                    .copies
                    .place(node)
                    .unwrap_or_else(|why| panic!("{why}"));
                if places.len() == REMEMBERED {
                    places.remove(0);
                }
                places.push((self.id, place));
                places.len() - 1
            });
            f(&mut places[at].1)
        })
    }
}

impl<S: Structure> Rival for Copies<S> {
    fn empty(size: usize) -> Self {
        Self::with(copies_here(), size)
    }

    #[inline]
    fn read(&self, key: u64) -> Option<u64> {
        self.placed(|place| self.copies.read(place, key))
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.placed(|place| self.copies.write(place, Change::Insert(key)))
            .is_some()
    }

    #[inline]
    fn remove(&self, key: u64) -> Option<u64> {
        self.placed(|place| self.copies.write(place, Change::Remove(key)))
    }

    /// The keys of the first copy; those of all if the copies differ, which then count as surplus.
    fn keys(&self) -> Vec<u64> {
        let mut all: Vec<Vec<u64>> = Vec::new();
        self.copies.each(|copy| all.push(copy.0.keys().collect()));
        let in_order = |keys: &Vec<u64>| {
            let mut keys = keys.clone();
            // Where operations name their keys, copies may hold them in different places: two hash
            // tables do.
            if S::HAS_KEYS {
                keys.sort_unstable();
            }
            keys
        };
        let first = all.first().map(in_order);
        let others = all.iter().skip(1);
        match others.map(in_order).all(|keys| Some(keys) == first) {
            true => all.swap_remove(0),
            false => all.concat(),
        }
    }
}

/// A structure with two copies between which threads are dealt out, whatever the machine: for tests.
#[cfg(test)]
pub(crate) struct TwoCopies<S: Structure>(Copies<S>);

#[cfg(test)]
impl<S: Structure> Rival for TwoCopies<S> {
    fn empty(size: usize) -> Self {
        Self(Copies::with(2, size))
    }

    fn read(&self, key: u64) -> Option<u64> {
        self.0.read(key)
    }

    fn insert(&self, key: u64) -> bool {
        self.0.insert(key)
    }

    fn remove(&self, key: u64) -> Option<u64> {
        self.0.remove(key)
    }

    fn keys(&self) -> Vec<u64> {
        self.0.keys()
    }
}
