//! The kinds of structures: the operations that clients choose from, and the model that judges a
//! history.

use super::Counterexample;
use super::action::{Action, Reply, entry_of};
use crate::workload::random::Random;
use Action::{Get, Insert, Peek, Pop, Push, Remove};
use corelay_history::model::{heap, lru, map, queue, set, stack};
use corelay_history::{Call, Failure, History, Model, check};
use std::num::NonZeroUsize;

/// Keys of maps and sets. So few that clients meet on them.
pub(super) const KEYS: u64 = 4;

/// Entries of an LRU map: fewer than keys, so that it evicts some.
pub(super) const CAPACITY: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// The distance between two priorities in a heap: more than a round has values.
const PRIORITY: u64 = 1_000_000;

/// A kind of structure, whatever it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A set of keys. A reply is some number if the key was there, or, for an insertion, if it was
    /// not.
    Set,
    /// A map. A reply is the value that the key had before.
    Map,
    /// A map whose insertion leaves the value of a key that is there. A reply is a value; for an
    /// insertion, some number if the key was not there.
    PutIfAbsent,
    /// First in, first out.
    Queue,
    /// Last in, first out.
    Stack,
    /// The greatest value comes out first.
    Heap,
    /// A map of [`CAPACITY`] entries. An insertion replies with the entry that is no longer there.
    Lru,
}

/// The checker's verdict on a history.
#[derive(Debug)]
pub(super) enum Verdict {
    Right,
    /// The history has no explanation.
    Wrong(Counterexample),
    /// The search grew too large.
    GaveUp,
}

impl Kind {
    /// An action of a client, drawn at random, with `value` if it needs one.
    pub(super) fn action(self, random: &mut Random, value: u64) -> Action {
        match self {
            Self::Set | Self::Map | Self::PutIfAbsent => {
                let key = random.below(KEYS);
                [Get(key), Insert(key, value), Remove(key)][random.below(3) as usize]
            }
            Self::Queue | Self::Stack => [Push(value), Pop][random.below(2) as usize],
            Self::Heap => {
                // In an order that has nothing to do with the time, or a stack would do.
                let value = random.below(8) * PRIORITY + value;
                [Push(value), Push(value), Pop, Pop, Peek][random.below(5) as usize]
            }
            Self::Lru => {
                let key = random.below(KEYS);
                let insert = Insert(key, value);
                [Get(key), Get(key), insert, insert, Remove(key), Pop][random.below(6) as usize]
            }
        }
    }

    /// The actions that read what is left at the end of a history. Without them nothing would show
    /// that an update was lost which no client has looked at.
    pub(super) fn rest(self) -> Rest {
        match self {
            Self::Set | Self::Map | Self::PutIfAbsent => Rest::Keys(0),
            Self::Queue | Self::Stack | Self::Heap | Self::Lru => Rest::Pops,
        }
    }

    /// Whether one sequential structure of this kind could have answered so.
    pub(super) fn judge(self, history: &History<Action, Reply>) -> Verdict {
        match self {
            Self::Set => judge(
                &set::Set::new(),
                history,
                |action| match action {
                    Get(key) => set::Operation::Contains(key),
                    Insert(key, _) => set::Operation::Insert(key),
                    Remove(key) => set::Operation::Remove(key),
                    other => other.refuse(),
                },
                |_, reply| reply.is_some(),
            ),
            Self::Map => judge(
                &map::Map::new(),
                history,
                |action| match action {
                    Get(key) => map::Operation::Get(key),
                    Insert(key, value) => map::Operation::Insert(key, value),
                    Remove(key) => map::Operation::Remove(key),
                    other => other.refuse(),
                },
                |_, reply| reply,
            ),
            Self::PutIfAbsent => judge(&Keeping, history, |action| action, |_, reply| reply),
            Self::Queue => judge(
                &queue::Queue::new(),
                history,
                |action| match action {
                    Push(value) => queue::Operation::Enqueue(value),
                    Pop => queue::Operation::Dequeue,
                    other => other.refuse(),
                },
                |action, reply| match action {
                    Push(_) => queue::Output::Enqueued,
                    _ => queue::Output::Dequeued(reply),
                },
            ),
            Self::Stack => judge(
                &stack::Stack::new(),
                history,
                |action| match action {
                    Push(value) => stack::Operation::Push(value),
                    Pop => stack::Operation::Pop,
                    other => other.refuse(),
                },
                |action, reply| match action {
                    Push(_) => stack::Output::Pushed,
                    _ => stack::Output::Popped(reply),
                },
            ),
            Self::Heap => judge(
                &heap::Heap::new(),
                history,
                |action| match action {
                    Push(value) => heap::Operation::Push(value),
                    Pop => heap::Operation::Pop,
                    Peek => heap::Operation::Peek,
                    other => other.refuse(),
                },
                |action, reply| match action {
                    Push(_) => heap::Output::Pushed,
                    _ => heap::Output::Value(reply),
                },
            ),
            Self::Lru => judge(
                &lru::Lru::new(CAPACITY),
                history,
                |action| match action {
                    Get(key) => lru::Operation::Get(key),
                    Insert(key, value) => lru::Operation::Push(key, value),
                    Remove(key) => lru::Operation::Remove(key),
                    Pop => lru::Operation::PopLru,
                    other => other.refuse(),
                },
                |action, reply| match action {
                    Insert(..) | Pop => lru::Output::Entry(reply.map(entry_of)),
                    _ => lru::Output::Value(reply),
                },
            ),
        }
    }
}

/// The actions that read what is left.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest {
    /// A look-up of each key, from this one on.
    Keys(u64),
    /// Pops, until one finds nothing.
    Pops,
    /// No further action.
    Nothing,
}

impl Iterator for Rest {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        match self {
            Self::Keys(key) if *key < KEYS => {
                *key += 1;
                Some(Get(*key - 1))
            }
            Self::Pops => Some(Pop),
            Self::Keys(_) | Self::Nothing => None,
        }
    }
}

/// Checks a history in the words of `model`.
fn judge<M: Model>(
    model: &M,
    history: &History<Action, Reply>,
    operation: fn(Action) -> M::Operation,
    output: fn(Action, Reply) -> M::Output,
) -> Verdict {
    let mut in_its_words = History::new();
    for (thread, call) in history.calls() {
        let (action, begin) = (*call.operation(), call.invoked());
        let asked = operation(action);
        let call = match call.ended().zip(call.output()) {
            Some((end, &reply)) => Call::returned(asked, begin..=end, output(action, reply)),
            None => Call::pending(asked, begin),
        };
        in_its_words.push(thread, call);
    }
    match check(model, &in_its_words) {
        Ok(()) => Verdict::Right,
        Err(Failure::NotLinearizable(found)) => Verdict::Wrong(Counterexample {
            states: found.states().len(),
            calls: found.calls().count(),
            picture: found.to_string(),
        }),
        Err(Failure::GaveUp(_)) => Verdict::GaveUp,
    }
}

/// The model of [`Kind::PutIfAbsent`].
struct Keeping;

impl Model for Keeping {
    type Operation = Action;
    type Output = Reply;
    type State = Option<u64>;
    type Key = u64;

    fn initial(&self) -> Option<u64> {
        None
    }

    fn step(&self, value: &mut Option<u64>, action: &Action) -> Reply {
        match *action {
            Get(_) => *value,
            Insert(..) if value.is_some() => None,
            Insert(key, new) => {
                *value = Some(new);
                Some(key)
            }
            Remove(_) => value.take(),
            other => other.refuse(),
        }
    }

    fn key(&self, action: &Action) -> u64 {
        match *action {
            Get(key) | Insert(key, _) | Remove(key) => key,
            other => other.refuse(),
        }
    }

    fn observes(&self, action: &Action, reply: &Reply) -> bool {
        matches!(action, Get(_)) || reply.is_none()
    }
}
