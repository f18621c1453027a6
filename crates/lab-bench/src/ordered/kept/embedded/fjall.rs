//! The crate `fjall`: a log-structured merge tree with a journal, with one writer at a time.
//!
//! A commit writes the journal out and calls `fdatasync` before it returns (`PersistMode::SyncData`).

use super::super::contender::Shape;
use super::{Embedded, add_one, number, words};
use fjall::{
    KeyspaceCreateOptions, PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace,
};
use std::error::Error;
use std::ops::Range;
use std::path::Path;

/// A database of `fjall`, and its keyspace.
pub(in super::super) struct Fjall {
    database: SingleWriterTxDatabase,
    rows: SingleWriterTxKeyspace,
}

impl Embedded for Fjall {
    fn open(dir: &Path, _: Shape) -> Result<Self, String> {
        Self::make(dir).map_err(words("fjall"))
    }

    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String> {
        self.insert(rows, bytes).map_err(words("fjall"))
    }

    fn commit<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), String> {
        self.add(transactions).map_err(words("fjall"))
    }

    fn sum(&self) -> Result<u64, String> {
        self.add_up().map_err(words("fjall"))
    }
}

impl Fjall {
    fn make(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let database = SingleWriterTxDatabase::builder(dir).open()?;
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        Ok(Self { database, rows })
    }

    fn insert(&self, rows: Range<u64>, bytes: usize) -> Result<(), Box<dyn Error>> {
        let mut tx = self.database.write_tx();
        for key in rows {
            tx.insert(&self.rows, key.to_be_bytes(), vec![0; bytes]);
        }
        Ok(tx.commit()?)
    }

    fn add<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), Box<dyn Error>> {
        let mut tx = self
            .database
            .write_tx()
            .durability(Some(PersistMode::SyncData));
        for key in transactions.iter().flat_map(T::as_ref) {
            let key = key.to_be_bytes();
            let row = tx.get(&self.rows, key)?.ok_or("a row is missing")?;
            let mut row = row.to_vec();
            add_one(&mut row);
            tx.insert(&self.rows, key, row);
        }
        Ok(tx.commit()?)
    }

    fn add_up(&self) -> Result<u64, Box<dyn Error>> {
        let mut sum = 0;
        for row in self.database.read_tx().iter(&self.rows) {
            sum += number(&row.value()?);
        }
        Ok(sum)
    }
}
