//! `recover`: opening a store that has a log of some size.
//!
//! In each slice one client opens the store with its table, once; the store is closed between slices.
//! What is counted is the kilobytes (10^3 bytes) of the files that the opening has read, so that
//! throughput is that of the log; latency is the time of an opening. At the end all updates that the log
//! was made of must be there.

use super::contender::{Keeper, Shape};
use super::{folder, stored::Stored};
use crate::ordered::ledger::Ledger;
use corelay_lab_measure::method::{Contender, SetupLimit};
use corelay_lab_measure::schema::ConflictCounts;
use corelay_lab_measure::workload::random::{Client, Random};
use corelay_txn::store::Protocol;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tempfile::TempDir;

/// Rows that one transaction of the log inserts or updates.
const BATCH: u64 = 16;

/// Transactions that wait for the disk while the log is made.
const WINDOW: usize = 1024;

/// The parameters of `recover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogShape {
    /// Number of rows in the table.
    pub rows: u64,
    /// Bytes of a row, at least 8.
    pub bytes: usize,
    /// Bytes of the log, about.
    pub log_bytes: u64,
    /// Whether the system is asked to forget the files before each opening, so that they are read from
    /// the disk.
    pub is_cold: bool,
}

struct RecoverContender<P: Protocol> {
    shape: LogShape,
    protocol: Box<dyn Fn() -> Result<P, String> + Send + Sync>,
    /// Updates in the log.
    updates: u64,
    ledger: Ledger,
    /// The store that the last slice has opened, or that has made the log.
    opened: Mutex<Option<Stored<P>>>,
    folder: TempDir,
}

/// Makes a contender with a log, in a new folder in `dir`.
pub(super) fn contender<P: Protocol>(
    shape: LogShape,
    dir: &Path,
    limit: &SetupLimit,
    protocol: impl Fn() -> Result<P, String> + Send + Sync + 'static,
) -> Result<Box<dyn Contender>, String> {
    let folder = folder::make(dir);
    let folder = folder.map_err(|e| format!("no folder can be made in {}: {e}", dir.display()))?;
    let mut contender = RecoverContender {
        shape,
        protocol: Box::new(protocol),
        updates: 0,
        ledger: Ledger::default(),
        opened: Mutex::new(None),
        folder,
    };
    contender.make_log(limit)?;
    contender.close();
    Ok(Box::new(contender))
}

impl<P: Protocol> RecoverContender<P> {
    fn open(&self) -> Result<Stored<P>, String> {
        let shape = Shape {
            rows: self.shape.rows,
            bytes: self.shape.bytes,
            requests: BATCH as usize,
        };
        Stored::open((self.protocol)()?, self.folder.path(), shape)
    }

    /// Inserts all rows, then updates random ones until the log is long enough.
    fn make_log(&mut self, limit: &SetupLimit) -> Result<(), String> {
        let LogShape {
            rows,
            bytes,
            log_bytes,
            ..
        } = self.shape;
        let store = self.open()?;
        for first in (0..rows).step_by(1024) {
            store.fill(first..(first + 1024).min(rows), bytes)?;
            limit.check()?;
        }
        let mut random = Random::new(1);
        let mut waiting = VecDeque::new();
        while self.size().map_err(|e| e.to_string())? < log_bytes {
            for _ in 0..WINDOW {
                let first = random.below(rows);
                let updated = first..(first + BATCH).min(rows);
                self.updates += updated.end - updated.start;
                waiting.push_back(store.add(&updated.collect::<Vec<_>>())?);
            }
            for pending in waiting.drain(..) {
                store.wait(pending)?;
            }
            limit.check()?;
        }
        self.keep(store);
        Ok(())
    }

    /// Leaves the store open until [`close`](Self::close).
    fn keep(&self, store: Stored<P>) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        *opened = Some(store);
    }

    /// Closes the store, if it is open. The system forgets its files, if that is asked for.
    fn close(&self) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(store) = opened.take() else {
            return;
        };
        drop(store);
        if self.shape.is_cold
            && let Err(error) = folder::forget(self.folder.path())
        {
            self.ledger.report(1, || error.to_string());
        }
    }

    /// The bytes of all files.
    fn size(&self) -> io::Result<u64> {
        let files = fs::read_dir(self.folder.path())?;
        files.map(|file| Ok(file?.metadata()?.len())).sum()
    }
}

impl<P: Protocol> Contender for RecoverContender<P> {
    fn clients(&self) -> Range<usize> {
        0..1
    }

    fn client(&self, client: Client) -> u64 {
        // It is open only after a warm-up that is followed by another one.
        self.close();
        let start = Instant::now();
        match self.open() {
            Ok(store) => {
                client.latencies().record(start.elapsed());
                let kilobytes = store.recovered_bytes() / 1_000;
                self.keep(store);
                kilobytes
            }
            Err(error) => {
                self.ledger.report(1, || error);
                0
            }
        }
    }

    fn total(&self) -> Result<u64, String> {
        self.close();
        self.ledger.check()?;
        let (sum, updates) = (self.open()?.sum()?, self.updates);
        (sum == updates).then_some(0).ok_or_else(|| {
            format!("{updates} updates were logged, and {sum} are there after an opening")
        })
    }

    /// Closes the store, too: this is called between slices.
    fn counts(&self) -> Option<ConflictCounts> {
        self.close();
        Some(self.ledger.take(ConflictCounts::default()))
    }
}
