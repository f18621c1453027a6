//! A linked list of keys in ascending order.

use super::chain::{self, Link};
use std::borrow::Borrow;
use std::fmt;

/// A set of keys, kept as a singly linked list in ascending order.
///
/// It is the naïve list of the ffwd figures, which have 1,024 nodes: a long section, in which a
/// thread does little but follow pointers. If you only need a sorted set, use `BTreeSet`.
///
/// A search reads every key before its own: `insert`, `remove` and `contains` take O(n). Many keys
/// at once cost one pass if they are in ascending order: `extend`,
/// [`contains_each`](Self::contains_each) and [`remove_each`](Self::remove_each) go on from the key
/// before, and return to the front of the list only if the next key is less.
///
/// ```
/// use corelay_structures::seq::SortedList;
///
/// let mut list = SortedList::from_iter([5, 1, 3]);
/// assert!(list.insert(4));
/// assert!(!list.insert(3)); // is there already
/// assert_eq!(list.remove(&1), Some(1));
/// assert!(list.iter().eq(&[3, 4, 5]));
/// ```
pub struct SortedList<T> {
    head: Link<T>,
    len: usize,
}

impl<T> SortedList<T> {
    /// Makes an empty list. It allocates nothing before the first key.
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// assert!(SortedList::<u64>::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        let head = Link::END;
        Self { head, len: 0 }
    }

    /// The number of keys, in O(1).
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Drops all keys.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The least key, in O(1).
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// assert_eq!(SortedList::from_iter([2, 1]).first(), Some(&1));
    /// ```
    pub fn first(&self) -> Option<&T> {
        self.head.first()
    }

    /// Takes the least key, in O(1).
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// let mut list = SortedList::from_iter([2, 1]);
    /// assert_eq!(list.pop_first(), Some(1));
    /// assert_eq!(list.len(), 1);
    /// ```
    pub fn pop_first(&mut self) -> Option<T> {
        let key = self.head.pop()?;
        self.len -= 1;
        Some(key)
    }

    /// The keys in ascending order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter((&self.head).into_iter())
    }

    /// Drops the keys that `keep` refuses. It sees them in ascending order.
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// let mut list = SortedList::from_iter(0..6);
    /// list.retain(|key| key % 2 == 0);
    /// assert!(list.iter().eq(&[0, 2, 4]));
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.head.retain(&mut self.len, |key| keep(key));
    }
}

impl<T: Ord> SortedList<T> {
    /// Adds `key`. Returns false if it was there already; then the list keeps the one that it has.
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// let mut list = SortedList::new();
    /// assert!(list.insert("a") && !list.insert("a"));
    /// ```
    pub fn insert(&mut self, key: T) -> bool {
        place(&mut self.head, &mut self.len, key).1
    }

    /// Removes `key` and returns it.
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// let mut list = SortedList::from_iter(["a".to_owned()]);
    /// assert_eq!(list.remove("a").as_deref(), Some("a"));
    /// assert_eq!(list.remove("a"), None);
    /// ```
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<T>
    where
        T: Borrow<Q>,
    {
        let link = self.head.seek(|it| it.borrow() >= key);
        if link.first()?.borrow() != key {
            return None;
        }
        self.len -= 1;
        link.pop()
    }

    /// Whether `key` is in the list.
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// assert!(SortedList::from_iter(["a".to_owned()]).contains("a"));
    /// ```
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let at = (&self.head).into_iter().find(|it| (*it).borrow() >= key);
        at.is_some_and(|it| it.borrow() == key)
    }

    /// Whether each of `keys` is in the list. Ascending keys take one pass.
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// let list = SortedList::from_iter([1, 3]);
    /// assert!(list.contains_each(&[1, 2, 3]).eq([true, false, true]));
    /// ```
    pub fn contains_each<'a, Q: Ord + ?Sized + 'a>(
        &'a self,
        keys: impl IntoIterator<Item = &'a Q>,
    ) -> impl Iterator<Item = bool>
    where
        T: Borrow<Q>,
    {
        let mut rest = (&self.head).into_iter().peekable();
        let mut last = None;
        keys.into_iter().map(move |key| {
            if last.replace(key).is_some_and(|last| key < last) {
                rest = (&self.head).into_iter().peekable();
            }
            while rest.next_if(|it| (*it).borrow() < key).is_some() {}
            rest.peek().is_some_and(|it| (*it).borrow() == key)
        })
    }

    /// Removes each of `keys`, and returns how many of them were there. Ascending keys take one
    /// pass.
    ///
    /// ```
    /// use corelay_structures::seq::SortedList;
    ///
    /// let mut list = SortedList::from_iter([1, 3]);
    /// assert_eq!(list.remove_each(&[1, 2, 3]), 2);
    /// assert!(list.is_empty());
    /// ```
    pub fn remove_each<'a, Q: Ord + ?Sized + 'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a Q>,
    ) -> usize
    where
        T: Borrow<Q>,
    {
        let Self { head, len } = self;
        let mut link = &mut *head;
        let mut last = None;
        let mut removed = 0;
        for key in keys {
            if last.replace(key).is_some_and(|last| key < last) {
                link = &mut *head;
            }
            link = link.seek(|it| it.borrow() >= key);
            if link.first().is_some_and(|it| it.borrow() == key) {
                *len -= 1;
                removed += 1;
                drop(link.pop());
            }
        }
        removed
    }
}

/// Searches from `link` for `key`, and adds it if it is missing. Returns the key's own link, and
/// whether it was added.
fn place<'a, T: Ord>(link: &'a mut Link<T>, len: &mut usize, key: T) -> (&'a mut Link<T>, bool) {
    let link = link.seek(|it| *it >= key);
    let is_missing = link.first() != Some(&key);
    if is_missing {
        link.push(key);
        *len += 1;
    }
    (link, is_missing)
}

impl<T: Ord> Extend<T> for SortedList<T> {
    /// Inserts each of `keys`. Ascending keys take one pass.
    fn extend<I: IntoIterator<Item = T>>(&mut self, keys: I) {
        let Self { head, len } = self;
        // From the second key on, the link of the one before, which is in the list for certain.
        let mut link = &mut *head;
        for key in keys {
            if link.first().is_some_and(|last| key < *last) {
                link = &mut *head;
            }
            link = place(link, len, key).0;
        }
    }
}

impl<T: Ord> FromIterator<T> for SortedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(keys: I) -> Self {
        let mut list = Self::new();
        list.extend(keys);
        list
    }
}

impl<T> Default for SortedList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for SortedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

/// The keys of a [`SortedList`] in ascending order.
#[derive(Clone)]
pub struct Iter<'a, T>(chain::Iter<'a, T>);

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.0.next()
    }
}

impl<'a, T> IntoIterator for &'a SortedList<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The keys of a [`SortedList`] in ascending order, taken out of it.
pub struct IntoIter<T>(chain::IntoIter<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next()
    }
}

impl<T> IntoIterator for SortedList<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self.head.into_iter())
    }
}
