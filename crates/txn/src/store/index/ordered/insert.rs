//! Adding entries, and the splits of full nodes.

use super::block::Block;
use super::key::OrderedKey;
use super::node::Node;
use super::search::{Aim, Place};
use super::{Changed, Inserted, Ordered, Record, upkeep};
use crate::store::garbage::Guard;
use corelay_sync::facade::atomic::Ordering;
use std::ptr::{self, NonNull};

/// An entry to be added.
struct Entry<'g, K> {
    prefix: u64,
    /// As the level demands.
    pointer: *const (),
    /// The entry's key, which a new node takes for its low key if the entry is its first.
    key: &'g K,
}

/// The contents of a node after an entry was added.
struct Added<'g, R: Record, const N: usize> {
    after: &'g Block<R, N>,
    /// The new right sibling, if the node was split, and its contents when it was published.
    split: Option<Place<'g, R, N>>,
}

impl<R: Record, const N: usize> Ordered<R, N> {
    /// Adds a record, unless there is one with its key. If the key's `Ord` panics, the record was not
    /// added.
    ///
    /// # Safety
    /// * The record lives until it was unlinked and every guard of that time has ended.
    /// * The record is in no index with this type of keys, nor is it being inserted by others.
    pub(crate) unsafe fn insert<'g, G: Guard>(
        &'g self,
        record: NonNull<R>,
        guard: &'g G,
    ) -> Inserted<'g, R> {
        // SAFETY: the caller's promise.
        let key: &'g R::Key = unsafe { record.as_ref() }.key();
        let aim = Aim::above(key);
        let entry = Entry {
            prefix: key.prefix(),
            pointer: record.as_ptr().cast_const().cast(),
            key,
        };
        let (mut node, mut block) = self.leaf(aim);
        loop {
            let at = match block.find(aim) {
                Ok(at) => return Inserted::Exists(block.record(at)),
                Err(at) => at,
            };
            let Some(added) = add((node, block), at, &entry, guard) else {
                node.wait();
                (node, block) = self.settle(node, aim);
                continue;
            };
            if let Some((right, _)) = added.split {
                upkeep(|| self.link(right, 1, guard));
            }
            return Inserted::Done(Changed {
                place: ptr::from_ref(node).cast(),
                before: ptr::from_ref(block).addr(),
                after: ptr::from_ref(added.after).addr(),
                split: added.split.map(|(right, block)| {
                    (ptr::from_ref(right).cast(), ptr::from_ref(block).addr())
                }),
            });
        }
    }

    /// Enters a node, which a split has made, at the level above it.
    fn link<'g, G: Guard>(&'g self, mut child: &'g Node<R, N>, mut level: u8, guard: &'g G) {
        // Every node that a split makes has a low key.
        while let Some(low) = child.low() {
            let entry = Entry {
                prefix: low.prefix(),
                pointer: ptr::from_ref(child).cast(),
                key: low,
            };
            let aim = Aim::<R::Key>::above(low);
            let place = match self.descend(level, aim) {
                Ok(place) => place,
                Err(root) if self.grow(root, level, &entry) => return,
                Err(_) => continue,
            };
            let at = place.1.count(1, aim) + 1;
            match add(place, at, &entry, guard) {
                Some(Added { split: None, .. }) => return,
                Some(Added {
                    split: Some((right, _)),
                    ..
                }) => (child, level) = (right, level + 1),
                None => place.0.wait(),
            }
        }
    }

    /// Puts a new root at `level` above `root`, with a second child. Fails if `root` is the root no
    /// more.
    fn grow(&self, root: &Node<R, N>, level: u8, second: &Entry<'_, R::Key>) -> bool {
        let mut block = Block::alone(level);
        block.push(0, ptr::from_ref(root).cast());
        block.push(second.prefix, second.pointer);
        let new = Box::into_raw(Box::new(Node::new(None, block)));
        // Release: pairs with the Acquire of `root`; publishes the node.
        let grown = self.root.compare_exchange(
            ptr::from_ref(root).cast_mut(),
            new,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if grown.is_err() {
            // SAFETY: the box of above, which nobody has seen.
            drop(unsafe { Box::from_raw(new) });
        }
        grown.is_ok()
    }
}

/// Adds an entry at `at`. Fails if the node's contents have changed, or are locked.
#[inline]
fn add<'g, R: Record, const N: usize, G: Guard>(
    (node, old): Place<'g, R, N>,
    at: usize,
    entry: &Entry<'_, R::Key>,
    guard: &'g G,
) -> Option<Added<'g, R, N>> {
    let len = old.len();
    if len == N {
        return split((node, old), at, entry, guard);
    }
    let mut block = Block::like(old);
    block.append(old, 0..at);
    block.push(entry.prefix, entry.pointer);
    block.append(old, at..len);
    let after = node.replace(old, block, guard).ok()?;
    Some(Added { after, split: None })
}

/// Adds an entry to a full node, of which a new right sibling takes a part.
#[cold]
fn split<'g, R: Record, const N: usize, G: Guard>(
    (node, old): Place<'g, R, N>,
    at: usize,
    entry: &Entry<'_, R::Key>,
    guard: &'g G,
) -> Option<Added<'g, R, N>> {
    // The entries with the new one among them are cut before entry `cut`. Keys that come in order
    // leave full nodes behind.
    let cut = match at {
        0 => 1,
        _ if at == N => N,
        _ => N.div_ceil(2),
    };
    let (mut left, mut right) = (Block::like(old), Block::like(old));
    let (low, low_prefix) = if at < cut {
        left.append(old, 0..at);
        left.push(entry.prefix, entry.pointer);
        left.append(old, at..cut - 1);
        right.append(old, cut - 1..N);
        (old.key(cut - 1), old.prefixes()[cut - 1])
    } else {
        left.append(old, 0..cut);
        right.append(old, cut..at);
        right.push(entry.prefix, entry.pointer);
        right.append(old, at..N);
        match at == cut {
            true => (Some(entry.key), entry.prefix),
            false => (old.key(cut), old.prefixes()[cut]),
        }
    };
    let right = Node::new(low.cloned(), right);
    let right = Box::into_raw(Box::new(right));
    left.end_at(low_prefix, right);
    let Ok(after) = node.replace(old, left, guard) else {
        // SAFETY: the box of above, which nobody has seen.
        drop(unsafe { Box::from_raw(right) });
        return None;
    };
    // SAFETY: it is reachable now, under our guard.
    let right = unsafe { &*right };
    let split = Some((right, right.block()));
    Some(Added { after, split })
}
