//! A set, with each key checked by itself.

use super::{Model, answered};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

/// A set that is empty at first. Each operation is on one key, and every key is checked by itself.
/// An operation on several keys at once (a length, a scan) needs a model of its own.
///
/// ```
/// use corelay_history::model::set::{Operation, Set};
/// use corelay_history::{Call, History, check};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(Operation::Insert("a"), 0..=2, true));
/// history.push(1, Call::returned(Operation::Insert("a"), 1..=3, true));
/// assert!(check(&Set::new(), &history).is_err()); // both say that it was not there
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set<K> {
    of: PhantomData<fn(K)>,
}

impl<K> Set<K> {
    /// An empty set.
    pub fn new() -> Self {
        Self { of: PhantomData }
    }
}

impl<K> Default for Set<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// The operations of a [`Set`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation<K> {
    /// Looks for a key. Its output is whether the key is in the set.
    Contains(K),
    /// Adds a key. Its output is whether the key was missing.
    Insert(K),
    /// Removes a key. Its output is whether the key was in the set.
    Remove(K),
}

impl<K: Clone + Eq + Hash + Debug> Model for Set<K> {
    type Operation = Operation<K>;
    type Output = bool;
    type State = bool;
    type Key = K;

    fn initial(&self) -> bool {
        false
    }

    fn step(&self, is_in: &mut bool, operation: &Operation<K>) -> bool {
        match operation {
            Operation::Contains(_) => *is_in,
            Operation::Insert(_) => !std::mem::replace(is_in, true),
            Operation::Remove(_) => std::mem::take(is_in),
        }
    }

    fn key(&self, operation: &Operation<K>) -> K {
        match operation {
            Operation::Contains(key) | Operation::Insert(key) | Operation::Remove(key) => {
                key.clone()
            }
        }
    }

    fn observes(&self, operation: &Operation<K>, output: &bool) -> bool {
        matches!(operation, Operation::Contains(_)) || !output
    }

    fn show(&self, operation: &Operation<K>, output: Option<&bool>) -> String {
        let words = match operation {
            Operation::Contains(key) => format!("contains {key:?}"),
            Operation::Insert(key) => format!("insert {key:?}"),
            Operation::Remove(key) => format!("remove {key:?}"),
        };
        answered(words, output.map(bool::to_string))
    }
}
