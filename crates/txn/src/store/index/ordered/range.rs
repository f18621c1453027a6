//! The records between two bounds, leaf by leaf.

use super::block::Block;
use super::key::OrderedKey;
use super::node::Node;
use super::search::Aim;
use super::{Ordered, Record};
use crate::store::garbage::Guard;
use crate::store::index::Gap;
use std::borrow::Borrow;
use std::ops::Bound;

/// A leaf of a range.
pub(crate) struct Leaf<'g, R> {
    /// The leaf as it was seen. As long as it is unchanged, no record was added to the range here.
    pub(crate) gap: Gap,
    /// The records of the range that the leaf has, in ascending order.
    pub(crate) records: &'g [&'g R],
}

/// The leaves of a range, each once. They cover it without gaps, with no record twice.
///
/// It holds no lock between two leaves, so other threads insert and unlink there meanwhile; it may
/// be kept as long as the guard.
pub(crate) struct Range<'g, 'q, R: Record, Q: ?Sized, const N: usize> {
    index: &'g Ordered<R, N>,
    from: Bound<&'q Q>,
    to: Bound<&'q Q>,
    next: Next<'g, R, N>,
}

/// The place at which a range goes on.
enum Next<'g, R: Record, const N: usize> {
    First,
    /// At the low key of this node, the right sibling of the leaf before.
    Right(&'g Node<R, N>),
    /// Below the low key of this node, the leaf before.
    Left(&'g Node<R, N>),
    Done,
}

impl<R: Record, const N: usize> Ordered<R, N> {
    /// The leaves that have the records between two bounds. If no key can lie between them, there
    /// is no record in these leaves.
    pub(crate) fn range<'g, 'q, Q, G>(
        &'g self,
        from: Bound<&'q Q>,
        to: Bound<&'q Q>,
        _guard: &'g G,
    ) -> Range<'g, 'q, R, Q, N>
    where
        R::Key: Borrow<Q>,
        Q: OrderedKey + ?Sized,
        G: Guard,
    {
        Range {
            index: self,
            from,
            to,
            next: Next::First,
        }
    }

    /// The leaf that covers the low key of `leaf` now, where `leaf` is dead, and the first entry
    /// that is not below.
    #[cold]
    fn heir<'g>(&'g self, leaf: &'g Node<R, N>) -> Found<'g, R, N> {
        let Some(low) = leaf.low() else {
            // The leftmost leaf has no left sibling, so it does not die.
            return (leaf, leaf.block(), 0);
        };
        let (node, block) = self.settle(leaf, Aim::above(low));
        (node, block, block.count(0, Aim::below(low)))
    }

    /// The leaf with the keys just below those of `leaf`, and the end of the entries that are.
    fn before<'g>(&'g self, leaf: &'g Node<R, N>) -> Option<Found<'g, R, N>> {
        let aim = Aim::below(leaf.low()?);
        let (node, block) = self.leaf(aim);
        Some((node, block, block.count(0, aim)))
    }
}

/// A leaf, its contents, and the entry at which a range begins or ends there.
type Found<'g, R, const N: usize> = (&'g Node<R, N>, &'g Block<R, N>, usize);

impl<'g, R: Record, Q, const N: usize> Range<'g, '_, R, Q, N>
where
    R::Key: Borrow<Q>,
    Q: OrderedKey + ?Sized,
{
    /// The next leaf in ascending order. Not to be mixed with [`next_back`](Self::next_back).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Leaf<'g, R>> {
        let index = self.index;
        let (node, block, start) = match self.next {
            Next::First => {
                let (node, block) = match lower(self.from) {
                    Some(aim) => index.leaf(aim),
                    None => index.first(0).unwrap_or_else(|root| (root, root.block())),
                };
                (
                    node,
                    block,
                    lower(self.from).map_or(0, |aim| block.count(0, aim)),
                )
            }
            Next::Right(node) => match node.block() {
                block if !block.is_dead() => (node, block, 0),
                _ => index.heir(node),
            },
            Next::Left(_) | Next::Done => return None,
        };
        let right = match upper(self.to) {
            Some(aim) => block.beside(aim),
            None => block.right(),
        };
        let end = match (upper(self.to), right) {
            (Some(aim), None) => block.count(0, aim),
            _ => block.len(),
        };
        self.next = right.map_or(Next::Done, Next::Right);
        Some(leaf(node, block, start, end))
    }

    /// The next leaf in descending order. Not to be mixed with [`next`](Self::next).
    #[inline]
    pub(crate) fn next_back(&mut self) -> Option<Leaf<'g, R>> {
        let index = self.index;
        let (node, block, end) = match self.next {
            Next::First => {
                let (node, block) = match upper(self.to) {
                    Some(aim) => index.leaf(aim),
                    None => index.last(),
                };
                let end = upper(self.to).map_or(block.len(), |aim| block.count(0, aim));
                (node, block, end)
            }
            Next::Left(node) => index.before(node)?,
            Next::Right(_) | Next::Done => return None,
        };
        // All keys further left are below the low key.
        let is_last = match (self.from, node.low()) {
            (_, None) => true,
            (Bound::Unbounded, Some(_)) => false,
            (Bound::Included(from) | Bound::Excluded(from), Some(low)) => {
                Aim::above(from).is_past(low.prefix(), || Some(low))
            }
        };
        let start = match lower(self.from) {
            Some(aim) if is_last => block.count(0, aim),
            _ => 0,
        };
        self.next = if is_last {
            Next::Done
        } else {
            Next::Left(node)
        };
        Some(leaf(node, block, start, end))
    }
}

/// The point at which a range begins; `None` if it has no lower bound.
#[inline(always)]
fn lower<Q: OrderedKey + ?Sized>(from: Bound<&Q>) -> Option<Aim<'_, Q>> {
    match from {
        Bound::Included(from) => Some(Aim::below(from)),
        Bound::Excluded(from) => Some(Aim::above(from)),
        Bound::Unbounded => None,
    }
}

/// The point at which a range ends; `None` if it has no upper bound.
#[inline(always)]
fn upper<Q: OrderedKey + ?Sized>(to: Bound<&Q>) -> Option<Aim<'_, Q>> {
    match to {
        Bound::Included(to) => Some(Aim::above(to)),
        Bound::Excluded(to) => Some(Aim::below(to)),
        Bound::Unbounded => None,
    }
}

#[inline(always)]
fn leaf<'g, R: Record, const N: usize>(
    node: &'g Node<R, N>,
    block: &'g Block<R, N>,
    start: usize,
    end: usize,
) -> Leaf<'g, R> {
    // Bounds in the wrong order have no records between them.
    let records = block.records().get(start..end).unwrap_or_default();
    let gap = Ordered::gap((node, block));
    Leaf { gap, records }
}
