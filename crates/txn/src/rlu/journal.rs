//! The journal of a session: its three logs with the locks in them, and the write set that is being
//! built.
//!
//! ```text
//!              publish               copied back            the next one is copied back
//!  collecting ─────────► published ─────────────► retired ──────────────────────────────► free
//! ```
//! In the paper two logs alternate, and a commit waits for the readers. With three, the session
//! goes on while they read: the published log is copied back when a later section finds that its
//! readers are gone.
//!
//! A retired log holds copies that may still be read by sections that began before it was copied
//! back. Such a section is not certainly later than the session's next commit, which draws its time
//! afterwards. So that commit's grace period waits for the section, and then the log is free.

use super::log::{Garbage, Object, Record, RecordOf, Volume, unlock};
use super::slot::SessionSlot;
use super::stats::{Part, Watch};
use super::words::Presence;
use corelay_clock::Clock;
use corelay_sync::facade::atomic::Ordering;
use std::ptr::{self, NonNull};

pub(super) struct Journal {
    /// The three logs; none until the first lock.
    pub(super) volumes: Vec<Volume>,
    /// The index of the log that collects write sets.
    pub(super) collecting: usize,
    /// The log that has been made visible and not been copied back, if there is one.
    pub(super) published: Option<Published>,
    /// The sessions whose sections may read the originals that the published log has locked.
    pub(super) readers: Vec<Reader>,
    /// The index of the log that has been copied back and may still be read, if there is one.
    pub(super) retired: Option<usize>,
    /// The number of the write set being built.
    set: u64,
    /// The last record in the log from before the write set being built.
    mark: *mut Record,
    /// The earlier values of copies that this write set has changed again.
    undos: Vec<Undo>,
    /// Objects that this write set has created.
    born: Vec<Garbage>,
    /// Objects that this write set has unlinked.
    leaving: Vec<Garbage>,
    /// The slot of the session whose lock made the last write set fail.
    conflict: Option<NonNull<SessionSlot>>,
}

/// The log that has been made visible and waits until its readers are gone.
pub(super) struct Published {
    pub(super) volume: usize,
    /// The time *v* of the commit: sections with greater local times see the copies.
    pub(super) visible: u64,
    /// Whether all slots have been looked at for readers.
    pub(super) is_scanned: bool,
}

/// A session that was inside a section when it was looked at, with its presence then.
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

    /// The session's slot.
    ///
    /// # Safety
    /// The domain lives.
    pub(super) unsafe fn slot(&self) -> &SessionSlot {
        // SAFETY: a slot lives as long as its domain, which the caller promises.
        unsafe { self.slot.as_ref() }
    }
}

/// The value that a copy had before the present write set, to be restored by an abort.
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

    /// Whether nothing in the journal is left to be made visible or copied back.
    pub(super) fn is_settled(&self) -> bool {
        self.published.is_none() && !self.collects()
    }

    /// Whether the collecting log is to be published: it holds write sets, or aborted ones have
    /// used up much of its room.
    #[inline]
    pub(super) fn collects(&self) -> bool {
        self.volumes
            .get(self.collecting)
            .is_some_and(|v| v.sets > 0 || v.is_long())
    }

    /// Whether the collecting log has become long, so that it should be published to win memory
    /// back.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        let collecting = self.volumes.get(self.collecting);
        collecting.is_some_and(Volume::is_long)
    }

    /// Begins a write set.
    #[inline]
    pub(super) fn begin(&mut self, owner: &SessionSlot) {
        if self.volumes.is_empty() {
            self.volumes.extend((0..3).map(|_| Volume::new(owner)));
        }
        self.set += 1;
        self.mark = self.volumes[self.collecting].last;
        self.conflict = None;
    }

    /// Takes the slot of the session whose lock made the last write set fail, if one did.
    #[inline]
    pub(super) fn take_conflict(&mut self) -> Option<NonNull<SessionSlot>> {
        self.conflict.take()
    }

    /// Locks `object`, or finds it locked by this very log. Returns the address of its copy.
    ///
    /// # Safety
    /// The object lives, and goes on living while it is locked. A write set has begun on `owner`'s
    /// slot.
    #[inline]
    pub(super) unsafe fn lock<T: Copy, C: Clock>(
        &mut self,
        owner: &SessionSlot,
        object: NonNull<Object<T>>,
        watch: &mut Watch<'_, C>,
    ) -> Result<NonNull<T>, ()> {
        // SAFETY: the caller promises that the object lives.
        let place = unsafe { object.as_ref() };
        // Acquire: pairs with `unlock`: what was copied back; and with the exchange below: the
        // record that locks it.
        let found = place.header.load(Ordering::Acquire);
        if let Some(record) = NonNull::new(found) {
            // SAFETY: the header was read in the caller's write section, which has not ended.
            let log = unsafe { Record::log_of(record) };
            if log == self.volumes[self.collecting].log {
                watch.end(Part::Locking);
                // SAFETY: the record is in the collecting log, and locks an object of this type.
                let copy = unsafe { self.keep(record.cast::<RecordOf<T>>()) };
                watch.end(Part::Copying);
                return Ok(copy);
            }
            // SAFETY: the header was read in this section, and a log lives as long as its session's
            // slot.
            self.conflict = Some(unsafe { log.as_ref() }.owner_of_found());
            watch.end(Part::Locking);
            return Err(());
        }
        let volume = &mut self.volumes[self.collecting];
        let record = volume.room::<RecordOf<T>>();
        // SAFETY: `room` is large enough for a record, and nothing else uses it.
        unsafe { record.write(RecordOf::new(volume.log, object, volume.last, self.set)) };
        // Release: pairs with the Acquire of the session that looks at the header: it sees the
        // record. No Acquire: if the null is from an unlock since the load above, that was an
        // abort, which has written nothing; a commit would have waited for this section. Acquire if
        // it fails: as the load above.
        let locked = place.header.compare_exchange(
            ptr::null_mut(),
            record.cast().as_ptr(),
            Ordering::Release,
            Ordering::Acquire,
        );
        if let Err(found) = locked {
            // SAFETY: the header was read in this section, which has not ended.
            let log = NonNull::new(found).map(|record| unsafe { Record::log_of(record) });
            self.conflict = Some(log.map_or(NonNull::from(owner), |log| {
                // SAFETY: a log lives as long as its session's slot.
                unsafe { log.as_ref() }.owner_of_found()
            }));
            watch.end(Part::Locking);
            return Err(());
        }
        volume.last = record.cast().as_ptr();
        watch.end(Part::Locking);
        // SAFETY: this session has just written the record, and others read its `log` and `copy`
        // only.
        let copy = unsafe { &(*record.as_ptr()).copy };
        let copy = copy.with_mut(|to| {
            place.data.with(|from| {
                let to = to.cast::<T>();
                // SAFETY: the original is initialised, and nobody writes to a locked object until
                // its log is copied back; the copy is this session's alone until it commits.
                unsafe { to.copy_from_nonoverlapping(from, 1) };
                // SAFETY: an address inside a live record is not null.
                unsafe { NonNull::new_unchecked(to) }
            })
        });
        watch.end(Part::Copying);
        Ok(copy)
    }

    /// The copy of an object that this log has locked already. If an earlier write set has made the
    /// copy, its value is kept for an abort.
    ///
    /// # Safety
    /// `record` is in the collecting log.
    unsafe fn keep<T: Copy>(&mut self, record: NonNull<RecordOf<T>>) -> NonNull<T> {
        /// Writes the kept value `before` back into the record's copy.
        ///
        /// # Safety
        /// `record` and `before` are of these types, and nobody else looks at the record.
        unsafe fn restore<T: Copy>(record: NonNull<Record>, before: NonNull<()>) {
            // SAFETY: the caller promises the type, and that the record is alive.
            let record = unsafe { record.cast::<RecordOf<T>>().as_ref() };
            let before = before.cast::<T>().as_ptr();
            // SAFETY: the caller promises that `before` holds a value of this type and that nobody
            // else looks at the copy.
            record
                .copy
                .with_mut(|copy| unsafe { copy.cast::<T>().copy_from_nonoverlapping(before, 1) });
        }
        // SAFETY: only this session uses `set`; others look at `log` and `copy` alone.
        let set = unsafe { &mut (*record.as_ptr()).head.set };
        // SAFETY: the record is alive in the collecting log; this is a shared look.
        let copy = unsafe { &(*record.as_ptr()).copy };
        if *set != self.set {
            let before = self.volumes[self.collecting].room::<T>();
            copy.with(|copy| {
                // SAFETY: `lock` initialised the copy; nothing else uses the room.
                unsafe { before.as_ptr().copy_from_nonoverlapping(copy.cast(), 1) };
            });
            *set = self.set;
            self.undos.push(Undo {
                record: record.cast(),
                before: before.cast(),
                restore: restore::<T>,
            });
        }
        // SAFETY: an address inside a live record is not null.
        copy.with_mut(|copy| unsafe { NonNull::new_unchecked(copy.cast::<T>()) })
    }

    /// Notes an object that this write set has created; an abort frees it.
    #[inline]
    pub(super) fn note_born(&mut self, garbage: Garbage) {
        self.born.push(garbage);
    }

    /// Notes an object that this write set has unlinked; a commit frees it later.
    #[inline]
    pub(super) fn note_leaving(&mut self, garbage: Garbage) {
        self.leaving.push(garbage);
    }

    /// Ends the write set and keeps its changes. Returns false if it is empty.
    #[inline]
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

    /// Aborts the write set: unlocks what it has locked, as if nothing had happened.
    ///
    /// The room of its records is not used again before the log begins anew: other sessions may
    /// look at them.
    pub(super) fn drop_set(&mut self) {
        for undo in self.undos.drain(..).rev() {
            // SAFETY: `keep` chose the function for these types, and the collecting log is this
            // session's.
            unsafe { (undo.restore)(undo.record, undo.before) };
        }
        let volume = &mut self.volumes[self.collecting];
        while volume.last != self.mark {
            // SAFETY: down to the mark the log has records of this write set, so it is not null.
            let record = unsafe { NonNull::new_unchecked(volume.last) };
            // SAFETY: the record is in this session's collecting log.
            volume.last = unsafe { record.as_ref() }.previous;
            // SAFETY: a record in this list holds its lock.
            unsafe { unlock(record) };
        }
        self.leaving.clear();
        for garbage in self.born.drain(..) {
            // SAFETY: only this write set's copies lead to it, which nobody has seen.
            unsafe { garbage.free() };
        }
    }

    /// Makes the collecting log the published one; another log collects from now on.
    pub(super) fn turn(&mut self, visible: u64, is_scanned: bool) {
        debug_assert!(self.published.is_none());
        let volume = self.collecting;
        self.published = Some(Published {
            volume,
            visible,
            is_scanned,
        });
        // 0 + 1 + 2: the log that is neither published nor retired; if none is retired, either of
        // the two others.
        let other = self.retired.unwrap_or((volume + 1) % 3);
        self.collecting = 3 - volume - other;
        self.mark = ptr::null_mut();
    }

    /// Copies everything back and frees all garbage.
    ///
    /// # Safety
    /// No session lives but the caller's, which has no reference to an object.
    pub(super) unsafe fn wind_up(&mut self) {
        let published = self.published.take().map(|p| p.volume);
        // The older one first: it may free what the younger one does not have.
        for volume in [published, Some(self.collecting)].into_iter().flatten() {
            if let Some(volume) = self.volumes.get_mut(volume) {
                // SAFETY: the caller promises that no session reads.
                unsafe { volume.write_back(|_| ()) };
                // SAFETY: the caller promises that no session reads; nothing leads to the garbage
                // after the write-back.
                unsafe { volume.free_garbage() };
            }
        }
    }
}
