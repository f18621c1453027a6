//! Links between nodes that several threads follow and change, with a safe face.
//!
//! Each node lies in a box of its own, which [`Ref::new`] makes. The box ends in two ways only, and
//! both are `unsafe`: [`Ref::retire`], when the node has been unlinked, and [`Link::take`], when
//! the structure ends. Their callers promise that no thread that pins afterwards finds the node. So
//! what a pinned thread reads from a link lives as long as the thread's guard, and following links
//! is safe.
//!
//! A thread may stand on a node that was unlinked, and follow its links. The next node may have
//! been unlinked since, too, but after this thread had pinned; so it has not been freed.

use crate::reclaim::{Atomic, Guard, Shared};
use corelay_sync::facade::Shadow;
use corelay_sync::facade::atomic::Ordering;

/// A link to a node, or to none.
pub(super) struct Link<T>(Atomic<Node<T>>);

/// A node in its box.
struct Node<T> {
    value: T,
    /// Stands for the value in the models.
    shadow: Shadow,
}

/// A node that was read under a guard which lives for `'g`, or made under it.
pub(super) struct Ref<'g, T> {
    node: &'g Node<T>,
    /// The same node, with the right to free it.
    shared: Shared<'g, Node<T>>,
}

impl<T> Link<T> {
    /// A link to `node`. Nobody may follow it before it is published.
    pub(super) fn to(node: Option<Ref<'_, T>>) -> Self {
        Self(Atomic::new(shared(node)))
    }

    /// The node that this links to.
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g Guard<'_>) -> Option<Ref<'g, T>> {
        // Acquire: pairs with the Release in `set`; the node is there as it was made.
        let shared = self.0.load(Ordering::Acquire, guard);
        // SAFETY: the link is the structure's, or a node's that lives as long as the guard, so the
        // guard protects this node too. Nobody borrows a node mutably.
        let node = unsafe { shared.as_ref() }?;
        node.shadow.read(0, 1);
        Some(Ref { node, shared })
    }

    /// Links to `node` from now on. Called by the thread that holds the lock of this link.
    #[inline]
    pub(super) fn set(&self, node: Option<Ref<'_, T>>) {
        // Release: pairs with the Acquire in `load`; publishes the node.
        self.0.store(shared(node), Ordering::Release);
    }

    /// Takes the node out of a structure that ends.
    ///
    /// # Safety
    /// Only the caller can reach the node, and this is the only link to it that is still used.
    pub(super) unsafe fn take(&mut self) -> Option<T> {
        let shared = self.0.load_own();
        // SAFETY: only the caller can reach the node (the caller's duty), by a link; so it is not
        // retired.
        let node = unsafe { shared.into_box() };
        self.0 = Atomic::null();
        node.map(|node| node.value)
    }
}

impl<T> Default for Link<T> {
    fn default() -> Self {
        Self(Atomic::null())
    }
}

fn shared<'g, T>(node: Option<Ref<'g, T>>) -> Shared<'g, Node<T>> {
    node.map_or(Shared::null(), |node| node.shared)
}

impl<'g, T> Ref<'g, T> {
    /// A new node. It is leaked unless it is linked.
    pub(super) fn new(value: T, _guard: &'g Guard<'_>) -> Self {
        let shadow = Shadow::new(1);
        shadow.write(0, 1);
        let shared = Shared::new(Box::new(Node { value, shadow }));
        // SAFETY: this call has just made the node, and nobody else can reach it.
        let node = unsafe { shared.as_ref() };
        let node = node.expect("a new node is not null");
        Self { node, shared }
    }

    #[inline]
    pub(super) fn get(self) -> &'g T {
        &self.node.value
    }

    /// Frees the node once no thread can be reading it.
    ///
    /// # Safety
    /// The caller has unlinked the node: no thread that pins from now on can find it, and nobody
    /// will link it again. It is retired once.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>)
    where
        T: Send + 'static,
    {
        // SAFETY: it is unlinked, and retired once (the caller's duties). It is `Send` and
        // `'static`.
        unsafe { guard.retire(self.shared) };
    }
}

impl<T> Clone for Ref<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<'_, T> {}

/// Whether both are the same node.
impl<T> PartialEq for Ref<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.node, other.node)
    }
}
