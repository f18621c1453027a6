//! Errors of the disk side.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The error of a commit that is not durable and never will be. From the first failed write on, a
/// store takes no more commits. Clones are cheap.
#[derive(Clone, Debug)]
pub struct DiskFailed(Arc<Cause>);

#[derive(Debug)]
enum Cause {
    Closed,
    Panicked,
    Io { doing: String, error: io::Error },
}

impl DiskFailed {
    pub(super) fn closed() -> Self {
        Self(Arc::new(Cause::Closed))
    }

    pub(super) fn panicked() -> Self {
        Self(Arc::new(Cause::Panicked))
    }

    pub(super) fn io(doing: impl Into<String>, error: io::Error) -> Self {
        let doing = doing.into();
        Self(Arc::new(Cause::Io { doing, error }))
    }

    /// Whether the store has been closed, and no write has failed.
    pub fn is_closed(&self) -> bool {
        matches!(*self.0, Cause::Closed)
    }

    /// The operating system's error, if that was the cause.
    pub fn io_error(&self) -> Option<&io::Error> {
        match &*self.0 {
            Cause::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for DiskFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Cause::Closed => f.write_str("the store has been closed; open it again"),
            Cause::Panicked => f.write_str(
                "the store's log thread has panicked, so the commit is not durable; open the \
                 store again",
            ),
            Cause::Io { doing, error } => write!(
                f,
                "{doing} failed, so the commit is not durable and the store takes no more: \
                 {error}; see to the disk and open the store again"
            ),
        }
    }
}

impl std::error::Error for DiskFailed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.io_error().map(|error| error as _)
    }
}

/// The reason why a directory cannot be opened as a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or this one, has the store open.
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The process that has it open, if it has said so.
        pid: Option<u32>,
    },
    /// The directory has files, but no store.
    NotAStore {
        /// The directory.
        dir: PathBuf,
        /// One of its files.
        file: String,
    },
    /// The store was written by another version of corelay.
    Version {
        /// The version of the store's files.
        found: u32,
        /// The version that this program reads and writes.
        known: u32,
    },
    /// A file is damaged in a way that no crash explains. What was answered as durable may be lost.
    Damaged {
        /// The file's name.
        file: String,
        /// The place in the file, in bytes from its beginning.
        offset: u64,
        /// The fault, in words.
        what: String,
        /// A remedy, in words.
        advice: &'static str,
    },
    /// The operating system refuses something.
    Io {
        /// The operation that failed, in words.
        doing: String,
        /// The reason.
        error: io::Error,
    },
}

impl OpenError {
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Io { doing, error }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { dir, pid } => {
                write!(f, "{} is in use by ", dir.display())?;
                match pid {
                    Some(pid) if *pid == std::process::id() => f.write_str("this process")?,
                    Some(pid) => write!(f, "another process (pid {pid})")?,
                    None => f.write_str("another process")?,
                }
                f.write_str("; close the store there first")
            }
            Self::NotAStore { dir, file } => write!(
                f,
                "{} is not a store, but has files ({file}); give an empty directory",
                dir.display()
            ),
            Self::Version { found, known } => write!(
                f,
                "the store has version {found}, and this program knows version {known}; open it \
                 with the program that wrote it"
            ),
            Self::Damaged {
                file,
                offset,
                what,
                advice,
            } => write!(f, "{file} is damaged at byte {offset}: {what}; {advice}"),
            Self::Io { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// The reason why a table of this name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// The table's entries are of other types than those asked for.
    Tag {
        /// The table's name.
        name: String,
        /// The types that the table was made with.
        found: String,
        /// The types that were asked for.
        wanted: String,
    },
    /// A name or tag has more than 65,535 bytes, or there are 2³¹ tables.
    TooLarge {
        /// The table's name.
        name: String,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag {
                name,
                found,
                wanted,
            } => write!(
                f,
                "table `{name}` holds {found} on disk, not {wanted}; use these types, or another \
                 name"
            ),
            Self::TooLarge { .. } => f.write_str("a table's name has at most 65,535 bytes"),
        }
    }
}

impl std::error::Error for TableError {}

/// The reason why a key or value cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The key, the value or the transaction has more bytes than the limit.
    TooLarge {
        /// The part that is too large: key, value or transaction.
        what: &'static str,
        /// The size of that part in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The type's own serialization failed.
    Refused(String),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { what, bytes, limit } => write!(
                f,
                "a {what} of {bytes} bytes is over the limit of {limit}; divide it"
            ),
            Self::Refused(why) => write!(f, "serialization failed: {why}"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// The reason why a snapshot was not made. The log is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The store is in memory.
    InMemory,
    /// Another snapshot is being made, or the rows of a table are being loaded.
    Busy,
    /// An entry cannot be encoded.
    Encode(EncodeError),
    /// The store has failed or has been closed.
    Failed(DiskFailed),
    /// The operating system refuses something.
    Io {
        /// The operation that failed, in words.
        doing: &'static str,
        /// The reason.
        error: io::Error,
    },
}

impl SnapshotError {
    pub(super) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { doing, error }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InMemory => {
                f.write_str("the store is in memory; make the store by `Store::open`")
            }
            Self::Busy => f.write_str(
                "another snapshot is being made, or a table loaded; try again when it has ended",
            ),
            Self::Encode(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::Io { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::InMemory | Self::Busy => None,
            Self::Encode(error) => Some(error),
            Self::Failed(error) => Some(error),
            Self::Io { error, .. } => Some(error),
        }
    }
}

impl From<DiskFailed> for SnapshotError {
    fn from(error: DiskFailed) -> Self {
        Self::Failed(error)
    }
}

impl From<EncodeError> for SnapshotError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}
