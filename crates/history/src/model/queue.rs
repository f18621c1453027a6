//! A queue: first in, first out.

use super::lives::{self, Deed};
use super::{Model, answered, or_none};
use crate::history::Call;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

/// A queue that is empty at first and has no bound.
///
/// Values that were enqueued at the same time may stand in any order until they are
/// dequeued, and the checker keeps every such order: keep the queue short, or its producers
/// few.
///
/// ```
/// use corelay_history::model::queue::{Operation, Output, Queue};
/// use corelay_history::{Call, History, check};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(Operation::Enqueue(1), 0..=1, Output::Enqueued));
/// history.push(0, Call::returned(Operation::Dequeue, 2..=4, Output::Dequeued(Some(1))));
/// history.push(1, Call::returned(Operation::Dequeue, 3..=5, Output::Dequeued(None)));
/// check(&Queue::new(), &history).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue<T> {
    of: PhantomData<fn(T) -> T>,
}

impl<T> Queue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { of: PhantomData }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The operations of a [`Queue`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation<T> {
    /// Appends a value.
    Enqueue(T),
    /// Takes the first value.
    Dequeue,
}

/// The outputs of a [`Queue`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output<T> {
    /// The value was appended; there is always room.
    Enqueued,
    /// The value taken; `None` if the queue was empty.
    Dequeued(Option<T>),
}

impl<T: Clone + Eq + Hash + Debug> Model for Queue<T> {
    type Operation = Operation<T>;
    type Output = Output<T>;
    type State = VecDeque<T>;
    type Key = ();

    fn initial(&self) -> VecDeque<T> {
        VecDeque::new()
    }

    fn step(&self, queue: &mut VecDeque<T>, operation: &Operation<T>) -> Output<T> {
        match operation {
            Operation::Enqueue(value) => {
                queue.push_back(value.clone());
                Output::Enqueued
            }
            Operation::Dequeue => Output::Dequeued(queue.pop_front()),
        }
    }

    fn key(&self, _operation: &Operation<T>) {}

    fn observes(&self, _operation: &Operation<T>, output: &Output<T>) -> bool {
        matches!(output, Output::Dequeued(None))
    }

    /// If one of two values certainly comes out first, it went in first.
    fn orders(&self, calls: &[Call<Operation<T>, Output<T>>]) -> Vec<(usize, usize)> {
        lives::orders(calls, deed, |a, b| a.ends_before(b))
    }

    fn show(&self, operation: &Operation<T>, output: Option<&Output<T>>) -> String {
        match (operation, output) {
            (Operation::Enqueue(value), _) => format!("enqueue {value:?}"),
            (Operation::Dequeue, Some(Output::Dequeued(value))) => {
                answered("dequeue".to_owned(), Some(or_none(value)))
            }
            (Operation::Dequeue, _) => "dequeue".to_owned(),
        }
    }
}

/// The effect of a call, and the value that it is on.
fn deed<T>(call: &Call<Operation<T>, Output<T>>) -> Deed<'_, T> {
    match (call.operation(), call.output()) {
        (Operation::Enqueue(value), _) => Deed::Put(value),
        (Operation::Dequeue, None) => Deed::TakeUnknown,
        (Operation::Dequeue, Some(Output::Dequeued(Some(value)))) => Deed::Take(value),
        (Operation::Dequeue, Some(_)) => Deed::Nothing,
    }
}
