//! A sorted linked list.

use super::domain::{Domain, Grave, Inner};
use super::log::{Garbage, Object};
use super::session::{Abort, Section, Session, WriteSection};
use super::stats::Stats;
use corelay_clock::Clock;
use corelay_sync::facade::atomic::Ordering;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// What a node holds; the head's key and value are not there.
#[derive(Clone, Copy)]
pub(super) struct Node<K: Copy, V: Copy> {
    next: Option<Link<K, V>>,
    key: MaybeUninit<K>,
    value: MaybeUninit<V>,
}

pub(super) type Link<K, V> = NonNull<Object<Node<K, V>>>;

/// A node, and what a section sees of it.
type Met<K, V> = (Link<K, V>, NonNull<Node<K, V>>);

impl<K: Copy, V: Copy> Node<K, V> {
    pub(super) fn head() -> Self {
        Self {
            next: None,
            key: MaybeUninit::uninit(),
            value: MaybeUninit::uninit(),
        }
    }
}

/// A place in a list: the last node before it, and the first behind it with its node.
struct Position<K: Copy, V: Copy> {
    before: Link<K, V>,
    behind: Option<Met<K, V>>,
    is_found: bool,
}

/// The operations on a chain of nodes behind a head; lists and the buckets of tables.
///
/// # Safety
/// Of all: the head lives, its chain is changed by these functions alone, and its domain is that of
/// the section.
pub(super) mod chain {
    use super::{
        Abort, Clock, Garbage, Link, Node, NonNull, Object, Position, Section, WriteSection,
    };
    use std::mem::MaybeUninit;

    /// # Safety
    /// The node is in the chain or has been when the section began, and is not the head.
    #[inline(always)]
    unsafe fn key<K: Copy, V: Copy>(node: NonNull<Node<K, V>>) -> K {
        // SAFETY: the caller's duty.
        let node = unsafe { node.as_ref() };
        // SAFETY: every node but the head has one.
        unsafe { node.key.assume_init() }
    }

    /// Where `key` is or would be.
    ///
    /// # Safety
    /// Of the module.
    #[inline(always)]
    unsafe fn seek<K: Copy + Ord, V: Copy, C: Clock>(
        section: &Section<'_, C>,
        head: Link<K, V>,
        wanted: &K,
    ) -> Position<K, V> {
        let mut before = head;
        // SAFETY: of the module.
        let mut at = unsafe { section.read(head) };
        loop {
            // SAFETY: read in this section.
            let Some(next) = unsafe { at.as_ref() }.next else {
                return Position {
                    before,
                    behind: None,
                    is_found: false,
                };
            };
            // SAFETY: read from a node that lives for this section.
            at = unsafe { section.read(next) };
            // SAFETY: not the head.
            let found = unsafe { key(at) };
            if found >= *wanted {
                return Position {
                    before,
                    behind: Some((next, at)),
                    is_found: found == *wanted,
                };
            }
            before = next;
        }
    }

    /// # Safety
    /// Of the module.
    #[inline(always)]
    pub(in super::super) unsafe fn get<K: Copy + Ord, V: Copy, C: Clock>(
        section: &Section<'_, C>,
        head: Link<K, V>,
        key: &K,
    ) -> Option<V> {
        // SAFETY: of the module.
        let place = unsafe { seek(section, head, key) };
        let (_, node) = place.behind.filter(|_| place.is_found)?;
        // SAFETY: read in this section.
        let node = unsafe { node.as_ref() };
        // SAFETY: every node but the head has one.
        Some(unsafe { node.value.assume_init() })
    }

    /// # Safety
    /// Of the module.
    #[inline(always)]
    pub(in super::super) unsafe fn insert<K, V, C: Clock>(
        section: &mut WriteSection<'_, C>,
        head: Link<K, V>,
        key: K,
        value: V,
    ) -> Result<bool, Abort>
    where
        K: Copy + Ord + Send + Sync + 'static,
        V: Copy + Send + Sync + 'static,
    {
        // SAFETY: of the module.
        let place = unsafe { seek(section, head, &key) };
        if place.is_found {
            return Ok(false);
        }
        // SAFETY: it lives for this section; nodes are freed behind the sync that unlinks them.
        let mut before = unsafe { section.lock(place.before) }?;
        let node = Object::new(Node {
            next: place.behind.map(|(node, _)| node),
            key: MaybeUninit::new(key),
            value: MaybeUninit::new(value),
        });
        // SAFETY: a box is not null.
        let node = unsafe { NonNull::new_unchecked(Box::into_raw(Box::new(node))) };
        section.journal().note_born(Garbage::boxed(node));
        // SAFETY: locked by this section.
        unsafe { before.as_mut() }.next = Some(node);
        Ok(true)
    }

    /// # Safety
    /// Of the module.
    #[inline(always)]
    pub(in super::super) unsafe fn remove<K, V, C: Clock>(
        section: &mut WriteSection<'_, C>,
        head: Link<K, V>,
        key: &K,
    ) -> Result<Option<V>, Abort>
    where
        K: Copy + Ord + Send + Sync + 'static,
        V: Copy + Send + Sync + 'static,
    {
        // SAFETY: of the module.
        let place = unsafe { seek(section, head, key) };
        let Some((gone, _)) = place.behind.filter(|_| place.is_found) else {
            return Ok(None);
        };
        // SAFETY: as in `insert`.
        let mut before = unsafe { section.lock(place.before) }?;
        // Locked too: nobody is to link something behind it, or to remove the next.
        // SAFETY: as in `insert`.
        let node = unsafe { section.lock(gone) }?;
        // SAFETY: locked by this section.
        let node = unsafe { node.as_ref() };
        // SAFETY: as above.
        unsafe { before.as_mut() }.next = node.next;
        section.journal().note_leaving(Garbage::boxed(gone));
        // SAFETY: every node but the head has one.
        Ok(Some(unsafe { node.value.assume_init() }))
    }

    /// What is behind `at`.
    ///
    /// # Safety
    /// Of the module; `at` was read in this section.
    #[inline(always)]
    pub(in super::super) unsafe fn next<K: Copy, V: Copy, C: Clock>(
        section: &Section<'_, C>,
        at: NonNull<Node<K, V>>,
    ) -> Option<NonNull<Node<K, V>>> {
        // SAFETY: the caller's duty.
        let next = unsafe { at.as_ref() }.next?;
        // SAFETY: read from a node that lives for this section.
        Some(unsafe { section.read(next) })
    }

    /// A node's key and value.
    ///
    /// # Safety
    /// Of the module; `at` was read in this section, and is not the head.
    #[inline(always)]
    pub(in super::super) unsafe fn entry<K: Copy, V: Copy>(at: NonNull<Node<K, V>>) -> (K, V) {
        // SAFETY: the caller's duty.
        let key = unsafe { key(at) };
        // SAFETY: as above.
        let value = unsafe { at.as_ref() }.value;
        // SAFETY: every node but the head has one.
        (key, unsafe { value.assume_init() })
    }

    /// True where no log has locked any node of the chain.
    ///
    /// # Safety
    /// Nobody but a log has the chain.
    pub(in super::super) unsafe fn is_free<K: Copy, V: Copy>(head: Link<K, V>) -> bool {
        let mut at = Some(head);
        while let Some(link) = at {
            // SAFETY: the caller's duty.
            let object = unsafe { link.as_ref() };
            // Acquire: pairs with `unlock`, the log's last access.
            let header = object.header.load(super::Ordering::Acquire);
            if !header.is_null() {
                return false;
            }
            // SAFETY: nobody has locked it, so nobody changes it.
            at = object.data.with(|node| unsafe { (*node).next });
        }
        true
    }

    /// Frees the nodes behind the head.
    ///
    /// # Safety
    /// Nobody has the chain.
    pub(in super::super) unsafe fn free<K: Copy, V: Copy>(head: Link<K, V>) {
        // SAFETY: the caller's duty.
        let head = unsafe { head.as_ref() };
        // SAFETY: as above.
        let mut at = head.data.with(|node| unsafe { (*node).next });
        while let Some(link) = at {
            // SAFETY: made from a box by `insert`.
            let node = unsafe { Box::from_raw(link.as_ptr()) };
            // SAFETY: as above.
            at = node.data.with(|node| unsafe { (*node).next });
        }
    }
}

/// A sorted list of keys, each with a value: read under one snapshot, changed node by node.
///
/// As a set, with `V = ()`, `RluList<C>` is one of `u64`s.
///
/// ```
/// use corelay_clock::Logical;
/// use corelay_txn::rlu::RluList;
///
/// let list = RluList::<_>::new(Logical::new());
/// let mut session = list.session();
/// assert!(session.insert(3, ()));
/// assert!(session.insert(1, ()));
/// assert!(!session.insert(3, ()));
/// assert!(session.contains(&1));
/// assert_eq!(session.remove(&1), Some(()));
/// assert_eq!(session.to_vec(), [(3, ())]);
/// ```
pub struct RluList<C, K: Copy + Send + Sync + 'static = u64, V: Copy + Send + Sync + 'static = ()> {
    head: Link<K, V>,
    domain: Domain<C>,
}

// SAFETY: what is reached through it is `Send` and `Sync`; sections keep writers from readers.
unsafe impl<C: Send + Sync, K: Copy + Send + Sync, V: Copy + Send + Sync> Send
    for RluList<C, K, V>
{
}
// SAFETY: as above.
unsafe impl<C: Send + Sync, K: Copy + Send + Sync, V: Copy + Send + Sync> Sync
    for RluList<C, K, V>
{
}

impl<C, K, V> RluList<C, K, V>
where
    C: Clock,
    K: Copy + Ord + Send + Sync + 'static,
    V: Copy + Send + Sync + 'static,
{
    /// An empty list in a domain of its own, by this clock, without deferral.
    pub fn new(clock: C) -> Self {
        Self::new_in(&Domain::new(clock))
    }

    /// An empty list in a domain that it shares: sections span all that is in it.
    pub fn new_in(domain: &Domain<C>) -> Self {
        let head = Box::into_raw(Box::new(Object::new(Node::head())));
        Self {
            // SAFETY: a box is not null.
            head: unsafe { NonNull::new_unchecked(head) },
            domain: domain.clone(),
        }
    }

    /// The domain that it is in.
    pub fn domain(&self) -> &Domain<C> {
        &self.domain
    }

    /// A session with the list's own operations.
    pub fn session(&self) -> ListSession<'_, C, K, V> {
        ListSession {
            list: self,
            session: self.domain.session(),
        }
    }

    #[inline(always)]
    fn head(&self, of: &Inner<C>) -> Link<K, V> {
        assert!(
            self.domain.is(of),
            "an RLU list of another domain: use a session of the list's domain"
        );
        self.head
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, section: &Section<'_, C>, key: &K) -> Option<V> {
        let head = self.head(section.inner());
        // SAFETY: the list keeps it, and changes it as the module says; checked above.
        unsafe { chain::get(section, head, key) }
    }

    /// True where `key` is in it.
    #[inline]
    pub fn contains(&self, section: &Section<'_, C>, key: &K) -> bool {
        self.get(section, key).is_some()
    }

    /// All keys and values in order, as of the section's beginning.
    #[inline]
    pub fn iter<'a>(&'a self, section: &'a Section<'_, C>) -> impl Iterator<Item = (K, V)> + 'a {
        let head = self.head(section.inner());
        // SAFETY: the list keeps it.
        let mut at = unsafe { section.read(head) };
        std::iter::from_fn(move || {
            // SAFETY: as above; `at` was read in this section.
            at = unsafe { chain::next(section, at) }?;
            // SAFETY: as above, and not the head.
            Some(unsafe { chain::entry(at) })
        })
    }

    /// Adds `key`; false where it is in it already, whose value stays.
    ///
    /// # Errors
    /// Where another session has locked what is in front of its place.
    #[inline]
    pub fn insert(
        &self,
        section: &mut WriteSection<'_, C>,
        key: K,
        value: V,
    ) -> Result<bool, Abort> {
        let head = self.head(section.inner());
        // SAFETY: as in `get`.
        unsafe { chain::insert(section, head, key, value) }
    }

    /// Takes `key` out; its value, or none where it is not in it.
    ///
    /// # Errors
    /// Where another session has locked it or what is in front of it.
    #[inline]
    pub fn remove(&self, section: &mut WriteSection<'_, C>, key: &K) -> Result<Option<V>, Abort> {
        let head = self.head(section.inner());
        // SAFETY: as in `get`.
        unsafe { chain::remove(section, head, key) }
    }
}

impl<C, K: Copy + Send + Sync, V: Copy + Send + Sync> Drop for RluList<C, K, V> {
    fn drop(&mut self) {
        /// # Safety
        /// The head of a list that nobody has but logs.
        unsafe fn try_free<K: Copy, V: Copy>(place: NonNull<()>) -> bool {
            let head: Link<K, V> = place.cast();
            // SAFETY: the caller's duty.
            if !unsafe { chain::is_free(head) } {
                return false;
            }
            // SAFETY: and no log has any of it.
            unsafe { chain::free(head) };
            // SAFETY: as above; made from a box.
            drop(unsafe { Box::from_raw(head.as_ptr()) });
            true
        }
        // SAFETY: the list is gone, and sections that read it have borrowed it.
        let grave = unsafe { Grave::new(self.head.cast(), try_free::<K, V>) };
        self.domain.bury(grave);
    }
}

impl<C, K: Copy + Send + Sync, V: Copy + Send + Sync> fmt::Debug for RluList<C, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RluList").finish_non_exhaustive()
    }
}

/// A session of a list's domain, with the list's operations, each in a section of its own.
pub struct ListSession<
    'l,
    C: Clock,
    K: Copy + Send + Sync + 'static = u64,
    V: Copy + Send + Sync + 'static = (),
> {
    list: &'l RluList<C, K, V>,
    session: Session<C>,
}

impl<C, K, V> ListSession<'_, C, K, V>
where
    C: Clock,
    K: Copy + Ord + Send + Sync + 'static,
    V: Copy + Send + Sync + 'static,
{
    /// True where `key` is in it.
    #[track_caller]
    #[inline]
    pub fn contains(&mut self, key: &K) -> bool {
        self.session
            .read(|section| self.list.contains(section, key))
    }

    /// The value of `key`.
    #[track_caller]
    #[inline]
    pub fn get(&mut self, key: &K) -> Option<V> {
        self.session.read(|section| self.list.get(section, key))
    }

    /// Adds `key`; false where it is in it already.
    #[track_caller]
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> bool {
        self.session
            .write(|section| self.list.insert(section, key, value))
    }

    /// Takes `key` out; its value, or none where it is not in it.
    #[track_caller]
    #[inline]
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.session.write(|section| self.list.remove(section, key))
    }

    /// All of it, of one moment.
    #[track_caller]
    pub fn to_vec(&mut self) -> Vec<(K, V)> {
        self.session
            .read(|section| self.list.iter(section).collect())
    }

    /// The session itself: to span several operations by one section, or to
    /// [`sync`](Session::sync).
    pub fn session(&mut self) -> &mut Session<C> {
        &mut self.session
    }

    /// What it has counted.
    pub fn stats(&self) -> Stats {
        self.session.stats()
    }
}

impl<C: Clock, K: Copy + Send + Sync, V: Copy + Send + Sync> fmt::Debug
    for ListSession<'_, C, K, V>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListSession").finish_non_exhaustive()
    }
}
