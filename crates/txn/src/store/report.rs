//! Reports: the counts of a store, and its memory.

use super::disk::DiskReport;
use super::stats::{Counts, Reason};
use std::fmt;

/// The counts of a [`Store`](super::Store) since it was made, and the memory that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The protocol's name.
    pub protocol: &'static str,
    /// Transactions that committed, those included that only read.
    pub commits: u64,
    /// Attempts that were given up.
    pub aborts: Aborts,
    /// Sleeping transactions that were refused because the memory of old versions was at its limit.
    pub refused: u64,
    /// Comparisons of times that the clock left open. [`Occ`](super::Occ) then draws a new time;
    /// other protocols make none.
    pub uncertain: u64,
    /// The tables.
    pub tables: Vec<TableReport>,
    /// Bytes of versions and other memory that were replaced and cannot be freed yet. Each thread
    /// updates its part once in 64 commits.
    pub old_versions: u64,
    /// Bytes of the chunks in which small rows lie, those that are free included. Rows of more than
    /// 4 KiB, what rows point to, and indexes come on top.
    pub memory: u64,
    /// The epochs, commits and bytes on disk, if the store is kept there.
    pub disk: Option<DiskReport>,
}

/// The attempts that were given up because of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableReport {
    /// The table's name.
    pub name: String,
    /// Attempts that were given up because of the table's rows.
    pub aborts: Aborts,
}

/// Attempts that were given up, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aborts([u64; Reason::ALL.len()]);

impl Aborts {
    pub(super) fn of(counts: &Counts) -> Self {
        Self(Reason::ALL.map(|reason| counts.get(reason)))
    }

    /// The attempts that were given up for a reason.
    pub fn by(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// The attempts that were given up because other transactions were in the way.
    pub fn conflicts(&self) -> u64 {
        let retried = Reason::ALL.iter().filter(|reason| reason.is_retried());
        retried.map(|reason| self.by(*reason)).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} commits, aborts: {}",
            self.protocol, self.commits, self.aborts
        )?;
        for table in &self.tables {
            writeln!(f, "  {}: {}", table.name, table.aborts)?;
        }
        write!(
            f,
            "  old versions {} bytes, memory {} bytes, {} sleepers refused, {} uncertain",
            self.old_versions, self.memory, self.refused, self.uncertain
        )?;
        if let Some(disk) = &self.disk {
            write!(
                f,
                "\n  disk: {} commits in {} epochs, {} bytes; the log has {} bytes in {} files",
                disk.commits, disk.epochs, disk.bytes, disk.log_bytes, disk.log_files
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Aborts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for reason in Reason::ALL
            .into_iter()
            .filter(|reason| self.by(*reason) > 0)
        {
            let comma = if is_first { "" } else { ", " };
            write!(f, "{comma}{reason} {}", self.by(reason))?;
            is_first = false;
        }
        if is_first {
            f.write_str("none")
        } else {
            Ok(())
        }
    }
}
