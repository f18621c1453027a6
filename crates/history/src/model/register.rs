//! A register: one word that can be read, written and compare-exchanged.

use super::{Model, answered};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::hash::Hash;

/// A variable with its initial value.
///
/// ```
/// use corelay_history::model::register::{Operation, Output, Register};
/// use corelay_history::{Call, History, check};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(Operation::Write(1), 0..=1, Output::Written));
/// history.push(1, Call::returned(Operation::Read, 2..=3, Output::Value(0)));
/// assert!(check(&Register::new(0), &history).is_err()); // a stale read
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register<V> {
    initial: V,
}

impl<V> Register<V> {
    /// A register that holds `initial`.
    pub fn new(initial: V) -> Self {
        Self { initial }
    }
}

/// The operations of a [`Register`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation<V> {
    /// Reads. Its output is [`Output::Value`].
    Read,
    /// Writes. Its output is [`Output::Written`].
    Write(V),
    /// Writes `new` if the value is `current`. Its output is [`Output::Exchanged`].
    CompareExchange {
        /// The expected value.
        current: V,
        /// The value to write.
        new: V,
    },
}

/// The outputs of a [`Register`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output<V> {
    /// The value that was read.
    Value(V),
    /// The value was written.
    Written,
    /// Whether the value was the expected one, and was replaced.
    Exchanged(bool),
}

impl<V: Clone + Eq + Hash + Debug> Model for Register<V> {
    type Operation = Operation<V>;
    type Output = Output<V>;
    type State = V;
    type Key = ();

    fn initial(&self) -> V {
        self.initial.clone()
    }

    fn step(&self, state: &mut V, operation: &Operation<V>) -> Output<V> {
        match operation {
            Operation::Read => Output::Value(state.clone()),
            Operation::Write(value) => {
                state.clone_from(value);
                Output::Written
            }
            Operation::CompareExchange { current, new } => {
                let expected = state == current;
                if expected {
                    state.clone_from(new);
                }
                Output::Exchanged(expected)
            }
        }
    }

    fn key(&self, _operation: &Operation<V>) {}

    fn observes(&self, _operation: &Operation<V>, output: &Output<V>) -> bool {
        matches!(output, Output::Value(_) | Output::Exchanged(false))
    }

    fn show(&self, operation: &Operation<V>, output: Option<&Output<V>>) -> String {
        let words = match operation {
            Operation::Read => "read".to_owned(),
            Operation::Write(value) => return format!("write {value:?}"),
            Operation::CompareExchange { current, new } => format!("cas {current:?} {new:?}"),
        };
        let answer = output.map(|output| match output {
            Output::Value(value) => format!("{value:?}"),
            Output::Written => "written".to_owned(),
            Output::Exchanged(true) => "yes".to_owned(),
            Output::Exchanged(false) => "no".to_owned(),
        });
        answered(words, answer)
    }
}
