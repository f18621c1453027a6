//! A store, and the loop that runs each transaction until it has committed.

use super::commit::{self, Commit, Done};
use super::disk::Writers;
use super::error::{Abort, TableError};
use super::hashed::Hashed;
use super::index::ordered::OrderedKey;
use super::kept::Home;
use super::ordered::Ordered;
use super::pins::Pins;
use super::protocol::{Protocol, Silo, check_view};
use super::report::{Aborts, Report, TableReport};
use super::stats::{Counts, Reason};
use super::table::{AnyTable, AsTable, HashTable, Index, OrderedTable, Table};
use super::tx::{self, Tx};
use crate::serial::Serial;
use crate::sleepers::Sleepers;
use crate::tl2::pool::who_is_here;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::sync::{Mutex, MutexGuard};
use corelay_sync::wait::{Call, Cancelled, NoSwitch};
use corelay_sync::{Backoff, CachePadded};
use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

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
    refused: AtomicU64,
    uncertain: AtomicU64,
    pub(super) tables: Mutex<Vec<Entry>>,
    attempts: u32,
    /// Bytes of old versions and other retired memory at which sleeping transactions are refused.
    old_versions: u64,
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

    fn count(&self, reason: Reason) {
        self.counts.count(reason);
    }
}

/// Runs a transaction until it has ended. `committed` is called after the commit.
#[inline(always)]
#[track_caller]
pub(super) fn run<P: Protocol, R, E: From<Abort>, C>(
    store: &Store<P>,
    is_read_only: bool,
    at: &'static Location<'static>,
    mut f: impl FnMut(&mut Tx<'_, P>) -> Result<R, E>,
    committed: impl FnOnce(&mut Tx<'_, P>) -> C,
) -> Result<(R, C), E> {
    let mut tx = Tx::begin(store, is_read_only);
    loop {
        let attempt = || {
            let answer = f(&mut tx)?;
            tx.encode()?;
            Ok(answer)
        };
        let ended = match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(Ok(answer)) => match tx.commit() {
                Ok(()) => {
                    let committed = committed(&mut tx);
                    tx.end();
                    return Ok((answer, committed));
                }
                Err(reason) => {
                    tx.give_up(reason);
                    // Dropped in between attempts, as a destructor may do anything.
                    drop(answer);
                    (reason, None)
                }
            },
            Ok(Err(error)) => {
                let reason = tx.why();
                tx.give_up(reason);
                (reason, Some(error))
            }
            Err(payload) => {
                let reason = if payload.is::<Cancelled>() {
                    Reason::Panicked
                } else {
                    tx.why_panicked()
                };
                tx.give_up(reason);
                if !reason.is_retried() {
                    drop(tx);
                    resume_unwind(payload);
                }
                // A payload may panic when it is dropped, and that one's payload, too.
                let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
                std::mem::forget(dropped);
                (reason, None)
            }
        };
        let (reason, error) = ended;
        if !reason.is_retried() {
            return Err(error.unwrap_or_else(|| E::from(Abort::new(reason))));
        }
        drop(error);
        tx.again(at);
    }
}

impl<'s, P: Protocol> Tx<'s, P> {
    #[inline(always)]
    #[track_caller]
    fn begin(store: &'s Store<P>, is_read_only: bool) -> Self {
        let claim = store.pins.claim();
        let work = claim.take_work();
        let mut tx = Self {
            store,
            claim,
            work,
            doom: None,
            is_alone: false,
            is_read_only,
            is_pinned: false,
            attempts: 0,
        };
        if store.writers.is_some() {
            tx.open_log();
        }
        tx.pin();
        tx
    }

    #[inline(always)]
    fn pin(&mut self) {
        self.claim.pin();
        self.is_pinned = true;
        self.store.protocol.begin(&self.claim, &mut self.work);
        self.claim.leave();
    }

    /// Commits, after its closure has returned an answer.
    #[inline(always)]
    fn commit(&mut self) -> Result<(), Reason> {
        if let Some(reason) = self.doom {
            return Err(reason);
        }
        if !self.claim.enter() {
            return Err(Reason::Refused);
        }
        let protocol = &self.store.protocol;
        if self.work.writes.is_empty() {
            self.check_read_only()?;
            // Another transaction that begins after this one has ended must not read earlier.
            protocol.settle(self.work.time);
            return Ok(());
        }
        let stamp = match self.work.log.is_some() {
            true => self.commit_logged()?,
            false => self.install(|| Ok(()))?.stamp,
        };
        protocol.settle(stamp);
        Ok(())
    }

    /// Installs what the transaction has written, unless another one runs alone. `hold` is called in
    /// between: see [`Commit::run`].
    #[inline(always)]
    pub(super) fn install<H>(
        &mut self,
        hold: impl FnOnce() -> Result<H, Reason>,
    ) -> Result<Done<H>, Reason> {
        let (store, is_alone) = (self.store, self.is_alone);
        let commit = Commit {
            protocol: &store.protocol,
            claim: &self.claim,
            work: &mut self.work,
        };
        commit.run(|| {
            if !is_alone && store.serial.is_held() {
                return Err(Reason::Yielded);
            }
            hold()
        })
    }

    #[inline(always)]
    fn check_read_only(&mut self) -> Result<(), Reason> {
        let removals = commit::removals(&self.work);
        self.store.protocol.check_read_only(&mut self.work)?;
        if self.store.protocol.checks_absences(true) {
            commit::check_absences(&self.work, removals)?;
        }
        Ok(())
    }

    /// Why an attempt ends whose closure has returned an error: it has passed one of ours on, or
    /// wants to end it. The latter only counts if it was right in what it saw.
    #[cold]
    fn why(&mut self) -> Reason {
        self.doom
            .or_else(|| self.mixed())
            .unwrap_or(Reason::Explicit)
    }

    #[cold]
    fn why_panicked(&mut self) -> Reason {
        if self.doom.is_some() {
            // A closure that goes on after an operation has failed, and panics, is heard.
            return Reason::Panicked;
        }
        self.mixed().unwrap_or(Reason::Panicked)
    }

    /// Why this attempt is run again, although its closure ends it: it may have seen what never
    /// existed at one moment.
    pub(super) fn mixed(&mut self) -> Option<Reason> {
        if !P::SEES_MIXED {
            return None;
        }
        if !self.claim.enter() {
            return Some(Reason::Refused);
        }
        let removals = commit::removals(&self.work);
        let view = check_view(&self.work);
        view.and_then(|()| commit::check_absences(&self.work, removals))
            .err()
    }

    /// Ends the attempt without a commit.
    #[cold]
    fn give_up(&mut self, reason: Reason) {
        self.store.count(reason);
        self.finish();
    }

    /// Ends the attempt.
    #[inline]
    fn finish(&mut self) {
        commit::give_up::<P>(&self.claim, &mut self.work);
        if self.work.uncertain > 0 {
            let open = std::mem::take(&mut self.work.uncertain);
            // Relaxed: a count.
            self.store.uncertain.fetch_add(open, Ordering::Relaxed);
        }
        self.work.clear();
        self.doom = None;
        if std::mem::take(&mut self.is_pinned) {
            self.claim.unpin();
        }
    }

    /// Ends the transaction after its commit.
    #[inline]
    fn end(mut self) {
        if self.claim.count_commit() && self.claim.retained() > self.store.old_versions {
            let refused = self.claim.refuse_sleepers();
            // Relaxed: a count.
            self.store.refused.fetch_add(refused, Ordering::Relaxed);
        }
        if P::KEEPS && self.claim.has_queue() {
            self.claim.sweep(self.store.protocol.oldest(&self.claim));
        }
        self.finish();
        self.claim.collect();
    }

    /// Lets other transactions go first after an abort, and begins the next attempt. After too many
    /// aborts the transaction takes the token, so that the others wait.
    #[cold]
    #[inline(never)]
    fn again(&mut self, at: &'static Location<'static>) {
        self.claim.collect();
        self.attempts += 1;
        self.pause(at);
        self.pin();
    }

    fn pause(&mut self, at: &'static Location<'static>) {
        if self.is_alone {
            return;
        }
        let store = self.store;
        if self.attempts > store.attempts {
            NoSwitch::refuse_at(Call {
                name: "a transaction that was aborted too often",
                at,
                is_cancellable: true,
            });
            store.serial.acquire(who_is_here(), at, &store.sleepers);
            self.is_alone = true;
            return;
        }
        if store.serial.is_held() {
            store.serial.wait(who_is_here(), at, &store.sleepers);
            return;
        }
        let mut backoff = Backoff::new();
        for _ in 0..self.attempts.min(8) {
            backoff.wait();
        }
    }
}

impl<P: Protocol> Drop for Tx<'_, P> {
    fn drop(&mut self) {
        self.finish();
        if std::mem::take(&mut self.is_alone) {
            self.store.serial.release(&self.store.sleepers);
        }
        let work = std::mem::take(&mut self.work);
        self.claim.leave_work(work);
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
