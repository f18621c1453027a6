//! The operations of a transaction, and how it ended.

use crate::history::History as Calls;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A history of transactions: each is a [`Call`](crate::Call) whose operation is the list of its
/// operations and whose output is its [`Outcome`].
///
/// Collected from [`Recorder`](super::Recorder)s, loaded from a file, or built by hand. A
/// [pending](crate::Call::pending) call is a transaction of unknown outcome: it may have committed
/// at any time after it began, or not.
/// ```
/// use corelay_history::Call;
/// use corelay_history::transactions::{History, Operation::*, Outcome::*};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(vec![Write("x", 1)], 0..=3, Committed));
/// history.push(1, Call::returned(vec![Read("x", None), Write("x", 2)], 1..=4, Aborted));
/// history.push(1, Call::pending(vec![Write("y", 1)], 5));
/// assert_eq!((history.threads(), history.len()), (2, 3));
/// ```
///
/// # What a history must obey
/// * Values tell versions apart: on one key no two writes or appends have the same value, those of
///   aborted transactions included.
/// * A key is a register or a list throughout.
/// * A key begins as absent, or as the empty list. If a store is filled beforehand, a transaction
///   that ends before all others begin writes the first values.
/// * A removal cannot be told apart from another one. Write a value that means "removed" instead.
pub type History<K = u64> = Calls<Vec<Operation<K>>, Outcome>;

/// An operation of a transaction, with its answer if it is a read.
///
/// ```
/// use corelay_history::transactions::Operation;
///
/// assert_eq!(Operation::Read("x", Some(3)).to_string(), "read \"x\" -> 3");
/// assert_eq!(Operation::Append("l", 3).to_string(), "append \"l\" 3");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation<K = u64> {
    /// Reads a register: its value, or `None` if it is absent.
    Read(K, Option<u64>),
    /// Writes a register.
    Write(K, u64),
    /// Reads a list: its values from the first append to the last.
    ReadList(K, Vec<u64>),
    /// Appends a value to a list.
    Append(K, u64),
}

impl<K> Operation<K> {
    /// The key of the register or list.
    pub fn key(&self) -> &K {
        match self {
            Self::Read(key, _)
            | Self::Write(key, _)
            | Self::ReadList(key, _)
            | Self::Append(key, _) => key,
        }
    }

    /// Whether the operation is on a list, not on a register.
    pub fn is_list(&self) -> bool {
        matches!(self, Self::ReadList(..) | Self::Append(..))
    }

    /// The value that is written or appended; `None` for a read.
    pub fn written(&self) -> Option<u64> {
        match *self {
            Self::Write(_, value) | Self::Append(_, value) => Some(value),
            Self::Read(..) | Self::ReadList(..) => None,
        }
    }

    /// The values that a read has seen: at most one of a register, all of a list. Empty for a write.
    pub(super) fn seen(&self) -> &[u64] {
        match self {
            Self::Read(_, value) => value.as_slice(),
            Self::ReadList(_, values) => values,
            Self::Write(..) | Self::Append(..) => &[],
        }
    }
}

/// The operation in words, as in the pictures.
impl<K: fmt::Debug> fmt::Display for Operation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(key, Some(value)) => write!(f, "read {key:?} -> {value}"),
            Self::Read(key, None) => write!(f, "read {key:?} -> absent"),
            Self::Write(key, value) => write!(f, "write {key:?} {value}"),
            Self::ReadList(key, values) => write!(f, "read {key:?} -> {values:?}"),
            Self::Append(key, value) => write!(f, "append {key:?} {value}"),
        }
    }
}

/// How a transaction ended. One whose outcome is unknown has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It has committed.
    Committed,
    /// It has committed, and this is its place in the store's order of versions, such as a commit
    /// stamp. Of two transactions that wrote one register, the one with the lesser place wrote the
    /// earlier version. Places say nothing about real time. Those of transactions that appended to
    /// lists are not needed.
    CommittedAt(u64),
    /// It has aborted: nothing that it wrote may be seen.
    Aborted,
}
