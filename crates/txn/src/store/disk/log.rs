//! The log's files.
//!
//! Each epoch is a frame, written by one write at the end of the newest file. A file that is large
//! enough is left for the next one. Files are numbered without gaps, and removed from the oldest on,
//! when a snapshot has what is in them.

use super::frame::{self, FILE_HEADER, FileHeader, FrameHeader, Kind};
use super::storage::{Storage, StorageFile};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

/// The name of a log file.
pub(super) fn name_of(number: u64) -> String {
    format!("log-{number:016x}")
}

/// The files that a snapshot may remove, and the newest.
#[derive(Debug, Default)]
pub(super) struct Files(Mutex<VecDeque<File>>);

#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    pub(super) number: u64,
    /// The last epoch before the file.
    pub(super) previous: u64,
    /// The file's length in bytes.
    pub(super) bytes: u64,
}

impl Files {
    pub(super) fn new(files: impl IntoIterator<Item = File>) -> Self {
        Self(Mutex::new(files.into_iter().collect()))
    }

    /// The number of files, and the bytes in them.
    pub(super) fn size(&self) -> (usize, u64) {
        let files = self.0.lock().unwrap();
        (files.len(), files.iter().map(|file| file.bytes).sum())
    }

    /// Removes the files that have no epoch after `epoch`. Returns how many.
    pub(super) fn cut(&self, storage: &dyn Storage, epoch: u64) -> io::Result<usize> {
        let mut removed = 0;
        loop {
            let mut files = self.0.lock().unwrap();
            match (files.front(), files.get(1)) {
                (Some(&first), Some(second)) if second.previous <= epoch => {
                    files.pop_front();
                    drop(files);
                    // If a crash keeps some and not others, the oldest are the ones that are gone.
                    storage.remove(&name_of(first.number))?;
                    storage.sync()?;
                    removed += 1;
                }
                _ => return Ok(removed),
            }
        }
    }
}

/// The end of the log. The log thread has it.
pub(super) struct Log {
    storage: Arc<dyn Storage>,
    files: Arc<Files>,
    store: u64,
    /// The size at which a file is complete.
    limit: u64,
    current: Option<Current>,
    /// The number of the next file.
    next: u64,
    /// The last epoch in the log.
    pub(super) previous: u64,
    /// Whether everything written is synchronized.
    is_synced: bool,
}

struct Current {
    file: Box<dyn StorageFile>,
    header: FileHeader,
    bytes: u64,
}

impl Log {
    /// A log that goes on after epoch `previous`, in a new file with the number `next`.
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        files: Arc<Files>,
        (store, next, previous): (u64, u64, u64),
        limit: u64,
    ) -> Self {
        Self {
            storage,
            files,
            store,
            limit,
            current: None,
            next,
            previous,
            is_synced: true,
        }
    }

    /// Ends the newest file.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        // What is in a file is synchronized before there is a next one: a hole in the log would
        // otherwise look like damage.
        self.sync()?;
        self.current = None;
        Ok(())
    }

    /// Writes an epoch, whose payload is in `frame` after the room for a header.
    pub(super) fn append(&mut self, frame: &mut [u8], mut header: FrameHeader) -> io::Result<()> {
        if self.current.as_ref().is_some_and(|c| c.bytes >= self.limit) {
            self.rotate()?;
        }
        let current = match &mut self.current {
            Some(current) => current,
            None => self.current.insert(Self::begin(
                &*self.storage,
                &self.files,
                FileHeader {
                    kind: Kind::Log,
                    store: self.store,
                    number: self.next,
                    previous: self.previous,
                },
            )?),
        };
        self.next = current.header.number + 1;
        header.previous = self.previous;
        frame::seal(frame, header, current.header);
        self.is_synced = false;
        current.file.append(frame)?;
        current.bytes += frame.len() as u64;
        self.previous = header.epoch;
        let mut files = self.files.0.lock().unwrap();
        if let Some(newest) = files.back_mut() {
            newest.bytes = current.bytes;
        }
        Ok(())
    }

    fn begin(storage: &dyn Storage, files: &Files, header: FileHeader) -> io::Result<Current> {
        let mut file = storage.create(&name_of(header.number))?;
        file.append(&header.encode())?;
        file.sync()?;
        storage.sync()?;
        files.0.lock().unwrap().push_back(File {
            number: header.number,
            previous: header.previous,
            bytes: FILE_HEADER as u64,
        });
        Ok(Current {
            file,
            header,
            bytes: FILE_HEADER as u64,
        })
    }

    /// Has the disk confirm everything written so far.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(current) = &mut self.current
            && !self.is_synced
        {
            current.file.sync()?;
        }
        self.is_synced = true;
        Ok(())
    }
}
