//! Tables: what a store's rows are found in.

use super::claim::{Claim, Pinned};
use super::garbage::Garbage;
use super::index::Gap;
use super::kept::Keep;
use super::pins::Pins;
use super::record::{Head, Record, Row, Version};
use super::slab::{Class, Slabs};
use super::stats::{Counts, Reason};
use super::work::Absence;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

/// The part of a table that does not depend on its types.
pub(crate) struct Meta {
    pub(crate) name: Box<str>,
    /// The number of the store that the table belongs to.
    pub(crate) store: u64,
    /// The largest stamp and order of a removal whose record has left the index, or is about to.
    removed: CachePadded<AtomicU64>,
    /// The largest stamp at which a committed transaction found a key absent: see `tictoc`.
    absent: AtomicU64,
    /// The number of removals whose records have left the index, or are about to.
    removals: AtomicU64,
    pub(crate) counts: Counts,
    /// How the table's rows are written to the log, if they are. Set once they have been loaded.
    kept: OnceLock<Box<dyn Keep>>,
}

impl Meta {
    pub(crate) fn new(name: &str, store: u64) -> Self {
        Self {
            name: name.into(),
            store,
            removed: CachePadded::default(),
            absent: AtomicU64::new(0),
            removals: AtomicU64::new(0),
            counts: Counts::default(),
            kept: OnceLock::new(),
        }
    }

    /// How the table's rows are written to the log, if the table is kept on disk.
    pub(crate) fn kept(&self) -> Option<&dyn Keep> {
        self.kept.get().map(|kept| &**kept)
    }

    /// Keeps the table on disk from now on. Nobody else has it yet.
    pub(crate) fn keep(&self, kept: Box<dyn Keep>) {
        let was_kept = self.kept.set(kept).is_err();
        debug_assert!(!was_kept, "a table is kept once");
    }

    /// The largest stamp of a removal. Loaded after a look into the index found nothing, it is not
    /// smaller than that of a removal that the look missed the record of.
    #[inline(always)]
    pub(crate) fn removed(&self) -> u64 {
        // Acquire: keeps the load where it is, and pairs with `note_removal`.
        self.removed.load(Ordering::Acquire)
    }

    /// Notes a removal before its record leaves the index.
    pub(crate) fn note_removal(&self, stamp: u64) {
        // AcqRel: the index, which is changed after it, publishes it.
        self.removed.fetch_max(stamp, Ordering::AcqRel);
        // AcqRel: publishes the stamp, and what else the commit has installed.
        self.removals.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of removals. If it is the same before and after some looks into the index, nothing
    /// that was there between has left it meanwhile without being seen.
    pub(crate) fn removals(&self) -> u64 {
        // Acquire: keeps the load where it is, and pairs with `note_removal`.
        self.removals.load(Ordering::Acquire)
    }

    /// The largest stamp at which a key was found absent. The caller has put its records into the
    /// index, and passed a fence.
    pub(crate) fn absent(&self) -> u64 {
        // Relaxed: the caller's fence orders it.
        self.absent.load(Ordering::Relaxed)
    }

    /// Notes that keys were absent at `stamp`. The caller looks at its gaps after a fence.
    pub(crate) fn note_absent(&self, stamp: u64) {
        // Relaxed: the caller's fence orders it.
        if self.absent.load(Ordering::Relaxed) < stamp {
            self.absent.fetch_max(stamp, Ordering::AcqRel);
        }
    }

    pub(crate) fn count(&self, reason: Reason) {
        self.counts.count(reason);
    }
}

/// The operations of a commit on a record, by the types of its table.
#[derive(Debug)]
pub(crate) struct Ops {
    /// Puts a record into the index of the table. False if there is one of the same key.
    pub(crate) enter: unsafe fn(*const Meta, *mut Head, &Claim<'_>, &mut Vec<Absence>) -> bool,
    /// Takes a record out of the index of the table. Returns the pointer to it that may free it.
    pub(crate) unlink: unsafe fn(*const Meta, *const Head, &Claim<'_>) -> Option<*mut ()>,
    pub(crate) record: unsafe fn(*mut ()) -> Garbage,
    pub(crate) version: unsafe fn(*mut Version) -> Garbage,
    /// Bytes of a version with a value.
    row_bytes: usize,
}

impl Ops {
    /// Bytes of a version.
    pub(crate) fn bytes(&self, has_value: bool) -> usize {
        if has_value {
            self.row_bytes
        } else {
            size_of::<Version>()
        }
    }
}

/// A table without its types.
pub(crate) trait AnyTable: Send + Sync {
    fn meta(&self) -> &Meta;

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// Shows all records and their newest committed versions, until `each` breaks. Those that are
    /// entered or removed meanwhile may be missed or seen. It ends, also if rows are added for ever.
    fn walk(&self, pins: &Pins, each: &mut Each<'_>);
}

/// A visitor of records and their newest committed versions, both of which live during the call.
pub(crate) type Each<'a> = dyn FnMut(*const Head, *mut Version) -> ControlFlow<()> + 'a;

impl<K, V, I> AnyTable for Inner<K, V, I>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    I: Index<K, V>,
{
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn walk(&self, pins: &Pins, each: &mut Each<'_>) {
        let mut place = I::Place::default();
        loop {
            // A pin for each part, so that memory can be freed meanwhile.
            let pinned = Pinned::new(pins);
            let mut show = |record: &Record<K, V>| {
                // Not by `head()`: the row is found by this pointer.
                let head = std::ptr::from_ref(record).cast::<Head>();
                each(head, record.head().load().version())
            };
            if self.index.walk(&mut place, &pinned, &mut show).is_break() {
                return;
            }
        }
    }
}

/// A handle that a table can be asked for as. Only this crate implements it.
pub trait AsTable: Sized {
    /// The handle, if the table has its types.
    fn downcast(table: Arc<dyn Any + Send + Sync>) -> Option<Self>;
}

impl<K, V, I> AsTable for Table<K, V, I>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    I: Index<K, V>,
{
    fn downcast(table: Arc<dyn Any + Send + Sync>) -> Option<Self> {
        let inner = table.downcast::<Inner<K, V, I>>().ok()?;
        Some(Self { inner })
    }
}

/// How a table finds its records. Only this crate implements it.
#[expect(private_interfaces, reason = "the trait cannot be named outside")]
pub trait Index<K, V>: Send + Sync + Sized + 'static {
    /// The hash of a key, if the index wants one.
    fn hash(&self, key: &K) -> u64;

    /// Puts the record into the index, unless there is one of the same key. What this changes in
    /// `absences` is noted there.
    ///
    /// # Safety
    /// The record lives until it has been unlinked, and every transaction pinned by then has ended.
    unsafe fn enter(
        &self,
        record: *mut Record<K, V>,
        claim: &Claim<'_>,
        absences: &mut Vec<Absence>,
    ) -> bool;

    /// Takes the record out of the index. Returns the pointer by which it was entered.
    fn unlink(&self, record: &Record<K, V>, claim: &Claim<'_>) -> Option<*mut Record<K, V>>;

    /// A place in the index, between two parts of it.
    type Place: Default;

    /// Shows the records of the next part of the index, from `place` on. Breaks after the last one,
    /// or with `each`.
    fn walk(
        &self,
        place: &mut Self::Place,
        claim: &Claim<'_>,
        each: &mut dyn FnMut(&Record<K, V>) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// Takes all records out.
    fn take_all(&mut self) -> Vec<*mut Record<K, V>>;
}

/// An index that can look a `Q` up. Only this crate implements it.
#[expect(private_interfaces, reason = "the trait cannot be named outside")]
pub trait Lookup<Q: ?Sized, K, V>: Index<K, V> {
    /// The record of the key, or where it would be.
    fn find<'c>(&'c self, key: &Q, claim: &'c Claim<'_>) -> Result<&'c Record<K, V>, Gap>;

    /// Begins to fetch what [`find`](Self::find) will read. `step` is 0 for all keys of a batch, then
    /// 1 for all of them.
    #[inline(always)]
    fn prefetch(&self, _key: &Q, _step: u32, _claim: &Claim<'_>) {}

    /// Whether a record's key is the one that is looked for.
    fn is_key(&self, key: &K, wanted: &Q) -> bool;
}

/// A table of a [`Store`](super::Store): rows of type `V`, found by keys of type `K`.
///
/// A handle: clones stand for the same table.
pub struct Table<K, V, I: Index<K, V> = super::Hashed<K, V>> {
    inner: Arc<Inner<K, V, I>>,
}

/// A table whose rows are found by the hashes `S` makes: see
/// [`Store::table_with`](super::Store::table_with).
pub type HashTable<K, V, S> = Table<K, V, super::Hashed<K, V, S>>;

/// A table in which ranges of keys are found: see [`Store::ordered`](super::Store::ordered).
pub type OrderedTable<K, V> = Table<K, V, super::Ordered<K, V>>;

#[repr(C)]
pub(crate) struct Inner<K, V, I: Index<K, V>> {
    pub(crate) meta: Meta,
    pub(crate) index: I,
    /// The memory of the table's records and versions, kept for as long as the table.
    _slabs: Arc<Slabs>,
    _rows: PhantomData<(K, V)>,
}

impl<K, V, I> Inner<K, V, I>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
    I: Index<K, V>,
{
    pub(crate) const OPS: &'static Ops = &Ops {
        enter: enter::<K, V, I>,
        unlink: unlink::<K, V, I>,
        record: Record::<K, V>::garbage,
        version: Row::<V>::garbage,
        row_bytes: size_of::<Row<V>>(),
    };
}

unsafe fn enter<K, V, I: Index<K, V>>(
    meta: *const Meta,
    head: *mut Head,
    claim: &Claim<'_>,
    absences: &mut Vec<Absence>,
) -> bool {
    // SAFETY: the caller passes the meta of a table of these types, which its store keeps; it is
    // the first field by `repr(C)`.
    let inner = unsafe { &*meta.cast::<Inner<K, V, I>>() };
    // SAFETY: the caller passes the head of a record of that table, which is the first field by
    // `repr(C)`, and retires it only after `unlink`.
    unsafe { inner.index.enter(head.cast(), claim, absences) }
}

unsafe fn unlink<K, V, I: Index<K, V>>(
    meta: *const Meta,
    head: *const Head,
    claim: &Claim<'_>,
) -> Option<*mut ()> {
    // SAFETY: as in `enter`.
    let inner = unsafe { &*meta.cast::<Inner<K, V, I>>() };
    // SAFETY: as in `enter`; the caller is pinned, so the record lives.
    let record: &Record<K, V> = unsafe { &*head.cast() };
    inner.index.unlink(record, claim).map(<*mut _>::cast)
}

impl<K, V, I: Index<K, V>> Drop for Inner<K, V, I> {
    fn drop(&mut self) {
        let is_plain = Class::of::<Record<K, V>>().is_some() && Class::of::<Row<V>>().is_some();
        if is_plain && !needs_drop::<K>() && !needs_drop::<V>() {
            // The slabs go as a whole.
            return;
        }
        let mut all = Vec::new();
        for record in self.index.take_all() {
            // SAFETY: the table is being dropped, after its store and all handles, so nobody has
            // one of its records any more.
            let mut version = unsafe { &*record }.head().load().version();
            while !version.is_null() {
                // SAFETY: as above: the versions live as long as their record.
                let prev = unsafe { &*version }.prev.load(Ordering::Relaxed);
                // SAFETY: as above.
                all.push(unsafe { Row::<V>::garbage(version) });
                version = prev;
            }
            // SAFETY: as above.
            all.push(unsafe { Record::<K, V>::garbage(record.cast()) });
        }
        // SAFETY: as above. The blocks go with the slabs.
        unsafe { super::limbo::free_all(all, |_, _| ()) };
    }
}

impl<K, V, I: Index<K, V>> Table<K, V, I> {
    pub(crate) fn new(name: &str, store: u64, index: I, slabs: Arc<Slabs>) -> Self {
        Self {
            inner: Arc::new(Inner {
                meta: Meta::new(name, store),
                index,
                _slabs: slabs,
                _rows: PhantomData,
            }),
        }
    }

    #[inline(always)]
    pub(crate) fn inner(&self) -> &Arc<Inner<K, V, I>> {
        &self.inner
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.inner.meta.name
    }
}

impl<K, V, I: Index<K, V>> Clone for Table<K, V, I> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<K, V, I: Index<K, V>> fmt::Debug for Table<K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
