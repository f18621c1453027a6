//! The crate `redb`: B+ trees that are copied on write, with one writer at a time.
//!
//! A commit has its default durability, `Immediate`, which is on disk when it returns: one sync, with
//! checksums.

use super::super::contender::Shape;
use super::{Embedded, add_one, number, words};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::error::Error;
use std::ops::Range;
use std::path::Path;

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

/// A database of `redb`.
pub(in super::super) struct Redb(Database);

impl Embedded for Redb {
    fn open(dir: &Path, _: Shape) -> Result<Self, String> {
        let database = Database::create(dir.join("rows.redb"));
        database.map(Self).map_err(|e| words("redb")(e.into()))
    }

    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String> {
        self.insert(rows, bytes).map_err(words("redb"))
    }

    fn commit<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), String> {
        self.add(transactions).map_err(words("redb"))
    }

    fn sum(&self) -> Result<u64, String> {
        self.add_up().map_err(words("redb"))
    }
}

impl Redb {
    fn insert(&self, rows: Range<u64>, bytes: usize) -> Result<(), Box<dyn Error>> {
        let row = vec![0; bytes];
        let writing = self.0.begin_write()?;
        {
            let mut table = writing.open_table(ROWS)?;
            for key in rows {
                table.insert(key, &row[..])?;
            }
        }
        Ok(writing.commit()?)
    }

    fn add<T: AsRef<[u64]>>(&self, transactions: &[T]) -> Result<(), Box<dyn Error>> {
        let writing = self.0.begin_write()?;
        {
            let mut table = writing.open_table(ROWS)?;
            for &key in transactions.iter().flat_map(T::as_ref) {
                let mut row = table.get(key)?.ok_or("a row is missing")?.value().to_vec();
                add_one(&mut row);
                table.insert(key, &row[..])?;
            }
        }
        Ok(writing.commit()?)
    }

    fn add_up(&self) -> Result<u64, Box<dyn Error>> {
        let table = self.0.begin_read()?.open_table(ROWS)?;
        let mut sum = 0;
        for row in table.iter()? {
            sum += number(row?.1.value());
        }
        Ok(sum)
    }
}
