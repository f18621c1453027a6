//! What the structure should do, were it alone: sequential specifications.
//!
//! [`register`], [`counter`], [`map`], [`queue`] and [`stack`] are at hand; another is an
//! implementation of [`Model`].

pub mod counter;
mod lives;
pub mod map;
pub mod queue;
pub mod register;
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
/// A structure that may answer in more than one way. Leave an operation that may fail for no
/// reason, and then has no effect (a weak compare-exchange, a `try_lock`), out of the history
/// where it failed.
pub trait Model {
    /// What is asked.
    type Operation: Clone + PartialEq + Debug;
    /// What is answered.
    type Output: Clone + PartialEq + Debug;
    /// The structure's value. It is cloned and hashed for each step that the checker tries:
    /// keep it small.
    type State: Clone + Eq + Hash + Debug;
    /// Names one of several objects that do not affect one another, such as the keys of a
    /// map. `()` where there is one object.
    type Key: Clone + Eq + Hash + Debug;

    /// The value of each object at first.
    fn initial(&self) -> Self::State;

    /// Does `operation` to `state` and returns what it answers.
    fn step(&self, state: &mut Self::State, operation: &Self::Operation) -> Self::Output;

    /// The object that `operation` is for. A history is linearizable exactly if the calls of
    /// each object are, so each is checked by itself, which takes far less.
    ///
    /// That is locality (Herlihy and Wing, 1990, section 3.2). Its proof puts the objects'
    /// orders together to one, and needs that what precedes between objects is an order of
    /// *intervals*: where `a` precedes `b`, `c` does not precede `b`, and `c` precedes `d`,
    /// `a` precedes `d`. What returned at a lesser stamp than the other was invoked at is
    /// such an order. Of what one thread does at equal stamps its program would still tell the
    /// order; but if that counted between objects, each could be right by itself and the
    /// whole wrong. So it counts within an object only, as [`History`](crate::History) says.
    /// Where it must count, use one key for all, or let the clock tick between the calls.
    fn key(&self, operation: &Self::Operation) -> Self::Key;

    /// True only if `operation`, when it answers `output`, leaves *every* state as it is: a
    /// read, a compare-exchange that failed, a pop that found nothing. This only saves time;
    /// it may always be false.
    fn observes(&self, operation: &Self::Operation, output: &Self::Output) -> bool {
        let _ = (operation, output);
        false
    }

    /// What can be read off the answers of one object's `calls`: pairs of calls, earlier and
    /// later, by their places in `calls`, that take effect in this order in *every* order
    /// that explains them all. It need not be complete; pairs that do not overlap say
    /// nothing new. This only saves time, but much of it where values come out long after
    /// they went in: [`queue`] shows how.
    fn orders(&self, calls: &[Call<Self::Operation, Self::Output>]) -> Vec<(usize, usize)> {
        let _ = calls;
        Vec::new()
    }

    /// The call in a few words, for the picture of what went wrong.
    fn show(&self, operation: &Self::Operation, output: Option<&Self::Output>) -> String {
        match output {
            Some(output) => format!("{operation:?} -> {output:?}"),
            None => format!("{operation:?}"),
        }
    }
}

/// `words`, and the answer where there is one.
fn answered(words: String, answer: Option<String>) -> String {
    match answer {
        Some(answer) => format!("{words} -> {answer}"),
        None => words,
    }
}

/// A value that may be missing.
fn or_none<V: Debug>(value: &Option<V>) -> String {
    match value {
        Some(value) => format!("{value:?}"),
        None => "none".to_owned(),
    }
}
