//! A heap: a priority queue, from which the greatest value comes first.

use super::{Model, answered, or_none};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

/// A priority queue that is empty at first and has no bound. The greatest value comes first; for
/// the least, use values in [`Reverse`](std::cmp::Reverse).
///
/// Values that are equal in order must be equal: the model does not say which of them comes first.
///
/// ```
/// use corelay_history::model::heap::{Heap, Operation, Output};
/// use corelay_history::{Call, History, check};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(Operation::Push(1), 0..=1, Output::Pushed));
/// history.push(0, Call::returned(Operation::Push(2), 2..=4, Output::Pushed));
/// history.push(1, Call::returned(Operation::Pop, 3..=5, Output::Value(Some(1))));
/// check(&Heap::new(), &history).unwrap(); // the pop was before 2 came
/// history.push(1, Call::returned(Operation::Peek, 6..=7, Output::Value(None)));
/// assert!(check(&Heap::new(), &history).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heap<T> {
    of: PhantomData<fn(T) -> T>,
}

impl<T> Heap<T> {
    /// An empty heap.
    pub fn new() -> Self {
        Self { of: PhantomData }
    }
}

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The operations of a [`Heap`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation<T> {
    /// Adds a value. Its output is [`Output::Pushed`].
    Push(T),
    /// Takes the greatest value. Its output is that value, as [`Output::Value`].
    Pop,
    /// Reads the greatest value. Its output is that value, as [`Output::Value`].
    Peek,
}

/// The outputs of a [`Heap`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output<T> {
    /// The value was added; there is always room.
    Pushed,
    /// The greatest value; `None` if the heap was empty.
    Value(Option<T>),
}

impl<T: Clone + Ord + Hash + Debug> Model for Heap<T> {
    type Operation = Operation<T>;
    type Output = Output<T>;
    /// The values in ascending order, so that equal heaps have equal states.
    type State = Vec<T>;
    type Key = ();

    fn initial(&self) -> Vec<T> {
        Vec::new()
    }

    fn step(&self, values: &mut Vec<T>, operation: &Operation<T>) -> Output<T> {
        match operation {
            Operation::Push(value) => {
                let at = values.partition_point(|other| other < value);
                values.insert(at, value.clone());
                Output::Pushed
            }
            Operation::Pop => Output::Value(values.pop()),
            Operation::Peek => Output::Value(values.last().cloned()),
        }
    }

    fn key(&self, _operation: &Operation<T>) {}

    fn observes(&self, operation: &Operation<T>, output: &Output<T>) -> bool {
        matches!(operation, Operation::Peek) || matches!(output, Output::Value(None))
    }

    fn show(&self, operation: &Operation<T>, output: Option<&Output<T>>) -> String {
        let words = match operation {
            Operation::Push(value) => return format!("push {value:?}"),
            Operation::Pop => "pop".to_owned(),
            Operation::Peek => "peek".to_owned(),
        };
        let answer = output.map(|output| match output {
            Output::Value(value) => or_none(value),
            Output::Pushed => "pushed".to_owned(),
        });
        answered(words, answer)
    }
}
