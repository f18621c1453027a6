//! A map, with each key checked by itself.

use super::Model;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

/// A map that is empty at first. Each operation is on one key, and every key is checked by itself.
/// An operation on several keys at once (a length, a scan) needs a model of its own.
///
/// ```
/// use corelay_history::model::map::{Map, Operation};
/// use corelay_history::{Call, History, check};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(Operation::Insert("a", 1), 0..=1, None));
/// history.push(0, Call::returned(Operation::Insert("a", 2), 2..=3, Some(1)));
/// history.push(1, Call::returned(Operation::Remove("a"), 1..=4, Some(2)));
/// check(&Map::new(), &history).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map<K, V> {
    of: PhantomData<fn(K) -> V>,
}

impl<K, V> Map<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self { of: PhantomData }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// The operations of a [`Map`]. Each one's output is the value that the key had before, if any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation<K, V> {
    /// Reads the value of a key.
    Get(K),
    /// Inserts or replaces the value of a key.
    Insert(K, V),
    /// Removes a key.
    Remove(K),
}

impl<K, V> Model for Map<K, V>
where
    K: Clone + Eq + Hash + Debug,
    V: Clone + Eq + Hash + Debug,
{
    type Operation = Operation<K, V>;
    type Output = Option<V>;
    type State = Option<V>;
    type Key = K;

    fn initial(&self) -> Option<V> {
        None
    }

    fn step(&self, value: &mut Option<V>, operation: &Operation<K, V>) -> Option<V> {
        match operation {
            Operation::Get(_) => value.clone(),
            Operation::Insert(_, new) => value.replace(new.clone()),
            Operation::Remove(_) => value.take(),
        }
    }

    fn key(&self, operation: &Operation<K, V>) -> K {
        match operation {
            Operation::Get(key) | Operation::Insert(key, _) | Operation::Remove(key) => key.clone(),
        }
    }

    fn observes(&self, operation: &Operation<K, V>, output: &Option<V>) -> bool {
        match operation {
            Operation::Get(_) => true,
            Operation::Insert(..) => false,
            Operation::Remove(_) => output.is_none(),
        }
    }

    fn show(&self, operation: &Operation<K, V>, output: Option<&Option<V>>) -> String {
        let words = match operation {
            Operation::Get(key) => format!("get {key:?}"),
            Operation::Insert(key, value) => format!("insert {key:?} {value:?}"),
            Operation::Remove(key) => format!("remove {key:?}"),
        };
        super::answered(words, output.map(super::or_none))
    }
}
