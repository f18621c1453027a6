//! A multiset: how often each value is there.

#![forbid(unsafe_code)]

use super::operation::{Absorbed, Commutes, Operation, key};
use std::collections::HashMap;
use std::hash::Hash;

/// How often each value is there. A number below zero says that it has been removed more often than
/// added: it is a debt, and the next additions pay it. So the order of what is done never matters.
///
/// ```
/// use corelay_clock::Logical;
/// use corelay_txn::oplog::{Change, Multiset, OpLog};
///
/// let words = OpLog::new(Multiset::new(), Logical::new());
/// let (mut one, mut other) = (words.session(), words.session());
/// one.update(Change::add("fibre"));
/// other.update(Change::add("fibre"));
/// one.update(Change::remove("clock"));
/// assert_eq!(words.read(|words| (words.count(&"fibre"), words.count(&"clock"))), (2, -1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiset<T: Eq + Hash> {
    /// None is zero.
    counts: HashMap<T, i64>,
}

impl<T: Eq + Hash> Multiset<T> {
    /// Nothing.
    pub fn new() -> Self {
        Self {
            counts: HashMap::new(),
        }
    }

    /// How often `value` is there.
    pub fn count(&self, value: &T) -> i64 {
        self.counts.get(value).copied().unwrap_or(0)
    }

    /// Every value that is there some number of times other than zero, with that number.
    pub fn iter(&self) -> impl Iterator<Item = (&T, i64)> {
        self.counts.iter().map(|(value, &count)| (value, count))
    }

    fn change(&mut self, value: T, by: i64) {
        use std::collections::hash_map::Entry;
        match self.counts.entry(value) {
            Entry::Occupied(mut entry) => {
                *entry.get_mut() += by;
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
            Entry::Vacant(entry) if by != 0 => _ = entry.insert(by),
            Entry::Vacant(_) => {}
        }
    }
}

impl<T: Eq + Hash> Default for Multiset<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds a value to a [`Multiset`] or removes it, some number of times.
///
/// Changes commute, so they draw no time; those of one value in one session become one, and where
/// that is none, vanish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<T> {
    value: T,
    by: i64,
}

impl<T> Change<T> {
    /// Once more.
    pub fn add(value: T) -> Self {
        Self { value, by: 1 }
    }

    /// Once less.
    pub fn remove(value: T) -> Self {
        Self { value, by: -1 }
    }

    /// What is added or removed.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// How often it is added; below zero, removed.
    pub fn by(&self) -> i64 {
        self.by
    }
}

impl<T: Eq + Hash> Operation<Multiset<T>> for Change<T> {
    const COMMUTES: Commutes = Commutes::Always;

    #[inline]
    fn apply(self, multiset: &mut Multiset<T>) {
        multiset.change(self.value, self.by);
    }

    #[inline]
    fn key(&self) -> Option<u64> {
        Some(key(&self.value))
    }

    #[inline]
    fn absorb(self, earlier: &Self) -> Absorbed<Self> {
        if self.value != earlier.value {
            return Absorbed::Neither(self);
        }
        match self.by + earlier.by {
            0 => Absorbed::Cancels,
            by => Absorbed::Replaces(Self { by, ..self }),
        }
    }
}
