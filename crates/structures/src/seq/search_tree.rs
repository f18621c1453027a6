//! A binary search tree that is never balanced.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

/// A map in ascending order of its keys, kept as a binary search tree that is never balanced.
///
/// It is the "simple, unbalanced tree" of the ffwd figures. Entries stay where they were inserted,
/// so the depth depends on the order of insertion: about 3 log₂ n if it is random, and n if the
/// keys came in ascending or descending order; the tree is then a list. `get`, `insert` and
/// `remove` take O(depth). Nothing recurses, so a deep tree does not use up the thread's stack. Use
/// it to compare with concurrent trees of this shape; if you only need a sorted map, use
/// `BTreeMap`, which never degenerates.
///
/// An entry with two children is removed as Hibbard has it ("Some combinatorial properties of
/// certain trees with applications to searching and sorting", 1962): the next greater entry takes
/// its place.
///
/// ```
/// use corelay_structures::seq::SearchTree;
///
/// let mut tree = SearchTree::from_iter([(5, "five"), (2, "two"), (8, "eight")]);
/// assert_eq!(tree.remove(&5), Some("five"));
/// assert_eq!(tree.insert(8, "acht"), Some("eight"));
/// assert!(tree.iter().eq([(&2, &"two"), (&8, &"acht")]));
/// ```
pub struct SearchTree<K, V> {
    root: Link<K, V>,
    len: usize,
}

/// A subtree, or none.
struct Link<K, V>(Option<Box<Node<K, V>>>);

struct Node<K, V> {
    key: K,
    value: V,
    left: Link<K, V>,
    right: Link<K, V>,
}

impl<K, V> Link<K, V> {
    const EMPTY: Self = Self(None);

    /// Puts a leaf here, where nothing is.
    fn set(&mut self, key: K, value: V) {
        let [left, right] = [Self::EMPTY, Self::EMPTY];
        self.0 = Some(Box::new(Node {
            key,
            value,
            left,
            right,
        }));
    }

    /// The link of the entry for `key`, or the empty one that belongs to it.
    fn seek<Q: Ord + ?Sized>(&mut self, key: &Q) -> &mut Self
    where
        K: Borrow<Q>,
    {
        let mut link = self;
        loop {
            let side = link.0.as_ref().map(|node| key.cmp(node.key.borrow()));
            let Some(side @ (Ordering::Less | Ordering::Greater)) = side else {
                return link;
            };
            let node = link.0.as_mut().expect("has a node");
            link = if side.is_lt() {
                &mut node.left
            } else {
                &mut node.right
            };
        }
    }

    /// The link of the least entry, or this one if there is none.
    fn least(&mut self) -> &mut Self {
        let mut link = self;
        while link.0.as_ref().is_some_and(|node| node.left.0.is_some()) {
            link = &mut link.0.as_mut().expect("has a node").left;
        }
        link
    }

    /// Takes the entry at the top of this subtree.
    fn take_top(&mut self) -> Option<(K, V)> {
        let mut top = self.0.take()?;
        self.0 = match (top.left.0.take(), top.right.0.take()) {
            (left, None) => left,
            (None, right) => right,
            (left, right) => {
                top.right.0 = right;
                let link = top.right.least();
                let mut next = link.0.take();
                if let Some(next) = &mut next {
                    link.0 = next.right.0.take();
                    next.left.0 = left;
                    next.right.0 = top.right.0.take();
                }
                next
            }
        };
        Some((top.key, top.value))
    }

    /// Takes the least entry of a tree that is given up: turns it to the right on the way, until
    /// the least is at the top. An edge is turned once, so taking all n entries takes O(n), and no
    /// memory.
    fn unravel(&mut self) -> Option<(K, V)> {
        let mut top = self.0.take()?;
        while let Some(mut left) = top.left.0.take() {
            top.left.0 = left.right.0.take();
            left.right.0 = Some(top);
            top = left;
        }
        self.0 = top.right.0.take();
        Some((top.key, top.value))
    }
}

impl<K, V> Drop for Link<K, V> {
    fn drop(&mut self) {
        // If the drop of an entry panics, the rest is still in `self`, and is dropped with it.
        while self.unravel().is_some() {}
    }
}

impl<K, V> SearchTree<K, V> {
    /// Makes an empty tree. It allocates nothing before the first entry.
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// assert!(SearchTree::<u64, u64>::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        let root = Link::EMPTY;
        Self { root, len: 0 }
    }

    /// The number of entries, in O(1).
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Drops all entries.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The entry with the least key, in O(depth).
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let tree = SearchTree::from_iter([(2, 'b'), (1, 'a')]);
    /// assert_eq!(tree.first_key_value(), Some((&1, &'a')));
    /// ```
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// Takes the entry with the least key, in O(depth).
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let mut tree = SearchTree::from_iter([(2, 'b'), (1, 'a')]);
    /// assert_eq!(tree.pop_first(), Some((1, 'a')));
    /// assert_eq!(tree.len(), 1);
    /// ```
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let entry = self.root.least().take_top()?;
        self.len -= 1;
        Some(entry)
    }

    /// The entries in ascending order of their keys. The iterator has memory for O(depth) pointers.
    pub fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new() };
        iter.descend(&self.root);
        iter
    }

    /// Drops the entries that `keep` refuses. It may change the values of the others, and sees them
    /// in no particular order. It takes O(n), and O(depth) more for each entry refused.
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let mut tree = SearchTree::from_iter([(1, 10), (2, 20)]);
    /// tree.retain(|key, value| {
    ///     *value += 1;
    ///     *key == 2
    /// });
    /// assert!(tree.into_iter().eq([(2, 21)]));
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut below = vec![&mut self.root];
        while let Some(link) = below.pop() {
            while link
                .0
                .as_mut()
                .is_some_and(|node| !keep(&node.key, &mut node.value))
            {
                self.len -= 1;
                drop(link.take_top());
            }
            if let Some(node) = &mut link.0 {
                below.push(&mut node.left);
                below.push(&mut node.right);
            }
        }
    }
}

impl<K: Ord, V> SearchTree<K, V> {
    /// The value of `key`.
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let tree = SearchTree::from_iter([("a".to_owned(), 1)]);
    /// assert_eq!((tree.get("a"), tree.get("b")), (Some(&1), None));
    /// ```
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut link = &self.root;
        loop {
            let node = link.0.as_ref()?;
            link = match key.cmp(node.key.borrow()) {
                Ordering::Less => &node.left,
                Ordering::Greater => &node.right,
                Ordering::Equal => return Some(&node.value),
            };
        }
    }

    /// The value of `key`, to be changed in place.
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let mut tree = SearchTree::from_iter([(1, 10)]);
    /// *tree.get_mut(&1).unwrap() += 1;
    /// assert_eq!(tree.get(&1), Some(&11));
    /// ```
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let node = self.root.seek(key).0.as_mut()?;
        Some(&mut node.value)
    }

    /// Whether there is an entry for `key`.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Sets the value of `key`, and returns the value that it had before. The tree keeps the key
    /// that it has, if any.
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let mut tree = SearchTree::new();
    /// assert_eq!((tree.insert(1, 10), tree.insert(1, 11)), (None, Some(10)));
    /// ```
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let link = self.root.seek(&key);
        if let Some(node) = &mut link.0 {
            return Some(std::mem::replace(&mut node.value, value));
        }
        link.set(key, value);
        self.len += 1;
        None
    }

    /// The value of `key`, which `make` makes if there is none yet.
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let mut counts = SearchTree::new();
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     *counts.get_or_insert_with(word, || 0) += 1;
    /// }
    /// assert_eq!(counts.get("be"), Some(&2));
    /// ```
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let Self { root, len } = self;
        let link = root.seek(&key);
        if link.0.is_none() {
            link.set(key, make());
            *len += 1;
        }
        &mut link.0.as_mut().expect("has a node").value
    }

    /// Removes `key`, and returns its value.
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let mut tree = SearchTree::from_iter([("a".to_owned(), 1)]);
    /// assert_eq!((tree.remove("a"), tree.remove("a")), (Some(1), None));
    /// ```
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, value) = self.root.seek(key).take_top()?;
        self.len -= 1;
        // If this panics, the length is right, and the value is dropped too.
        drop(key);
        Some(value)
    }

    /// The entries in ascending order of their keys, from the first that is not less than `key`.
    /// Finding that one takes O(depth).
    ///
    /// ```
    /// use corelay_structures::seq::SearchTree;
    ///
    /// let tree = SearchTree::from_iter([(1, 'a'), (3, 'c'), (5, 'e')]);
    /// assert!(tree.iter_from(&2).eq([(&3, &'c'), (&5, &'e')]));
    /// ```
    pub fn iter_from<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let mut above = Vec::new();
        let mut link = &self.root;
        while let Some(node) = &link.0 {
            link = if node.key.borrow() < key {
                &node.right
            } else {
                above.push(&**node);
                &node.left
            };
        }
        Iter { above }
    }
}

impl<K: Ord, V> Extend<(K, V)> for SearchTree<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SearchTree<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut tree = Self::new();
        tree.extend(entries);
        tree
    }
}

impl<K, V> Default for SearchTree<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SearchTree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The entries of a [`SearchTree`] in ascending order of their keys.
pub struct Iter<'a, K, V> {
    /// The nodes whose left subtrees are done and which are not, the next one last.
    above: Vec<&'a Node<K, V>>,
}

impl<'a, K, V> Iter<'a, K, V> {
    /// Goes down to the least entry.
    fn descend(&mut self, mut link: &'a Link<K, V>) {
        while let Some(node) = &link.0 {
            self.above.push(node);
            link = &node.left;
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.above.pop()?;
        self.descend(&node.right);
        Some((&node.key, &node.value))
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        let above = self.above.clone();
        Self { above }
    }
}

impl<'a, K, V> IntoIterator for &'a SearchTree<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

/// The entries of a [`SearchTree`] in ascending order of their keys, taken out of it.
pub struct IntoIter<K, V>(Link<K, V>);

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.0.unravel()
    }
}

impl<K, V> IntoIterator for SearchTree<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter(self.root)
    }
}
