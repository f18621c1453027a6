//! A running transaction: its reads and writes of single keys.

use super::claim::Claim;
use super::commit;
use super::error::Abort;
use super::index::Gap;
use super::protocol::Protocol;
use super::record::{Head, Record, Row, Version, Word};
use super::stats::Reason;
use super::store::Store;
use super::table::{Index, Inner, Lookup, Meta, Ops, Table};
use super::work::{State, Work, Write};
use corelay_sync::prefetch_read;
use std::fmt;

/// The result of a transaction's closure, and of each of its reads and writes.
pub type Result<T, E = Abort> = std::result::Result<T, E>;

/// A running transaction of a [`Store`].
///
/// Other transactions see its writes when it commits; the transaction itself sees them at once.
///
/// Each of its operations fails if another transaction is in the way. Pass the error on by `?`: the
/// attempt is then undone, and the closure run again.
pub struct Tx<'s, P: Protocol> {
    pub(super) store: &'s Store<P>,
    pub(super) claim: Claim<'s>,
    pub(super) work: Box<Work>,
    /// Why this attempt must not commit, since an operation has told it to abort.
    pub(super) doom: Option<Reason>,
    /// Whether the transaction holds the token and runs alone.
    pub(super) is_alone: bool,
    pub(super) is_read_only: bool,
    pub(super) is_pinned: bool,
    /// The number of attempts that failed because of other transactions.
    pub(super) attempts: u32,
}

/// The place of a key, for one transaction.
enum Place {
    /// In a record of the table's index, which this transaction does not write.
    Found(*const Head),
    /// In a write of this transaction, by number.
    Own(usize),
    Nowhere(Gap),
}

/// The version of a key that a transaction sees.
enum Seen {
    /// The number of the transaction's own write.
    Own(usize),
    /// A committed version of a record; null if there is none yet.
    Committed(*const Head, *mut Version),
    /// No record.
    Nothing,
}

/// An operation under way: ends the slot's BUSY when it is dropped.
pub(super) struct Operation<'t, 's, P: Protocol> {
    pub(super) tx: &'t mut Tx<'s, P>,
}

impl<P: Protocol> Drop for Operation<'_, '_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        self.tx.claim.leave();
    }
}

impl<'s, P: Protocol> Tx<'s, P> {
    /// The row of a key, cloned; None if there is none.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store.
    #[inline]
    pub fn get<Q, K, V, I>(&mut self, table: &Table<K, V, I>, key: &Q) -> Result<Option<V>>
    where
        Q: ?Sized,
        K: Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
        I: Lookup<Q, K, V>,
    {
        self.with(table, key, V::clone)
    }

    /// Shows the row of a key to `f`, without a copy; None if there is none.
    ///
    /// While `f` runs, memory that other transactions retire is not freed.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store.
    #[inline]
    pub fn with<Q, K, V, I, R>(
        &mut self,
        table: &Table<K, V, I>,
        key: &Q,
        f: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>>
    where
        Q: ?Sized,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Lookup<Q, K, V>,
    {
        let inner = table.inner();
        let mut operation = self.operate(inner)?;
        let seen = operation.see(inner, key)?;
        let version = operation.version(&seen);
        // SAFETY: a version of this table; the transaction is pinned, or it is its own.
        Ok(unsafe { Row::<V>::value(version) }.map(f))
    }

    /// Begins to fetch the rows of `keys` from memory, for a transaction that knows what it is going
    /// to touch. Their misses then overlap; otherwise each operation waits for its own, of the index,
    /// of the record and of the row. Up to some 16 keys at a time; it reads nothing, as far as other
    /// transactions are concerned.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store.
    #[inline]
    pub fn prefetch<'q, Q, K, V, I>(
        &mut self,
        table: &Table<K, V, I>,
        keys: impl IntoIterator<Item = &'q Q> + Clone,
    ) -> Result<()>
    where
        Q: ?Sized + 'q,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Lookup<Q, K, V>,
    {
        let inner = table.inner();
        let operation = self.operate(inner)?;
        let claim = &operation.tx.claim;
        for step in 0..2 {
            for key in keys.clone() {
                inner.index.prefetch(key, step, claim);
            }
        }
        for key in keys {
            if let Ok(record) = inner.index.find(key, claim) {
                let version = record.head().load().version();
                prefetch_read(version);
                // The value begins on the version's line, and may go on for many.
                prefetch_read(version.wrapping_byte_add(64));
            }
        }
        Ok(())
    }

    /// Whether there is a row of the key.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store.
    #[inline]
    pub fn contains<Q, K, V, I>(&mut self, table: &Table<K, V, I>, key: &Q) -> Result<bool>
    where
        Q: ?Sized,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Lookup<Q, K, V>,
    {
        Ok(self.with(table, key, |_| ())?.is_some())
    }

    /// Inserts a row, unless there is one of the key. Returns whether it did.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store, or the transaction is read-only.
    #[inline]
    pub fn insert<K, V, I>(&mut self, table: &Table<K, V, I>, key: K, value: V) -> Result<bool>
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Lookup<K, K, V>,
    {
        self.write(table, key, value, true)
    }

    /// Writes the row of a key, whether there is one or not.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store, or the transaction is read-only.
    #[inline]
    pub fn put<K, V, I>(&mut self, table: &Table<K, V, I>, key: K, value: V) -> Result<()>
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Lookup<K, K, V>,
    {
        self.write(table, key, value, false).map(drop)
    }

    fn write<K, V, I>(
        &mut self,
        table: &Table<K, V, I>,
        key: K,
        value: V,
        is_insert: bool,
    ) -> Result<bool>
    where
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Lookup<K, K, V>,
    {
        self.refuse_writes();
        let inner = table.inner();
        let operation = self.operate(inner)?;
        let (head, expected, state) = match operation.locate(inner, &key) {
            Place::Own(at) => return Ok(operation.tx.write_own(at, value, is_insert)),
            Place::Found(head) if is_insert => {
                let seen = operation.tx.read(head)?;
                // SAFETY: a version of this table; the transaction is pinned.
                if unsafe { Row::<V>::value(seen) }.is_some() {
                    return Ok(false);
                }
                operation.tx.work.take_last_read(head);
                (head, Some(seen), State::Found)
            }
            Place::Found(head) => (head, None, State::Found),
            Place::Nowhere(gap) => {
                operation.tx.miss(gap, &inner.meta)?;
                operation.tx.work.note_made(&inner.meta, &gap);
                let hash = inner.index.hash(&key);
                let record = Record::<K, V>::locked(key, hash, &raw const inner.meta);
                let record = operation.tx.claim.place(record);
                (record.cast_const().cast(), None, State::Made)
            }
        };
        let new = operation.tx.claim.place(Row::new(value)).cast();
        operation.tx.work.push_write(Write {
            head,
            expected,
            locked: Word::EMPTY,
            new,
            ops: Inner::<K, V, I>::OPS,
            state,
        });
        Ok(true)
    }

    /// Changes the row of a key by `f`, which gets a copy of it. Returns whether there is one.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store, or the transaction is read-only.
    #[inline]
    pub fn update<Q, K, V, I>(
        &mut self,
        table: &Table<K, V, I>,
        key: &Q,
        f: impl FnOnce(&mut V),
    ) -> Result<bool>
    where
        Q: ?Sized,
        K: Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
        I: Lookup<Q, K, V>,
    {
        Ok(self.update_with(table, key, f)?.is_some())
    }

    /// Changes the row of a key by `f`, which gets a copy of it. Returns what `f` does; None if
    /// there is no row.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store, or the transaction is read-only.
    #[inline]
    pub fn update_with<Q, K, V, I, R>(
        &mut self,
        table: &Table<K, V, I>,
        key: &Q,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>>
    where
        Q: ?Sized,
        K: Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
        I: Lookup<Q, K, V>,
    {
        self.refuse_writes();
        let inner = table.inner();
        let mut operation = self.operate(inner)?;
        let (head, seen) = match operation.see(inner, key)? {
            Seen::Nothing => return Ok(None),
            Seen::Own(at) => {
                let new = operation.tx.work.writes[at].new;
                // SAFETY: a version of this table, and this transaction's own.
                return Ok(unsafe { Row::<V>::value_mut(new) }.map(f));
            }
            Seen::Committed(head, seen) => (head, seen),
        };
        // SAFETY: a version of this table; the transaction is pinned.
        let Some(old) = (unsafe { Row::<V>::value(seen) }) else {
            return Ok(None);
        };
        // The write is noted before `f` runs, so that the copy is freed if `f` panics.
        let new = operation.tx.claim.place(Row::new(old.clone())).cast();
        operation.tx.replace(head, seen, new, Inner::<K, V, I>::OPS);
        // SAFETY: made just now, and this transaction's own.
        Ok(unsafe { Row::<V>::value_mut(new) }.map(f))
    }

    /// Removes the row of a key. Returns whether there was one.
    ///
    /// # Errors
    /// If another transaction is in the way. Pass it on by `?`.
    ///
    /// # Panics
    /// If the table belongs to another store, or the transaction is read-only.
    #[inline]
    pub fn remove<Q, K, V, I>(&mut self, table: &Table<K, V, I>, key: &Q) -> Result<bool>
    where
        Q: ?Sized,
        K: Send + Sync + 'static,
        V: Send + Sync + 'static,
        I: Lookup<Q, K, V>,
    {
        self.refuse_writes();
        let inner = table.inner();
        let mut operation = self.operate(inner)?;
        let seen = operation.see(inner, key)?;
        let version = operation.version(&seen);
        // SAFETY: a version of this table; the transaction is pinned, or it is its own.
        if unsafe { Row::<V>::value(version) }.is_none() {
            return Ok(false);
        }
        let tx = &mut *operation.tx;
        match seen {
            Seen::Own(at) => tx.set_own(at, tx.claim.place(Version::tombstone())),
            Seen::Committed(head, seen) => {
                let tombstone = tx.claim.place(Version::tombstone());
                tx.replace(head, seen, tombstone, Inner::<K, V, I>::OPS);
            }
            Seen::Nothing => return Ok(false),
        }
        Ok(true)
    }

    /// Gives the transaction up: what it has written is undone, and
    /// [`transact`](Store::transact) returns the error.
    ///
    /// # Errors
    /// Always. Return it from the closure.
    pub fn abort<T>(&mut self) -> Result<T> {
        Err(Abort::new(Reason::Explicit))
    }

    /// Begins an operation on a table.
    #[inline(always)]
    pub(super) fn operate<K, V, I>(
        &mut self,
        table: &Inner<K, V, I>,
    ) -> Result<Operation<'_, 's, P>>
    where
        I: Index<K, V>,
    {
        if table.meta.store != self.store.id() {
            foreign(&table.meta.name);
        }
        self.operation()
    }

    #[inline(always)]
    pub(super) fn operation(&mut self) -> Result<Operation<'_, 's, P>> {
        if let Some(reason) = self.doom {
            return Err(Abort::new(reason));
        }
        let may_go_on = self.claim.enter();
        let operation = Operation { tx: self };
        if !may_go_on {
            return Err(operation.tx.doom(Reason::Refused, None));
        }
        Ok(operation)
    }

    #[inline(always)]
    fn refuse_writes(&self) {
        assert!(
            !self.is_read_only,
            "corelay: a write in a read-only transaction: use `Store::transact`"
        );
    }

    /// The version of a record that the transaction sees. Notes the read.
    #[inline(always)]
    pub(super) fn read(&mut self, head: *const Head) -> Result<*mut Version> {
        // SAFETY: the transaction is pinned, and has found the record in an index.
        let head = unsafe { &*head };
        let read = self
            .store
            .protocol()
            .read(&self.claim, &mut self.work, head);
        read.map_err(|reason| self.doom(reason, Some(head.meta())))
    }

    /// Notes that the attempt must not commit.
    #[cold]
    pub(super) fn doom(&mut self, reason: Reason, meta: Option<&Meta>) -> Abort {
        if let Some(meta) = meta {
            meta.count(reason);
        }
        self.doom = Some(reason);
        Abort::new(reason)
    }

    /// Notes that nothing was found.
    #[inline]
    pub(super) fn miss(&mut self, gap: Gap, meta: &Meta) -> Result<()> {
        let protocol = self.store.protocol();
        if !protocol.checks_absences(self.is_read_only) {
            return Ok(());
        }
        self.work.miss(gap, meta);
        let missed = protocol.missed(&mut self.work);
        missed.map_err(|reason| self.doom(reason, None))
    }

    /// Writes over a version that this transaction has just seen.
    #[inline]
    fn replace(
        &mut self,
        head: *const Head,
        seen: *mut Version,
        new: *mut Version,
        ops: &'static Ops,
    ) {
        self.work.take_last_read(head);
        self.work.push_write(Write {
            head,
            expected: Some(seen),
            locked: Word::EMPTY,
            new,
            ops,
            state: State::Found,
        });
    }

    fn write_own<V: Send + Sync>(&mut self, at: usize, value: V, is_insert: bool) -> bool {
        // SAFETY: the new version of a write is this transaction's own.
        if is_insert && unsafe { &*self.work.writes[at].new }.has_value() {
            return false;
        }
        let new = self.claim.place(Row::new(value)).cast();
        self.set_own(at, new);
        true
    }

    /// Writes over a write of this transaction.
    fn set_own(&mut self, at: usize, new: *mut Version) {
        let write = &mut self.work.writes[at];
        let old = std::mem::replace(&mut write.new, new);
        // Freed between attempts, as a destructor may do anything.
        commit::retire_versions(&self.claim, old, write.ops);
    }
}

impl<P: Protocol> Operation<'_, '_, P> {
    /// Looks the key up, in the index and among the transaction's own inserts.
    #[inline(always)]
    fn locate<Q, K, V, I>(&self, table: &Inner<K, V, I>, key: &Q) -> Place
    where
        Q: ?Sized,
        I: Lookup<Q, K, V>,
    {
        let work = &self.tx.work;
        match table.index.find(key, &self.tx.claim) {
            Ok(record) => {
                // Not by `head()`: a commit finds the record again by this pointer.
                let head = std::ptr::from_ref(record).cast::<Head>();
                work.write_of(head).map_or(Place::Found(head), Place::Own)
            }
            Err(gap) if !work.may_have_made(&table.meta, &gap) => Place::Nowhere(gap),
            Err(gap) => find_made(work, table, key).map_or(Place::Nowhere(gap), Place::Own),
        }
    }

    /// Finds the version of a key that the transaction sees. Notes that it has looked.
    #[inline(always)]
    fn see<Q, K, V, I>(&mut self, table: &Inner<K, V, I>, key: &Q) -> Result<Seen>
    where
        Q: ?Sized,
        I: Lookup<Q, K, V>,
    {
        Ok(match self.locate(table, key) {
            Place::Own(at) => Seen::Own(at),
            Place::Found(head) => Seen::Committed(head, self.tx.read(head)?),
            Place::Nowhere(gap) => {
                self.tx.miss(gap, &table.meta)?;
                Seen::Nothing
            }
        })
    }

    /// The version that the transaction sees; null if there is none.
    #[inline(always)]
    fn version(&self, seen: &Seen) -> *mut Version {
        match *seen {
            Seen::Own(at) => self.tx.work.writes[at].new,
            Seen::Committed(_, version) => version,
            Seen::Nothing => std::ptr::null_mut(),
        }
    }
}

/// The number of the write that inserts the key.
#[cold]
fn find_made<Q, K, V, I>(work: &Work, table: &Inner<K, V, I>, key: &Q) -> Option<usize>
where
    Q: ?Sized,
    I: Lookup<Q, K, V>,
{
    work.writes.iter().position(|write| {
        // SAFETY: the record of a write lives.
        let meta = unsafe { &*write.head }.meta_pointer();
        if write.state != State::Made || !std::ptr::eq(meta, &raw const table.meta) {
            return false;
        }
        // SAFETY: a record of this table, whose head is its first field by `repr(C)`.
        let record = unsafe { &*write.head.cast::<Record<K, V>>() };
        table.index.is_key(record.key(), key)
    })
}

impl<P: Protocol> fmt::Debug for Tx<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx")
            .field("claim", &self.claim)
            .field("doom", &self.doom)
            .finish_non_exhaustive()
    }
}

#[cold]
fn foreign(name: &str) -> ! {
    panic!("corelay: the table {name:?} belongs to another store than the transaction")
}
