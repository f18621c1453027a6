//! The crate `heed`: LMDB, a B+ tree that is copied on write and mapped into memory, with one writer
//! at a time.
//!
//! A commit calls `fdatasync` for the pages and writes the new root synchronously, which is LMDB's
//! default.

use super::super::contender::Shape;
use super::{Embedded, add_one, number, words};
use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, Env};
use std::error::Error;
use std::ops::Range;
use std::path::Path;

/// An environment of LMDB, and its database.
pub(in super::super) struct Heed {
    env: Env,
    rows: Database<U64<BigEndian>, Bytes>,
}

impl Embedded for Heed {
    fn open(dir: &Path, shape: Shape) -> Result<Self, String> {
        Self::make(dir, shape).map_err(words("heed"))
    }

    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String> {
        self.insert(rows, bytes).map_err(words("heed"))
    }

    fn commit<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), String> {
        self.add(transactions).map_err(words("heed"))
    }

    fn sum(&self) -> Result<u64, String> {
        self.add_up().map_err(words("heed"))
    }
}

impl Heed {
    fn make(dir: &Path, shape: Shape) -> Result<Self, Box<dyn Error>> {
        // The room for pages in whole GiB, of which only those in use take memory and disk.
        let rows = shape.rows as usize * shape.bytes;
        let room = (8 * rows + 1).next_multiple_of(1 << 30);
        let env = map::open(dir, room)?;
        let mut writing = env.write_txn()?;
        let rows = env.create_database(&mut writing, None)?;
        writing.commit()?;
        Ok(Self { env, rows })
    }

    fn insert(&self, rows: Range<u64>, bytes: usize) -> Result<(), Box<dyn Error>> {
        let row = vec![0; bytes];
        let mut writing = self.env.write_txn()?;
        for key in rows {
            self.rows.put(&mut writing, &key, &row)?;
        }
        Ok(writing.commit()?)
    }

    fn add<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), Box<dyn Error>> {
        let mut writing = self.env.write_txn()?;
        for key in transactions.iter().flat_map(T::as_ref) {
            let row = self.rows.get(&writing, key)?.ok_or("a row is missing")?;
            let mut row = row.to_vec();
            add_one(&mut row);
            self.rows.put(&mut writing, key, &row)?;
        }
        Ok(writing.commit()?)
    }

    fn add_up(&self) -> Result<u64, Box<dyn Error>> {
        let reading = self.env.read_txn()?;
        let mut sum = 0;
        for row in self.rows.iter(&reading)? {
            sum += number(row?.1);
        }
        Ok(sum)
    }
}

/// The one call that the compiler cannot check.
#[expect(unsafe_code, reason = "files that are mapped into memory")]
mod map {
    use heed::{Env, EnvOpenOptions};
    use std::path::Path;

    /// Opens the environment of a folder, with so many bytes of room.
    pub(super) fn open(dir: &Path, room: usize) -> heed::Result<Env> {
        let mut options = EnvOpenOptions::new();
        options.map_size(room);
        // SAFETY: the contender makes the folder for itself and gives it no other name, so nobody else
        // changes the files while they are mapped.
        unsafe { options.open(dir) }
    }
}
