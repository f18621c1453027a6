//! Opening: from files to a state, and to a log that can be gone on with.
//!
//! 1. The newest whole snapshot is read.
//! 2. The log's frames are read in order, up to the first that is not whole.
//! 3. That end is *torn* if no whole frame comes after it: the process or the machine stopped while
//!    it wrote, and nobody was told that the epoch is durable. It is cut off and reported.
//!    Otherwise the log is *damaged*, which no crash explains, and opening it is refused. With the
//!    option `salvage` it is cut off too, and what is dropped is kept in files.
//! 4. What was read is synchronized. A process that was killed may have left an epoch that only the
//!    operating system has. New epochs build on it, so it must not vanish under them.
//!
//! Without synchronization (`Durability::OperatingSystem`) a power cut can take pages from the
//! middle. The frames say that they were written so, and then frames after the first that is not
//! whole are no sign of damage.
//!
//! A crash at any point of this leaves files from which it can begin again.

use super::catalogue::Definition;
use super::error::OpenError;
use super::frame::{
    self, Bad, END, FILE_HEADER, FileHeader, Found, Frame, FrameHeader, FrameReader, Kind, UNSYNCED,
};
use super::log::{self, File};
use super::state::{Builder, State};
use super::storage::Storage;
use super::{Dropped, RecoveredSnapshot, snapshot};
use std::sync::Arc;

/// The state that the files of a store hold, and how it was found.
pub(super) struct Recovery {
    pub(super) state: State,
    pub(super) snapshot: Option<RecoveredSnapshot>,
    /// The last epoch that is recovered.
    pub(super) epoch: u64,
    /// The epoch of the last frame in the log; that of the snapshot if there is none.
    pub(super) previous: u64,
    pub(super) epochs: u64,
    pub(super) commits: u64,
    /// The bytes that were read.
    pub(super) bytes: u64,
    pub(super) dropped: Option<Dropped>,
    pub(super) notes: Vec<String>,
    /// The log's files.
    pub(super) files: Vec<File>,
    /// The number for the next file.
    pub(super) next: u64,
}

impl Recovery {
    pub(super) fn definitions(&mut self) -> Vec<Definition> {
        std::mem::take(&mut self.state.definitions)
    }
}

/// The prefix of the files that are not the store's any more, but were not deleted.
const DROPPED: &str = "dropped-";

/// Recovers the state of the store `store`.
pub(super) fn recover(
    storage: &dyn Storage,
    store: u64,
    salvage: bool,
) -> Result<Recovery, OpenError> {
    let mut logs = Vec::new();
    let mut snapshots = Vec::new();
    for name in storage.list().map_err(OpenError::io("list the files"))? {
        if let Some(number) = number_of(&name, "log-") {
            logs.push(number);
        } else if let Some(epoch) = number_of(&name, "snapshot-") {
            snapshots.push(epoch);
        } else if name.ends_with(snapshot::UNFINISHED) {
            let doing = || OpenError::io(format!("remove {name}"));
            storage.remove(&name).map_err(doing())?;
        }
    }
    logs.sort_unstable();
    snapshots.sort_unstable_by(|a, b| b.cmp(a));
    let mut attempt = Attempt {
        storage,
        store,
        salvage,
        logs: &logs,
        proven: snapshots.first().copied().unwrap_or(0),
        useless: Vec::new(),
        notes: Vec::new(),
    };
    let mut first_error = None;
    let candidates = snapshots.into_iter().map(Some).chain([None]);
    for candidate in candidates {
        let result = attempt.run(candidate);
        attempt.useless.extend(candidate);
        match result {
            Ok(Some(recovery)) => return Ok(recovery),
            // The snapshot is not whole, or the log does not reach to its end.
            Ok(None) => {}
            Err(error @ OpenError::Damaged { .. }) => {
                // With an older snapshot the log may be whole.
                first_error.get_or_insert(error);
                if candidate.is_none() {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(first_error.unwrap_or_else(|| OpenError::Damaged {
        file: "the newest snapshot".to_owned(),
        offset: 0,
        what: attempt.notes.join("; "),
        advice: "restore the directory from a backup",
    }))
}

fn number_of(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (format!("{prefix}{number:016x}") == name).then_some(number)
}

struct Attempt<'a> {
    storage: &'a dyn Storage,
    store: u64,
    salvage: bool,
    /// The numbers of the log files, ascending.
    logs: &'a [u64],
    /// An epoch that was durable: a snapshot says so.
    proven: u64,
    /// The snapshots from which nothing can be recovered.
    useless: Vec<u64>,
    notes: Vec<String>,
}

/// The place at which reading the log stopped.
struct Stop {
    /// The index of the file.
    index: usize,
    bad: Bad,
}

impl Attempt<'_> {
    /// Recovers from one snapshot, or from none. `None` if the snapshot is of no use.
    fn run(&mut self, snapshot: Option<u64>) -> Result<Option<Recovery>, OpenError> {
        let mut builder = Builder::new();
        let mut recovery = Recovery {
            state: State {
                tables: Vec::new(),
                definitions: Vec::new(),
                records: 0,
            },
            snapshot: None,
            epoch: 0,
            previous: 0,
            epochs: 0,
            commits: 0,
            bytes: 0,
            dropped: None,
            notes: Vec::new(),
            files: Vec::new(),
            next: self.logs.last().map_or(1, |last| last + 1),
        };
        let mut end = 0;
        if let Some(epoch) = snapshot {
            match self.read_snapshot(epoch, &mut builder, &mut recovery)? {
                Some(last) => end = last,
                None => return Ok(None),
            }
            recovery.epoch = epoch;
            recovery.previous = epoch;
        }
        let start = recovery.epoch;
        let mut last_frame = None;
        let mut is_unsynced = false;
        let stop = self.read_logs(&mut recovery, |epoch, frame| {
            is_unsynced |= frame.header.flags & UNSYNCED != 0;
            last_frame = Some(Arc::clone(&frame));
            match epoch > start {
                true => builder.apply(epoch, frame),
                false => Some(()),
            }
        })?;
        if let Some(stop) = &stop {
            self.judge(stop, is_unsynced)?;
        }
        self.proven = self.proven.max(end);
        if recovery.epoch < end || (recovery.epoch < self.proven && !self.salvage) {
            self.notes.push(format!(
                "epoch {} was durable, but the log ends with epoch {}",
                self.proven, recovery.epoch
            ));
            return Ok(None);
        }
        let Some(state) = builder.finish() else {
            return Err(OpenError::Damaged {
                file: "the log".to_owned(),
                offset: 0,
                what: "a frame with a correct checksum makes no sense".to_owned(),
                advice: "open it with the program that wrote it",
            });
        };
        recovery.state = state;
        self.mend(&mut recovery, stop, last_frame)?;
        recovery.notes.append(&mut self.notes);
        Ok(Some(recovery))
    }

    /// Applies a snapshot. Returns the last epoch that it may have seen; `None` if it is not whole.
    fn read_snapshot(
        &mut self,
        epoch: u64,
        builder: &mut Builder,
        recovery: &mut Recovery,
    ) -> Result<Option<u64>, OpenError> {
        let name = snapshot::name_of(epoch);
        let doing = || OpenError::io(format!("read {name}"));
        let header = FileHeader {
            kind: Kind::Snapshot,
            store: self.store,
            number: epoch,
            previous: 0,
        };
        let opened = self.storage.open(&name).map_err(doing())?;
        recovery.bytes += opened.1;
        let bytes = opened.1;
        let mut reader = match FrameReader::new(opened, header).map_err(doing())? {
            Ok(reader) => reader,
            Err(bad) => {
                self.notes.push(format!("{name}: {}", bad.what));
                return Ok(None);
            }
        };
        for index in 0.. {
            let what = match reader.next().map_err(doing())? {
                Found::Bad(bad) => bad.what,
                Found::End => "it has no end",
                Found::Frame(frame) if frame.header.previous != index => "a part is missing",
                Found::Frame(frame) => {
                    let FrameHeader {
                        flags, epoch: last, ..
                    } = frame.header;
                    if builder.apply(epoch, Arc::new(frame)).is_none() {
                        "a part of it makes no sense"
                    } else if flags & END != 0 {
                        recovery.snapshot = Some(RecoveredSnapshot { epoch, bytes });
                        return Ok(Some(last));
                    } else {
                        continue;
                    }
                }
            };
            self.notes.push(format!("{name}: {what}"));
            break;
        }
        Ok(None)
    }

    /// Calls `each` with the frames of the log. Returns where it is not whole.
    fn read_logs(
        &self,
        recovery: &mut Recovery,
        mut each: impl FnMut(u64, Arc<Frame>) -> Option<()>,
    ) -> Result<Option<Stop>, OpenError> {
        let start = recovery.epoch;
        let mut last = None;
        for (index, &number) in self.logs.iter().enumerate() {
            let name = log::name_of(number);
            let doing = || OpenError::io(format!("read {name}"));
            let damaged = |offset, what: &str| OpenError::Damaged {
                file: name.clone(),
                offset,
                what: what.to_owned(),
                advice: "restore the directory from a backup",
            };
            if index > 0 && self.logs[index - 1] != number - 1 {
                return Err(damaged(0, "the log file before it is missing"));
            }
            let opened = self.storage.open(&name).map_err(doing())?;
            let length = opened.1;
            recovery.bytes += length;
            let mut reader = match FrameReader::new(opened, self.header(number)) {
                Ok(Ok(reader)) => reader,
                Ok(Err(bad)) => return Ok(Some(Stop { index, bad })),
                Err(error) => return Err(doing()(error)),
            };
            recovery.files.push(File {
                number,
                previous: reader.file.previous,
                bytes: length,
            });
            loop {
                let offset = reader.offset;
                match reader.next().map_err(doing())? {
                    Found::End => break,
                    Found::Bad(bad) => return Ok(Some(Stop { index, bad })),
                    Found::Frame(frame) => {
                        let FrameHeader {
                            epoch, previous, ..
                        } = frame.header;
                        let follows = match last {
                            Some(last) => previous == last,
                            None => previous <= start,
                        };
                        if !follows || epoch <= previous {
                            return Err(damaged(offset, "epochs are missing before it"));
                        }
                        last = Some(epoch);
                        recovery.previous = epoch;
                        if epoch > start {
                            recovery.epochs += 1;
                            recovery.commits += u64::from(frame.header.commits);
                            recovery.epoch = epoch;
                        }
                        if each(epoch, Arc::new(frame)).is_none() {
                            return Err(damaged(offset, "a frame makes no sense"));
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    fn header(&self, number: u64) -> FileHeader {
        FileHeader {
            kind: Kind::Log,
            store: self.store,
            number,
            previous: 0,
        }
    }

    /// Refuses a log that is damaged, unless it shall be opened nevertheless.
    fn judge(&self, stop: &Stop, is_unsynced: bool) -> Result<(), OpenError> {
        let number = self.logs[stop.index];
        let mut after = frame::has_frame(&stop.bad.rest, self.header(number));
        for &number in &self.logs[stop.index + 1..] {
            if after.is_some() {
                break;
            }
            let name = log::name_of(number);
            let doing = || OpenError::io(format!("read {name}"));
            let opened = self.storage.open(&name).map_err(doing())?;
            let reader = FrameReader::new(opened, self.header(number)).map_err(doing())?;
            after = match reader {
                Err(bad) => frame::has_frame(&bad.rest, self.header(number)),
                Ok(mut reader) => match reader.next().map_err(doing())? {
                    Found::Frame(frame) => Some(frame.header),
                    Found::Bad(bad) => frame::has_frame(&bad.rest, self.header(number)),
                    Found::End => None,
                },
            };
        }
        let Some(after) = after else { return Ok(()) };
        if self.salvage || is_unsynced || after.flags & UNSYNCED != 0 {
            return Ok(());
        }
        Err(OpenError::Damaged {
            file: log::name_of(number),
            offset: stop.bad.offset,
            what: format!(
                "{}, but epoch {} after it is whole",
                stop.bad.what, after.epoch
            ),
            advice: "restore the directory from a backup, or open it with `salvage` to drop \
                     everything from there on",
        })
    }

    /// Cuts off what is dropped, and has the disk confirm the rest.
    fn mend(
        &self,
        recovery: &mut Recovery,
        stop: Option<Stop>,
        last_frame: Option<Arc<Frame>>,
    ) -> Result<(), OpenError> {
        let storage = self.storage;
        let doing = || OpenError::io("repair the end of the log");
        if self.salvage {
            // Before new epochs have the numbers of those that the snapshot has seen.
            for &epoch in &self.useless {
                let name = snapshot::name_of(epoch);
                let kept = format!("{DROPPED}{name}");
                storage.rename(&name, &kept).map_err(doing())?;
            }
            storage.sync().map_err(doing())?;
        }
        if let Some(Stop { index, bad }) = stop {
            let mut dropped = Dropped {
                file: log::name_of(self.logs[index]),
                offset: bad.offset,
                bytes: bad.rest.len() as u64,
                what: bad.what,
                epoch: bad.header.map(|header| header.epoch),
                commits: bad.header.map(|header| u64::from(header.commits)),
                is_kept: false,
            };
            // The newest first: if a crash keeps some and not others, the log has no hole.
            for &number in self.logs[index + 1..].iter().rev() {
                let name = log::name_of(number);
                let length = storage.open(&name).map_err(doing())?.1;
                dropped.bytes += length;
                self.drop_file(&name, length, &mut dropped)?;
            }
            let name = &dropped.file.clone();
            if bad.offset <= FILE_HEADER as u64 {
                let length = bad.rest.len() as u64;
                self.drop_file(name, length, &mut dropped)?;
                recovery
                    .files
                    .retain(|file| file.number != self.logs[index]);
            } else {
                if self.salvage {
                    self.keep(&format!("{DROPPED}{name}"), &bad.rest)?;
                    dropped.is_kept = true;
                }
                // Cut below, together with the last frame.
                if let Some(file) = recovery.files.last_mut() {
                    file.bytes = bad.offset;
                }
            }
            recovery.dropped = Some(dropped);
        }
        let newest = recovery.files.last().map(|file| file.number);
        if let Some(newest) = newest {
            // Without a gap, also if later ones have been dropped.
            recovery.next = newest + 1;
        }
        for file in &recovery.files {
            let mut tail = &[][..];
            if let Some(frame) = last_frame.as_deref()
                && Some(file.number) == newest
                && file.bytes >= (FILE_HEADER + frame.bytes.len()) as u64
            {
                // Written again, and not only synchronized: if that has failed before, the
                // operating system takes the pages for clean.
                tail = &frame.bytes;
            }
            let offset = file.bytes - tail.len() as u64;
            let mended = storage.mend(&log::name_of(file.number), offset, tail);
            mended.map_err(doing())?;
        }
        storage.sync().map_err(doing())
    }

    /// Removes a file from the log. With `salvage` it gets another name.
    fn drop_file(&self, name: &str, length: u64, dropped: &mut Dropped) -> Result<(), OpenError> {
        let doing = || OpenError::io(format!("drop {name}"));
        if self.salvage && length > FILE_HEADER as u64 {
            dropped.is_kept = true;
            let kept = format!("{DROPPED}{name}");
            self.storage.rename(name, &kept).map_err(doing())?;
        } else {
            self.storage.remove(name).map_err(doing())?;
        }
        self.storage.sync().map_err(doing())
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), OpenError> {
        let doing = || OpenError::io(format!("write {name}"));
        // A crash may have left it by an earlier attempt.
        let names = self.storage.list().map_err(doing())?;
        if names.iter().any(|known| known == name) {
            self.storage.remove(name).map_err(doing())?;
        }
        let mut file = self.storage.create(name).map_err(doing())?;
        file.append(bytes).map_err(doing())?;
        file.sync().map_err(doing())?;
        self.storage.sync().map_err(doing())
    }
}
