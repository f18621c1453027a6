//! Sessions and their sections.

use super::domain::{Domain, Inner, Rlu};
use super::journal::Journal;
use super::log::{Object, Record, RecordOf};
use super::slot::{Service, SessionSlot};
use super::stats::{Part, Stats};
use super::sync::{OnDrop, Patience, SECTION, is_inside, set_inside};
use super::words::Take;
use corelay_clock::Clock;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::hint;
use corelay_sync::wait::NoSwitch;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr::NonNull;

/// One thread's or fibre's access to a [`Domain`].
///
/// It may be kept over fibre switches and sent to other threads; inside a section nothing may wait.
/// Dropping it makes its pending write sets visible, for which it waits for readers.
pub struct Session<C: Clock> {
    domain: Domain<C>,
    slot: NonNull<SessionSlot>,
}

// SAFETY: the slot is this session's alone, and bound to no thread; everything that the journal
// holds is `Send`.
unsafe impl<C: Clock> Send for Session<C> {}

/// The error of a write section that cannot go on: another session has locked an object that it
/// needs, or the section itself has asked for it.
///
/// [`Session::write`] retries.
#[derive(Debug, PartialEq, Eq)]
pub struct Abort(());

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the write section was aborted: another session has locked an object")
    }
}

impl std::error::Error for Abort {}

/// A read section: it sees everything as of its beginning.
pub struct Section<'s, C> {
    inner: &'s Inner<C>,
    slot: &'s SessionSlot,
    local: u64,
}

/// A section that may lock objects. It reads as a [`Section`] does, and sees its own changes.
pub struct WriteSection<'s, C: Clock> {
    section: Section<'s, C>,
    journal: &'s mut Journal,
    is_kept: bool,
}

/// The work that a write section leaves to be done after it.
enum Rest {
    Nothing,
    /// Publish once the readers of the previously published log are gone.
    Push,
    /// Settle an abort: the session whose lock was in the way, and whether much room is used up.
    Settle(Option<NonNull<SessionSlot>>, bool),
}

impl<C: Clock> Session<C> {
    pub(super) fn new(domain: Domain<C>) -> Self {
        let slot = domain.inner().slots.take();
        Self { domain, slot }
    }

    /// Runs `f` in a read section.
    ///
    /// # Panics
    /// Inside another section on this thread. A wait inside `f` that would let others run panics,
    /// naming the section.
    #[track_caller]
    #[inline]
    pub fn read<R>(&mut self, f: impl FnOnce(&Section<'_, C>) -> R) -> R {
        let result = {
            let open = Open::new(self, Location::caller());
            // SAFETY: the guard is dropped at the end of this block, on this thread: nothing
            // switches inside.
            let _no_switch = unsafe { NoSwitch::enter(&SECTION) };
            let result = f(&open.section());
            open.poll();
            result
        };
        self.serve();
        result
    }

    /// Runs `f` in write sections until it returns something other than an abort.
    ///
    /// # Panics
    /// If [`read`](Self::read) would.
    #[track_caller]
    #[inline]
    pub fn write<R>(
        &mut self,
        mut f: impl FnMut(&mut WriteSection<'_, C>) -> Result<R, Abort>,
    ) -> R {
        let at = Location::caller();
        let mut backoff = None;
        loop {
            match self.try_write_at(&mut f, at) {
                Ok(result) => return result,
                Err(Abort(())) => {
                    let backoff = backoff.get_or_insert_with(Backoff::new);
                    let mut watch = self.domain.inner().watch(self.slot());
                    backoff.wait();
                    hint::in_vain(backoff.yields());
                    self.give_turn(backoff);
                    watch.end(Part::Locking);
                }
            }
        }
    }

    /// Runs `f` in one write section.
    ///
    /// # Errors
    /// [`Abort`] if `f` returns it; nothing has changed then.
    ///
    /// # Panics
    /// If [`read`](Self::read) would.
    #[track_caller]
    #[inline]
    pub fn try_write<R>(
        &mut self,
        f: impl FnOnce(&mut WriteSection<'_, C>) -> Result<R, Abort>,
    ) -> Result<R, Abort> {
        self.try_write_at(f, Location::caller())
    }

    #[inline]
    fn try_write_at<R>(
        &mut self,
        f: impl FnOnce(&mut WriteSection<'_, C>) -> Result<R, Abort>,
        at: &'static Location<'static>,
    ) -> Result<R, Abort> {
        let (result, rest) = {
            let open = Open::new(self, at);
            // SAFETY: the guard is dropped at the end of this block, on this thread: nothing
            // switches inside.
            let _no_switch = unsafe { NoSwitch::enter(&SECTION) };
            let mut section = open.write_section();
            let result = f(&mut section);
            let rest = match result {
                Ok(_) => section.commit(),
                // Requests are looked at while the journal is this session's: taking the service
                // would lose one.
                Err(_) => {
                    let journal = section.journal();
                    Rest::Settle(journal.take_conflict(), journal.is_long())
                }
            };
            (result, rest)
        };
        match rest {
            Rest::Nothing => {}
            Rest::Push => self.push(),
            Rest::Settle(conflict, is_long) => self.settle(conflict, is_long),
        }
        self.serve();
        result
    }

    /// Makes visible all that this session has committed and deferred, and copies it back. Waits
    /// for sections of other sessions that may read the values from before.
    pub fn sync(&mut self) {
        let (inner, slot) = (self.domain.inner(), self.slot());
        self.with_journal(|journal| inner.flush(slot, slot, journal));
    }

    /// Publishes the collected commits as soon as the readers of the previously published log are
    /// gone.
    #[cold]
    fn push(&self) {
        let (inner, slot) = (self.domain.inner(), self.slot());
        self.with_journal(|journal| inner.push(slot, journal));
    }

    /// Runs `f` with the journal, outside of sections.
    fn with_journal<R>(&self, f: impl FnOnce(&mut Journal) -> R) -> R {
        let slot = self.slot();
        let mut patience = None;
        loop {
            if let Some(mut serving) = slot.try_take_service() {
                return f(serving.journal());
            }
            let mut watch = self.domain.inner().watch(slot);
            patience.get_or_insert_with(Patience::new).wait(|| None);
            watch.end(Part::Waiting);
        }
    }

    /// The counts of this session and of the sessions that had its slot before.
    pub fn stats(&self) -> Stats {
        self.slot().counters.stats()
    }

    /// The session's domain.
    pub fn domain(&self) -> &Domain<C> {
        &self.domain
    }

    #[inline(always)]
    fn slot(&self) -> &SessionSlot {
        // SAFETY: a slot lives as long as its domain, and this session has a handle of the domain.
        unsafe { self.slot.as_ref() }
    }

    /// Makes this session's changes visible if other sessions have requested that. Called outside
    /// of sections.
    #[inline(always)]
    fn serve(&mut self) {
        if self.slot().is_requested() {
            self.serve_now();
        }
    }

    #[cold]
    fn serve_now(&mut self) {
        self.sync();
    }

    /// Ends a section that has just begun, because other sessions have requested something of this
    /// one, and serves them first.
    #[cold]
    fn serve_first(&mut self) {
        self.slot().leave();
        let mut watch = self.domain.inner().watch(self.slot());
        let mut patience = Patience::new();
        while self.slot().is_busy() {
            patience.wait(|| None);
        }
        watch.end(Part::Waiting);
        self.serve();
    }

    fn give_turn(&self, backoff: &Backoff) {
        if backoff.is_yielding() && !NoSwitch::is_active() {
            corelay_sync::wait::give_turn();
        }
    }

    /// Settles an abort. If the session whose lock was in the way does nothing, makes its changes
    /// visible for it; if it is in a section, requests that it does so itself.
    #[cold]
    fn settle(&mut self, conflict: Option<NonNull<SessionSlot>>, is_long: bool) {
        if is_long || conflict == Some(self.slot) {
            self.sync();
        }
        let Some(conflict) = conflict.filter(|&other| other != self.slot) else {
            return;
        };
        let (inner, me) = (self.domain.inner(), self.slot());
        // SAFETY: a slot lives as long as its domain, which this session keeps.
        let other = unsafe { conflict.as_ref() };
        if let Some(mut serving) = other.try_help() {
            let journal = serving.journal();
            if !journal.is_settled() {
                inner.flush(me, other, journal);
                me.counters.helps.add(1);
            }
        }
    }
}

impl<C: Clock> Drop for Session<C> {
    fn drop(&mut self) {
        // Last of all, also if the clock panics.
        let slot = self.slot;
        // SAFETY: a slot lives as long as its domain, and this session has a handle of the domain.
        let _release = OnDrop(|| unsafe { slot.as_ref() }.release());
        if is_inside() {
            // A session cannot wait inside a section of its thread. The slot's next session does
            // it, or the session that needs the locked objects.
        } else if std::thread::panicking() {
            // A second panic would end the process. Whatever it leaves undone, others do, as above.
            std::mem::forget(catch_unwind(AssertUnwindSafe(|| self.sync())));
        } else {
            self.sync();
        }
    }
}

impl<C: Clock> fmt::Debug for Session<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// A guard of an open section, which ends when it is dropped.
struct Open<'s, C: Clock> {
    inner: &'s Inner<C>,
    slot: &'s SessionSlot,
    local: u64,
}

impl<'s, C: Clock> Open<'s, C> {
    #[inline(always)]
    fn new(session: &'s mut Session<C>, at: &'static Location<'static>) -> Self {
        if is_inside() {
            refuse_nested();
        }
        session.slot().set_at(at);
        let local = loop {
            let local = session.domain.inner().enter(session.slot());
            if session.slot().service() == Service::None {
                break local;
            }
            session.serve_first();
        };
        set_inside(true);
        Self {
            inner: session.domain.inner(),
            slot: session.slot(),
            local,
        }
    }

    #[inline(always)]
    fn section(&self) -> Section<'_, C> {
        Section {
            inner: self.inner,
            slot: self.slot,
            local: self.local,
        }
    }

    #[inline(always)]
    fn write_section(&self) -> WriteSection<'_, C> {
        // SAFETY: the session is inside and the slot is not busy, so the journal is this session's:
        // see `slot`.
        let journal = unsafe { &mut *self.slot.journal().as_ptr() };
        if journal.published.is_some() {
            self.inner.advance(self.slot, self.slot, journal);
        }
        journal.begin(self.slot);
        WriteSection {
            section: self.section(),
            journal,
            is_kept: false,
        }
    }

    /// At the end of a read section, copies the published log back if its readers are gone.
    #[inline(always)]
    fn poll(&self) {
        // SAFETY: the session is inside and the slot is not busy, so the journal is this session's:
        // see `slot`.
        let journal = unsafe { &mut *self.slot.journal().as_ptr() };
        if journal.published.is_some() {
            self.inner.advance(self.slot, self.slot, journal);
        }
    }
}

impl<C: Clock> Drop for Open<'_, C> {
    #[inline(always)]
    fn drop(&mut self) {
        // Loom takes this for a write: until here the journal is this session's.
        self.slot.journal();
        self.slot.leave();
        set_inside(false);
    }
}

#[cold]
fn refuse_nested() -> ! {
    panic!("an RLU section inside another on the same thread: end the first one before");
}

impl<C: Clock> Section<'_, C> {
    /// The cell's value as of the section's beginning; in a write section, with its own changes.
    ///
    /// # Panics
    /// If the cell is of another domain.
    #[inline(always)]
    pub fn get<'a, T: Copy + Send + Sync>(&'a self, cell: &'a Rlu<T, C>) -> &'a T {
        let object = cell.object(self.inner);
        // SAFETY: the handle `cell` keeps the object as long as the reference lives.
        let place = unsafe { self.read(object) };
        // SAFETY: nobody else writes there while this section lasts (see `read`), and its own locks
        // borrow the section mutably.
        unsafe { place.as_ref() }
    }

    pub(super) fn inner(&self) -> &Inner<C> {
        self.inner
    }

    /// The address of the object's value for this section. The value stays there until the section
    /// ends, and nobody writes to it but a lock in this very section.
    ///
    /// # Safety
    /// The object lives: a handle keeps it, or this section has read a pointer to it from a living
    /// object.
    #[inline(always)]
    pub(super) unsafe fn read<T: Copy>(&self, object: NonNull<Object<T>>) -> NonNull<T> {
        // SAFETY: the caller promises that the object lives.
        let object = unsafe { object.as_ref() };
        // Acquire: pairs with `unlock`, and shows the value that was copied back; pairs with the
        // exchange of `lock`, and shows the record.
        let mut header = object.header.load(Ordering::Acquire);
        while let Some(record) = NonNull::new(header)
            && self.takes_copy(record)
        {
            // The record may be of a write set that was aborted before its log was committed: a
            // wrong clock makes that look like a visible commit. Its room is not used again while
            // this section lasts, so a record that still locks the object is of the commit.
            // Acquire: as above.
            let now = object.header.load(Ordering::Acquire);
            if now != header {
                header = now;
                continue;
            }
            let record = record.cast::<RecordOf<T>>();
            // SAFETY: the log does not begin anew before this section has ended, so the record
            // lives.
            let copy = unsafe { &(*record.as_ptr()).copy };
            // SAFETY: an address inside a live record is not null.
            return copy
                .with(|place| unsafe { NonNull::new_unchecked(place.cast::<T>().cast_mut()) });
        }
        object
            .data
            // SAFETY: an address inside a live object is not null.
            .with(|place| unsafe { NonNull::new_unchecked(place.cast_mut()) })
    }

    /// Whether this section takes the copy of a locked object, whose header names `record`, and not
    /// the original. Waits if the owner is about to say the commit's time.
    #[inline(never)]
    fn takes_copy(&self, record: NonNull<Record>) -> bool {
        // SAFETY: the header was read in this section, which has not ended.
        let log = unsafe { Record::log_of(record) };
        // SAFETY: a log lives as long as its slot, and that as long as the domain.
        let log = unsafe { log.as_ref() };
        log.records.read(0, 1);
        if std::ptr::eq(log.owner, self.slot) {
            return true;
        }
        let counters = &self.slot.counters;
        let mut stage = log.stage();
        let mut take = stage.take(self.local);
        if take == Take::Wait {
            counters.pending.add(1);
            let mut watch = self.inner.watch(self.slot);
            let mut backoff = Backoff::new();
            while take == Take::Wait {
                backoff.wait();
                hint::in_vain(backoff.yields());
                stage = log.stage();
                take = stage.take(self.local);
            }
            watch.end(Part::Waiting);
        }
        let Some(visible) = stage.visible() else {
            return false;
        };
        let boundary = self.inner.clock.boundary();
        if take == Take::Original {
            // The commit's time was drawn at `visible - boundary`, which is not certainly later
            // than this section.
            if self.local.saturating_add(boundary.saturating_mul(2)) >= visible {
                counters.uncertain.add(1);
            }
            return false;
        }
        counters.copies.add(1);
        true
    }
}

impl<C: Clock> WriteSection<'_, C> {
    /// Locks the cell until this section's changes are copied back. Returns its copy, to be
    /// changed.
    ///
    /// # Errors
    /// If another session has locked the cell. Return the error from the section.
    ///
    /// # Panics
    /// If the cell is of another domain.
    #[inline]
    pub fn try_lock<'a, T: Copy + Send + Sync>(
        &'a mut self,
        cell: &'a Rlu<T, C>,
    ) -> Result<&'a mut T, Abort> {
        let object = cell.object(self.section.inner);
        // SAFETY: the handle `cell` keeps the object; if it is dropped, a locked object stays in a
        // grave.
        let mut place = unsafe { self.lock(object) }?;
        // SAFETY: the copy is this section's own, which the reference borrows.
        Ok(unsafe { place.as_mut() })
    }

    /// An abort for the section to return: everything is undone, and [`Session::write`] tries
    /// again.
    pub fn abort(&self) -> Abort {
        Abort(())
    }

    /// Locks an object and returns the address of its copy, or an abort if another session has
    /// locked it.
    ///
    /// # Safety
    /// The object lives. It is freed only after a sync of this session, or when it is unlocked.
    #[inline]
    pub(super) unsafe fn lock<T: Copy>(
        &mut self,
        object: NonNull<Object<T>>,
    ) -> Result<NonNull<T>, Abort> {
        let Section { inner, slot, .. } = self.section;
        let mut watch = inner.watch(slot);
        // SAFETY: the caller promises that the object lives; `write_section` has begun the write
        // set on this slot.
        unsafe { self.journal.lock(slot, object, &mut watch) }.map_err(|()| {
            slot.counters.aborts_locked.add(1);
            Abort(())
        })
    }

    pub(super) fn journal(&mut self) -> &mut Journal {
        self.journal
    }

    fn commit(mut self) -> Rest {
        self.is_kept = true;
        let Section { inner, slot, local } = self.section;
        let journal = &mut *self.journal;
        if !journal.keep_set() {
            return Rest::Nothing;
        }
        slot.counters.commits.add(1);
        let volume = &journal.volumes[journal.collecting];
        if volume.sets < inner.deferral && !volume.is_long() {
            return Rest::Nothing;
        }
        if !inner.advance(slot, slot, journal) {
            return Rest::Push;
        }
        inner.publish(slot, slot, journal, Some(local));
        Rest::Nothing
    }
}

impl<'s, C: Clock> Deref for WriteSection<'s, C> {
    type Target = Section<'s, C>;

    #[inline(always)]
    fn deref(&self) -> &Section<'s, C> {
        &self.section
    }
}

impl<C: Clock> Drop for WriteSection<'_, C> {
    /// Aborts the write set of a section that was aborted or unwinds.
    #[inline]
    fn drop(&mut self) {
        if !self.is_kept {
            let mut watch = self.section.inner.watch(self.section.slot);
            self.journal.drop_set();
            watch.end(Part::Locking);
            self.section.slot.counters.aborts.add(1);
        }
    }
}

impl<C> fmt::Debug for Section<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

impl<C: Clock> fmt::Debug for WriteSection<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteSection").finish_non_exhaustive()
    }
}
