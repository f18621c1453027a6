//! A stack: last in, first out.

use super::lives::{self, Deed};
use super::{Model, answered, or_none};
use crate::history::Call;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

/// A stack that is empty at first and has no bound.
///
/// Values that were pushed at the same time may lie in any order until they are popped, and
/// the checker keeps every such order: keep the stack low, or its producers few.
///
/// ```
/// use corelay_history::model::stack::{Operation, Output, Stack};
/// use corelay_history::{Call, History, check};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(Operation::Push(1), 0..=1, Output::Pushed));
/// history.push(0, Call::returned(Operation::Pop, 2..=4, Output::Popped(Some(1))));
/// history.push(1, Call::returned(Operation::Pop, 3..=5, Output::Popped(None)));
/// check(&Stack::new(), &history).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack<T> {
    of: PhantomData<fn(T) -> T>,
}

impl<T> Stack<T> {
    /// An empty stack.
    pub fn new() -> Self {
        Self { of: PhantomData }
    }
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The operations of a [`Stack`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation<T> {
    /// Puts a value on top.
    Push(T),
    /// Takes the top value.
    Pop,
}

/// The outputs of a [`Stack`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output<T> {
    /// The value was pushed; there is always room.
    Pushed,
    /// The value taken; `None` if the stack was empty.
    Popped(Option<T>),
}

impl<T: Clone + Eq + Hash + Debug> Model for Stack<T> {
    type Operation = Operation<T>;
    type Output = Output<T>;
    type State = Vec<T>;
    type Key = ();

    fn initial(&self) -> Vec<T> {
        Vec::new()
    }

    fn step(&self, stack: &mut Vec<T>, operation: &Operation<T>) -> Output<T> {
        match operation {
            Operation::Push(value) => {
                stack.push(value.clone());
                Output::Pushed
            }
            Operation::Pop => Output::Popped(stack.pop()),
        }
    }

    fn key(&self, _operation: &Operation<T>) {}

    fn observes(&self, _operation: &Operation<T>, output: &Output<T>) -> bool {
        matches!(output, Output::Popped(None))
    }

    /// If one of two values certainly comes out last, it went in first, provided that the other was
    /// still inside when it came.
    fn orders(&self, calls: &[Call<Operation<T>, Output<T>>]) -> Vec<(usize, usize)> {
        lives::orders(calls, deed, |a, b| {
            b.ends_before(a) && b.outlasts_coming_of(a)
        })
    }

    fn show(&self, operation: &Operation<T>, output: Option<&Output<T>>) -> String {
        match (operation, output) {
            (Operation::Push(value), _) => format!("push {value:?}"),
            (Operation::Pop, Some(Output::Popped(value))) => {
                answered("pop".to_owned(), Some(or_none(value)))
            }
            (Operation::Pop, _) => "pop".to_owned(),
        }
    }
}

/// The effect of a call, and the value that it is on.
fn deed<T>(call: &Call<Operation<T>, Output<T>>) -> Deed<'_, T> {
    match (call.operation(), call.output()) {
        (Operation::Push(value), _) => Deed::Put(value),
        (Operation::Pop, None) => Deed::TakeUnknown,
        (Operation::Pop, Some(Output::Popped(Some(value)))) => Deed::Take(value),
        (Operation::Pop, Some(_)) => Deed::Nothing,
    }
}
