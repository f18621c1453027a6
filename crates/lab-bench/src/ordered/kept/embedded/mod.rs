//! Embedded stores of other crates, a file each.

mod fjall;
mod heed;
mod redb;
mod sled;

pub(super) use fjall::Fjall;
pub(super) use heed::Heed;
pub(super) use redb::Redb;
pub(super) use sled::Sled;

use super::contender::{Keeper, Shape};
use std::ops::Range;
use std::path::Path;

/// An embedded store.
pub(super) trait Embedded: Send + Sync + Sized + 'static {
    /// Opens the store of a folder, or makes it.
    fn open(dir: &Path, shape: Shape) -> Result<Self, String>;

    /// Inserts rows of so many bytes, all 0.
    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String>;

    /// Adds 1 to the numbers of the rows of each transaction: all in one, which is on disk when this
    /// returns.
    fn commit<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), String>;

    /// Adds up the numbers of all rows.
    fn sum(&self) -> Result<u64, String>;
}

/// A store whose threads commit for themselves.
pub(super) struct Alone<E>(pub(super) E);

impl<E: Embedded> Keeper for Alone<E> {
    type Pending = ();

    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String> {
        self.0.fill(rows, bytes)
    }

    fn add(&self, rows: &[u64]) -> Result<(), String> {
        self.0.commit(&[rows])
    }

    fn wait(&self, (): ()) -> Result<(), String> {
        Ok(())
    }

    fn sum(&self) -> Result<u64, String> {
        self.0.sum()
    }
}

/// The error of a store in words.
fn words(name: &'static str) -> impl Fn(Box<dyn std::error::Error>) -> String {
    move |error| format!("{name}: {error}")
}

/// The number in a row.
pub(super) fn number(row: &[u8]) -> u64 {
    row.first_chunk()
        .map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

/// The row with a number that is 1 higher.
pub(super) fn add_one(row: &mut [u8]) {
    let sum = number(row) + 1;
    row[..8].copy_from_slice(&sum.to_le_bytes());
}
