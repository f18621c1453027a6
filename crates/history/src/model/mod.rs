//! Sequential specifications: what a structure should do if it were alone.
//!
//! [`register`], [`counter`], [`set`], [`map`], [`lru`], [`queue`], [`stack`] and [`heap`] are ready
//! to use; implement [`Model`] for another.

pub mod counter;
pub mod heap;
mod lives;
pub mod lru;
pub mod map;
pub mod queue;
pub mod register;
pub mod set;
pub mod stack;

use crate::history::Call;
use std::fmt::Debug;
use std::hash::Hash;

/// A sequential specification: a plain, deterministic structure.
///
/// ```
/// use corelay_history::{Call, History, Model, check};
///
/// /// A flag that somebody raises first.
/// struct Flag;
///
/// impl Model for Flag {
///     type Operation = ();
///     type Output = bool; // was it I?
///     type State = bool;
///     type Key = ();
///
///     fn initial(&self) -> bool {
///         false
///     }
///     fn step(&self, raised: &mut bool, _raise: &()) -> bool {
///         !std::mem::replace(raised, true)
///     }
///     fn key(&self, _raise: &()) {}
/// }
///
/// let mut history = History::new();
/// history.push(0, Call::returned((), 0..=2, true));
/// history.push(1, Call::returned((), 1..=3, false));
/// check(&Flag, &history).unwrap();
/// history.push(1, Call::returned((), 4..=5, true)); // the first one twice
/// assert!(check(&Flag, &history).is_err());
/// ```
///
/// # What it cannot say
/// A model cannot describe a structure that may answer in more than one way. Suppose an operation
/// may fail spuriously, without effect (a weak compare-exchange, a `try_lock`). Then leave its
/// failed calls out of the history.
pub trait Model {
    /// The operations: what a call asks for.
    type Operation: Clone + PartialEq + Debug;
    /// The outputs: what a call answers.
    type Output: Clone + PartialEq + Debug;
    /// The structure's value. It is cloned and hashed for each step that the checker tries: keep it
    /// small.
    type State: Clone + Eq + Hash + Debug;
    /// The name of one of several objects that do not affect one another, such as the keys of a
    /// map. `()` if there is one object.
    type Key: Clone + Eq + Hash + Debug;

    /// The state of each object at the beginning of the history.
    fn initial(&self) -> Self::State;

    /// Applies `operation` to `state` and returns its output.
    fn step(&self, state: &mut Self::State, operation: &Self::Operation) -> Self::Output;

    /// The object that `operation` is for. A history is linearizable exactly if the calls of each
    /// object are, so each object is checked by itself, which takes far less.
    ///
    /// That is locality (Herlihy and Wing, 1990, section 3.2). Its proof merges the objects' orders
    /// into one, and needs that precedence between objects is an order of *intervals*: if `a`
    /// precedes `b`, `c` does not precede `b`, and `c` precedes `d`, then `a` precedes `d`.
    /// "Returned at a lesser stamp than the other was invoked at" is such an order. At equal stamps
    /// of one thread its program would still tell the order. But if that counted between objects,
    /// each object could be right by itself and the whole wrong. So it counts within an object
    /// only, as [`History`](crate::History) says. If it must count for you, use one key for all, or
    /// let the clock tick between the calls.
    fn key(&self, operation: &Self::Operation) -> Self::Key;

    /// Whether `operation` with `output` certainly leaves *every* state as it is: a read, a
    /// compare-exchange that failed, a pop that found nothing. This only saves time; it may always
    /// be false.
    fn observes(&self, operation: &Self::Operation, output: &Self::Output) -> bool {
        let _ = (operation, output);
        false
    }

    /// An order that can be read off the answers of one object's `calls`. It consists of pairs of
    /// calls, earlier and later, by their indices in `calls`, that take effect in this order in
    /// *every* order that explains them all. It need not be complete; pairs that do not overlap say
    /// nothing new. This only saves time, but much of it if values come out long after they went
    /// in: [`queue`] shows how.
    fn orders(&self, calls: &[Call<Self::Operation, Self::Output>]) -> Vec<(usize, usize)> {
        let _ = calls;
        Vec::new()
    }

    /// Describes the call in a few words, for the picture of a failure.
    fn show(&self, operation: &Self::Operation, output: Option<&Self::Output>) -> String {
        match output {
            Some(output) => format!("{operation:?} -> {output:?}"),
            None => format!("{operation:?}"),
        }
    }
}

/// Formats a call for a picture: `words`, followed by `-> ` and the answer if there is one.
fn answered(words: String, answer: Option<String>) -> String {
    match answer {
        Some(answer) => format!("{words} -> {answer}"),
        None => words,
    }
}

/// Formats a value that may be missing: `none` if it is.
fn or_none<V: Debug>(value: &Option<V>) -> String {
    match value {
        Some(value) => format!("{value:?}"),
        None => "none".to_owned(),
    }
}
