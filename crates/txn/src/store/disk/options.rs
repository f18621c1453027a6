//! Options of a store that is kept on disk.

use std::time::Duration;

/// Settings of a store that is kept on disk.
///
/// ```
/// # use corelay_txn::store::disk::Options;
/// let options = Options {
///     segment_size: 16 << 20,
///     ..Options::default()
/// };
/// assert_eq!(options.durability, Default::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether an epoch is durable when the disk has it, or already when the operating system has
    /// it.
    pub durability: Durability,
    /// The longest time for which an epoch stays open after its first commit if nobody waits for
    /// it. An epoch that somebody waits for ends as soon as the disk is free.
    pub epoch_interval: Duration,
    /// The size at which a log file is complete and the next one begun, in bytes. An epoch is never
    /// divided, so a file can be larger.
    pub segment_size: u64,
    /// Whether to open a log that is damaged in the middle. Then everything after the damage is
    /// dropped, and kept in files whose names begin with `dropped-`. Otherwise such a log is an
    /// [error](super::OpenError::Damaged). A torn end is no damage: see
    /// [`Dropped`](super::Dropped).
    pub salvage: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Disk,
            epoch_interval: Duration::from_millis(10),
            segment_size: 64 << 20,
            salvage: false,
        }
    }
}

/// When an epoch counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the disk has confirmed it (`fdatasync`, once for each epoch). It survives a power cut.
    #[default]
    Disk,
    /// When it has been written to the operating system. It survives the end of the process, but
    /// not a power cut: then the last epochs are lost, also those that were answered as durable.
    OperatingSystem,
}
