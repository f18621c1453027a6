//! Records and their versions, in memory.
//!
//! ```text
//!   Record                              Version (of a Row)
//!   ┌───────────────────────────┐       ┌─────────────────────────────────────┐
//!   │ word: address of version  │──────►│ stamp │ mark │ prev │ kind │ value   │
//!   │       | LOCKED | DEAD     │       └──────────────────┼──────────────────┘
//!   ├───────────────────────────┤                          ▼ older (mvcc only)
//!   │ hash │ key                │
//!   └───────────────────────────┘
//! ```
//!
//! A version's value never changes. A commit locks the record, and unlocks it with the address of a
//! new version. So a pinned transaction that finds the same address twice has found the same value:
//! the version that it saw is not freed, so no other has its address.

use super::garbage::Garbage;
use super::table::Meta;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::marker::PhantomData;

/// A commit is about to replace the version, or is removing the record.
const LOCKED: usize = 1;
/// The record has left its index for good.
const DEAD: usize = 2;
/// A slot has the record in its queue, to cut old versions off: see `sweep`.
const QUEUED: usize = 4;
const TAGS: usize = LOCKED | DEAD | QUEUED;

/// The part of a record that does not depend on its table's types.
#[derive(Debug)]
pub(crate) struct Head {
    /// The address of the newest version, null if there was none yet, and the tags.
    word: AtomicPtr<Version>,
    /// The table's part without types, which lives as long as the store and the table.
    meta: *const Meta,
}

// SAFETY: `meta` is only read, and a `Meta` is `Sync`.
unsafe impl Send for Head {}
// SAFETY: as above.
unsafe impl Sync for Head {}

/// A record's word, as it was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word(*mut Version);

impl Word {
    pub(crate) const EMPTY: Self = Self(std::ptr::null_mut());

    #[inline(always)]
    pub(crate) fn is_locked(self) -> bool {
        self.has(LOCKED)
    }

    #[inline(always)]
    pub(crate) fn is_dead(self) -> bool {
        self.has(DEAD)
    }

    pub(crate) fn is_queued(self) -> bool {
        self.has(QUEUED)
    }

    /// The version, without the tags.
    #[inline(always)]
    pub(crate) fn version(self) -> *mut Version {
        self.0.map_addr(|address| address & !TAGS)
    }

    /// The word of a record that is queued, or not, and otherwise the same.
    pub(crate) fn queued(self, is_queued: bool) -> Self {
        let without = self.0.map_addr(|address| address & !QUEUED);
        let word = Self(without);
        if is_queued { word.with(QUEUED) } else { word }
    }

    /// The word with another version, and not locked.
    #[inline(always)]
    pub(crate) fn replaced(self, version: *mut Version) -> Self {
        Self(version).with(self.0.addr() & QUEUED)
    }

    #[inline(always)]
    fn has(self, tag: usize) -> bool {
        self.0.addr() & tag != 0
    }

    #[inline(always)]
    fn with(self, tag: usize) -> Self {
        Self(self.0.map_addr(|address| address | tag))
    }
}

impl Head {
    /// The head of a record that nobody else has seen: locked by its maker, without a version.
    fn locked(meta: *const Meta) -> Self {
        Self {
            word: AtomicPtr::new(Word::EMPTY.with(LOCKED).0),
            meta,
        }
    }

    /// The table of the record.
    pub(crate) fn meta(&self) -> &Meta {
        // SAFETY: a table lives as long as its records.
        unsafe { &*self.meta }
    }

    pub(crate) fn meta_pointer(&self) -> *const Meta {
        self.meta
    }

    /// The word; what it points to can be read.
    #[inline(always)]
    pub(crate) fn load(&self) -> Word {
        // Acquire: pairs with the Release of `unlock`; the version's fields and value are there.
        Word(self.word.load(Ordering::Acquire))
    }

    /// Locks the record, if its word is still `seen`, which is neither locked nor dead.
    #[inline(always)]
    pub(crate) fn try_lock(&self, seen: Word) -> bool {
        let locked = seen.with(LOCKED).0;
        // Acquire: pairs with the Release of `unlock`. What other commits must see of the lock is
        // ordered by the fence that a commit passes after all locks.
        let exchanged =
            self.word
                .compare_exchange(seen.0, locked, Ordering::Acquire, Ordering::Relaxed);
        exchanged.is_ok()
    }

    /// Unlocks the record, whose word is now `word`.
    #[inline(always)]
    pub(crate) fn unlock(&self, word: Word) {
        // Release: pairs with the Acquire of `load` and `try_lock`; publishes the version.
        self.word.store(word.0, Ordering::Release);
    }

    /// Unlocks the record for good: it has left its index. Its versions stay until it is freed.
    pub(crate) fn bury(&self, version: *mut Version) {
        // Release: pairs with the Acquire of `load`: whoever sees it finds the index without it.
        self.word
            .store(Word(version).with(DEAD).0, Ordering::Release);
    }
}

/// One state of a record. Followed in memory by the value, if it has one.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Version {
    /// The commit that made it: a time, an identifier or a write time stamp, as the protocol has it.
    pub(crate) stamp: AtomicU64,
    /// The protocol's second word: the read time stamp of TicToc, the order of the log elsewhere.
    pub(crate) mark: AtomicU64,
    /// The version before it, if the protocol keeps one.
    pub(crate) prev: AtomicPtr<Version>,
    /// Whether a value follows; otherwise the record is absent in this version.
    has_value: bool,
}

impl Version {
    fn new(has_value: bool) -> Self {
        Self {
            stamp: AtomicU64::new(0),
            mark: AtomicU64::new(0),
            prev: AtomicPtr::new(std::ptr::null_mut()),
            has_value,
        }
    }

    /// A version in which the record is absent.
    pub(crate) fn tombstone() -> Self {
        Self::new(false)
    }

    pub(crate) fn has_value(&self) -> bool {
        self.has_value
    }

    /// The stamp, for a reader that has the version through its record, or owns it.
    #[inline(always)]
    pub(crate) fn stamp(&self) -> u64 {
        // Relaxed: written before the version was published, and never changed.
        self.stamp.load(Ordering::Relaxed)
    }
}

/// A version with a value.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Row<V> {
    version: Version,
    value: V,
}

impl<V> Row<V> {
    /// A version whose value is `value`.
    #[inline(always)]
    pub(crate) fn new(value: V) -> Self {
        let version = Version::new(true);
        Self { version, value }
    }

    /// The value of a version, if it has one.
    ///
    /// # Safety
    /// `version` is null, or a version of a table whose values are `V`, which lives for `'v`.
    #[inline(always)]
    pub(crate) unsafe fn value<'v>(version: *mut Version) -> Option<&'v V> {
        // SAFETY: the caller promises a version that lives.
        let has_value = unsafe { version.as_ref() }.is_some_and(Version::has_value);
        // SAFETY: a version that says that it has a value is a `Row` of this type, whose
        // field `version` is the first by `repr(C)`.
        has_value.then(|| unsafe { &(*version.cast::<Self>()).value })
    }

    /// The value of a version that only the caller has.
    ///
    /// # Safety
    /// As for [`value`](Self::value), and nobody else has the version.
    pub(crate) unsafe fn value_mut<'v>(version: *mut Version) -> Option<&'v mut V> {
        // SAFETY: the caller promises a version that lives, and that it is its own.
        let has_value = unsafe { &*version }.has_value;
        // SAFETY: see `value`; nobody else has a reference.
        has_value.then(|| unsafe { &mut (*version.cast::<Self>()).value })
    }

    /// A version that is to be freed.
    ///
    /// # Safety
    /// `version` was placed in the store's slabs, and is of a table whose values are `V`; the duties
    /// of [`Garbage::placed`].
    pub(crate) unsafe fn garbage(version: *mut Version) -> Garbage {
        // SAFETY: the caller promises a version that lives.
        if unsafe { &*version }.has_value {
            // SAFETY: a `Row` of this type, by `has_value`; the caller keeps the duties.
            unsafe { Garbage::placed(version.cast::<Self>()) }
        } else {
            // SAFETY: the caller keeps the duties.
            unsafe { Garbage::placed(version) }
        }
    }
}

/// A key's place in a table: what an index points to.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Record<K, V> {
    head: Head,
    hash: u64,
    key: K,
    _versions: PhantomData<V>,
}

impl<K, V> Record<K, V> {
    /// A record that is locked by its maker and has no version yet.
    pub(crate) fn locked(key: K, hash: u64, meta: *const Meta) -> Self {
        Self {
            head: Head::locked(meta),
            hash,
            key,
            _versions: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> &K {
        &self.key
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// A record that is to be freed, without its versions.
    ///
    /// # Safety
    /// `record` was placed in the store's slabs, with these types; the duties of
    /// [`Garbage::placed`].
    pub(crate) unsafe fn garbage(record: *mut ()) -> Garbage {
        // SAFETY: the caller keeps the duties.
        unsafe { Garbage::placed(record.cast::<Self>()) }
    }
}

impl<K, V> super::index::Keyed for Record<K, V>
where
    K: Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    type Key = K;

    fn key(&self) -> &K {
        &self.key
    }

    fn hash(&self) -> u64 {
        self.hash
    }
}
