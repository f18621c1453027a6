//! A skip list with a lock in each node.
//!
//! Herlihy, Lev, Luchangco and Shavit, "A simple optimistic skiplist algorithm", SIROCCO 2007. It
//! is a [`LazyList`](super::LazyList) on each level: a search takes no lock, and a thread that
//! changes links locks the nodes before its own on all levels of that, and validates each of them.
//!
//! An entry is on its levels from the lowest to the highest; then it is *linked*, which adds it. It
//! is marked as removed, which removes it, and then unlinked from all of them.
//!
//! * **Order of locks.** A node that is to be removed is locked first, and then those before it,
//!   from the lowest level up: greater keys before lesser ones. So threads do not wait for each
//!   other in a circle, unless a key's `Ord` contradicts itself.
//! * **Unlinking.** A node is removed only if it is linked, and only if on each of its levels the
//!   locked node before it links to it and is not removed itself. On a level a node has one link to
//!   it. So no link leads to it afterwards, whatever a key's `Ord` answers.
//! * **No code of users runs in a lock.** Keys are compared before, and dropped afterwards.
//!
//! # Where we depart from the paper
//! A node is marked when all locks are held, and not before the nodes before it are locked. If
//! validation fails, nothing has happened, and the search that follows runs without a lock: a
//! comparison that panics there leaves nothing behind. A search begins on the highest level that has
//! a node. While it compares a key, it fetches the one that it needs next if it goes down a level.
//! `docs/design/0019-structures.md` has the figures.

use super::lock::NodeGuard;
use super::tower::{self, LEVELS, Link, Node, Ref};
use crate::exhaust::exhaust;
use crate::reclaim::{Domain, Guard};
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::cell::Cell;
use corelay_sync::facade::{MODEL, hint, thread_local};
use std::borrow::Borrow;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::fmt;
use std::mem;
use std::ptr;

/// A map in ascending order of its keys, kept as a skip list: threads that change different places
/// do so at once, and a look-up waits for nobody.
///
/// `get`, `insert` and `remove` take O(log n), expected, whatever the order of the calls. A value
/// does not change while it is in the map, because look-ups read it without a lock.
///
/// A call takes effect
/// * if it adds an entry: when that is linked on its highest level;
/// * if it removes an entry: when that is marked;
/// * if it finds its key: when it reads that the entry is linked and not marked;
/// * otherwise: when it reads the lowest link over which the key is missing, or that the entry is
///   not linked yet, or is marked; or, if a thread added the key again since that entry was marked,
///   just before that.
///
/// ```
/// use corelay_structures::fine::OptimisticSkipList;
///
/// let ages = OptimisticSkipList::new();
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
/// use corelay_structures::fine::OptimisticSkipList;
///
/// let map = OptimisticSkipList::<u64, std::cell::Cell<u64>>::new();
/// std::thread::scope(|s| {
///     s.spawn(|| drop(&map));
/// });
/// ```
pub struct OptimisticSkipList<K, V> {
    head: tower::Tower<[Link<K, V>; LEVELS]>,
    domain: Domain,
}

// SAFETY: the list owns its entries, and drops them on any thread.
unsafe impl<K: Send, V: Send> Send for OptimisticSkipList<K, V> {}
// SAFETY: threads look at keys and values at the same time, and the one that adds an entry need not
// be the one that drops it.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for OptimisticSkipList<K, V> {}

type Tower<K, V> = tower::Tower<[Link<K, V>]>;

impl<K, V> Tower<K, V> {
    fn is_removed(&self) -> bool {
        // Relaxed: in the lock, the lock orders it. In a search, a removal that came before the
        // call is seen, as one word is coherent; another one is concurrent.
        self.is_removed.load(Ordering::Relaxed)
    }

    fn is_linked(&self) -> bool {
        // Acquire: pairs with the Release in `insert`; whoever removes the node finds all links to
        // it.
        self.is_linked.load(Ordering::Acquire)
    }

    /// Whether the entry is in the list.
    fn is_in(&self) -> bool {
        self.is_linked() && !self.is_removed()
    }
}

/// Where a key belongs: on each level the last tower before it and the node after that.
struct Path<'g, K, V> {
    before: [&'g Tower<K, V>; LEVELS],
    after: [Option<Ref<'g, K, V>>; LEVELS],
    /// The node with the key, and the highest level on which it was found.
    found: Option<(Ref<'g, K, V>, usize)>,
}

impl<'g, K, V> Path<'g, K, V> {
    /// Locks what is before the key on the lowest `levels`. `None` if the path leads through a
    /// removed node, or past a new one.
    fn lock(&self, levels: usize, guard: &Guard<'_>) -> Option<[Option<NodeGuard<'g>>; LEVELS]> {
        let mut locks = [const { None }; LEVELS];
        for (level, lock) in locks.iter_mut().enumerate().take(levels) {
            let before = self.before[level];
            if level == 0 || !ptr::eq(before, self.before[level - 1]) {
                *lock = Some(before.lock.lock());
            }
            if before.is_removed() || before.link(level).load(guard) != self.after[level] {
                return None;
            }
        }
        Some(locks)
    }
}

impl<K, V> OptimisticSkipList<K, V> {
    /// Makes an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self {
            head: tower::Tower::before(&[None; LEVELS]),
            domain: Domain::new(),
        }
    }

    fn head(&self) -> &Tower<K, V> {
        &self.head
    }

    /// The number of levels up to the highest that has a node; at least one.
    #[inline]
    fn levels(&self, guard: &Guard<'_>) -> usize {
        let mut levels = LEVELS;
        while levels > 1 && self.head().link(levels - 1).load(guard).is_none() {
            levels -= 1;
        }
        levels
    }

    /// Calls `f` on the entries in ascending order of their keys. Entries that are there from the
    /// beginning to the end are among them; of those that come or go meanwhile some may be.
    ///
    /// ```
    /// use corelay_structures::fine::OptimisticSkipList;
    ///
    /// let mut sum = 0;
    /// let map = OptimisticSkipList::from_iter([('a', 1), ('b', 2)]);
    /// map.for_each(|_, value| sum += value);
    /// assert_eq!(sum, 3);
    /// ```
    pub fn for_each(&self, mut f: impl FnMut(&K, &V)) {
        let guard = self.domain.pin();
        let mut at = self.head().link(0).load(&guard);
        while let Some(node) = at {
            let Node {
                key, value, tower, ..
            } = node.get();
            if tower.is_in() {
                f(key, value);
            }
            at = tower.link(0).load(&guard);
        }
    }
}

impl<K: Ord + Send + 'static, V: Send + 'static> OptimisticSkipList<K, V> {
    /// Adds an entry. Returns false if there is one for `key` already; then the list keeps that.
    ///
    /// ```
    /// use corelay_structures::fine::OptimisticSkipList;
    ///
    /// let map = OptimisticSkipList::new();
    /// assert!(map.insert("a", 1) && !map.insert("a", 2));
    /// assert_eq!(map.get("a"), Some(1));
    /// ```
    pub fn insert(&self, key: K, value: V) -> bool {
        let levels = draw_levels();
        let guard = self.domain.pin();
        loop {
            let path = self.find(&key, &guard);
            if let Some((node, _)) = path.found {
                let tower = &node.get().tower;
                if !tower.is_removed() {
                    wait_until(|| tower.is_linked());
                    return false;
                }
                // Its remover holds this lock until it is unlinked.
                drop(tower.lock.lock());
                continue;
            }
            let Some(locks) = path.lock(levels, &guard) else {
                continue;
            };
            let node = Ref::new(levels, key, value, &path.after, &guard);
            for level in 0..levels {
                path.before[level].link(level).set(Some(node));
            }
            // Release: pairs with the Acquire in `is_linked`.
            node.get().tower.is_linked.store(true, Ordering::Release);
            drop(locks);
            return true;
        }
    }

    /// Removes the entry for `key`, and calls `f` on its value. `None` if there is none.
    ///
    /// ```
    /// use corelay_structures::fine::OptimisticSkipList;
    ///
    /// let map = OptimisticSkipList::from_iter([("a", "one".to_owned())]);
    /// assert_eq!(map.remove_with("a", |value| value.len()), Some(3));
    /// ```
    pub fn remove_with<Q, R>(&self, key: &Q, f: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let guard = self.domain.pin();
        loop {
            let path = self.find(key, &guard);
            let (node, level) = path.found?;
            let tower = &node.get().tower;
            // If it was found below its highest level only, it was not linked then.
            if !tower.is_in() || level + 1 != tower.levels() {
                return None;
            }
            let lock = tower.lock.lock();
            if tower.is_removed() {
                return None;
            }
            let Some(locks) = path.lock(tower.levels(), &guard) else {
                continue;
            };
            // It is so if the keys are in order.
            if path.after[..tower.levels()]
                .iter()
                .any(|after| *after != Some(node))
            {
                continue;
            }
            // Relaxed: see `is_removed`.
            tower.is_removed.store(true, Ordering::Relaxed);
            for level in (0..tower.levels()).rev() {
                let next = tower.link(level).load(&guard);
                path.before[level].link(level).set(next);
            }
            drop((lock, locks));
            // SAFETY: the node was on all its levels, linked there by `before` alone, which was in
            // the list and links past it now. It is removed by one thread, in its lock, and so
            // retired once.
            unsafe { node.retire(&guard) };
            return Some(f(&node.get().value));
        }
    }

    /// Removes the entry for `key`, and returns a clone of its value, which other threads may be
    /// reading.
    ///
    /// ```
    /// use corelay_structures::fine::OptimisticSkipList;
    ///
    /// let map = OptimisticSkipList::from_iter([("a".to_owned(), 1)]);
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
    /// use corelay_structures::fine::OptimisticSkipList;
    ///
    /// let map = OptimisticSkipList::from_iter([("a", "one".to_owned())]);
    /// assert_eq!(map.get_with("a", |value| value.len()), Some(3));
    /// ```
    pub fn get_with<Q, R>(&self, key: &Q, f: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let guard = self.domain.pin();
        let mut before = self.head();
        for level in (0..self.levels(&guard)).rev() {
            while let Some(node) = before.link(level).load(&guard) {
                before.prefetch_below(level, &guard);
                let Node {
                    key: it,
                    value,
                    tower,
                    ..
                } = node.get();
                match it.borrow().cmp(key) {
                    Less => before = tower,
                    Equal => return tower.is_in().then(|| f(value)),
                    Greater => break,
                }
            }
        }
        None
    }

    /// A clone of the value of `key`.
    ///
    /// ```
    /// use corelay_structures::fine::OptimisticSkipList;
    ///
    /// let map = OptimisticSkipList::from_iter([("a".to_owned(), 1)]);
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

    fn find<'g, Q: Ord + ?Sized>(&'g self, key: &Q, guard: &'g Guard<'_>) -> Path<'g, K, V>
    where
        K: Borrow<Q>,
    {
        let mut path = Path {
            before: [self.head(); LEVELS],
            after: [None; LEVELS],
            found: None,
        };
        let mut before = self.head();
        for level in (0..self.levels(guard)).rev() {
            let after = loop {
                let after = before.link(level).load(guard);
                let Some(node) = after else { break after };
                before.prefetch_below(level, guard);
                match node.get().key.borrow().cmp(key) {
                    Less => before = &node.get().tower,
                    Equal if path.found.is_none() => {
                        path.found = Some((node, level));
                        break after;
                    }
                    _ => break after,
                }
            };
            path.before[level] = before;
            path.after[level] = after;
        }
        path
    }
}

/// Waits for a thread that is about to make `is_so` true.
fn wait_until(is_so: impl Fn() -> bool) {
    let mut backoff = Backoff::new();
    while !is_so() {
        backoff.wait();
        hint::in_vain(backoff.yields());
    }
}

/// How many levels the next entry of this thread is on (Marsaglia, "Xorshift RNGs", 2003).
fn draw_levels() -> usize {
    thread_local! {
        static RANDOM: Cell<u64> = const { Cell::new(0) };
    }
    RANDOM.with(|random| {
        if MODEL {
            // Two levels first, and then one.
            random.set(random.get() + 1);
            return 1 + random.get() as usize % 2;
        }
        let mut x = match random.get() {
            // Each thread has its own sequence.
            0 => ptr::from_ref(random).addr() as u64 ^ 0x9e37_79b9_7f4a_7c15,
            x => x,
        };
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        random.set(x);
        // Each bit is zero with the probability of a half.
        (1 + x.leading_zeros() as usize).min(LEVELS)
    })
}

impl<K, V> Drop for OptimisticSkipList<K, V> {
    fn drop(&mut self) {
        let head: &mut Tower<K, V> = &mut self.head;
        let mut link = mem::take(head.lowest_mut());
        exhaust(std::iter::from_fn(|| {
            // SAFETY: nobody else has the list. Each node has one link on the lowest level, and the
            // others are used no more.
            let mut node = unsafe { link.take() }?;
            link = mem::take(node.tower.lowest_mut());
            Some(node)
        }));
    }
}

impl<K, V> Default for OptimisticSkipList<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Extend<(K, V)> for OptimisticSkipList<K, V>
where
    K: Ord + Send + 'static,
    V: Send + 'static,
{
    /// Inserts each entry whose key is missing.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K, V> FromIterator<(K, V)> for OptimisticSkipList<K, V>
where
    K: Ord + Send + 'static,
    V: Send + 'static,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut list = Self::new();
        list.extend(entries);
        list
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for OptimisticSkipList<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.for_each(|key, value| {
            map.entry(key, value);
        });
        map.finish()
    }
}
