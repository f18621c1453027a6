//! Elimination: a push and a pop that disturb each other meet elsewhere, and undo each other there.

use super::node::Node;
use crate::reclaim::{Atomic, Guard, Shared};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::{Backoff, CachePadded};
use std::ptr;

/// The places where a push offers its node to a pop.
///
/// ```text
///          offer                      accept
///  empty ─────────> the push's node ─────────> empty
///    ^                     │
///    └──────withdraw───────┘
/// ```
/// A push that cannot withdraw its node knows that a pop has accepted it: no other push can offer
/// a node at the same address meanwhile, because the push is pinned.
pub(super) struct Elimination<T, const SLOTS: usize>([CachePadded<Atomic<Node<T>>>; SLOTS]);

impl<T, const SLOTS: usize> Elimination<T, SLOTS> {
    #[cfg(not(corelay_loom))]
    pub(super) const fn new() -> Self {
        Self([const { CachePadded::new(Atomic::null()) }; SLOTS])
    }

    #[cfg(corelay_loom)]
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| CachePadded::new(Atomic::null())))
    }

    /// Offers `node` for a while, and returns whether a pop has accepted it. The caller, which is
    /// pinned, has lost a race for the stack, so this is its back-off, too.
    #[cold]
    pub(super) fn offer(
        &self,
        node: Shared<'_, Node<T>>,
        disturbed: &mut Option<Disturbed>,
        _pinned: &Guard<'_>,
    ) -> bool {
        let disturbed = disturbed.get_or_insert_with(Disturbed::new);
        let slot = disturbed.choose(&self.0).filter(|slot| {
            // Release: pairs with the Acquire in `accept`; publishes the value.
            slot.compare_exchange(Shared::null(), node, Ordering::Release)
        });
        disturbed.backoff.spin();
        // Relaxed: a withdrawn node is as it was before.
        slot.is_some_and(|slot| !slot.compare_exchange(node, Shared::null(), Ordering::Relaxed))
    }

    /// Accepts a node, which belongs to the caller then, or waits a little if none is offered. The
    /// caller has lost a race for the stack.
    #[cold]
    pub(super) fn accept<'g>(
        &self,
        disturbed: &mut Option<Disturbed>,
        guard: &'g Guard<'_>,
    ) -> Option<Shared<'g, Node<T>>> {
        let disturbed = disturbed.get_or_insert_with(Disturbed::new);
        let accepted = disturbed.choose(&self.0).and_then(|slot| {
            // Relaxed: nothing is read through it before the exchange.
            let node = slot.load(Ordering::Relaxed, guard);
            // Acquire: pairs with the Release in `offer`; the value is there.
            let is_mine =
                !node.is_null() && slot.compare_exchange(node, Shared::null(), Ordering::Acquire);
            is_mine.then_some(node)
        });
        if accepted.is_none() {
            disturbed.backoff.spin();
        }
        accepted
    }
}

/// A call that has lost its race. With each loss it waits longer, and chooses among more slots.
pub(super) struct Disturbed {
    backoff: Backoff,
    width: usize,
    random: u64,
}

impl Disturbed {
    fn new() -> Self {
        let mut random = 0;
        // Threads differ in where their frames lie.
        random = ptr::from_ref(&random).addr() as u64;
        Self {
            backoff: Backoff::new(),
            width: 1,
            random,
        }
    }

    /// One of the first 1, 2, 4 … slots. As long as few calls disturb each other, they meet in few.
    fn choose<'a, S>(&mut self, slots: &'a [S]) -> Option<&'a S> {
        // A linear congruential generator with the constants of Knuth's MMIX.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let slot = slots.get((self.random >> 33) as usize % self.width);
        self.width = (self.width * 2).min(slots.len().max(1));
        slot
    }
}
