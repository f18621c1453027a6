//! Removing entries, and the merges of nodes that few are left in.

use super::block::Block;
use super::node::Node;
use super::search::Aim;
use super::{Ordered, Record, upkeep};
use crate::store::garbage::Guard;
use corelay_sync::facade::atomic::Ordering;
use std::ptr;

/// The outcome of a merge.
enum Merged<'g, R: Record, const N: usize> {
    /// The nodes are one. If they were inner ones: two children that have the same parent now, and
    /// had not before.
    Done(Option<[&'g Node<R, N>; 2]>),
    /// The nodes do not fit into one, or a third one lies between them.
    Not,
    /// Somebody else has changed what was to be merged.
    Changed,
}

impl<R: Record, const N: usize> Ordered<R, N> {
    /// Takes a record out. Returns false if it is not in the index; a record with an equal key
    /// stays. If the key's `Ord` panics, the record is still there.
    ///
    /// The record lies in the contents that this replaces until all present guards have ended.
    pub(crate) fn unlink<G: Guard>(&self, record: &R, guard: &G) -> bool {
        let aim = Aim::<R::Key>::above(record.key());
        let (mut node, mut block) = self.leaf(aim);
        loop {
            let found = block.find(aim);
            let Some(at) = found.ok().filter(|at| ptr::eq(block.record(*at), record)) else {
                return false;
            };
            match node.replace(block, without(block, at), guard) {
                Ok(after) => {
                    // Merging is tried again each time that half of the entries have gone.
                    let len = after.len();
                    if is_sparse(after) && (len == 0 || len.is_power_of_two()) {
                        upkeep(|| self.tidy(node, guard));
                    }
                    return true;
                }
                Err(_) => {
                    node.wait();
                    (node, block) = self.settle(node, aim);
                }
            }
        }
    }

    /// Merges a sparse node with a sibling under the same parent, and then its parent, and so on.
    #[cold]
    fn tidy<'g, G: Guard>(&'g self, node: &'g Node<R, N>, guard: &'g G) {
        let (mut next, mut pending) = (Some(node), Vec::new());
        while let Some(node) = next.take().or_else(|| pending.pop()) {
            let block = node.block();
            if block.is_dead() || !is_sparse(block) {
                continue;
            }
            let above = block.level() + 1;
            let parent = match node.low() {
                Some(low) => self.descend(above, Aim::above(low)),
                None => self.first(above),
            };
            let Ok((parent, family)) = parent else {
                next = self.shrink(node, guard);
                continue;
            };
            let is_node = |child: &*const ()| ptr::addr_eq(*child, node);
            // A node that a split has just made is not there yet.
            let Some(at) = family.pointers().iter().position(is_node) else {
                continue;
            };
            let mut merged = Merged::Not;
            if at + 1 < family.len() {
                merged = self.merge(parent, node, family.child(at + 1), guard);
            }
            if matches!(merged, Merged::Not) && at > 0 {
                merged = self.merge(parent, family.child(at - 1), node, guard);
            }
            match merged {
                Merged::Done(cousins) => {
                    pending.push(parent);
                    pending.extend(cousins.into_iter().flatten());
                }
                // The only child cannot be merged before its parent is.
                Merged::Not if family.len() == 1 => next = Some(parent),
                Merged::Not => {}
                Merged::Changed => next = Some(node),
            }
        }
    }

    /// Has `left` take over the range of its right sibling under the same parent.
    ///
    /// The locks are taken from left to right and from below to above. No code of the user runs
    /// while they are held: nodes are told apart by their addresses.
    fn merge<'g, G: Guard>(
        &self,
        parent: &'g Node<R, N>,
        left: &'g Node<R, N>,
        right: &'g Node<R, N>,
        guard: &G,
    ) -> Merged<'g, R, N> {
        if !fit(left.block(), right.block()) {
            return Merged::Not;
        }
        let mut left = left.lock();
        let is_beside = |beside: &Node<R, N>| ptr::eq(beside, right);
        if left.block().is_dead() {
            return Merged::Changed;
        }
        // A node that is in no parent may lie between them.
        if !left.block().right().is_some_and(is_beside) {
            return Merged::Not;
        }
        let mut right = right.lock();
        if !fit(left.block(), right.block()) {
            return Merged::Not;
        }
        let mut parent = parent.lock();
        let pair = |pair: &[*const ()]| {
            ptr::addr_eq(pair[0], left.node()) && ptr::addr_eq(pair[1], right.node())
        };
        // A dead parent has no children. A dead `right` is in no parent.
        let Some(at) = parent.block().pointers().windows(2).position(pair) else {
            return Merged::Changed;
        };
        let (ours, theirs) = (left.block(), right.block());
        let mut joined = Block::like(theirs);
        joined.append(ours, 0..ours.len());
        joined.append(theirs, 0..theirs.len());
        let dead = Block::dead(theirs.level(), left.node());
        let family = without(parent.block(), at + 1);
        // Whoever comes to the right node still finds in it what is in the left one too, which
        // stays locked until the right one is dead.
        let old = [
            left.publish(joined),
            right.publish(dead),
            parent.publish(family),
        ];
        let right_node = right.node();
        drop((parent, right, left));
        for block in old {
            // SAFETY: `publish` has taken it from the only word that had it.
            guard.retire(unsafe { block.garbage() });
        }
        // SAFETY: only its left sibling and its parent pointed to the right node, and both were
        // locked when they ceased to. No other merge finds it beside its left sibling.
        guard.retire(unsafe { right_node.garbage() });
        let children = || [ours.child(ours.len() - 1), theirs.child(0)];
        Merged::Done((!ours.is_leaf()).then(children))
    }

    /// Makes the only child of the root the root, and returns it. Fails if the node is a leaf, has
    /// several children or siblings, or is not the root.
    fn shrink<'g, G: Guard>(&self, node: &'g Node<R, N>, guard: &G) -> Option<&'g Node<R, N>> {
        let mut root = node.lock();
        let block = root.block();
        if block.is_dead() || block.is_leaf() || block.len() > 1 || block.right().is_some() {
            return None;
        }
        let heir = block.child(0);
        // Release: pairs with the Acquire of `root`. The child is older than the root; this thread
        // has acquired it.
        let shrunk = self.root.compare_exchange(
            ptr::from_ref(node).cast_mut(),
            ptr::from_ref(heir).cast_mut(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        shrunk.ok()?;
        let old = root.publish(Block::dead(block.level(), heir));
        drop(root);
        // SAFETY: `publish` has taken it from the only word that had it.
        guard.retire(unsafe { old.garbage() });
        // SAFETY: the root has no parent and no siblings; only the tree pointed to it.
        guard.retire(unsafe { node.garbage() });
        Some(heir)
    }
}

/// Whether few entries are left. An inner node always has one.
fn is_sparse<R: Record, const N: usize>(block: &Block<R, N>) -> bool {
    block.len() <= N / 4 || block.len() == 1 && !block.is_leaf()
}

fn fit<R: Record, const N: usize>(left: &Block<R, N>, right: &Block<R, N>) -> bool {
    left.len() + right.len() <= N
}

/// The block without entry `at`.
fn without<R: Record, const N: usize>(old: &Block<R, N>, at: usize) -> Box<Block<R, N>> {
    let mut block = Block::like(old);
    block.append(old, 0..at);
    block.append(old, at + 1..old.len());
    block
}
