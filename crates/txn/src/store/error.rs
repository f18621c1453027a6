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
            Reason::TooLarge => {
                "the transaction was given up because a key, a row or all that it writes has more \
                 bytes than the log takes (1 MiB, 64 MiB, 1 GiB); divide it"
            }
            Reason::Encoding => {
                "the transaction was given up because a key or a row refused to be serialized for \
                 the log, or cannot be read back from it; `Store::kept_table` says which types can"
            }
            Reason::Disk => {
                "the transaction was given up because the store's disk has failed; \
                 `Store::disk_failure` says how. Open the store again"
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
    /// The table of this name is on disk, and was asked for as one that is in memory or open.
    OnDisk(Box<str>),
    /// The rows of the table of this name are being loaded by another call.
    Loading(Box<str>),
    /// The store is not kept on disk, so none of its tables can be.
    NoDirectory(Box<str>),
    /// The table of this name is kept on disk with other types.
    WrongTypeOnDisk {
        /// The table's name.
        name: Box<str>,
        /// The types that were asked for.
        asked: Box<str>,
        /// The types that the table has on disk.
        found: Box<str>,
    },
    /// The rows that are on disk cannot be made into rows of this type. They stay on disk.
    Unreadable {
        /// The table's name.
        name: Box<str>,
        /// The fault, in words.
        what: Box<str>,
    },
    /// The name, or those of the types, are too long for the disk: at most 65,535 bytes each.
    TooLong(Box<str>),
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
            Self::OnDisk(name) => write!(
                f,
                "the table {name:?} is on disk; open it by `Store::kept_table` or \
                 `Store::kept_ordered`, or use another name"
            ),
            Self::Loading(name) => write!(
                f,
                "the rows of the table {name:?} are being loaded by another call; get the table by \
                 `Store::existing` when that has ended"
            ),
            Self::NoDirectory(name) => write!(
                f,
                "the table {name:?} cannot be kept on disk, because the store is in memory; make \
                 the store by `Store::open`"
            ),
            Self::WrongTypeOnDisk { name, asked, found } => write!(
                f,
                "the table {name:?} holds {found} on disk, but was asked for with {asked}; ask for \
                 these types, or, if they were only renamed, give a `Codec` whose `tag` is {found:?}"
            ),
            Self::Unreadable { name, what } => write!(
                f,
                "the rows of the table {name:?} on disk cannot be read: {what}; they stay there. \
                 Open it with the types and the codec by which they were written"
            ),
            Self::TooLong(name) => write!(
                f,
                "the name of a table, and those of its types, have at most 65,535 bytes on disk: \
                 {:.40}...",
                name
            ),
        }
    }
}

impl std::error::Error for TableError {}
