//! A skip list.

use std::borrow::Borrow;
use std::fmt;

/// A map in ascending order of its keys, kept as a skip list: `get`, `insert` and `remove` take
/// O(log n), expected, whatever the order of the calls.
///
/// Use it to compare with concurrent skip lists; if you only need a sorted map, use `BTreeMap`.
///
/// It is Pugh's ("Skip lists: a probabilistic alternative to balanced trees", 1990), in which an
/// entry is on each level with a quarter of the probability of the level below. His nodes are
/// allocated one by one; here they lie in one array, and links are indices of 4 bytes. That is safe
/// code without reference counts, and a node that is on the lowest level only, as three of four
/// are, has no allocation of its own. In exchange, an `insert` that finds the array full moves all
/// entries to a larger one, and the array does not shrink before [`clear`](Self::clear).
///
/// The levels come from a generator with a fixed seed: the same calls make the same list, and a
/// caller who knows that can make searches long.
///
/// ```
/// use corelay_structures::seq::SkipList;
///
/// let mut list = SkipList::from_iter([(5, "five"), (2, "two"), (8, "eight")]);
/// assert_eq!(list.remove(&5), Some("five"));
/// assert_eq!(list.insert(8, "acht"), Some("eight"));
/// assert!(list.iter().eq([(&2, &"two"), (&8, &"acht")]));
/// ```
pub struct SkipList<K, V> {
    /// The first slot is the head. On each level the slots form a ring that begins and ends there.
    slots: Vec<Slot<K, V>>,
    /// The first of the free slots, which are linked by `next`; [`HEAD`] if there are none.
    free: u32,
    /// The number of levels that have, or had, an entry other than the head.
    levels: usize,
    len: usize,
    random: u64,
}

struct Slot<K, V> {
    /// `None` in the head and in free slots.
    entry: Option<(K, V)>,
    /// The next slot on the lowest level.
    next: u32,
    /// The next slots on the levels above it.
    upper: Box<[u32]>,
}

const HEAD: u32 = 0;
/// Enough for 4¹⁶ entries, which is how many indices there are.
const LEVELS: usize = 16;
/// A slot on each level that is the last before a key.
type Before = [u32; LEVELS];

impl<K, V> SkipList<K, V> {
    /// Makes an empty list, which has one allocation.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// assert!(SkipList::<u64, u64>::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        let head = Slot {
            entry: None,
            next: HEAD,
            upper: Box::new([HEAD; LEVELS - 1]),
        };
        Self {
            slots: vec![head],
            free: HEAD,
            levels: 1,
            len: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// The number of entries, in O(1).
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Drops all entries, and frees their memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// The entry with the least key, in O(1).
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let list = SkipList::from_iter([(2, 'b'), (1, 'a')]);
    /// assert_eq!(list.first_key_value(), Some((&1, &'a')));
    /// ```
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// Takes the entry with the least key, in O(1), expected.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let mut list = SkipList::from_iter([(2, 'b'), (1, 'a')]);
    /// assert_eq!(list.pop_first(), Some((1, 'a')));
    /// assert_eq!(list.len(), 1);
    /// ```
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        self.take_after(&[HEAD; LEVELS])
    }

    /// The entries in ascending order of their keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.iter_at(self.next(HEAD, 0))
    }

    /// Drops the entries that `keep` refuses. It may change the values of the others, and sees them
    /// in ascending order.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let mut list = SkipList::from_iter([(1, 10), (2, 20)]);
    /// list.retain(|key, value| {
    ///     *value += 1;
    ///     *key == 2
    /// });
    /// assert!(list.into_iter().eq([(2, 21)]));
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut before = [HEAD; LEVELS];
        loop {
            let at = self.next(before[0], 0);
            let slot = &mut self.slots[at as usize];
            let Some((key, value)) = &mut slot.entry else {
                return;
            };
            if keep(key, value) {
                before[..=slot.upper.len()].fill(at);
            } else {
                drop(self.take_after(&before));
            }
        }
    }

    /// The slot after `at` on a level.
    fn next(&self, at: u32, level: usize) -> u32 {
        let slot = &self.slots[at as usize];
        match level {
            0 => slot.next,
            _ => slot.upper[level - 1],
        }
    }

    fn link(&mut self, at: u32, level: usize, next: u32) {
        let slot = &mut self.slots[at as usize];
        match level {
            0 => slot.next = next,
            _ => slot.upper[level - 1] = next,
        }
    }

    fn iter_at(&self, at: u32) -> Iter<'_, K, V> {
        let slots = &self.slots;
        Iter { slots, at }
    }

    /// Takes the entry that comes next on the lowest level, and frees its slot.
    fn take_after(&mut self, before: &Before) -> Option<(K, V)> {
        let at = self.next(before[0], 0);
        let entry = self.slots[at as usize].entry.take()?;
        let levels = 1 + self.slots[at as usize].upper.len();
        for (level, before) in before[..levels].iter().enumerate() {
            self.link(*before, level, self.next(at, level));
        }
        let slot = &mut self.slots[at as usize];
        slot.upper = Box::default();
        slot.next = std::mem::replace(&mut self.free, at);
        self.len -= 1;
        Some(entry)
    }

    /// Adds an entry after `before`, and returns its slot.
    fn add_after(&mut self, before: &Before, key: K, value: V) -> u32 {
        let levels = self.draw_levels();
        self.levels = self.levels.max(levels);
        let upper = 1..levels;
        let slot = Slot {
            entry: Some((key, value)),
            next: self.next(before[0], 0),
            upper: upper.map(|level| self.next(before[level], level)).collect(),
        };
        let at = if self.free == HEAD {
            let at = u32::try_from(self.slots.len());
            let at = at.expect("corelay: a skip list has at most 2^32 - 1 entries");
            self.slots.push(slot);
            at
        } else {
            let at = self.free;
            let free = std::mem::replace(&mut self.slots[at as usize], slot);
            self.free = free.next;
            at
        };
        for (level, before) in before[..levels].iter().enumerate() {
            self.link(*before, level, at);
        }
        self.len += 1;
        at
    }

    /// How many levels the next entry is on (Marsaglia, "Xorshift RNGs", 2003).
    fn draw_levels(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        // Each two bits are zero with the probability of a quarter.
        (1 + self.random.leading_zeros() as usize / 2).min(LEVELS)
    }
}

impl<K: Ord, V> SkipList<K, V> {
    /// The value of `key`.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let list = SkipList::from_iter([("a".to_owned(), 1)]);
    /// assert_eq!((list.get("a"), list.get("b")), (Some(&1), None));
    /// ```
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (_, value) = self.slots[self.find(key)? as usize].entry.as_ref()?;
        Some(value)
    }

    /// The value of `key`, to be changed in place.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let mut list = SkipList::from_iter([(1, 10)]);
    /// *list.get_mut(&1).unwrap() += 1;
    /// assert_eq!(list.get(&1), Some(&11));
    /// ```
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key)?;
        let (_, value) = self.slots[at as usize].entry.as_mut()?;
        Some(value)
    }

    /// Whether there is an entry for `key`.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some()
    }

    /// Sets the value of `key`, and returns the value that it had before. The list keeps the key
    /// that it has, if any.
    ///
    /// # Panics
    /// If there are 2³² − 1 entries already.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let mut list = SkipList::new();
    /// assert_eq!((list.insert(1, 10), list.insert(1, 11)), (None, Some(10)));
    /// ```
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let before = self.before(&key);
        if let Some(at) = self.is_next(&before, &key) {
            let (_, old) = self.slots[at as usize].entry.as_mut()?;
            return Some(std::mem::replace(old, value));
        }
        self.add_after(&before, key, value);
        None
    }

    /// The value of `key`, which `make` makes if there is none yet.
    ///
    /// # Panics
    /// If there are 2³² − 1 entries already.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let mut counts = SkipList::new();
    /// for word in ["to", "be", "or", "not", "to", "be"] {
    ///     *counts.get_or_insert_with(word, || 0) += 1;
    /// }
    /// assert_eq!(counts.get("be"), Some(&2));
    /// ```
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let before = self.before(&key);
        let at = match self.is_next(&before, &key) {
            Some(at) => at,
            None => self.add_after(&before, key, make()),
        };
        let entry = self.slots[at as usize].entry.as_mut();
        &mut entry.expect("the slot is in use").1
    }

    /// Removes `key`, and returns its value.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let mut list = SkipList::from_iter([("a".to_owned(), 1)]);
    /// assert_eq!((list.remove("a"), list.remove("a")), (Some(1), None));
    /// ```
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let before = self.before(key);
        self.is_next(&before, key)?;
        let (_, value) = self.take_after(&before)?;
        Some(value)
    }

    /// The entries in ascending order of their keys, from the first that is not less than `key`.
    /// Finding that one takes O(log n), expected.
    ///
    /// ```
    /// use corelay_structures::seq::SkipList;
    ///
    /// let list = SkipList::from_iter([(1, 'a'), (3, 'c'), (5, 'e')]);
    /// assert!(list.iter_from(&2).eq([(&3, &'c'), (&5, &'e')]));
    /// ```
    pub fn iter_from<Q: Ord + ?Sized>(&self, key: &Q) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        self.iter_at(self.next(self.before(key)[0], 0))
    }

    /// The last slot on each level whose key is less than `key`.
    fn before<Q: Ord + ?Sized>(&self, key: &Q) -> Before
    where
        K: Borrow<Q>,
    {
        let mut before = [HEAD; LEVELS];
        let mut at = HEAD;
        for level in (0..self.levels).rev() {
            loop {
                let next = self.next(at, level);
                // At the end of the ring is the head, which has no entry.
                match &self.slots[next as usize].entry {
                    Some((it, _)) if it.borrow() < key => at = next,
                    _ => break,
                }
            }
            before[level] = at;
        }
        before
    }

    /// The slot that comes next on the lowest level, if it is that of `key`.
    fn is_next<Q: Ord + ?Sized>(&self, before: &Before, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        let at = self.next(before[0], 0);
        let (it, _) = self.slots[at as usize].entry.as_ref()?;
        (it.borrow() == key).then_some(at)
    }

    /// The slot of `key`.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        self.is_next(&self.before(key), key)
    }
}

impl<K: Ord, V> Extend<(K, V)> for SkipList<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SkipList<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut list = Self::new();
        list.extend(entries);
        list
    }
}

impl<K, V> Default for SkipList<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SkipList<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The entries of a [`SkipList`] in ascending order of their keys.
pub struct Iter<'a, K, V> {
    slots: &'a [Slot<K, V>],
    at: u32,
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let slot = &self.slots[self.at as usize];
        let (key, value) = slot.entry.as_ref()?;
        self.at = slot.next;
        Some((key, value))
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, K, V> IntoIterator for &'a SkipList<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

/// The entries of a [`SkipList`] in ascending order of their keys, taken out of it.
pub struct IntoIter<K, V> {
    slots: Vec<Slot<K, V>>,
    at: u32,
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let slot = &mut self.slots[self.at as usize];
        let entry = slot.entry.take()?;
        self.at = slot.next;
        Some(entry)
    }
}

impl<K, V> IntoIterator for SkipList<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        let (at, slots) = (self.next(HEAD, 0), self.slots);
        IntoIter { slots, at }
    }
}
