//! The crate `sled` (0.34): a lock-free tree on a log.
//!
//! A transaction is followed by `flush`. On Linux that ends in `sync_file_range`, whose manual says
//! that it does not flush the disk's cache, so that a loss of power may lose what was flushed. So the
//! file is synced afterwards, as the other methods do it; `sled-flush` leaves that out, and has not
//! their durability.

use super::super::contender::Shape;
use super::{Embedded, add_one, number, words};
use sled::transaction::ConflictableTransactionError::Abort;
use std::error::Error;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// A database of `sled`, whose default tree has the rows, and its file.
pub(in super::super) struct Sled<const IS_SYNCED: bool> {
    database: sled::Db,
    file: File,
}

impl<const IS_SYNCED: bool> Embedded for Sled<IS_SYNCED> {
    fn open(dir: &Path, _: Shape) -> Result<Self, String> {
        Self::make(dir).map_err(words("sled"))
    }

    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String> {
        self.insert(rows, bytes).map_err(words("sled"))
    }

    fn commit<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), String> {
        self.add(transactions).map_err(words("sled"))
    }

    fn sum(&self) -> Result<u64, String> {
        self.add_up().map_err(words("sled"))
    }
}

impl<const IS_SYNCED: bool> Sled<IS_SYNCED> {
    fn make(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let database = sled::Config::new()
            .path(dir)
            .mode(sled::Mode::HighThroughput)
            // Nothing is written without being asked for.
            .flush_every_ms(None)
            .open()?;
        let file = File::open(dir.join("db"))?;
        Ok(Self { database, file })
    }

    fn sync(&self) -> Result<(), Box<dyn Error>> {
        self.database.flush()?;
        if IS_SYNCED {
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn insert(&self, rows: Range<u64>, bytes: usize) -> Result<(), Box<dyn Error>> {
        for key in rows {
            self.database.insert(key.to_be_bytes(), vec![0; bytes])?;
        }
        self.sync()
    }

    fn add<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), Box<dyn Error>> {
        let added = self.database.transaction(|tx| {
            for key in transactions.iter().flat_map(T::as_ref) {
                let key = key.to_be_bytes();
                let row = tx.get(key)?.ok_or(Abort("a row is missing"))?;
                let mut row = row.to_vec();
                add_one(&mut row);
                tx.insert(&key, row)?;
            }
            Ok(())
        });
        added.map_err(|error| error.to_string())?;
        self.sync()
    }

    fn add_up(&self) -> Result<u64, Box<dyn Error>> {
        let mut sum = 0;
        for row in self.database.iter() {
            sum += number(&row?.1);
        }
        Ok(sum)
    }
}
