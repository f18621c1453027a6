//! Errors of transactions and tables.

use super::stats::Reason;
use std::fmt;

/// The error of a transaction that cannot go on. Pass it on by `?`: the attempt is undone, and, if
/// the [reason](Self::reason) is that another transaction was in the way, run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abort {
    reason: Reason,
}

impl Abort {
    pub(super) fn new(reason: Reason) -> Self {
        Self { reason }
    }

    /// Why the attempt was given up.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Explicit => "the transaction was given up by its own code",
            Reason::Refused => {
                "the transaction was given up because it slept while the memory of old versions \
                 reached its limit; read less at a time, or raise `Store::with_old_versions`"
            }
            _ => "another transaction was in the way; this one is run again",
        })
    }
}

impl std::error::Error for Abort {}

/// Why a table cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// There is a table of this name already.
    Exists(Box<str>),
    /// There is no table of this name.
    Unknown(Box<str>),
    /// The table of this name has other types of keys or rows, or another index.
    WrongType {
        /// The table's name.
        name: Box<str>,
        /// The types that were asked for.
        asked: &'static str,
        /// The types that the table has.
        found: &'static str,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(name) => write!(
                f,
                "there is a table {name:?} already; get it by `Store::existing`"
            ),
            Self::Unknown(name) => write!(f, "there is no table {name:?}"),
            Self::WrongType { name, asked, found } => write!(
                f,
                "the table {name:?} is a {found}, but was asked for as a {asked}"
            ),
        }
    }
}

impl std::error::Error for TableError {}
