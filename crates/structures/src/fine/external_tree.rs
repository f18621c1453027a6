//! A binary search tree with its entries in the leaves, and a lock for each link.
//!
//! This is BST-TK of David, Guerraoui and Trigonakis, "Asynchronized concurrency: the secret to
//! scaling concurrent search data structures", ASPLOS 2015.
//!
//! An inner node, a *router*, has a key and two edges: lesser keys lie to its left, the others to
//! its right. An edge has a link and a version, which is odd while the edge is locked. A thread
//! goes down without locks, and remembers the version of each edge *before* it reads the link. To
//! change a link it locks the edge at that version: if the edge has changed, or is locked, that
//! fails, and the thread goes down anew. So locking and validation are one compare-and-swap, and no
//! thread waits while it holds a lock.
//!
//! ```text
//!   insert c: one edge        remove b: three edges (=)
//!
//!     |            |               ‖             |
//!     b     ──►    c               r      ──►    s
//!                 / \            //  \\
//!                b   c           b    s
//! ```
//!
//! The two edges of a removed router are never unlocked again. So no thread changes them, and a
//! thread that stands there goes on as if it had been quicker than the removal.
//!
//! * **Unlinking.** A router is removed by the thread that has locked the edge to it and both of
//!   its own; a leaf by the one that has locked the edge to it. Each has one edge that leads to it.
//!   So none leads to them afterwards, whatever a key's `Ord` answers.
//! * **No code of users runs in a lock.** Keys are compared and cloned before, and dropped
//!   afterwards.
//!
//! # Where we depart from the paper
//! Its edges have ticket locks of 16 bits, whose two halves are version and lock; they are tried
//! and never waited for, so one counter is enough. It has 64 bits, which do not wrap around while a
//! thread is on its way. The tree may be empty, and needs no least and no greatest key.

use super::link::{Link, Ref};
use crate::exhaust::exhaust;
use crate::reclaim::{Domain, Guard};
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::hint;
use std::borrow::Borrow;
use std::cmp::Ordering::Equal;
use std::fmt;

/// A map in ascending order of its keys, kept as a binary search tree that is never balanced:
/// threads that change different places do so at once, and a look-up waits for nobody.
///
/// `get`, `insert` and `remove` take O(depth), which is about 3 log₂ n if keys come in random
/// order, and n if they come in ascending or descending order. A value does not change while it is
/// in the map, because look-ups read it without a lock. Inner nodes have clones of keys.
///
/// A call takes effect
/// * if it adds or removes an entry: when it changes the link of the edge above;
/// * otherwise: when it reads the link to the leaf where its key is, or would be; or, if that link
///   belongs to a removed node, just before that was removed.
///
/// ```
/// use corelay_structures::fine::ExternalTree;
///
/// let ages = ExternalTree::new();
/// std::thread::scope(|s| {
///     s.spawn(|| ages.insert("Ada".to_owned(), 36));
///     s.spawn(|| ages.insert("Alan".to_owned(), 41));
/// });
/// assert_eq!(ages.get("Ada"), Some(36));
/// assert_eq!(ages.remove("Alan"), Some(41));
/// ```
///
/// Several threads look at one value, so values are `Sync`, as keys are:
/// ```compile_fail,E0277
/// use corelay_structures::fine::ExternalTree;
///
/// let map = ExternalTree::<u64, std::cell::Cell<u64>>::new();
/// std::thread::scope(|s| {
///     s.spawn(|| drop(&map));
/// });
/// ```
pub struct ExternalTree<K, V> {
    /// The edge to the top, which has no node if the tree is empty. No other edge is without one.
    root: Edge<K, V>,
    domain: Domain,
}

struct Node<K, V> {
    key: K,
    body: Body<K, V>,
}

enum Body<K, V> {
    Leaf(V),
    /// The edges to lesser keys, and to the others.
    Router([Edge<K, V>; 2]),
}

struct Edge<K, V> {
    version: AtomicU64,
    child: Link<Node<K, V>>,
}

// SAFETY: the tree owns its entries, and drops them on any thread.
unsafe impl<K: Send, V: Send> Send for ExternalTree<K, V> {}
// SAFETY: threads look at keys and values at the same time, and the one that adds an entry need not
// be the one that drops it.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for ExternalTree<K, V> {}

/// An edge on the way down, as it was found.
struct Step<'g, K, V> {
    edge: &'g Edge<K, V>,
    version: u64,
    child: Option<Ref<'g, Node<K, V>>>,
}

/// A locked edge. Dropped, it is unlocked as it was.
struct Lock<'g, K, V> {
    edge: &'g Edge<K, V>,
    version: u64,
}

impl<K, V> Edge<K, V> {
    fn to(child: Option<Ref<'_, Node<K, V>>>) -> Self {
        Self {
            version: AtomicU64::new(0),
            child: Link::to(child),
        }
    }

    fn version(&self) -> u64 {
        // Acquire: pairs with the Release in `unlock`. A child that is read afterwards is the one
        // of this version, or a later one.
        self.version.load(Ordering::Acquire)
    }

    fn step<'g>(&'g self, guard: &'g Guard<'_>) -> Step<'g, K, V> {
        Step {
            edge: self,
            version: self.version(),
            child: self.child.load(guard),
        }
    }

    /// Locks the edge if it is unlocked and still has this version.
    fn try_lock(&self, version: u64) -> Option<Lock<'_, K, V>> {
        if !version.is_multiple_of(2) {
            return None;
        }
        let locked = version + 1;
        // Relaxed: the load of this version has acquired what was done before.
        self.version
            .compare_exchange(version, locked, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
            .then(|| Lock {
                edge: self,
                version,
            })
    }

    fn unlock(&self, version: u64) {
        // Release: pairs with the Acquire in `version`; the child is seen with its version.
        self.version.store(version, Ordering::Release);
    }
}

impl<'g, K, V> Step<'g, K, V> {
    fn try_lock(&self) -> Option<Lock<'g, K, V>> {
        self.edge.try_lock(self.version)
    }
}

impl<K, V> Lock<'_, K, V> {
    /// Changes the child, and unlocks the edge.
    fn set(self, child: Option<Ref<'_, Node<K, V>>>) {
        self.edge.child.set(child);
        self.edge.unlock(self.version + 2);
        std::mem::forget(self);
    }

    /// Leaves the edge locked for ever.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl<K, V> Drop for Lock<'_, K, V> {
    fn drop(&mut self) {
        self.edge.unlock(self.version);
    }
}

impl<K, V> ExternalTree<K, V> {
    /// Makes an empty tree. It allocates nothing before the first entry.
    #[must_use]
    pub fn new() -> Self {
        Self {
            root: Edge::to(None),
            domain: Domain::new(),
        }
    }

    /// Calls `f` on the entries in ascending order of their keys. Entries that are there from the
    /// beginning to the end are among them; of those that come or go meanwhile some may be. Takes
    /// memory for O(depth) pointers.
    ///
    /// ```
    /// use corelay_structures::fine::ExternalTree;
    ///
    /// let mut sum = 0;
    /// let map = ExternalTree::from_iter([('a', 1), ('b', 2)]);
    /// map.for_each(|_, value| sum += value);
    /// assert_eq!(sum, 3);
    /// ```
    pub fn for_each(&self, mut f: impl FnMut(&K, &V)) {
        let guard = self.domain.pin();
        let mut below = Vec::from_iter(self.root.child.load(&guard));
        while let Some(node) = below.pop() {
            match &node.get().body {
                Body::Leaf(value) => f(&node.get().key, value),
                Body::Router([left, right]) => {
                    below.extend(right.child.load(&guard));
                    below.extend(left.child.load(&guard));
                }
            }
        }
    }
}

impl<K: Ord, V> Node<K, V> {
    /// The edge to `key` and the other one, if this is a router.
    fn edges<Q: Ord + ?Sized>(&self, key: &Q) -> Option<[&Edge<K, V>; 2]>
    where
        K: Borrow<Q>,
    {
        match &self.body {
            Body::Leaf(_) => None,
            Body::Router([left, right]) if key < self.key.borrow() => Some([left, right]),
            Body::Router([left, right]) => Some([right, left]),
        }
    }
}

impl<K: Ord + Clone + Send + 'static, V: Send + 'static> ExternalTree<K, V> {
    /// Adds an entry. Returns false if there is one for `key` already; then the tree keeps that.
    ///
    /// ```
    /// use corelay_structures::fine::ExternalTree;
    ///
    /// let map = ExternalTree::new();
    /// assert!(map.insert("a", 1) && !map.insert("a", 2));
    /// assert_eq!(map.get("a"), Some(1));
    /// ```
    pub fn insert(&self, key: K, value: V) -> bool {
        let guard = self.domain.pin();
        let mut backoff = Backoff::new();
        loop {
            let (_, last) = self.descend(&key, &guard);
            let order = last.child.map(|leaf| key.cmp(&leaf.get().key));
            if order == Some(Equal) {
                return false;
            }
            // If a leaf is there: the key of the router above both, which is the greater one.
            let router = last.child.zip(order).map(|(leaf, order)| {
                let greater = if order.is_lt() { &leaf.get().key } else { &key };
                (leaf, order, greater.clone())
            });
            let Some(lock) = last.try_lock() else {
                try_again(&mut backoff);
                continue;
            };
            let body = Body::Leaf(value);
            let new = Ref::new(Node { key, body }, &guard);
            let top = router.map_or(new, |(leaf, order, key)| {
                let children = if order.is_lt() {
                    [new, leaf]
                } else {
                    [leaf, new]
                };
                let body = Body::Router(children.map(|child| Edge::to(Some(child))));
                Ref::new(Node { key, body }, &guard)
            });
            lock.set(Some(top));
            return true;
        }
    }

    /// Removes the entry for `key`, and calls `f` on its value. `None` if there is none.
    ///
    /// ```
    /// use corelay_structures::fine::ExternalTree;
    ///
    /// let map = ExternalTree::from_iter([("a", "one".to_owned())]);
    /// assert_eq!(map.remove_with("a", |value| value.len()), Some(3));
    /// ```
    pub fn remove_with<Q, R>(&self, key: &Q, f: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let guard = self.domain.pin();
        let mut backoff = Backoff::new();
        loop {
            let (above, last) = self.descend(key, &guard);
            let leaf = last.child.filter(|leaf| leaf.get().key.borrow() == key)?;
            let Body::Leaf(value) = &leaf.get().body else {
                unreachable!("the way ends at a leaf");
            };
            if self.unlink(above, last, &guard).is_none() {
                try_again(&mut backoff);
                continue;
            }
            // SAFETY: `unlink` has locked the only edge to it and unlinked it, which one thread
            // can; so it is retired once.
            unsafe { leaf.retire(&guard) };
            return Some(f(value));
        }
    }

    /// Takes the leaf at the end of `last` out of the tree, with the router above it, if there is
    /// one. `None`, and nothing has happened, if an edge has changed.
    fn unlink(
        &self,
        above: Option<Above<'_, K, V>>,
        last: Step<'_, K, V>,
        guard: &Guard<'_>,
    ) -> Option<()> {
        let Some(Above {
            step,
            router,
            other,
        }) = above
        else {
            last.try_lock()?.set(None);
            return Some(());
        };
        let upper = step.try_lock()?;
        let locks = [last.try_lock()?, other.try_lock(other.version())?];
        upper.set(other.child.load(guard));
        locks.into_iter().for_each(Lock::keep);
        // SAFETY: `upper` was the only edge to it and leads past it now. Its own edges stay locked,
        // so no other thread gets here with it; it is retired once.
        unsafe { router.retire(guard) };
        Some(())
    }

    /// Removes the entry for `key`, and returns a clone of its value, which other threads may be
    /// reading.
    ///
    /// ```
    /// use corelay_structures::fine::ExternalTree;
    ///
    /// let map = ExternalTree::from_iter([("a".to_owned(), 1)]);
    /// assert_eq!((map.remove("a"), map.remove("a")), (Some(1), None));
    /// ```
    pub fn remove<Q: Ord + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        self.remove_with(key, V::clone)
    }

    /// Calls `f` on the value of `key`. Takes no lock.
    ///
    /// ```
    /// use corelay_structures::fine::ExternalTree;
    ///
    /// let map = ExternalTree::from_iter([("a", "one".to_owned())]);
    /// assert_eq!(map.get_with("a", |value| value.len()), Some(3));
    /// ```
    pub fn get_with<Q, R>(&self, key: &Q, f: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let guard = self.domain.pin();
        let mut node = self.root.child.load(&guard)?.get();
        while let Some([edge, _]) = node.edges(key) {
            node = edge.child.load(&guard)?.get();
        }
        match &node.body {
            Body::Leaf(value) if node.key.borrow() == key => Some(f(value)),
            _ => None,
        }
    }

    /// A clone of the value of `key`.
    ///
    /// ```
    /// use corelay_structures::fine::ExternalTree;
    ///
    /// let map = ExternalTree::from_iter([("a".to_owned(), 1)]);
    /// assert_eq!((map.get("a"), map.get("b")), (Some(1), None));
    /// ```
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        self.get_with(key, V::clone)
    }

    /// Whether there is an entry for `key`.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get_with(key, |_| ()).is_some()
    }

    /// Goes down to the leaf where `key` is or would be.
    fn descend<'g, Q: Ord + ?Sized>(
        &'g self,
        key: &Q,
        guard: &'g Guard<'_>,
    ) -> (Option<Above<'g, K, V>>, Step<'g, K, V>)
    where
        K: Borrow<Q>,
    {
        let mut above = None;
        let mut step = self.root.step(guard);
        while let Some(router) = step.child
            && let Some([edge, other]) = router.get().edges(key)
        {
            above = Some(Above {
                step: std::mem::replace(&mut step, edge.step(guard)),
                router,
                other,
            });
        }
        (above, step)
    }
}

/// The router above a leaf.
struct Above<'g, K, V> {
    /// The edge to the router.
    step: Step<'g, K, V>,
    router: Ref<'g, Node<K, V>>,
    /// The router's edge that does not lead to the leaf.
    other: &'g Edge<K, V>,
}

/// Waits a little, because another thread changes the same place.
#[cold]
fn try_again(backoff: &mut Backoff) {
    backoff.wait();
    hint::in_vain(backoff.yields());
}

impl<K, V> Drop for ExternalTree<K, V> {
    fn drop(&mut self) {
        let mut links = vec![std::mem::take(&mut self.root.child)];
        exhaust(std::iter::from_fn(|| {
            // SAFETY: nobody else has the tree, in which one edge leads to each node. The edges of
            // removed routers are not in it.
            let Node { key, body } = unsafe { links.pop()?.take() }?;
            let value = match body {
                Body::Leaf(value) => Some(value),
                Body::Router(edges) => {
                    links.extend(edges.map(|edge| edge.child));
                    None
                }
            };
            Some((key, value))
        }));
    }
}

impl<K, V> Default for ExternalTree<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Extend<(K, V)> for ExternalTree<K, V>
where
    K: Ord + Clone + Send + 'static,
    V: Send + 'static,
{
    /// Inserts each entry whose key is missing.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V> FromIterator<(K, V)> for ExternalTree<K, V>
where
    K: Ord + Clone + Send + 'static,
    V: Send + 'static,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut tree = Self::new();
        tree.extend(entries);
        tree
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for ExternalTree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.for_each(|key, value| {
            map.entry(key, value);
        });
        map.finish()
    }
}
