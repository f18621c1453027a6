//! corelay's store, with a table that is kept on disk.
//!
//! A commit is answered when its epoch is on disk: the log's thread writes what all threads have
//! committed meanwhile, and calls `fdatasync` once for it (the default of `Options`).

use super::contender::{Keeper, Shape};
use super::embedded::{add_one, number};
use crate::ordered::database::aborts;
use corelay_lab_measure::schema::ConflictCounts;
use corelay_txn::store::disk::{Codec, Durable};
use corelay_txn::store::{HashTable, Protocol, Reason, Store};
use foldhash::fast::FixedState;
use std::ops::Range;
use std::path::Path;

/// Rows that one transaction adds up.
const BATCH: usize = 256;

/// A store and its table.
pub(super) struct Stored<P: Protocol> {
    store: Store<P>,
    table: HashTable<u64, Box<[u8]>, FixedState>,
    rows: u64,
}

impl<P: Protocol> Stored<P> {
    /// Opens the store of a folder, or makes it, with its table.
    pub(super) fn open(protocol: P, dir: &Path, shape: Shape) -> Result<Self, String> {
        let store = Store::open(protocol, dir).map_err(|error| error.to_string())?;
        let (hasher, codec) = (FixedState::default(), Codec::postcard());
        let table = store.kept_table_with("rows", shape.rows as usize, hasher, codec);
        Ok(Self {
            table: table.map_err(|error| error.to_string())?,
            store,
            rows: shape.rows,
        })
    }

    /// The bytes that were read when the store was opened.
    pub(super) fn recovered_bytes(&self) -> u64 {
        self.store.recovered().map_or(0, |found| found.bytes)
    }
}

impl<P: Protocol> Keeper for Stored<P> {
    type Pending = Durable;

    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String> {
        let put = self.store.transact_durable(|tx| {
            for key in rows.clone() {
                tx.insert(&self.table, key, vec![0; bytes].into())?;
            }
            Ok(())
        });
        self.wait(put.map_err(|abort| abort.to_string())?.1)
    }

    fn add(&self, rows: &[u64]) -> Result<Durable, String> {
        loop {
            let ended = self.store.transact_durable(|tx| {
                tx.prefetch(&self.table, rows.iter())?;
                for key in rows {
                    let row = tx.update_with(&self.table, key, |row| add_one(row))?;
                    row.expect("the row is there");
                }
                Ok(())
            });
            match ended {
                Ok(((), durable)) => return Ok(durable),
                // A transaction that lost its CPU for long is refused its old versions.
                Err(abort) if abort.reason() == Reason::Refused => {}
                Err(abort) => return Err(abort.to_string()),
            }
        }
    }

    fn wait(&self, pending: Durable) -> Result<(), String> {
        pending.wait().map_err(|error| error.to_string())
    }

    fn sum(&self) -> Result<u64, String> {
        let mut sum = 0;
        for first in (0..self.rows).step_by(BATCH) {
            let batch = first..(first + BATCH as u64).min(self.rows);
            let added = self.store.read_only(|tx| {
                let mut added = 0;
                for key in batch.clone() {
                    let read = tx.with(&self.table, &key, |row| number(row))?;
                    added += read.unwrap_or(0);
                }
                Ok(added)
            });
            sum += added.map_err(|abort| abort.to_string())?;
        }
        Ok(sum)
    }

    fn counts(&self) -> ConflictCounts {
        aborts(&self.store)
    }
}
