//! Which way a key lies: among the entries of a block, and from the root down to a leaf.

use super::block::Block;
use super::key::OrderedKey;
use super::node::Node;
use super::{Ordered, Record};
use corelay_sync::facade::atomic::Ordering;
use std::borrow::Borrow;
use std::cmp;

/// A point between two keys: the one just below a key, or just above it.
pub(super) struct Aim<'q, Q: ?Sized> {
    key: &'q Q,
    prefix: u64,
    is_above: bool,
}

impl<Q: ?Sized> Clone for Aim<'_, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: ?Sized> Copy for Aim<'_, Q> {}

impl<'q, Q: OrderedKey + ?Sized> Aim<'q, Q> {
    /// The point below `key`. As a place in the tree: the node with the greatest keys below `key`.
    #[inline(always)]
    pub(super) fn below(key: &'q Q) -> Self {
        Self {
            key,
            prefix: key.prefix(),
            is_above: false,
        }
    }

    /// The point above `key`. As a place in the tree: the node that covers `key`.
    #[inline(always)]
    pub(super) fn above(key: &'q Q) -> Self {
        Self {
            is_above: true,
            ..Self::below(key)
        }
    }

    /// Whether the point is above a key with this prefix. Looks at the key only if it must.
    #[inline(always)]
    pub(super) fn is_past<'k, K>(&self, prefix: u64, key: impl FnOnce() -> Option<&'k K>) -> bool
    where
        K: OrderedKey + Borrow<Q> + 'k,
    {
        match prefix.cmp(&self.prefix) {
            cmp::Ordering::Less => true,
            cmp::Ordering::Greater => false,
            cmp::Ordering::Equal if is_exact::<K, Q>() => self.is_above,
            cmp::Ordering::Equal => {
                let order = key().map_or(cmp::Ordering::Less, |key| key.borrow().cmp(self.key));
                order.is_lt() || self.is_above && order.is_eq()
            }
        }
    }
}

/// Whether a key is known from its prefix.
#[inline(always)]
const fn is_exact<K: OrderedKey, Q: OrderedKey + ?Sized>() -> bool {
    K::PREFIX_BITS.is_some() && Q::PREFIX_BITS.is_some()
}

impl<R: Record, const N: usize> Block<R, N> {
    /// The number of entries, from entry `from` on, whose keys are below the point.
    #[inline(always)]
    pub(super) fn count<Q>(&self, from: usize, aim: Aim<'_, Q>) -> usize
    where
        R::Key: Borrow<Q>,
        Q: OrderedKey + ?Sized,
    {
        let prefixes = &self.prefixes()[from..];
        if is_exact::<R::Key, Q>() {
            return match aim.is_above {
                true => prefixes.partition_point(|prefix| *prefix <= aim.prefix),
                false => prefixes.partition_point(|prefix| *prefix < aim.prefix),
            };
        }
        let below = prefixes.partition_point(|prefix| *prefix < aim.prefix);
        if prefixes.get(below) != Some(&aim.prefix) {
            return below;
        }
        let (mut low, mut high) = (below, below + 1);
        // Most prefixes occur once.
        if prefixes.get(high) == Some(&aim.prefix) {
            high = prefixes.partition_point(|prefix| *prefix <= aim.prefix);
        }
        // Prefixes that are out of order have a wrong implementation. Whatever it is, the loop ends.
        while low < high {
            let middle = low + (high - low) / 2;
            match aim.is_past(aim.prefix, || self.key(from + middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The place of `key` in a leaf: that of its record, or where it would be.
    #[inline(always)]
    pub(super) fn find<Q>(&self, aim: Aim<'_, Q>) -> Result<usize, usize>
    where
        R::Key: Borrow<Q>,
        Q: OrderedKey + ?Sized,
    {
        let at = self.count(
            0,
            Aim {
                is_above: false,
                ..aim
            },
        );
        let is_found = self.prefixes().get(at) == Some(&aim.prefix)
            && (is_exact::<R::Key, Q>() || self.record(at).key().borrow() == aim.key);
        if is_found { Ok(at) } else { Err(at) }
    }

    /// The node to go on to if the point is not in this one's range: the right sibling, or the heir
    /// of a dead node.
    #[inline(always)]
    pub(super) fn beside<Q>(&self, aim: Aim<'_, Q>) -> Option<&Node<R, N>>
    where
        R::Key: Borrow<Q>,
        Q: OrderedKey + ?Sized,
    {
        if aim.prefix < self.high_prefix() {
            return None;
        }
        // The right end of the level, a dead node, or at least close to the end.
        let right = self.right()?;
        let is_past = self.is_dead() || aim.is_past(self.high_prefix(), || right.low());
        is_past.then_some(right)
    }
}

/// A node and its contents.
pub(super) type Place<'g, R, const N: usize> = (&'g Node<R, N>, &'g Block<R, N>);

impl<R: Record, const N: usize> Ordered<R, N> {
    pub(super) fn root(&self) -> &Node<R, N> {
        // Acquire: pairs with the Release of `grow` and `shrink`; the node is whole.
        let root = self.root.load(Ordering::Acquire);
        // SAFETY: the root is a node that is not retired before another is root; the caller has a
        // guard.
        unsafe { &*root }
    }

    /// The node of a level whose range has the point. Fails with the root if that is below the
    /// level.
    #[inline(always)]
    pub(super) fn descend<Q>(
        &self,
        level: u8,
        aim: Aim<'_, Q>,
    ) -> Result<Place<'_, R, N>, &Node<R, N>>
    where
        R::Key: Borrow<Q>,
        Q: OrderedKey + ?Sized,
    {
        self.walk(level, |block| {
            if let Some(beside) = block.beside(aim) {
                return Some(beside);
            }
            // The first child has everything below the second one's low key.
            (block.level() > level).then(|| block.child(block.count(1, aim)))
        })
    }

    /// The leaf whose range has the point.
    #[inline(always)]
    pub(super) fn leaf<Q>(&self, aim: Aim<'_, Q>) -> Place<'_, R, N>
    where
        R::Key: Borrow<Q>,
        Q: OrderedKey + ?Sized,
    {
        let found = self.descend(0, aim);
        found.unwrap_or_else(|_| unreachable!("no level is below the leaves"))
    }

    /// The leftmost node of a level. Fails with the root if that is below the level.
    pub(super) fn first(&self, level: u8) -> Result<Place<'_, R, N>, &Node<R, N>> {
        self.walk(level, |block| match block.is_dead() {
            true => block.right(),
            false => (block.level() > level).then(|| block.child(0)),
        })
    }

    /// The rightmost leaf.
    pub(super) fn last(&self) -> Place<'_, R, N> {
        let found = self.walk(0, |block| {
            let below = || (!block.is_leaf()).then(|| block.child(block.len() - 1));
            block.right().or_else(below)
        });
        found.unwrap_or_else(|_| unreachable!("no level is below the leaves"))
    }

    /// Goes from the root to where `next` leads, on a level.
    #[inline(always)]
    fn walk<'g>(
        &'g self,
        level: u8,
        next: impl Fn(&'g Block<R, N>) -> Option<&'g Node<R, N>>,
    ) -> Result<Place<'g, R, N>, &'g Node<R, N>> {
        let mut root = self.root();
        let mut node = root;
        loop {
            let block = node.block();
            if block.level() < level {
                if std::ptr::eq(node, root) {
                    return Err(root);
                }
                // A root that was shrunk meanwhile has its only child as its heir.
                root = self.root();
                node = root;
                continue;
            }
            match next(block) {
                Some(next) => node = next,
                None => return Ok((node, block)),
            }
        }
    }

    /// The place of the point, from a node on that had it.
    pub(super) fn settle<'g, Q>(&self, mut node: &'g Node<R, N>, aim: Aim<'_, Q>) -> Place<'g, R, N>
    where
        R::Key: Borrow<Q>,
        Q: OrderedKey + ?Sized,
    {
        loop {
            let block = node.block();
            match block.beside(aim) {
                Some(beside) => node = beside,
                None => return (node, block),
            }
        }
    }
}
