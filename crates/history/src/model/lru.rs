//! An LRU map: a map of limited size, which evicts the entry that was used least recently.

use super::{Model, answered, or_none};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::num::NonZeroUsize;

/// A map that is empty at first and evicts the entry used least recently, if it is full and a new
/// key comes. A call that finds or sets a key's value uses the entry; [`Operation::Peek`] does not.
///
/// Every call may change the order of all keys, so keys cannot be checked by themselves, and the
/// checker keeps every order in which calls that overlap may have used them: keep the capacity
/// small, or the threads few.
///
/// ```
/// use corelay_history::model::lru::{Lru, Operation, Output};
/// use corelay_history::{Call, History, check};
/// use std::num::NonZeroUsize;
///
/// let mut history = History::new();
/// history.push(0, Call::returned(Operation::Push('a', 1), 0..=1, Output::Entry(None)));
/// history.push(0, Call::returned(Operation::Push('b', 2), 2..=3, Output::Entry(None)));
/// history.push(0, Call::returned(Operation::Get('a'), 4..=5, Output::Value(Some(1))));
/// let evicted = Output::Entry(Some(('b', 2)));
/// history.push(0, Call::returned(Operation::Push('c', 3), 6..=7, evicted));
/// check(&Lru::new(NonZeroUsize::new(2).unwrap()), &history).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lru<K, V> {
    capacity: NonZeroUsize,
    of: PhantomData<fn(K) -> V>,
}

impl<K, V> Lru<K, V> {
    /// An empty map for at most `capacity` entries.
    pub fn new(capacity: NonZeroUsize) -> Self {
        let of = PhantomData;
        Self { capacity, of }
    }
}

/// The operations of an [`Lru`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation<K, V> {
    /// Reads the value of a key, and uses its entry. Its output is that value, as
    /// [`Output::Value`].
    Get(K),
    /// Reads the value of a key. Its output is that value, as [`Output::Value`].
    Peek(K),
    /// Inserts or replaces the value of a key. Its output is the value that the key had before, as
    /// [`Output::Value`]; whether it evicted an entry is not told.
    Insert(K, V),
    /// Inserts or replaces the value of a key. Its output is the key's old entry, or the one that
    /// was evicted, as [`Output::Entry`].
    Push(K, V),
    /// Removes a key. Its output is the value that the key had, as [`Output::Value`].
    Remove(K),
    /// Takes the entry that was used least recently. Its output is that entry, as
    /// [`Output::Entry`].
    PopLru,
}

/// The outputs of an [`Lru`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output<K, V> {
    /// The value of the key; `None` if it was missing.
    Value(Option<V>),
    /// The entry that is no longer in the map; `None` if there is none such.
    Entry(Option<(K, V)>),
}

impl<K, V> Model for Lru<K, V>
where
    K: Clone + Eq + Hash + Debug,
    V: Clone + Eq + Hash + Debug,
{
    type Operation = Operation<K, V>;
    type Output = Output<K, V>;
    /// The entries, the one used least recently first.
    type State = Vec<(K, V)>;
    type Key = ();

    fn initial(&self) -> Vec<(K, V)> {
        Vec::new()
    }

    fn step(&self, entries: &mut Vec<(K, V)>, operation: &Operation<K, V>) -> Output<K, V> {
        let place = |key: &K| entries.iter().position(|entry| entry.0 == *key);
        let value = |entry: Option<(K, V)>| Output::Value(entry.map(|entry| entry.1));
        match operation {
            Operation::Get(key) => {
                let used = place(key).map(|at| entries.remove(at));
                entries.extend(used.clone());
                value(used)
            }
            Operation::Peek(key) => value(place(key).map(|at| entries[at].clone())),
            Operation::Insert(key, new) | Operation::Push(key, new) => {
                let at = place(key);
                let is_full = entries.len() == self.capacity.get();
                let out = at.or(is_full.then_some(0)).map(|at| entries.remove(at));
                entries.push((key.clone(), new.clone()));
                match operation {
                    Operation::Insert(..) => value(out.filter(|_| at.is_some())),
                    _ => Output::Entry(out),
                }
            }
            Operation::Remove(key) => value(place(key).map(|at| entries.remove(at))),
            Operation::PopLru => Output::Entry((!entries.is_empty()).then(|| entries.remove(0))),
        }
    }

    fn key(&self, _operation: &Operation<K, V>) {}

    fn observes(&self, operation: &Operation<K, V>, output: &Output<K, V>) -> bool {
        match operation {
            Operation::Peek(_) => true,
            Operation::Insert(..) | Operation::Push(..) => false,
            Operation::Get(_) | Operation::Remove(_) | Operation::PopLru => {
                matches!(output, Output::Value(None) | Output::Entry(None))
            }
        }
    }

    fn show(&self, operation: &Operation<K, V>, output: Option<&Output<K, V>>) -> String {
        let words = match operation {
            Operation::Get(key) => format!("get {key:?}"),
            Operation::Peek(key) => format!("peek {key:?}"),
            Operation::Insert(key, value) => format!("insert {key:?} {value:?}"),
            Operation::Push(key, value) => format!("push {key:?} {value:?}"),
            Operation::Remove(key) => format!("remove {key:?}"),
            Operation::PopLru => "pop-lru".to_owned(),
        };
        let answer = output.map(|output| match output {
            Output::Value(value) => or_none(value),
            Output::Entry(Some((key, value))) => format!("{key:?} {value:?}"),
            Output::Entry(None) => "none".to_owned(),
        });
        answered(words, answer)
    }
}
