//! The sorted list of Harris, as Michael has it.

use crate::exhaust::exhaust;
use crate::reclaim::{Atomic, Domain, Guard, Shared, const_fn};
use corelay_sync::facade::atomic::Ordering;
use std::borrow::Borrow;
use std::cmp;
use std::fmt;
use std::marker::PhantomData;

/// A set of keys, kept as a lock-free linked list in ascending order (Harris, "A pragmatic
/// implementation of non-blocking linked-lists", DISC 2001; Michael, "High performance dynamic
/// lock-free hash tables and list-based sets", SPAA 2002).
///
/// ```
/// use corelay_structures::lockfree::HarrisList;
///
/// let list = HarrisList::new();
/// std::thread::scope(|s| {
///     s.spawn(|| (0..100).for_each(|key| assert!(list.insert(key))));
///     s.spawn(|| (100..200).for_each(|key| assert!(list.insert(key))));
/// });
/// assert!(list.remove(&50) && !list.contains(&50));
/// assert_eq!(list.len(), 199);
/// ```
///
/// For a map, keep entries whose `Ord` and [`Borrow`] look at the key only; [`get`](Self::get)
/// clones the entry.
///
/// # When not to use it
/// A call reads every key before its own. Beyond some hundreds of keys use a tree, a skip list or
/// a hash table; a list like this is what the buckets of one are made of.
///
/// # Guarantees
/// * **Order.** Calls on a key are linearizable. An insertion takes effect when it links the node,
///   a removal when it marks it; a call that finds the key, when it reads that its node is not
///   marked. A call that does not find the key takes effect at some moment of its own during which
///   the key is not in the list. A call that sees the effect of another one happens after it.
/// * **Progress.** `insert` and `remove` are lock-free: they begin again only because another call
///   has changed the list where they are. `contains` and `get` never begin again, and write
///   nothing. A thread that is stopped inside a call keeps others from freeing memory, not from
///   their calls.
/// * **Cost.** O(n) for each call. There is no count of keys: [`len`](Self::len) counts them.
/// * **Memory.** A removed key is dropped with its node, [later](super#memory), on any thread that
///   uses a structure like this, perhaps after the list is gone, or never if the program ends
///   before. So a key is `Send` and `'static`. A list that is dropped drops its keys without
///   recursion, the others even if the drop of one panics.
/// * **Panics.** `Ord` and `Clone` run inside calls, but never between two steps that belong
///   together: after a panic the list is as before, or the call has taken effect. The list may be
///   used further, by them as well. If `Ord` contradicts itself, a key may not be found, or be
///   there twice. A panic of a removed key's drop is not passed on, because it would come out of a
///   call that happens to free memory; the panic hook tells of it.
/// * **Waiting.** While user code runs inside a call, no thread frees the memory of any structure
///   like this. It should not wait, and a fibre must not be moved to another thread inside it.
///
/// # How it works
/// ```text
///  head ──> [1] ──> [3]:marked ──> [7] ──> null
/// ```
/// To remove a key, a call marks the link that leads *out of* its node. From then on no node can be
/// linked behind it, because that would take a compare-exchange of an unmarked link. Then the node
/// is unlinked from the one before, by the same call, or by any other that finds it on its way and
/// would have to change a link there. Whoever unlinks it retires it.
///
/// A node is unlinked only from a node that is unmarked itself, so of two marked nodes in a row the
/// first one goes first. That is why `contains` may walk over marked nodes: none of those that it
/// reaches was retired before it began.
///
/// *Departures from the paper.* Its tags, against ABA, and its hazard pointers, with the checks
/// that they need after each step, are replaced by epochs. `contains` does not help to unlink
/// (Herlihy and Shavit, "The art of multiprocessor programming", section 9.8).
pub struct HarrisList<K> {
    head: Atomic<Node<K>>,
    domain: Domain,
    owns: PhantomData<K>,
}

struct Node<K> {
    /// The next node. Its mark says that *this* node's key is removed.
    next: Atomic<Node<K>>,
    key: K,
}

// SAFETY: it owns its keys. Those that are retired are `Send`, too.
unsafe impl<K: Send> Send for HarrisList<K> {}

// SAFETY: keys are moved in by any thread, dropped by any other, and compared by several at once.
unsafe impl<K: Send + Sync> Sync for HarrisList<K> {}

/// Where a key is, or would be.
struct Place<'g, K> {
    /// The link before it, in which `current` was found.
    link: &'g Atomic<Node<K>>,
    /// The first node with a key that is not less, if there is one.
    current: Shared<'g, Node<K>>,
    /// What the link out of `current` has.
    next: Shared<'g, Node<K>>,
    /// Whether `current` has the key.
    is_found: bool,
}

impl<K> HarrisList<K> {
    const_fn! {
        /// An empty list. It allocates nothing before the first key.
        #[must_use]
        pub fn new() -> Self {
            Self {
                head: Atomic::null(),
                domain: Domain::new(),
                owns: PhantomData,
            }
        }
    }

    /// The number of keys that a walk from the first key to the last one finds: between the least
    /// and the greatest number of keys during the call.
    pub fn len(&self) -> usize {
        let mut len = 0;
        self.for_each(|_| len += 1);
        len
    }

    /// Whether there is no key at some moment during the call.
    pub fn is_empty(&self) -> bool {
        let guard = self.domain.pin();
        self.walk(&guard).next().is_none()
    }

    /// Calls `f` with the keys in ascending order. A key that is in the list during the whole call
    /// is among them; one that is inserted or removed meanwhile may be.
    pub fn for_each(&self, f: impl FnMut(&K)) {
        let guard = self.domain.pin();
        self.walk(&guard).for_each(f);
    }

    /// The keys, in ascending order, that are not marked when the walk comes to them.
    fn walk<'g>(&'g self, guard: &'g Guard<'_>) -> impl Iterator<Item = &'g K> {
        // Acquire, twice: pairs with the Release in `insert`; the node is initialised.
        let mut current = self.head.load(Ordering::Acquire, guard);
        std::iter::from_fn(move || {
            loop {
                // SAFETY: read under the guard; nodes are not borrowed mutably before they are
                // freed.
                let node = unsafe { current.as_ref() }?;
                let next = node.next.load(Ordering::Acquire, guard);
                current = next.unmarked();
                if !next.is_marked() {
                    return Some(&node.key);
                }
            }
        })
    }
}

impl<K: Ord + Send + 'static> HarrisList<K> {
    /// Adds `key`. Returns false, and drops it, if it was there already.
    pub fn insert(&self, key: K) -> bool {
        let guard = self.domain.pin();
        let mut place = self.find(&key, &guard);
        if place.is_found {
            return false;
        }
        let next = Atomic::null();
        let mut node = Box::new(Node { next, key });
        loop {
            // Relaxed: published below.
            node.next.store(place.current, Ordering::Relaxed);
            let new = Shared::new(node);
            // Release: pairs with the Acquire loads of links; publishes the node.
            // Acquire: pairs with the Release in `unlink`. The search may have read an older link
            // than that from which a node with the key was unlinked, to the same node.
            if place
                .link
                .compare_exchange(place.current, new, Ordering::AcqRel)
            {
                return true;
            }
            // SAFETY: it was not linked, so nobody else has it.
            node = unsafe { new.into_box() }.expect("points to a node");
            place = self.find(&node.key, &guard);
            if place.is_found {
                return false;
            }
        }
    }

    /// Removes `key`. Returns false if it was not there.
    ///
    /// It cannot return the key, which other threads may be comparing with at this moment.
    ///
    /// ```
    /// use corelay_structures::lockfree::HarrisList;
    ///
    /// let list = HarrisList::from_iter(["a".to_owned()]);
    /// assert!(list.remove("a") && !list.remove("a"));
    /// ```
    pub fn remove<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let guard = self.domain.pin();
        loop {
            let place = self.find(key, &guard);
            if !place.is_found {
                return false;
            }
            // SAFETY: read under the guard; nodes are not borrowed mutably before they are freed.
            let node = unsafe { place.current.as_ref() }.expect("it has the key");
            // Release: pairs with the Acquire of the load that finds the mark; a call that inserts
            // the key again happens after this one.
            if !node
                .next
                .compare_exchange(place.next, place.next.marked(), Ordering::Release)
            {
                continue;
            }
            if !self.unlink(place.link, place.current, place.next, &guard) {
                // Something has changed there. The search unlinks marked nodes on its way.
                self.find(key, &guard);
            }
            return true;
        }
    }

    /// Whether `key` is in the list.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.look(key, &self.domain.pin()).is_some()
    }

    /// A clone of the key that is equal to `key`, if it is in the list.
    ///
    /// ```
    /// use corelay_structures::lockfree::HarrisList;
    ///
    /// let list = HarrisList::from_iter(["a".to_owned()]);
    /// assert_eq!(list.get("a").as_deref(), Some("a"));
    /// ```
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<K>
    where
        K: Borrow<Q> + Clone,
    {
        self.look(key, &self.domain.pin()).cloned()
    }

    /// Looks for a key without changing anything.
    fn look<'g, Q: Ord + ?Sized>(&'g self, key: &Q, guard: &'g Guard<'_>) -> Option<&'g K>
    where
        K: Borrow<Q>,
    {
        // Acquire, twice: as in `find`.
        let mut current = self.head.load(Ordering::Acquire, guard);
        loop {
            // SAFETY: read under the guard; nodes are not borrowed mutably before they are freed.
            let node = unsafe { current.as_ref() }?;
            let next = node.next.load(Ordering::Acquire, guard);
            match node.key.borrow().cmp(key) {
                cmp::Ordering::Less => current = next.unmarked(),
                cmp::Ordering::Equal if !next.is_marked() => return Some(&node.key),
                _ => return None,
            }
        }
    }

    /// Finds the place of `key`, and unlinks the marked nodes before it.
    fn find<'g, Q: Ord + ?Sized>(&'g self, key: &Q, guard: &'g Guard<'_>) -> Place<'g, K>
    where
        K: Borrow<Q>,
    {
        'again: loop {
            let mut link = &self.head;
            // Acquire: pairs with the Release in `insert` and `unlink`; the node is initialised.
            let mut current = link.load(Ordering::Acquire, guard);
            loop {
                // SAFETY: read under the guard; nodes are not borrowed mutably before they are
                // freed.
                let Some(node) = (unsafe { current.as_ref() }) else {
                    return Place {
                        link,
                        current,
                        next: current,
                        is_found: false,
                    };
                };
                // Acquire: as above; and pairs with the Release in `remove`.
                let next = node.next.load(Ordering::Acquire, guard);
                if next.is_marked() {
                    if !self.unlink(link, current, next.unmarked(), guard) {
                        continue 'again;
                    }
                    current = next.unmarked();
                    continue;
                }
                match node.key.borrow().cmp(key) {
                    cmp::Ordering::Less => (link, current) = (&node.next, next),
                    order => {
                        return Place {
                            link,
                            current,
                            next,
                            is_found: order == cmp::Ordering::Equal,
                        };
                    }
                }
            }
        }
    }

    /// Unlinks and retires `marked`, which `link` leads to, if that is still so and the node that
    /// the link is in is not marked itself.
    fn unlink(
        &self,
        link: &Atomic<Node<K>>,
        marked: Shared<'_, Node<K>>,
        next: Shared<'_, Node<K>>,
        guard: &Guard<'_>,
    ) -> bool {
        // Release: pairs with the Acquire in `find`; the next node is initialised, and a call that
        // inserts the key again happens after its removal.
        let is_mine = link.compare_exchange(marked, next, Ordering::Release);
        if is_mine {
            // SAFETY: this was the only link to the node: a node is linked once, and its link does
            // not change once it is marked. So only this call retires it. Keys are `Send` and
            // `'static`.
            unsafe { guard.retire(marked) };
        }
        is_mine
    }
}

impl<K> Drop for HarrisList<K> {
    fn drop(&mut self) {
        drop(IntoKeys::of(self));
    }
}

impl<K> Default for HarrisList<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug> fmt::Debug for HarrisList<K> {
    /// Shows the keys that [`for_each`](HarrisList::for_each) finds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = self.domain.pin();
        f.debug_set().entries(self.walk(&guard)).finish()
    }
}

impl<K: Ord + Send + 'static> Extend<K> for HarrisList<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<K: Ord + Send + 'static> FromIterator<K> for HarrisList<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut list = Self::new();
        list.extend(keys);
        list
    }
}

impl<K> IntoIterator for HarrisList<K> {
    type Item = K;
    type IntoIter = IntoKeys<K>;

    fn into_iter(mut self) -> IntoKeys<K> {
        IntoKeys::of(&mut self)
    }
}

/// The keys of a [`HarrisList`] in ascending order, taken out of it.
pub struct IntoKeys<K> {
    first: Atomic<Node<K>>,
    owns: PhantomData<K>,
}

// SAFETY: it owns its keys, and the nodes that they lie in.
unsafe impl<K: Send> Send for IntoKeys<K> {}

// SAFETY: a shared one gives access to nothing.
unsafe impl<K: Sync> Sync for IntoKeys<K> {}

impl<K> IntoKeys<K> {
    /// Takes all nodes, marked ones as well, and leaves the list empty.
    fn of(list: &mut HarrisList<K>) -> Self {
        let first = Atomic::new(list.head.load_own());
        // Relaxed: no other thread can reach it.
        list.head.store(Shared::null(), Ordering::Relaxed);
        let owns = PhantomData;
        Self { first, owns }
    }
}

impl<K> Iterator for IntoKeys<K> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        loop {
            // SAFETY: the list was borrowed mutably, so that no thread can reach its nodes but
            // this. A node that is linked is not retired.
            let node = unsafe { self.first.load_own().into_box() }?;
            let next = node.next.load_own();
            self.first = Atomic::new(next.unmarked());
            if !next.is_marked() {
                return Some(node.key);
            }
        }
    }
}

impl<K> std::iter::FusedIterator for IntoKeys<K> {}

impl<K> Drop for IntoKeys<K> {
    fn drop(&mut self) {
        exhaust(self);
    }
}

impl<K> fmt::Debug for IntoKeys<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoKeys").finish_non_exhaustive()
    }
}
