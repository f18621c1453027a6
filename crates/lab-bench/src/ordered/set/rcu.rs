//! Lists that are read as if nobody changed them, and freed by epochs: read-copy-update's way
//! (McKenney and Slingwine, 1998; epochs as Fraser, 2004, and `crossbeam-epoch` have them).
//!
//! A reader pins itself, walks, and goes; nothing it meets is freed meanwhile. Writers take the
//! list's lock, so that there is one at a time: it publishes a node by one store, or unlinks one by
//! one store and hands it to the epochs, outside of the lock.

#![allow(unsafe_code)]

use super::{Member, Set, Shape};
use corelay_lab_measure::workload::operation::Line;
use corelay_locks::Ttas;
use corelay_sync::facade::atomic::Ordering::{Acquire, Relaxed, Release};
use corelay_sync::{Session as _, Shared as _};
use crossbeam_epoch::{Atomic, Collector, Guard, LocalHandle, Owned, Shared};
use std::iter::repeat_with;

pub(super) struct Rcu {
    collector: Collector,
    /// On lines of their own: who writes does not disturb who reads before it has something to say.
    heads: Box<[Line<Atomic<Node>>]>,
    /// Of each list, held by who changes a link. A spin lock: what it covers is a walk.
    writers: Box<[Ttas<()>]>,
}

pub(super) struct Node {
    key: u64,
    next: Atomic<Node>,
}

impl Rcu {
    pub(super) fn new(shape: Shape) -> Self {
        let heads = repeat_with(|| Line(Atomic::null()));
        Self {
            collector: Collector::new(),
            heads: heads.take(shape.buckets).collect(),
            writers: repeat_with(|| Ttas::new(())).take(shape.buckets).collect(),
        }
    }
}

/// The first node of no smaller key, and the link to it.
#[inline(always)]
fn seek<'g>(
    mut link: &'g Atomic<Node>,
    key: u64,
    guard: &'g Guard,
) -> (&'g Atomic<Node>, Shared<'g, Node>, Option<&'g Node>) {
    loop {
        // Acquire: pairs with the Release of who linked the node, whose key and link are then seen.
        let at = link.load(Acquire, guard);
        // SAFETY: nodes are freed by the epochs only, after the last guard that could have seen
        // them linked; this one is pinned.
        match unsafe { at.as_ref() } {
            Some(node) if node.key < key => link = &node.next,
            node => return (link, at, node),
        }
    }
}

impl Set for Rcu {
    type Member<'a> = Pinned<'a>;

    fn member(&self) -> Pinned<'_> {
        Pinned {
            set: self,
            handle: self.collector.register(),
        }
    }

    fn keys(&self) -> Vec<Vec<u64>> {
        let handle = self.collector.register();
        let guard = &handle.pin();
        let keys = |head: &Line<Atomic<Node>>| {
            let mut keys = Vec::new();
            let mut next = 0;
            while let (_, _, Some(node)) = seek(&head.0, next, guard) {
                keys.push(node.key);
                next = node.key + 1;
            }
            keys
        };
        self.heads.iter().map(keys).collect()
    }
}

/// A thread that is known to the epochs.
pub(super) struct Pinned<'a> {
    set: &'a Rcu,
    handle: LocalHandle,
}

impl Member for Pinned<'_> {
    #[inline(always)]
    fn contains(&mut self, bucket: usize, key: u64) -> bool {
        let guard = self.handle.pin();
        let (.., node) = seek(&self.set.heads[bucket].0, key, &guard);
        node.is_some_and(|node| node.key == key)
    }

    fn insert(&mut self, bucket: usize, key: u64) -> bool {
        let guard = self.handle.pin();
        let (set, here) = (self.set, Here(&guard));
        set.writers[bucket].session().apply(move |()| {
            let (link, at, node) = seek(&set.heads[bucket].0, key, here.get());
            if node.is_some_and(|node| node.key == key) {
                return false;
            }
            let next = Atomic::from(at);
            // Release: pairs with the Acquire in `seek`; the node is whole before it is linked.
            link.store(Owned::new(Node { key, next }), Release);
            true
        })
    }

    fn remove(&mut self, bucket: usize, key: u64) -> bool {
        let guard = self.handle.pin();
        let (set, here) = (self.set, Here(&guard));
        let unlinked = set.writers[bucket].session().apply(move |()| {
            let (link, at, node) = seek(&set.heads[bucket].0, key, here.get());
            let node = node.filter(|node| node.key == key)?;
            // Relaxed: links change in the lock alone, which is ours.
            let next = node.next.load(Relaxed, here.get());
            // Release: hands on to readers what the Acquire in `seek` gave to us.
            link.store(next, Release);
            Some(Here(at))
        });
        let Some(node) = unlinked else {
            return false;
        };
        // SAFETY: whoever takes the lock after us finds it no more, and nobody else unlinks: it is
        // handed over once, and who pins itself from now on cannot reach it.
        unsafe { guard.defer_destroy(node.get()) };
        true
    }
}

/// What does not leave its thread, though it passes through a lock's closure.
#[derive(Clone, Copy)]
struct Here<T>(T);

impl<T> Here<T> {
    fn get(self) -> T {
        self.0
    }
}

// SAFETY: a lock runs its closure on the thread that calls it; it only asks for `Send` because a
// trustee, which has the same face, would not.
unsafe impl<T> Send for Here<T> {}

impl Drop for Rcu {
    fn drop(&mut self) {
        for head in &mut self.heads {
            // SAFETY: nobody is left: `self` is ours alone.
            let mut node = unsafe { std::mem::take(&mut head.0).try_into_owned() };
            while let Some(mut owned) = node {
                let next = std::mem::take(&mut owned.next);
                // SAFETY: as above.
                node = unsafe { next.try_into_owned() };
            }
        }
    }
}
