//! Stores that are kept on disk: opening them, their tables, and handles of durability.
//!
//! ```text
//!   Store ── Home: the directory, what was found there
//!     │
//!     ├─ kept tables ── Keep: their rows as bytes
//!     │
//!   transaction ── Log: encode ► locks ► enter an epoch ► checks ► install ► hand over
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `home` | the directory, and the tables in it that nobody has opened |
//! | `load` | rows that were found on disk, put into their table |
//! | `rows` | the rows of one table as bytes |
//! | `log` | the steps of a transaction that is logged |

mod home;
mod load;
mod log;
mod rows;

pub(crate) use home::Home;
pub(crate) use log::Log;
pub(crate) use rows::Keep;

use super::disk::{
    self, Codec, Disk, DiskFailed, Durable, OpenError, Options, Recovered, SnapshotError,
    SnapshotReport, Storage,
};
use super::error::{Abort, TableError};
use super::hashed::Hashed;
use super::index::ordered::OrderedKey;
use super::ordered::Ordered;
use super::protocol::Protocol;
use super::run::run;
use super::store::Store;
use super::table::{HashTable, Index, OrderedTable, Table};
use super::tx::{self, Tx};
use rows::Rows;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::hash::{BuildHasher, Hash, RandomState};
use std::ops::ControlFlow::{Break, Continue};
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

impl<P: Protocol> Store<P> {
    /// Opens the store in a directory, or makes one there if the directory is not there or empty. One
    /// process can have it open at a time.
    ///
    /// The tables in it that are made by [`kept_table`](Self::kept_table) and
    /// [`kept_ordered`](Self::kept_ordered) are kept there. Others are in memory alone, and cost
    /// nothing of this.
    ///
    /// ```
    /// use corelay_txn::store::{Silo, Store};
    ///
    /// # let dir = std::env::temp_dir().join(format!("corelay-doc-open-{}", std::process::id()));
    /// let store = Store::open(Silo, &dir)?;
    /// let balances = store.kept_table::<u64, i64>("balances")?;
    /// let (_, durable) = store.transact_durable(|tx| tx.put(&balances, 7, 100))?;
    /// durable.wait()?;
    /// drop(store);
    ///
    /// let store = Store::open(Silo, &dir)?;
    /// let balances = store.kept_table::<u64, i64>("balances")?;
    /// assert_eq!(store.transact(|tx| tx.get(&balances, &7))?, Some(100));
    /// # drop(store);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the directory is in use, has other files, is of another version, damaged, or cannot be
    /// written.
    pub fn open(protocol: P, dir: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(protocol, dir, &Options::default())
    }

    /// Opens the store in a directory, as [`open`](Self::open) does, with options.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(
        protocol: P,
        dir: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Self, OpenError> {
        let (disk, recovered) = Disk::open(dir.as_ref(), options)?;
        Ok(Self::kept(protocol, disk, recovered))
    }

    /// Opens the store in a storage of one's own, for tests.
    #[doc(hidden)]
    pub fn open_in(
        protocol: P,
        storage: Arc<dyn Storage>,
        options: &Options,
    ) -> Result<Self, OpenError> {
        let (disk, recovered) = Disk::open_in(storage, options)?;
        Ok(Self::kept(protocol, disk, recovered))
    }

    fn kept(protocol: P, disk: Disk, recovered: Recovered) -> Self {
        let mut store = Self::new(protocol);
        store.writers = Some(disk.writers());
        store.home = Some(Box::new(Home::new(disk, recovered)));
        store
    }

    /// A store in memory whose log thread is played by a model.
    #[cfg(any(corelay_loom, corelay_shuttle))]
    #[doc(hidden)]
    pub fn logged(protocol: P, model: &disk::model::Model) -> Self {
        let mut store = Self::new(protocol);
        store.writers = Some(model.writers());
        store
    }

    /// Logs the rows of a table, for models.
    #[cfg(any(corelay_loom, corelay_shuttle))]
    #[doc(hidden)]
    pub fn log<K, V, I>(&self, table: &Table<K, V, I>, codec: Codec<K, V>)
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Index<K, V>,
    {
        let id = disk::TableId::default();
        table.inner().meta.keep(Box::new(Rows::new(id, codec)));
    }

    /// The result of reading the directory when the store was opened: the history found there, and the
    /// end of the log that was dropped, if one was. `None` if the store is in memory.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.home.as_ref().map(|home| &home.recovered)
    }

    /// Makes a table that is kept on disk, whose rows are found by their keys' hashes. If the
    /// directory has one of this name and types, the table has its rows.
    ///
    /// Keys and rows are written in the postcard format, which says nothing about types. So types that
    /// ask the format what comes next cannot be read back: `#[serde(untagged)]`, `flatten`,
    /// `skip_serializing_if`, `serde_json::Value`. The first 64 rows that are written after an opening
    /// are read back at once, and end their transaction if that fails
    /// ([`Reason::Encoding`](super::Reason::Encoding)). A field that is added, removed or moved
    /// makes rows on disk unreadable, or changes what they mean; the table only knows the types' names.
    ///
    /// Keys must have equal bytes if they are equal, and only then. A row is on disk as it was when its
    /// transaction ended: what a cell or a lock in it holds later is not.
    ///
    /// Several threads read the rows, with stacks of 8 MiB. The call ends when all are read.
    ///
    /// # Errors
    /// If the store is in memory, a table of this name has been made, the one on disk has other types,
    /// or its rows cannot be read.
    ///
    /// # Panics
    /// If a key or row panics while it is read.
    pub fn kept_table<K, V>(&self, name: &str) -> Result<Table<K, V>, TableError>
    where
        K: Hash + Eq + Serialize + DeserializeOwned + Send + Sync + 'static,
        V: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.kept_table_with(name, 0, RandomState::new(), Codec::postcard())
    }

    /// Makes a table as [`kept_table`](Self::kept_table) does, for about `rows` rows, with a hasher of
    /// your choice, and with keys and rows written by a codec of your choice.
    ///
    /// # Errors
    /// As for [`kept_table`](Self::kept_table).
    pub fn kept_table_with<K, V, S>(
        &self,
        name: &str,
        rows: usize,
        hasher: S,
        codec: Codec<K, V>,
    ) -> Result<HashTable<K, V, S>, TableError>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        self.keep(name, codec, |found| Hashed::new(rows.max(found), hasher))
    }

    /// Makes a table that is kept on disk, whose rows are in the order of their keys. Otherwise as
    /// [`kept_table`](Self::kept_table): the same table on disk can be opened as either.
    ///
    /// # Errors
    /// As for [`kept_table`](Self::kept_table).
    pub fn kept_ordered<K, V>(&self, name: &str) -> Result<OrderedTable<K, V>, TableError>
    where
        K: OrderedKey + Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
        V: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        self.kept_ordered_with(name, Codec::postcard())
    }

    /// Makes a table as [`kept_ordered`](Self::kept_ordered) does, with keys and rows written by a
    /// codec of your choice.
    ///
    /// # Errors
    /// As for [`kept_table`](Self::kept_table).
    pub fn kept_ordered_with<K, V>(
        &self,
        name: &str,
        codec: Codec<K, V>,
    ) -> Result<OrderedTable<K, V>, TableError>
    where
        K: OrderedKey + Clone + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.keep(name, codec, |_| Ordered::new())
    }

    /// Makes a kept table, with an index that is made for the number of rows found.
    fn keep<K, V, I>(
        &self,
        name: &str,
        codec: Codec<K, V>,
        index: impl FnOnce(usize) -> I,
    ) -> Result<Table<K, V, I>, TableError>
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Index<K, V>,
    {
        let home = self.home.as_ref();
        let home = home.ok_or_else(|| TableError::NoDirectory(name.into()))?;
        if self.has_table(name) {
            return Err(TableError::Exists(name.into()));
        }
        let id = home.disk.table(name, &(codec.tag)())?;
        let loading = home.load(name);
        let loading = loading.map_err(|_| TableError::Loading(name.into()))?;
        let found = loading.as_ref().map(home::Loading::table);
        let rows = found.map_or(0, |table| table.entries().count());
        let table = self.make(name, index(rows));
        if let Some(found) = found {
            let loaded = load::load(self, table.inner(), found, codec);
            loaded.map_err(|what| TableError::Unreadable {
                name: name.into(),
                what: what.into(),
            })?;
        }
        let meta = &table.inner().meta;
        meta.keep(Box::new(Rows::new(id, codec)));
        self.add(&table)?;
        if let Some(loading) = loading {
            loading.finish();
        }
        Ok(table)
    }

    /// Runs `f` as [`transact`](Self::transact) does. The handle says when what it has written, and
    /// all that it has read, is on disk; it can be waited for or awaited.
    ///
    /// The transactions of all threads that wait are written together, so many of them can be durable
    /// by one write. A thread can also go on, and wait for many handles later.
    ///
    /// ```
    /// use corelay_txn::store::{Silo, Store};
    ///
    /// # let dir = std::env::temp_dir().join(format!("corelay-doc-durable-{}", std::process::id()));
    /// let store = Store::open(Silo, &dir)?;
    /// let events = store.kept_ordered::<u64, String>("events")?;
    /// let mut handles = Vec::new();
    /// for (number, event) in ["start", "work", "stop"].into_iter().enumerate() {
    ///     let put = store.transact_durable(|tx| tx.put(&events, number as u64, event.to_owned()));
    ///     handles.push(put?.1);
    /// }
    /// // One after the other, or in any order: the last one implies the others.
    /// for durable in handles {
    ///     durable.wait()?;
    /// }
    /// # drop(store);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`transact`](Self::transact).
    ///
    /// # Panics
    /// If the store is in memory.
    #[track_caller]
    pub fn transact_durable<R>(
        &self,
        f: impl FnMut(&mut Tx<'_, P>) -> tx::Result<R>,
    ) -> tx::Result<(R, Durable)> {
        self.try_transact_durable(f)
    }

    /// Runs `f` as [`transact_durable`](Self::transact_durable) does, with errors of its own.
    ///
    /// # Errors
    /// That of `f`: then the transaction is given up.
    ///
    /// # Panics
    /// If the store is in memory.
    #[track_caller]
    pub fn try_transact_durable<R, E: From<Abort>>(
        &self,
        f: impl FnMut(&mut Tx<'_, P>) -> Result<R, E>,
    ) -> Result<(R, Durable), E> {
        assert!(
            self.home.is_some(),
            "corelay: a durable transaction of a store in memory; make the store by `Store::open`"
        );
        run(self, false, Location::caller(), f, |tx| tx.durable())
    }

    /// Writes all kept tables into a snapshot, and removes the part of the log that it replaces: so
    /// the next opening takes less time, and the log less room. Transactions go on meanwhile.
    ///
    /// Call it when the log has grown as you wish: [`Report::disk`](super::Report::disk) has its size.
    ///
    /// # Errors
    /// If the store is in memory, another snapshot is being made or a table loaded, the disk fails, or
    /// a row cannot be encoded. All that was durable still is then.
    ///
    /// # Panics
    /// If a key or row panics while it is serialized.
    #[track_caller]
    pub fn snapshot(&self) -> Result<SnapshotReport, SnapshotError> {
        let home = self.home.as_ref().ok_or(SnapshotError::InMemory)?;
        let mut snapshot = home.disk.snapshot()?;
        let tables = || {
            let tables = self.tables();
            let tables = tables.iter().map(|entry| Arc::clone(&entry.table));
            tables.collect::<Vec<_>>()
        };
        for table in home.save(&mut snapshot, tables)? {
            let Some(kept) = table.meta().kept() else {
                continue;
            };
            let mut saved = Ok(());
            table.walk(&self.pins, &mut |head, version| {
                // SAFETY: `walk` shows records and versions of this table, which live now.
                saved = unsafe { kept.save(head, version, &mut snapshot) };
                match saved {
                    Ok(()) => Continue(()),
                    Err(_) => Break(()),
                }
            });
            saved?;
        }
        snapshot.finish()
    }

    /// The failure of the disk, from which on the store takes no more writes to kept tables. Commits that
    /// were not answered as durable before may be lost; reads still see them.
    pub fn disk_failure(&self) -> Option<DiskFailed> {
        self.home.as_ref().and_then(|home| home.disk.failure())
    }
}

impl From<disk::TableError> for TableError {
    fn from(error: disk::TableError) -> Self {
        match error {
            disk::TableError::Tag {
                name,
                found,
                wanted,
            } => Self::WrongTypeOnDisk {
                name: name.into(),
                asked: wanted.into(),
                found: found.into(),
            },
            disk::TableError::TooLarge { name } => Self::TooLong(name.into()),
        }
    }
}
