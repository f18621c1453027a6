//! A counter: a number to which calls add.

use super::{Model, answered};
use serde::{Deserialize, Serialize};

/// A counter with its initial count; it wraps around.
///
/// ```
/// use corelay_history::model::counter::{Counter, Operation, Output};
/// use corelay_history::{Call, History, check};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(Operation::FetchAdd(1), 0..=2, Output::Value(0)));
/// history.push(1, Call::returned(Operation::FetchAdd(1), 1..=3, Output::Value(0)));
/// assert!(check(&Counter::new(0), &history).is_err()); // one update was lost
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    initial: i64,
}

impl Counter {
    /// A counter at `initial`.
    pub fn new(initial: i64) -> Self {
        Self { initial }
    }
}

/// The operations of a [`Counter`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// Adds. Its output is [`Output::Added`].
    Add(i64),
    /// Adds. Its output is the count before, as [`Output::Value`].
    FetchAdd(i64),
    /// Adds. Its output is the count after, as [`Output::Value`].
    AddFetch(i64),
    /// Reads. Its output is the count, as [`Output::Value`].
    Read,
}

/// The outputs of a [`Counter`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// The count, before or after.
    Value(i64),
    /// The number was added; the count is not told.
    Added,
}

impl Model for Counter {
    type Operation = Operation;
    type Output = Output;
    type State = i64;
    type Key = ();

    fn initial(&self) -> i64 {
        self.initial
    }

    fn step(&self, count: &mut i64, operation: &Operation) -> Output {
        let before = *count;
        if let Operation::Add(n) | Operation::FetchAdd(n) | Operation::AddFetch(n) = operation {
            *count = before.wrapping_add(*n);
        }
        match operation {
            Operation::Add(_) => Output::Added,
            Operation::FetchAdd(_) | Operation::Read => Output::Value(before),
            Operation::AddFetch(_) => Output::Value(*count),
        }
    }

    fn key(&self, _operation: &Operation) {}

    fn observes(&self, operation: &Operation, _output: &Output) -> bool {
        *operation == Operation::Read
    }

    fn show(&self, operation: &Operation, output: Option<&Output>) -> String {
        let words = match operation {
            Operation::Add(n) => return format!("add {n}"),
            Operation::FetchAdd(n) => format!("fetch-add {n}"),
            Operation::AddFetch(n) => format!("add-fetch {n}"),
            Operation::Read => "read".to_owned(),
        };
        let answer = output.map(|output| match output {
            Output::Value(count) => count.to_string(),
            Output::Added => "added".to_owned(),
        });
        answered(words, answer)
    }
}
