//! What a session has locked: three logs, and the write set in the making.
//!
//! ```text
//!              publish               copied back            the next one is copied back
//!  collecting ─────────► published ─────────────► retired ──────────────────────────────► free
//! ```
//! The paper's two logs alternate, and commit waits for the readers. With three, a session goes on
//! while they read: the published log is copied back when a later section finds them gone.
//!
//! A retired log holds copies that sections may still read which began before it was copied back.
//! Such a section is not certainly later than the next commit of this session, which draws its
//! time afterwards; so that commit's grace period waits for it, and then the log is free.

use super::log::{Garbage, Object, Record, RecordOf, Volume, unlock};
use super::slot::SessionSlot;
use super::words::Presence;
use corelay_sync::facade::atomic::Ordering;
use std::ptr::{self, NonNull};

pub(super) struct Journal {
    /// Empty until the first lock.
    pub(super) volumes: Vec<Volume>,
    pub(super) collecting: usize,
    pub(super) published: Option<Published>,
    /// Sections that may read what the published log has locked.
    pub(super) readers: Vec<Reader>,
    pub(super) retired: Option<usize>,
    /// The number of the write set in the making.
    set: u64,
    /// The last record before the write set in the making.
    mark: *mut Record,
    undos: Vec<Undo>,
    born: Vec<Garbage>,
    leaving: Vec<Garbage>,
    /// Who had locked what the last write set failed at.
    conflict: Option<NonNull<SessionSlot>>,
}

/// A log whose readers are to be waited for.
pub(super) struct Published {
    pub(super) volume: usize,
    /// Local times above see the copies.
    pub(super) visible: u64,
    /// True once all slots have been looked at.
    pub(super) is_scanned: bool,
}

/// A session, and where it stood when it was looked at.
pub(super) struct Reader {
    slot: NonNull<SessionSlot>,
    pub(super) seen: Presence,
}

impl Reader {
    pub(super) fn new(slot: &SessionSlot, seen: Presence) -> Self {
        Self {
            slot: NonNull::from(slot),
            seen,
        }
    }

    /// # Safety
    /// The domain lives.
    pub(super) unsafe fn slot(&self) -> &SessionSlot {
        // SAFETY: slots live as long as their domain.
        unsafe { self.slot.as_ref() }
    }
}

/// The copy as it was before this write set.
struct Undo {
    record: NonNull<Record>,
    before: NonNull<()>,
    restore: unsafe fn(NonNull<Record>, NonNull<()>),
}

impl Journal {
    pub(super) fn new() -> Self {
        Self {
            volumes: Vec::new(),
            collecting: 0,
            published: None,
            readers: Vec::new(),
            retired: None,
            set: 0,
            mark: ptr::null_mut(),
            undos: Vec::new(),
            born: Vec::new(),
            leaving: Vec::new(),
            conflict: None,
        }
    }

    /// True where nothing is left to be made visible or copied back.
    pub(super) fn is_settled(&self) -> bool {
        self.published.is_none() && !self.collects()
    }

    /// True where the collecting log holds something, or room that aborts have used up.
    pub(super) fn collects(&self) -> bool {
        self.volumes
            .get(self.collecting)
            .is_some_and(|v| v.sets > 0 || v.is_long())
    }

    /// True where aborted write sets have used up much room.
    pub(super) fn is_long(&self) -> bool {
        let collecting = self.volumes.get(self.collecting);
        collecting.is_some_and(Volume::is_long)
    }

    /// A write set begins.
    pub(super) fn begin(&mut self, owner: &SessionSlot) {
        if self.volumes.is_empty() {
            self.volumes.extend((0..3).map(|_| Volume::new(owner)));
        }
        self.set += 1;
        self.mark = self.volumes[self.collecting].last;
        self.conflict = None;
    }

    /// Who has locked what the last write set failed at.
    pub(super) fn take_conflict(&mut self) -> Option<NonNull<SessionSlot>> {
        self.conflict.take()
    }

    /// Locks `object`, or finds it locked by this very log; the place of its copy.
    ///
    /// # Safety
    /// The object lives, and as long as it is locked. A write set has begun, on `owner`'s slot.
    #[inline]
    pub(super) unsafe fn lock<T: Copy>(
        &mut self,
        owner: &SessionSlot,
        object: NonNull<Object<T>>,
    ) -> Result<NonNull<T>, ()> {
        // SAFETY: the caller's duty.
        let place = unsafe { object.as_ref() };
        // Acquire: pairs with `unlock`: what was copied back; and with the exchange below: the
        // record that locks it.
        let found = place.header.load(Ordering::Acquire);
        if let Some(record) = NonNull::new(found) {
            // SAFETY: a write set is in a section.
            let log = unsafe { Record::log_of(record) };
            if log == self.volumes[self.collecting].log {
                // SAFETY: ours, and of this object's type.
                return Ok(unsafe { self.keep(record.cast::<RecordOf<T>>()) });
            }
            // SAFETY: as above; a log stays as long as its session's slot.
            self.conflict = Some(unsafe { log.as_ref() }.owner_of_found());
            return Err(());
        }
        let volume = &mut self.volumes[self.collecting];
        let record = volume.room::<RecordOf<T>>();
        // SAFETY: fresh room for it.
        unsafe { record.write(RecordOf::new(volume.log, object, volume.last, self.set)) };
        // Release: pairs with the Acquire of who looks at the header: it sees the record. No Acquire:
        // if the null is of an unlock since the load above, it is that of an abort, which has
        // written nothing; a commit would have waited for this section. Acquire where it fails: as
        // the load above.
        let locked = place.header.compare_exchange(
            ptr::null_mut(),
            record.cast().as_ptr(),
            Ordering::Release,
            Ordering::Acquire,
        );
        if let Err(found) = locked {
            // SAFETY: as above.
            let log = NonNull::new(found).map(|record| unsafe { Record::log_of(record) });
            self.conflict = Some(log.map_or(NonNull::from(owner), |log| {
                // SAFETY: as above.
                unsafe { log.as_ref() }.owner_of_found()
            }));
            return Err(());
        }
        volume.last = record.cast().as_ptr();
        // SAFETY: ours.
        let copy = unsafe { &(*record.as_ptr()).copy };
        Ok(copy.with_mut(|to| {
            place.data.with(|from| {
                let to = to.cast::<T>();
                // SAFETY: initialised, and nobody writes to a locked object until its log is
                // copied back; the record is ours.
                unsafe { to.copy_from_nonoverlapping(from, 1) };
                // SAFETY: in a live record.
                unsafe { NonNull::new_unchecked(to) }
            })
        }))
    }

    /// The copy of an object that this log has locked, as it is, kept for an abort if an earlier
    /// write set has made it.
    ///
    /// # Safety
    /// `record` is in the collecting log.
    unsafe fn keep<T: Copy>(&mut self, record: NonNull<RecordOf<T>>) -> NonNull<T> {
        /// # Safety
        /// Of these types, and nobody looks at the record.
        unsafe fn restore<T: Copy>(record: NonNull<Record>, before: NonNull<()>) {
            // SAFETY: the caller's duty.
            let record = unsafe { record.cast::<RecordOf<T>>().as_ref() };
            let before = before.cast::<T>().as_ptr();
            // SAFETY: the caller's duty.
            record
                .copy
                .with_mut(|copy| unsafe { copy.cast::<T>().copy_from_nonoverlapping(before, 1) });
        }
        // SAFETY: ours; others look at `log` and `copy` alone.
        let set = unsafe { &mut (*record.as_ptr()).head.set };
        // SAFETY: as above.
        let copy = unsafe { &(*record.as_ptr()).copy };
        if *set != self.set {
            let before = self.volumes[self.collecting].room::<T>();
            copy.with(|copy| {
                // SAFETY: copied when the object was locked; the room is fresh.
                unsafe { before.as_ptr().copy_from_nonoverlapping(copy.cast(), 1) };
            });
            *set = self.set;
            self.undos.push(Undo {
                record: record.cast(),
                before: before.cast(),
                restore: restore::<T>,
            });
        }
        // SAFETY: in a live record.
        copy.with_mut(|copy| unsafe { NonNull::new_unchecked(copy.cast::<T>()) })
    }

    /// Notes an object that has come into being with this write set; an abort frees it.
    pub(super) fn note_born(&mut self, garbage: Garbage) {
        self.born.push(garbage);
    }

    /// Notes an object that is gone with this write set.
    pub(super) fn note_leaving(&mut self, garbage: Garbage) {
        self.leaving.push(garbage);
    }

    /// The write set stays; false where it is empty.
    pub(super) fn keep_set(&mut self) -> bool {
        let volume = &mut self.volumes[self.collecting];
        let changed = volume.last != self.mark || !self.undos.is_empty();
        debug_assert!(changed || self.leaving.is_empty());
        volume.sets += usize::from(changed);
        volume.garbage.append(&mut self.leaving);
        self.undos.clear();
        self.born.clear();
        changed
    }

    /// The write set goes: what it has locked is free again, as if nothing had been.
    ///
    /// The room of its records is not used again before the log begins anew: others may look at
    /// them.
    pub(super) fn drop_set(&mut self) {
        for undo in self.undos.drain(..).rev() {
            // SAFETY: noted by `keep` with these types, and the log is ours.
            unsafe { (undo.restore)(undo.record, undo.before) };
        }
        let volume = &mut self.volumes[self.collecting];
        while volume.last != self.mark {
            // SAFETY: above the mark there are records, of this write set.
            let record = unsafe { NonNull::new_unchecked(volume.last) };
            // SAFETY: ours.
            volume.last = unsafe { record.as_ref() }.previous;
            // SAFETY: it holds the lock.
            unsafe { unlock(record) };
        }
        self.leaving.clear();
        for garbage in self.born.drain(..) {
            // SAFETY: reachable by copies alone that nobody has seen.
            unsafe { garbage.free() };
        }
    }

    /// The log to be published; another collects from here on.
    pub(super) fn turn(&mut self, visible: u64, is_scanned: bool) {
        debug_assert!(self.published.is_none());
        let volume = self.collecting;
        self.published = Some(Published {
            volume,
            visible,
            is_scanned,
        });
        // 0 + 1 + 2: the one that is neither published nor retired, or any of the two.
        let other = self.retired.unwrap_or((volume + 1) % 3);
        self.collecting = 3 - volume - other;
        self.mark = ptr::null_mut();
    }

    /// Copies everything back and frees what is to be freed.
    ///
    /// # Safety
    /// No session lives but the caller's, which has no reference.
    pub(super) unsafe fn wind_up(&mut self) {
        let published = self.published.take().map(|p| p.volume);
        // The older one first: it may free what the younger one does not have.
        for volume in [published, Some(self.collecting)].into_iter().flatten() {
            if let Some(volume) = self.volumes.get_mut(volume) {
                // SAFETY: the caller's duty.
                unsafe { volume.write_back() };
                // SAFETY: the caller's duty.
                unsafe { volume.free_garbage() };
            }
        }
    }
}
