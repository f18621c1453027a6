//! Objects, the logs that hold their copies, and the garbage that is freed with a log.
//!
//! ```text
//!  Object<T>            Log (128 bytes aligned)
//!  ┌────────┐           ┌───────┬───────┬────────────────────────────────────┬────
//!  │ header ├──────────►│ stage │ owner │ log │ original │ previous │ … │ copy │ …
//!  ├────────┤           └───────┴───────┴────────────────────────────────────┴────
//!  │ data   │◄────────────────────────────────────┘         Record<T>
//!  └────────┘
//! ```
//! A header is null while its object is free. The paper's third kind of header, "is a copy", does
//! not occur: pointers always name originals.

use super::slot::SessionSlot;
use super::stats::Part;
use super::words::Stage;
use corelay_sync::facade::Shadow;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicU64, Ordering};
use corelay_sync::facade::cell::{UnsafeCell, place_of};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// The word in front of every object: null if the object is not locked, or else the record of its
/// copy, in the log of the session that has locked it.
pub(super) type Header = AtomicPtr<Record>;

/// An object: a value with its header, which sections read and lock.
#[repr(C)]
pub(super) struct Object<T> {
    pub(super) header: Header,
    pub(super) data: UnsafeCell<T>,
}

impl<T> Object<T> {
    pub(super) fn new(data: T) -> Self {
        Self {
            header: Header::new(ptr::null_mut()),
            data: UnsafeCell::new(data),
        }
    }
}

/// The beginning of every record, whatever the type of its copy.
#[repr(C)]
pub(super) struct Record {
    pub(super) log: NonNull<Log>,
    pub(super) original: NonNull<Header>,
    /// The record of the object that was locked before in this log.
    pub(super) previous: *mut Record,
    /// The function that copies the record's copy back to its original.
    write_back: unsafe fn(NonNull<Record>),
    /// The number of the write set that has made the copy, or has last kept its earlier value: see
    /// `Journal::keep`.
    pub(super) set: u64,
}

impl Record {
    /// The log of a record that a header has named. This makes no reference to the record, because
    /// its owner may be about to write in it.
    ///
    /// # Safety
    /// The header was read in a section that has not ended.
    #[inline(always)]
    pub(super) unsafe fn log_of(record: NonNull<Self>) -> NonNull<Log> {
        // SAFETY: the record stays until the caller's section ends; its log never changes.
        unsafe { (*record.as_ptr()).log }
    }
}

/// A record together with its copy, for an object of one type.
#[repr(C)]
pub(super) struct RecordOf<T> {
    pub(super) head: Record,
    pub(super) copy: UnsafeCell<MaybeUninit<T>>,
}

impl<T: Copy> RecordOf<T> {
    pub(super) fn new(
        log: NonNull<Log>,
        original: NonNull<Object<T>>,
        previous: *mut Record,
        set: u64,
    ) -> Self {
        Self {
            head: Record {
                log,
                original: original.cast(),
                previous,
                write_back: Self::write_back,
                set,
            },
            copy: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Copies the copy of a record of this type back to its original.
    ///
    /// # Safety
    /// `record` is of this type and holds its original's lock; nobody reads the original.
    unsafe fn write_back(record: NonNull<Record>) {
        let record = record.cast::<Self>();
        // SAFETY: the caller promises the type and the lock; a record stays while it locks.
        let record = unsafe { record.as_ref() };
        let object = record.head.original.cast::<Object<T>>();
        // SAFETY: a locked object is not freed.
        let object = unsafe { object.as_ref() };
        object.data.with_mut(|to| {
            record.copy.with(|from| {
                // SAFETY: `Journal::lock` initialised the copy; the caller promises that nobody
                // reads the original.
                unsafe { to.copy_from_nonoverlapping(from.cast(), 1) }
            });
        });
    }
}

/// Unlocks the record's original, whose object may be gone afterwards.
///
/// # Safety
/// The record holds the lock.
#[inline]
pub(super) unsafe fn unlock(record: NonNull<Record>) {
    // SAFETY: the caller promises that the record holds the lock, so it is alive.
    let original = unsafe { record.as_ref() }.original;
    // SAFETY: a locked object is not freed.
    let header = unsafe { original.as_ref() };
    // Release: pairs with the Acquire of the session that reads the object or locks it next;
    // publishes the value that was copied back.
    header.store(ptr::null_mut(), Ordering::Release);
}

const FIRST: usize = 62;

/// The part of a log that other sessions look at, with its first records. So a small write set
/// takes one or two cache lines.
#[repr(C, align(128))]
pub(super) struct Log {
    stage: AtomicU64,
    pub(super) owner: *const SessionSlot,
    first: UnsafeCell<[MaybeUninit<u64>; FIRST]>,
    /// Stands for all records in the models: sessions that follow a header read it, and the log
    /// writes it when it begins anew.
    pub(super) records: Shadow,
}

impl Log {
    /// The owner of the log, for a session that has found a record of it in a header.
    pub(super) fn owner_of_found(&self) -> NonNull<SessionSlot> {
        self.records.read(0, 1);
        // SAFETY: `new` is called with the address of the owner's slot, which is not null.
        unsafe { NonNull::new_unchecked(self.owner.cast_mut()) }
    }

    /// The log's stage. A reader that finds the commit's time in it may also read the copies.
    #[inline(always)]
    pub(super) fn stage(&self) -> Stage {
        // Acquire: pairs with `set_stage`: a session that sees a time sees the copies.
        Stage::from_bits(self.stage.load(Ordering::Acquire))
    }

    #[inline(always)]
    pub(super) fn set_stage(&self, stage: Stage) {
        // Release: pairs with `stage`; publishes the copies.
        self.stage.store(stage.bits(), Ordering::Release);
    }
}

/// An allocation that is to be freed later.
pub(super) struct Garbage {
    place: NonNull<()>,
    free: unsafe fn(NonNull<()>),
}

impl Garbage {
    /// Garbage from an object whose box has been turned into a pointer.
    pub(super) fn boxed<T>(place: NonNull<Object<T>>) -> Self {
        /// Frees the box of an object of this type.
        ///
        /// # Safety
        /// The conditions of `Garbage::free`.
        unsafe fn free<T>(place: NonNull<()>) {
            // SAFETY: `boxed` got it out of a box of this type; the caller promises that nobody
            // uses it.
            let object = unsafe { Box::from_raw(place.cast::<Object<T>>().as_ptr()) };
            // Loom takes this for a write, and so finds a thread that still reads it.
            place_of(&object.data);
        }
        Self {
            place: place.cast(),
            free: free::<T>,
        }
    }

    /// Frees the allocation.
    ///
    /// # Safety
    /// Nobody uses the allocation any more; it came out of a box of the type that `boxed` was
    /// called with.
    pub(super) unsafe fn free(self) {
        // SAFETY: `boxed` chose the function for this type; the caller promises that nobody uses
        // it.
        unsafe { (self.free)(self.place) };
    }
}

/// A log together with the parts of it that only its owner looks at.
pub(super) struct Volume {
    pub(super) log: NonNull<Log>,
    /// The record of the object that was locked last.
    pub(super) last: *mut Record,
    /// The allocations that are freed after the grace period.
    pub(super) garbage: Vec<Garbage>,
    /// The number of write sets that the log holds.
    pub(super) sets: usize,
    free: *mut u8,
    end: *mut u8,
    chunks: Vec<Box<[MaybeUninit<u128>]>>,
    /// The number of chunks in use.
    used: usize,
}

/// The bytes of the chunks of memory by which a log grows.
const CHUNK: usize = 4096;
/// The number of chunks from which on a log is published as soon as possible.
const LONG: usize = 8;
/// The most chunks that a log keeps when it begins anew.
const KEPT: usize = 2 * LONG;

impl Volume {
    pub(super) fn new(owner: *const SessionSlot) -> Self {
        let log = Box::new(Log {
            stage: AtomicU64::new(Stage::COLLECTING.bits()),
            owner,
            first: UnsafeCell::new([MaybeUninit::uninit(); FIRST]),
            records: Shadow::new(1),
        });
        let mut volume = Self {
            // SAFETY: a pointer from a box is not null.
            log: unsafe { NonNull::new_unchecked(Box::into_raw(log)) },
            last: ptr::null_mut(),
            garbage: Vec::new(),
            sets: 0,
            free: ptr::null_mut(),
            end: ptr::null_mut(),
            chunks: Vec::new(),
            used: 0,
        };
        volume.begin();
        volume
    }

    #[inline]
    pub(super) fn log(&self) -> &Log {
        // SAFETY: the log lives as long as the volume, which frees it.
        unsafe { self.log.as_ref() }
    }

    /// Empties the log for new write sets. Nobody has a pointer into it any more.
    #[inline]
    pub(super) fn begin(&mut self) {
        debug_assert!(self.last.is_null() && self.garbage.is_empty());
        self.log().records.write(0, 1);
        self.log().set_stage(Stage::COLLECTING);
        self.sets = 0;
        self.used = 0;
        self.chunks.truncate(KEPT);
        // SAFETY: the log lives as long as the volume; no reference is made.
        let first = unsafe { &raw mut (*self.log.as_ptr()).first };
        self.free = first.cast();
        // SAFETY: one past the end of `first`, in the log's own allocation.
        self.end = unsafe { first.add(1) }.cast();
    }

    /// Whether the log should be brought to an end, for the memory that it takes.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.used > LONG
    }

    /// Room for a value, which stays until the log begins anew.
    #[inline]
    pub(super) fn room<T>(&mut self) -> NonNull<T> {
        const {
            assert!(
                align_of::<T>() <= align_of::<u128>(),
                "objects are aligned to 16 bytes at most"
            );
        }
        let skip = self.free.align_offset(align_of::<T>());
        let needed = skip + size_of::<T>();
        if needed <= self.end.addr() - self.free.addr() {
            let place = self.free.wrapping_add(skip);
            self.free = self.free.wrapping_add(needed);
            // SAFETY: the address lies inside a chunk, so it is not null.
            return unsafe { NonNull::new_unchecked(place) }.cast();
        }
        self.grow(size_of::<T>()).cast()
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> NonNull<u8> {
        let units = bytes.max(CHUNK).div_ceil(size_of::<u128>());
        while self.chunks.get(self.used).is_some_and(|c| c.len() < units) {
            self.chunks.swap_remove(self.used);
        }
        if self.used == self.chunks.len() {
            self.chunks.push(Box::new_uninit_slice(units));
        }
        let range = self.chunks[self.used].as_mut_ptr_range();
        self.used += 1;
        self.free = range.start.cast::<u8>().wrapping_add(bytes);
        self.end = range.end.cast();
        // SAFETY: the beginning of a chunk is not null.
        unsafe { NonNull::new_unchecked(range.start.cast()) }
    }

    /// Copies back all that the log has locked, and unlocks it. Tells `end` after each part.
    ///
    /// # Safety
    /// Nobody reads the originals: the grace period has passed.
    #[inline]
    pub(super) unsafe fn write_back(&mut self, mut end: impl FnMut(Part)) {
        while let Some(record) = NonNull::new(self.last) {
            // SAFETY: `last` is null or a record of this log, which holds its lock, so it is alive;
            // this only reads.
            let head = unsafe { record.as_ref() };
            self.last = head.previous;
            // SAFETY: the record was made with this function, and holds its lock; the caller
            // promises that nobody reads the original.
            unsafe { (head.write_back)(record) };
            end(Part::Copying);
            // SAFETY: a record in this list holds its lock.
            unsafe { unlock(record) };
            end(Part::Locking);
        }
    }

    /// Frees the log's garbage and returns the number of allocations freed.
    ///
    /// # Safety
    /// Nobody can reach the garbage any more: the grace period has passed.
    #[inline]
    pub(super) unsafe fn free_garbage(&mut self) -> u64 {
        let many = self.garbage.len();
        for garbage in self.garbage.drain(..) {
            // SAFETY: the caller promises that nobody reaches it; it is freed once, as it is taken
            // out.
            unsafe { garbage.free() };
        }
        many as u64
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        debug_assert!(self.last.is_null() && self.garbage.is_empty());
        // SAFETY: it came out of a box in `new`, and nobody has a pointer to it when its owner
        // drops it.
        drop(unsafe { Box::from_raw(self.log.as_ptr()) });
    }
}
