//! A sorted linked list with a lock in each node.
//!
//! Heller, Herlihy, Luchangco, Moir, Scherer and Shavit, "A lazy concurrent list-based set
//! algorithm", OPODIS 2005.
//!
//! A search takes no lock. A thread that changes the list locks the nodes whose links or marks it
//! is about to change, and then *validates*: the first is not removed, and links to the second
//! still. If that fails, it searches anew. A node is removed in two steps: it is marked, which
//! removes its key, and then unlinked.
//!
//! * **Order of locks.** An earlier node is locked before a later one. The order in which nodes
//!   once stood never changes, so threads do not wait for each other in a circle, whatever a key's
//!   `Ord` answers.
//! * **No code of users runs in a lock.** Keys are compared before, and dropped afterwards.
//!
//! # Where we depart from the paper
//! An `insert` locks only the node before the new one: while that is locked, its successor cannot
//! be removed. An `insert` that finds its key, and a `remove` that does not, take no lock and write
//! nothing, as David, Guerraoui and Trigonakis advise (ASPLOS 2015, pattern ASCY3). The head has no
//! key, and the end is no node, so keys need no least and no greatest value.

use super::link::{Link, Ref};
use super::lock::NodeLock;
use crate::exhaust::exhaust;
use crate::reclaim::{Domain, Guard};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::borrow::Borrow;
use std::cmp::Ordering::Less;
use std::fmt;

/// A set of keys, kept as a linked list in ascending order: threads that change different places do
/// so at once, and a look-up waits for nobody.
///
/// All calls read every key before their own, so they take O(n). It is the literature's rival for a
/// delegated list; if you only need a set that threads share, use a search tree or a hash table.
///
/// A call takes effect
/// * if it adds a key: when its node is linked;
/// * if it removes a key: when its node is marked;
/// * if it finds its key: when it reads that the node is not marked;
/// * otherwise: when it reads the link over which the key is missing, or the mark; or, if a thread
///   added the key again since that node was marked, just before that.
///
/// ```
/// use corelay_structures::fine::LazyList;
///
/// let list = LazyList::new();
/// std::thread::scope(|s| {
///     for keys in [[1, 4], [2, 3]] {
///         let list = &list;
///         s.spawn(move || keys.into_iter().for_each(|key| assert!(list.insert(key))));
///     }
/// });
/// assert!(list.remove(&2) && !list.contains(&2));
/// assert_eq!(format!("{list:?}"), "{1, 3, 4}");
/// ```
///
/// Several threads look at one key, so keys are `Sync`:
/// ```compile_fail,E0277
/// use corelay_structures::fine::LazyList;
///
/// let list = LazyList::<std::cell::Cell<u64>>::new();
/// std::thread::scope(|s| {
///     s.spawn(|| drop(&list));
/// });
/// ```
/// A key may be dropped after the list, by any thread, so it borrows nothing and is `Send`:
/// ```compile_fail
/// use corelay_structures::fine::LazyList;
///
/// let name = String::from("a");
/// LazyList::new().insert(&*name);
/// ```
pub struct LazyList<T> {
    head: Place<T>,
    domain: Domain,
}

/// The part of a node that is not its key. The head is one without a node.
struct Place<T> {
    lock: NodeLock,
    is_removed: AtomicBool,
    next: Link<Node<T>>,
}

struct Node<T> {
    key: T,
    place: Place<T>,
}

// SAFETY: the list owns its keys, and drops them on any thread.
unsafe impl<T: Send> Send for LazyList<T> {}
// SAFETY: threads look at keys at the same time, and the one that adds a key need not be the one
// that drops it.
unsafe impl<T: Send + Sync> Sync for LazyList<T> {}

impl<T> Place<T> {
    fn before(next: Option<Ref<'_, Node<T>>>) -> Self {
        Self {
            lock: NodeLock::default(),
            is_removed: AtomicBool::new(false),
            next: Link::to(next),
        }
    }

    fn is_removed(&self) -> bool {
        // Relaxed: in the lock, the lock orders it. In a search, a removal that came before the
        // call is seen, as one word is coherent; another one is concurrent.
        self.is_removed.load(Ordering::Relaxed)
    }
}

/// A place in the list: the one before it, the node that comes next, and whether that has the key.
type Gap<'g, T> = (&'g Place<T>, Option<Ref<'g, Node<T>>>, bool);

impl<T> LazyList<T> {
    /// Makes an empty list. It allocates nothing before the first key.
    #[must_use]
    pub fn new() -> Self {
        Self {
            head: Place::before(None),
            domain: Domain::new(),
        }
    }

    /// Calls `f` on the keys in ascending order. Keys that are there from the beginning to the end
    /// are among them; of those that come or go meanwhile some may be.
    ///
    /// ```
    /// use corelay_structures::fine::LazyList;
    ///
    /// let mut sum = 0;
    /// LazyList::from_iter([1, 2, 3]).for_each(|key| sum += key);
    /// assert_eq!(sum, 6);
    /// ```
    pub fn for_each(&self, mut f: impl FnMut(&T)) {
        let guard = self.domain.pin();
        let mut at = self.head.next.load(&guard);
        while let Some(node) = at {
            let Node { key, place } = node.get();
            if !place.is_removed() {
                f(key);
            }
            at = place.next.load(&guard);
        }
    }
}

impl<T: Ord + Send + 'static> LazyList<T> {
    /// Adds `key`. Returns false if it was there already; then the list keeps the one that it has.
    ///
    /// ```
    /// use corelay_structures::fine::LazyList;
    ///
    /// let list = LazyList::new();
    /// assert!(list.insert("a") && !list.insert("a"));
    /// ```
    pub fn insert(&self, key: T) -> bool {
        let guard = self.domain.pin();
        loop {
            let (before, next, is_found) = self.seek(&key, &guard);
            if is_found && next.is_some_and(|node| !node.get().place.is_removed()) {
                return false;
            }
            // If a node with the key is being removed, its remover holds this lock.
            let _lock = before.lock.lock();
            if before.is_removed() || before.next.load(&guard) != next {
                continue;
            }
            let place = Place::before(next);
            before.next.set(Some(Ref::new(Node { key, place }, &guard)));
            return true;
        }
    }

    /// Removes `key`. Returns false if it was not there.
    ///
    /// ```
    /// use corelay_structures::fine::LazyList;
    ///
    /// let list = LazyList::from_iter(["a".to_owned()]);
    /// assert!(list.remove("a") && !list.remove("a"));
    /// ```
    pub fn remove<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let guard = self.domain.pin();
        loop {
            let (before, next, is_found) = self.seek(key, &guard);
            let Some(node) = next.filter(|_| is_found) else {
                return false;
            };
            let place = &node.get().place;
            if place.is_removed() {
                return false;
            }
            let locks = (before.lock.lock(), place.lock.lock());
            if before.is_removed() || before.next.load(&guard) != next {
                continue;
            }
            // Relaxed: see `is_removed`.
            place.is_removed.store(true, Ordering::Relaxed);
            before.next.set(place.next.load(&guard));
            drop(locks);
            // SAFETY: the node was linked by `before` alone, which was in the list, and links past
            // it now. It is removed by one thread, in its lock, and so retired once.
            unsafe { node.retire(&guard) };
            return true;
        }
    }

    /// Whether `key` is in the list. Takes no lock.
    ///
    /// ```
    /// use corelay_structures::fine::LazyList;
    ///
    /// assert!(LazyList::from_iter(["a".to_owned()]).contains("a"));
    /// ```
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let guard = self.domain.pin();
        let (_, next, is_found) = self.seek(key, &guard);
        is_found && next.is_some_and(|node| !node.get().place.is_removed())
    }

    /// The gap before the first key that is not less than `key`.
    fn seek<'g, Q: Ord + ?Sized>(&'g self, key: &Q, guard: &'g Guard<'_>) -> Gap<'g, T>
    where
        T: Borrow<Q>,
    {
        let mut before = &self.head;
        loop {
            let next = before.next.load(guard);
            let Some(node) = next else {
                return (before, None, false);
            };
            let node = node.get();
            match node.key.borrow().cmp(key) {
                Less => before = &node.place,
                order => return (before, next, order.is_eq()),
            }
        }
    }
}

impl<T> Drop for LazyList<T> {
    fn drop(&mut self) {
        let mut link = std::mem::take(&mut self.head.next);
        exhaust(std::iter::from_fn(|| {
            // SAFETY: nobody else has the list, whose nodes have one link each.
            let node = unsafe { link.take() }?;
            link = node.place.next;
            Some(node.key)
        }));
    }
}

impl<T> Default for LazyList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Ord + Send + 'static> Extend<T> for LazyList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<T: Ord + Send + 'static> FromIterator<T> for LazyList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(keys: I) -> Self {
        let mut list = Self::new();
        list.extend(keys);
        list
    }
}

impl<T: fmt::Debug> fmt::Debug for LazyList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_set();
        self.for_each(|key| {
            set.entry(key);
        });
        set.finish()
    }
}
