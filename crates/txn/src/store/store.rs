//! A store: its tables, and what its transactions share.

use super::disk::Writers;
use super::error::{Abort, TableError};
use super::hashed::Hashed;
use super::index::ordered::OrderedKey;
use super::kept::Home;
use super::ordered::Ordered;
use super::pins::Pins;
use super::protocol::{Protocol, Silo};
use super::report::{Aborts, Report, TableReport};
use super::run::run;
use super::stats::{Counts, Reason};
use super::table::{AnyTable, AsTable, HashTable, Index, OrderedTable, Table};
use super::tx::{self, Tx};
use crate::serial::Serial;
use crate::sleepers::Sleepers;
use corelay_sync::CachePadded;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::sync::{Mutex, MutexGuard};
use std::fmt;
use std::hash::Hash;
use std::panic::Location;

#[cfg(not(any(corelay_loom, corelay_shuttle)))]
static STORES: AtomicU64 = AtomicU64::new(1);
#[cfg(any(corelay_loom, corelay_shuttle))]
corelay_sync::facade::lazy_static! {
    static ref STORES: AtomicU64 = AtomicU64::new(1);
}

/// The aborts that a transaction takes before it falls back and runs alone.
const ATTEMPTS: u32 = if MODEL { 2 } else { 64 };

/// The memory of old versions at which sleeping transactions are refused, in bytes.
const OLD_VERSIONS: u64 = 256 << 20;

/// A transactional store: tables in memory, which may be kept on disk, and transactions over them.
///
/// ```
/// use corelay_clock::Logical;
/// use corelay_txn::store::{Mvcc, Store};
///
/// let store = Store::new(Mvcc::new(Logical::new()));
/// let stock = store.table::<String, u32>("stock")?;
/// store.transact(|tx| tx.put(&stock, "apples".to_owned(), 3))?;
/// assert_eq!(store.read_only(|tx| tx.get(&stock, "apples"))?, Some(3));
/// assert_eq!(store.report().commits, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The [module's page](crate::store) has the guarantees.
pub struct Store<P: Protocol = Silo> {
    protocol: P,
    id: u64,
    pub(super) pins: Pins,
    pub(super) serial: Serial,
    pub(super) sleepers: Sleepers,
    counts: CachePadded<Counts>,
    pub(super) refused: AtomicU64,
    pub(super) uncertain: AtomicU64,
    pub(super) tables: Mutex<Vec<Entry>>,
    pub(super) attempts: u32,
    /// Bytes of old versions and other retired memory at which sleeping transactions are refused.
    pub(super) old_versions: u64,
    /// The maker of the slots' parts of the log, if the store is kept on disk.
    pub(super) writers: Option<Writers>,
    /// The directory, if the store is kept on disk.
    pub(super) home: Option<Box<Home>>,
}

/// A table, without its types.
pub(super) struct Entry {
    types: &'static str,
    pub(super) table: std::sync::Arc<dyn AnyTable>,
}

impl Entry {
    fn has_name(&self, name: &str) -> bool {
        *self.table.meta().name == *name
    }
}

impl<P: Protocol + Default> Default for Store<P> {
    fn default() -> Self {
        Self::new(P::default())
    }
}

impl<P: Protocol> Store<P> {
    /// An empty store in memory. [`open`](Self::open) opens one that is kept on disk.
    pub fn new(protocol: P) -> Self {
        Self {
            protocol,
            // Relaxed: only has to be unique.
            id: STORES.fetch_add(1, Ordering::Relaxed),
            pins: Pins::new(),
            serial: Serial::new(),
            sleepers: Sleepers::new(),
            counts: CachePadded::default(),
            refused: AtomicU64::new(0),
            uncertain: AtomicU64::new(0),
            tables: Mutex::default(),
            attempts: ATTEMPTS,
            old_versions: OLD_VERSIONS,
            writers: None,
            home: None,
        }
    }

    /// Sets the number of aborts that a transaction takes before the next one makes it run alone:
    /// 64 by default.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets how much memory old versions of rows may take, in bytes: 256 MiB by default. Beyond it,
    /// transactions that sleep between two operations, and so keep versions from being freed, are
    /// [refused](Reason::Refused). A transaction that sleeps inside an operation, in the closure of
    /// [`with`](Tx::with) for instance, cannot be.
    #[must_use]
    pub fn with_old_versions(mut self, bytes: u64) -> Self {
        self.old_versions = bytes;
        self
    }

    /// Makes a table whose rows are found by their keys' hashes.
    ///
    /// # Errors
    /// If there is a table of this name, in memory or on disk.
    pub fn table<K, V>(&self, name: &str) -> Result<Table<K, V>, TableError>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.table_with(name, 0, std::hash::RandomState::new())
    }

    /// Makes a table as [`table`](Self::table) does, for about `rows` rows and with a hasher of your
    /// choice. It grows beyond `rows`.
    ///
    /// # Errors
    /// As for [`table`](Self::table).
    pub fn table_with<K, V, S>(
        &self,
        name: &str,
        rows: usize,
        hasher: S,
    ) -> Result<HashTable<K, V, S>, TableError>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: std::hash::BuildHasher + Send + Sync + 'static,
    {
        self.add_in_memory(name, Hashed::new(rows, hasher))
    }

    /// Makes a table whose rows are kept in the order of their keys: see [`Tx::range`].
    ///
    /// # Errors
    /// As for [`table`](Self::table).
    pub fn ordered<K, V>(&self, name: &str) -> Result<OrderedTable<K, V>, TableError>
    where
        K: OrderedKey + Clone + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        self.add_in_memory(name, Ordered::new())
    }

    fn add_in_memory<K, V, I>(&self, name: &str, index: I) -> Result<Table<K, V, I>, TableError>
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Index<K, V>,
    {
        if self.is_unopened(name) {
            return Err(TableError::OnDisk(name.into()));
        }
        let table = self.make(name, index);
        self.add(&table)?;
        Ok(table)
    }

    /// Makes a table, which is none of the store's yet.
    pub(super) fn make<K, V, I: Index<K, V>>(&self, name: &str, index: I) -> Table<K, V, I> {
        let slabs = std::sync::Arc::clone(self.pins.slabs());
        Table::new(name, self.id, index, slabs)
    }

    /// Adds a table to the store, unless there is one of its name.
    pub(super) fn add<K, V, I>(&self, table: &Table<K, V, I>) -> Result<(), TableError>
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Index<K, V>,
    {
        let mut tables = self.tables();
        if tables.iter().any(|entry| entry.has_name(table.name())) {
            return Err(TableError::Exists(table.name().into()));
        }
        let inner = std::sync::Arc::clone(table.inner());
        tables.push(Entry {
            types: std::any::type_name::<Table<K, V, I>>(),
            table: inner,
        });
        Ok(())
    }

    /// Whether a table of this name is on disk, and none of the store's yet.
    fn is_unopened(&self, name: &str) -> bool {
        let home = self.home.as_ref();
        home.is_some_and(|home| home.has_unopened(name))
    }

    pub(super) fn has_table(&self, name: &str) -> bool {
        self.tables().iter().any(|entry| entry.has_name(name))
    }

    pub(super) fn tables(&self) -> MutexGuard<'_, Vec<Entry>> {
        let tables = self.tables.lock();
        tables.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The table of a name, which was made before with these types.
    ///
    /// ```
    /// use corelay_txn::store::{OrderedTable, Silo, Store, Table};
    ///
    /// let store = Store::new(Silo);
    /// store.table::<u64, String>("names")?;
    /// let names: Table<u64, String> = store.existing("names")?;
    /// let wrong = store.existing::<OrderedTable<u64, String>>("names");
    /// assert!(wrong.unwrap_err().to_string().contains("but was asked for as"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is none of this name, it has other types, or it is on disk and was not opened yet.
    pub fn existing<T: AsTable>(&self, name: &str) -> Result<T, TableError> {
        // Before the tables: one that is being loaded is in both.
        let is_on_disk = self.is_unopened(name);
        let tables = self.tables();
        let named = tables.iter().find(|entry| entry.has_name(name));
        let entry = named.ok_or_else(|| match is_on_disk {
            true => TableError::OnDisk(name.into()),
            false => TableError::Unknown(name.into()),
        })?;
        let table = std::sync::Arc::clone(&entry.table).into_any();
        T::downcast(table).ok_or_else(|| TableError::WrongType {
            name: name.into(),
            asked: std::any::type_name::<T>(),
            found: entry.types,
        })
    }

    /// Counts commits and aborts since the store was made, and the memory that old versions take.
    pub fn report(&self) -> Report {
        let tables = self.tables();
        let of_table = |entry: &Entry| {
            let meta = entry.table.meta();
            TableReport {
                name: meta.name.to_string(),
                aborts: Aborts::of(&meta.counts),
            }
        };
        Report {
            protocol: P::NAME,
            commits: self.pins.commits(),
            aborts: Aborts::of(&self.counts),
            // Relaxed: a count.
            refused: self.refused.load(Ordering::Relaxed),
            // Relaxed: a count.
            uncertain: self.uncertain.load(Ordering::Relaxed),
            tables: tables.iter().map(of_table).collect(),
            old_versions: self.pins.retained(),
            memory: self.pins.slabs().bytes() as u64,
            disk: self.home.as_ref().map(|home| home.report()),
        }
    }

    /// The protocol.
    #[inline(always)]
    pub fn protocol(&self) -> &P {
        &self.protocol
    }

    #[inline(always)]
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The number of attempts that were given up for `reason`, since the store was made.
    pub fn aborts(&self, reason: Reason) -> u64 {
        self.counts.get(reason)
    }

    /// Runs `f` as a transaction: all that it writes happens at one moment, or nothing of it. If
    /// another transaction is in the way, `f` is run again; its other effects are not undone.
    ///
    /// What it writes to kept tables is on disk some time later, 10 ms by default;
    /// [`transact_durable`](Self::transact_durable) says when.
    ///
    /// ```
    /// use corelay_txn::store::{Silo, Store};
    ///
    /// let store = Store::new(Silo);
    /// let hits = store.table::<u64, u64>("hits")?;
    /// std::thread::scope(|s| {
    ///     for _ in 0..2 {
    ///         s.spawn(|| for page in 0..100 {
    ///             let count = |tx: &mut corelay_txn::store::Tx<'_, Silo>| {
    ///                 if !tx.update(&hits, &page, |n| *n += 1)? {
    ///                     tx.insert(&hits, page, 1)?;
    ///                 }
    ///                 Ok(())
    ///             };
    ///             store.transact(count).unwrap();
    ///         });
    ///     }
    /// });
    /// assert_eq!(store.transact(|tx| tx.get(&hits, &7))?, Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// If the disk is too far behind, it waits before it begins.
    ///
    /// # Errors
    /// If `f` gives the transaction up, or it was [refused](Reason::Refused), or the
    /// [disk](Reason::Disk) does not take it.
    ///
    /// # Panics
    /// Inside a [`NoSwitch`](corelay_sync::wait::NoSwitch) guard, if it has to wait.
    #[inline]
    #[track_caller]
    pub fn transact<R>(&self, f: impl FnMut(&mut Tx<'_, P>) -> tx::Result<R>) -> tx::Result<R> {
        self.try_transact(f)
    }

    /// Runs `f` as a transaction, with errors of its own.
    ///
    /// ```
    /// use corelay_txn::store::{Abort, Silo, Store};
    ///
    /// #[derive(Debug, PartialEq)]
    /// enum Refusal { Empty, Abort(Abort) }
    ///
    /// impl From<Abort> for Refusal {
    ///     fn from(abort: Abort) -> Self { Self::Abort(abort) }
    /// }
    ///
    /// let store = Store::new(Silo);
    /// let stock = store.table::<u32, u32>("stock")?;
    /// store.transact(|tx| tx.put(&stock, 1, 0))?;
    /// let sold = store.try_transact(|tx| match tx.get(&stock, &1)? {
    ///     None | Some(0) => Err(Refusal::Empty),
    ///     Some(left) => Ok(tx.put(&stock, 1, left - 1)?),
    /// });
    /// assert_eq!(sold, Err(Refusal::Empty));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// That of `f`: then the transaction is given up.
    #[inline]
    #[track_caller]
    pub fn try_transact<R, E: From<Abort>>(
        &self,
        f: impl FnMut(&mut Tx<'_, P>) -> Result<R, E>,
    ) -> Result<R, E> {
        let ended = run(self, false, Location::caller(), f, |_| ());
        ended.map(|(answer, ())| answer)
    }

    /// Runs `f` as a transaction that only reads.
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    ///
    /// # Panics
    /// If `f` writes.
    #[inline]
    #[track_caller]
    pub fn read_only<R>(&self, f: impl FnMut(&mut Tx<'_, P>) -> tx::Result<R>) -> tx::Result<R> {
        let ended = run(self, true, Location::caller(), f, |_| ());
        ended.map(|(answer, ())| answer)
    }

    pub(super) fn count(&self, reason: Reason) {
        self.counts.count(reason);
    }
}

impl<P: Protocol> fmt::Debug for Store<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("protocol", &P::NAME)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
