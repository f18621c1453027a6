//! Snapshots: the state of all tables in a file, so that the log before it can be removed.
//!
//! A snapshot is made while commits go on, so it is *fuzzy*: it contains every commit up to epoch
//! `start`, and of the later ones up to epoch `end` some writes and not others. It counts only when
//! all epochs up to `end` are durable. So the log has all writes after `start`, and applying them
//! again makes the state exact, because the newest version of each entry wins.
//!
//! The file has another name until it is whole and synchronized.

use super::durable::Progress;
use super::error::SnapshotError;
use super::frame::{self, END, FRAME_HEADER, FileHeader, FrameHeader, Kind};
use super::record::{self, COMMIT_HEADER};
use super::storage::StorageFile;
use super::{Disk, EncodeError, Records, TableId};
use corelay_sync::barrier;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::fmt;

/// The suffix of a snapshot's name while it is being written.
pub(super) const UNFINISHED: &str = ".unfinished";

/// The bytes that are written together.
const CHUNK: usize = 1 << 20;

/// The name of the snapshot that has all commits up to `epoch`.
pub(super) fn name_of(epoch: u64) -> String {
    format!("snapshot-{epoch:016x}")
}

/// A snapshot that is being made. Dropping it gives it up.
#[must_use = "it has to be filled and finished"]
pub struct Snapshot<'a> {
    disk: &'a Disk,
    file: Option<Box<dyn StorageFile>>,
    header: FileHeader,
    records: Records,
    report: SnapshotReport,
    frames: u64,
    is_finished: bool,
    _only: Only<'a>,
}

/// The right to make the one snapshot. No guard of a mutex, which would have to stay on its thread: a
/// fibre that makes a snapshot may wait, and go on elsewhere.
struct Only<'a>(&'a AtomicBool);

impl<'a> Only<'a> {
    fn take(is_taken: &'a AtomicBool) -> Option<Self> {
        // Acquire: pairs with the Release of the drop; the files of the snapshot before are closed.
        (!is_taken.swap(true, Ordering::Acquire)).then_some(Self(is_taken))
    }
}

impl Drop for Only<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `take`.
        self.0.store(false, Ordering::Release);
    }
}

/// The counts of a finished snapshot: entries written, files removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The epoch up to which the snapshot has all commits.
    pub epoch: u64,
    /// The entries in the snapshot.
    pub entries: u64,
    /// The size of the snapshot, in bytes.
    pub bytes: u64,
    /// The log files that were removed.
    pub removed_files: usize,
}

impl<'a> Snapshot<'a> {
    pub(super) fn begin(disk: &'a Disk) -> Result<Self, SnapshotError> {
        let only = Only::take(&disk.is_snapshotting).ok_or(SnapshotError::Busy)?;
        // So that the snapshot can replace all files up to here.
        // Relaxed: a hint.
        disk.shared.rotate.store(true, Ordering::Relaxed);
        disk.now().wait()?;
        // All committers of a durable epoch have left it, so its writes are installed.
        let epoch = disk.progress().durable();
        let header = FileHeader {
            kind: Kind::Snapshot,
            store: disk.store,
            number: epoch,
            previous: 0,
        };
        let name = name_of(epoch) + UNFINISHED;
        let made = disk.storage.create(&name);
        let mut snapshot = Self {
            disk,
            file: Some(made.map_err(SnapshotError::io("make the snapshot's file"))?),
            header,
            records: Records::new(),
            report: SnapshotReport {
                epoch,
                ..SnapshotReport::default()
            },
            frames: 0,
            is_finished: false,
            _only: only,
        };
        snapshot.append(&header.encode())?;
        Ok(snapshot)
    }

    /// The epoch up to which the snapshot has to contain all commits.
    pub fn epoch(&self) -> u64 {
        self.report.epoch
    }

    /// Adds an entry, as it is at any time between the beginning of the snapshot and its end. `key`
    /// and `value` append their bytes. Each key may come once.
    ///
    /// # Errors
    /// If the entry cannot be encoded or the file cannot be written.
    pub fn put(
        &mut self,
        table: TableId,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), SnapshotError> {
        self.records.put(table, key, value)?;
        self.report.entries += 1;
        if self.records.bytes().len() >= CHUNK {
            self.write_chunk(FrameHeader::default(), &[])?;
        }
        Ok(())
    }

    fn write_chunk(
        &mut self,
        mut header: FrameHeader,
        definitions: &[u8],
    ) -> Result<(), SnapshotError> {
        let records = self.records.bytes();
        let length = FRAME_HEADER + COMMIT_HEADER + records.len() + definitions.len();
        let mut chunk = Vec::with_capacity(length);
        chunk.resize(FRAME_HEADER, 0);
        record::append_commit(&mut chunk, 0, records);
        chunk.extend_from_slice(definitions);
        header.commits = 1;
        header.definitions = definitions.len() as u32;
        header.previous = self.frames;
        frame::seal(&mut chunk, header, self.header);
        self.frames += 1;
        self.records.clear();
        self.append(&chunk)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.report.bytes += bytes.len() as u64;
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let appended = file.append(bytes);
        appended.map_err(SnapshotError::io("write the snapshot"))
    }

    /// Makes the snapshot valid, and removes the log files and the snapshot that it replaces.
    ///
    /// # Errors
    /// If the store has failed, or a file cannot be written, renamed or removed.
    pub fn finish(mut self) -> Result<SnapshotReport, SnapshotError> {
        // Release: pairs with the Acquire of the log thread. The barrier pairs with the heavy one
        // of `Closer::close`: the log thread sees this when it closes the epoch that is read next.
        self.disk.shared.sync.store(true, Ordering::Release);
        barrier::light();
        let end = self.disk.now();
        end.wait()?;
        let mut definitions = Vec::new();
        let catalogue = self.disk.shared.catalogue.lock().unwrap();
        catalogue.encode_all(&mut definitions);
        drop(catalogue);
        let header = FrameHeader {
            flags: END,
            // Not `end` itself, for that has no frame if it has no commits.
            // Relaxed: published by the epoch that was waited for.
            epoch: self.disk.shared.written.load(Ordering::Relaxed),
            ..FrameHeader::default()
        };
        self.write_chunk(header, &definitions)?;
        if let Some(file) = &mut self.file {
            let synced = file.sync();
            synced.map_err(SnapshotError::io("synchronize the snapshot"))?;
        }
        self.file = None;
        let storage = &*self.disk.storage;
        let epoch = self.report.epoch;
        let name = name_of(epoch);
        let mut ready = storage.rename(&(name.clone() + UNFINISHED), &name);
        self.is_finished = ready.is_ok();
        ready = ready.and_then(|()| storage.sync());
        ready.map_err(SnapshotError::io("put the snapshot into its place"))?;
        let doing = || SnapshotError::io("remove what the snapshot replaces");
        // The log first: an older snapshot is of no use without it, and does no harm.
        let removed = self.disk.files.cut(storage, epoch);
        self.report.removed_files = removed.map_err(doing())?;
        for name in storage.list().map_err(doing())? {
            if is_older(&name, epoch) {
                storage.remove(&name).map_err(doing())?;
            }
        }
        Ok(self.report)
    }
}

fn is_older(name: &str, epoch: u64) -> bool {
    let digits = name.strip_prefix("snapshot-");
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| number < epoch)
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.file = None;
            // If it stays, it is removed when the store is opened again.
            let name = name_of(self.report.epoch) + UNFINISHED;
            let _ = self.disk.storage.remove(&name);
        }
    }
}

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

impl Disk {
    fn progress(&self) -> &Progress {
        &self.progress
    }
}
