//! Nodes of a skip list, each in one block of memory with all its links, with a safe face.
//!
//! ```text
//!   value │ key │ lock, flags, number of links │ link 0 │ link 1 │ …
//!               └─────────────────── the node's tower ──────────────
//! ```
//!
//! A search compares the key and then follows one of the links, so they lie beside each other. A
//! link is one word: the node that it leads to says how many links it has.
//!
//! A node lies in a box of its own, which [`Ref::new`] makes. The box ends in two ways only, and
//! both are `unsafe`: [`Ref::retire`], when the node has been unlinked, and [`Link::take`], when the
//! list ends. Their callers promise that no thread that pins afterwards finds the node. So what a
//! pinned thread reads from a link lives as long as the thread's guard, and following links is safe,
//! also from a node that was unlinked meanwhile; [`link`](super::link) says why.

use super::lock::NodeLock;
use crate::reclaim::{Atomic, Guard, Shared};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::{MODEL, Shadow};
use corelay_sync::prefetch_read;
use std::array;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::{self, NonNull};

/// The most levels of a list. The highest of 24 has one of 2²³ nodes: so up to 2²⁴ entries a search
/// takes O(log n), and beyond that one step more for each 2²³.
pub(super) const LEVELS: usize = if MODEL { 2 } else { 24 };

/// An entry with its tower.
#[repr(C)]
pub(super) struct Node<K, V, L: ?Sized = [Link<K, V>]> {
    pub(super) value: V,
    pub(super) key: K,
    /// Stands for the entry in the models.
    shadow: Shadow,
    pub(super) tower: Tower<L>,
}

/// The beginning of a node, whatever the number of its links. A pointer to it is one word.
type Begin<K, V> = Node<K, V, [Link<K, V>; 0]>;

/// The part of a node that is neither its key nor its value. The head of a list is one without a
/// node.
#[repr(C)]
pub(super) struct Tower<L: ?Sized> {
    pub(super) lock: NodeLock,
    pub(super) is_linked: AtomicBool,
    pub(super) is_removed: AtomicBool,
    /// The number of links, 1..=`LEVELS`. It does not change.
    levels: u8,
    /// The links, of the lowest level first.
    links: L,
}

/// A link to a node, or to none.
pub(super) struct Link<K, V>(Atomic<Begin<K, V>>);

/// A node that was read under a guard which lives for `'g`, or made under it.
pub(super) struct Ref<'g, K, V> {
    /// The beginning of the node, with the right to use and to free all of it.
    node: NonNull<Begin<K, V>>,
    of: PhantomData<&'g Node<K, V>>,
}

/// The nodes that come after a key, on each level.
pub(super) type After<'g, K, V> = [Option<Ref<'g, K, V>>; LEVELS];

impl<K, V, const N: usize> Tower<[Link<K, V>; N]> {
    /// A tower of `N` levels that links to the first nodes of `after`.
    pub(super) fn before(after: &After<'_, K, V>) -> Self {
        const { assert!(N >= 1 && N <= LEVELS) };
        Self {
            lock: NodeLock::default(),
            is_linked: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
            levels: N as u8,
            links: array::from_fn(|level| Link::to(after[level])),
        }
    }
}

impl<K, V> Tower<[Link<K, V>]> {
    #[inline]
    pub(super) fn levels(&self) -> usize {
        self.links.len()
    }

    #[inline]
    pub(super) fn link(&self, level: usize) -> &Link<K, V> {
        &self.links[level]
    }

    /// Fetches the key that a search compares next if it goes down from `level` here.
    #[inline]
    pub(super) fn prefetch_below(&self, level: usize, guard: &Guard<'_>) {
        if !MODEL && level > 0 {
            // Relaxed: nothing is read through it.
            let node = self.links[level - 1].0.load(Ordering::Relaxed, guard);
            prefetch_read(node.raw().wrapping_byte_add(offset_of!(Begin<K, V>, key)));
        }
    }

    /// The link on the lowest level.
    pub(super) fn lowest_mut(&mut self) -> &mut Link<K, V> {
        &mut self.links[0]
    }
}

impl<K, V> Link<K, V> {
    fn to(node: Option<Ref<'_, K, V>>) -> Self {
        Self(Atomic::new(shared(node)))
    }

    /// The node that this links to.
    #[inline]
    pub(super) fn load<'g>(&'g self, guard: &'g Guard<'_>) -> Option<Ref<'g, K, V>> {
        // Acquire: pairs with the Release in `set`; the node is there as it was made.
        let node = NonNull::new(self.0.load(Ordering::Acquire, guard).raw())?;
        let of = PhantomData;
        let node = Ref { node, of };
        node.get().shadow.read(0, 1);
        Some(node)
    }

    /// Links to `node` from now on. Called by the thread that holds the lock of this link.
    #[inline]
    pub(super) fn set(&self, node: Option<Ref<'_, K, V>>) {
        // Release: pairs with the Acquire in `load`; publishes the node.
        self.0.store(shared(node), Ordering::Release);
    }

    /// Takes the node out of a list that ends.
    ///
    /// # Safety
    /// Only the caller can reach the node, and this is the only link to it that is still used.
    pub(super) unsafe fn take(&mut self) -> Option<Box<Node<K, V>>> {
        let node = NonNull::new(self.0.load_own().raw())?;
        self.0 = Atomic::null();
        // SAFETY: the node was linked, and has not been retired, since there is a link to it.
        let node = unsafe { whole(node) };
        // SAFETY: `Ref::new` made the node in a box, and only the caller can reach it (the caller's
        // duty).
        Some(unsafe { Box::from_raw(node) })
    }
}

impl<K, V> Default for Link<K, V> {
    fn default() -> Self {
        Self(Atomic::null())
    }
}

fn shared<'g, K, V>(node: Option<Ref<'g, K, V>>) -> Shared<'g, Begin<K, V>> {
    node.map_or(Shared::null(), |node| Shared::from_raw(node.node.as_ptr()))
}

/// The whole of the node that begins there.
///
/// # Safety
/// `Ref::new` made the node, which has not been freed.
#[inline]
unsafe fn whole<K, V>(node: NonNull<Begin<K, V>>) -> *mut Node<K, V> {
    let node = node.as_ptr();
    // SAFETY: the node is there (the caller's duty), and this word of it never changes.
    let levels = unsafe { (*node).tower.levels };
    ptr::slice_from_raw_parts_mut(node.cast::<Link<K, V>>(), levels.into()) as *mut Node<K, V>
}

impl<'g, K, V> Ref<'g, K, V> {
    /// A new node of `levels`, 1..=`LEVELS`, which links to the nodes `after` it. It is leaked
    /// unless it is linked.
    pub(super) fn new(
        levels: usize,
        key: K,
        value: V,
        after: &After<'_, K, V>,
        _guard: &'g Guard<'_>,
    ) -> Self {
        macro_rules! boxed {
            ($($levels:literal)*) => {
                match levels {
                    // The models have fewer levels.
                    $($levels => boxed::<K, V, { if $levels <= LEVELS { $levels } else { 1 } }>(
                        key, value, after,
                    ),)*
                    _ => unreachable!("a node has 1 to {LEVELS} levels"),
                }
            };
        }
        let node = boxed!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
        node.shadow.write(0, 1);
        let node = NonNull::from(Box::leak(node)).cast();
        let of = PhantomData;
        Self { node, of }
    }

    #[inline]
    pub(super) fn get(self) -> &'g Node<K, V> {
        // SAFETY: `new` made the node. It was new, or read from a link of the list or of a node
        // that lives as long as the guard, and so the guard protects it too.
        let node = unsafe { whole(self.node) };
        // SAFETY: as above. Nobody borrows a node mutably.
        unsafe { &*node }
    }

    /// Frees the node once no thread can be reading it.
    ///
    /// # Safety
    /// The caller has unlinked the node: no thread that pins from now on can find it, and nobody
    /// will link it again. It is retired once.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>)
    where
        K: Send + 'static,
        V: Send + 'static,
    {
        // SAFETY: it is unlinked, and retired once (the caller's duties). It is `Send` and
        // `'static`.
        unsafe { guard.retire_by(shared(Some(self)), free) };
    }
}

/// Frees a node, and drops what is in it.
///
/// # Safety
/// `Ref::new` made the node, and nobody else has it.
unsafe fn free<K, V>(node: *mut Begin<K, V>) {
    // SAFETY: a node is not null.
    let node = unsafe { NonNull::new_unchecked(node) };
    // SAFETY: the node is there (the caller's duty).
    let node = unsafe { whole(node) };
    // SAFETY: `Ref::new` made the node in a box, and nobody else has it (the caller's duty).
    drop(unsafe { Box::from_raw(node) });
}

fn boxed<K, V, const N: usize>(key: K, value: V, after: &After<'_, K, V>) -> Box<Node<K, V>> {
    Box::new(Node {
        value,
        key,
        shadow: Shadow::new(1),
        tower: Tower::<[Link<K, V>; N]>::before(after),
    })
}

impl<K, V> Clone for Ref<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Ref<'_, K, V> {}

/// Whether both are the same node.
impl<K, V> PartialEq for Ref<'_, K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}
