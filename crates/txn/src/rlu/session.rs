//! Sessions and their sections.

use super::domain::{Domain, Inner, Rlu};
use super::journal::Journal;
use super::log::{Object, Record, RecordOf};
use super::slot::{Service, SessionSlot};
use super::stats::Stats;
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

/// One thread's or fibre's way into a [`Domain`].
///
/// It may be kept over fibre switches and sent to other threads; within a section nothing may wait.
/// Dropping it makes its pending write sets visible, for which it waits for readers.
pub struct Session<C: Clock> {
    domain: Domain<C>,
    slot: NonNull<SessionSlot>,
}

// SAFETY: the slot is this session's alone, and bound to no thread; what its journal holds is `Send`.
unsafe impl<C: Clock> Send for Session<C> {}

/// A write section cannot go on: another has locked what it needs, or it has asked for it itself.
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

/// A read section: everything is seen as of its beginning.
pub struct Section<'s, C> {
    inner: &'s Inner<C>,
    slot: &'s SessionSlot,
    local: u64,
}

/// A section that may lock objects. It reads as a [`Section`] does, and its own changes.
pub struct WriteSection<'s, C: Clock> {
    section: Section<'s, C>,
    journal: &'s mut Journal,
    is_kept: bool,
}

/// What is left to be done behind a write section.
enum Rest {
    Nothing,
    /// The log before is still read.
    Push,
    /// Aborted; who had locked what stood in the way, and whether much room is used up.
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
            // SAFETY: dropped at the end of this block, on this thread: nothing switches inside.
            let _no_switch = unsafe { NoSwitch::enter(&SECTION, |name| name) };
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
    /// As [`read`](Self::read).
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
                    backoff.wait();
                    hint::in_vain(backoff.yields());
                    self.give_turn(backoff);
                }
            }
        }
    }

    /// Runs `f` in one write section.
    ///
    /// # Errors
    /// [`Abort`] where `f` returns it; nothing has changed then.
    ///
    /// # Panics
    /// As [`read`](Self::read).
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
            // SAFETY: dropped at the end of this block, on this thread: nothing switches inside.
            let _no_switch = unsafe { NoSwitch::enter(&SECTION, |name| name) };
            let mut section = open.write_section();
            let result = f(&mut section);
            let rest = match result {
                Ok(_) => section.commit(),
                // Asked for while the journal is ours: to take the service would lose a request.
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

    /// Makes visible what this session has committed and deferred, and copies it back: waits for
    /// the sections of other sessions that may read what was before.
    pub fn sync(&mut self) {
        let (inner, slot) = (self.domain.inner(), self.slot());
        self.with_journal(|journal| inner.flush(slot, slot, journal));
    }

    /// Commits behind the log before, which is still read.
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
            patience.get_or_insert_with(Patience::new).wait(|| None);
        }
    }

    /// What this session has counted, and those that had its place before.
    pub fn stats(&self) -> Stats {
        self.slot().counters.stats()
    }

    /// The domain that it is of.
    pub fn domain(&self) -> &Domain<C> {
        &self.domain
    }

    #[inline(always)]
    fn slot(&self) -> &SessionSlot {
        // SAFETY: slots live as long as their domain, of which this has a handle.
        unsafe { self.slot.as_ref() }
    }

    /// Does what others ask of this session, outside of sections.
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

    /// A section has begun while others want something: it ends, and they go first.
    #[cold]
    fn serve_first(&mut self) {
        self.slot().leave();
        let mut patience = Patience::new();
        while self.slot().is_busy() {
            patience.wait(|| None);
        }
        self.serve();
    }

    fn give_turn(&self, backoff: &Backoff) {
        if backoff.is_yielding() && !NoSwitch::is_active() {
            corelay_sync::wait::give_turn();
        }
    }

    /// Behind an abort: has what stood in the way got out of it, if its session does nothing; asks
    /// it to, if it is in a section.
    #[cold]
    fn settle(&mut self, conflict: Option<NonNull<SessionSlot>>, is_long: bool) {
        if is_long || conflict == Some(self.slot) {
            self.sync();
        }
        let Some(conflict) = conflict.filter(|&other| other != self.slot) else {
            return;
        };
        let (inner, me) = (self.domain.inner(), self.slot());
        // SAFETY: a slot of this domain.
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
        // In the end, also where the clock panics.
        let slot = self.slot;
        // SAFETY: slots live as long as their domain, of which this has a handle.
        let _release = OnDrop(|| unsafe { slot.as_ref() }.release());
        if is_inside() {
            // It cannot wait inside a section of this thread: the next session of the slot, or who
            // needs what is locked, does it.
        } else if std::thread::panicking() {
            // A second panic would end the process. What it leaves undone is done as above.
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

/// A section's beginning and end.
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
        // SAFETY: inside, and not busy: the journal is this session's.
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

    /// At a read section's end: copies back what was published, if it may.
    #[inline(always)]
    fn poll(&self) {
        // SAFETY: as above.
        let journal = unsafe { &mut *self.slot.journal().as_ptr() };
        if journal.published.is_some() {
            self.inner.advance(self.slot, self.slot, journal);
        }
    }
}

impl<C: Clock> Drop for Open<'_, C> {
    #[inline(always)]
    fn drop(&mut self) {
        // A write, to loom: until here the journal is this session's.
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
    /// The cell's value, as of the section's beginning; in a write section with its own changes.
    ///
    /// # Panics
    /// Where the cell is of another domain.
    #[inline(always)]
    pub fn get<'a, T: Copy + Send + Sync>(&'a self, cell: &'a Rlu<T, C>) -> &'a T {
        let object = cell.object(self.inner);
        // SAFETY: the handle keeps it, for as long as the reference lives.
        let place = unsafe { self.read(object) };
        // SAFETY: nobody writes there while this section lasts: see `read`; and its own locks
        // borrow the section.
        unsafe { place.as_ref() }
    }

    pub(super) fn inner(&self) -> &Inner<C> {
        self.inner
    }

    /// Where the object's value lies for this section; it stays and is not written to until the
    /// section ends, but by a lock in this very section.
    ///
    /// # Safety
    /// The object lives: a handle keeps it, or this section has read a pointer to it from one that
    /// lives.
    #[inline(always)]
    pub(super) unsafe fn read<T: Copy>(&self, object: NonNull<Object<T>>) -> NonNull<T> {
        // SAFETY: the caller's duty.
        let object = unsafe { object.as_ref() };
        // Acquire: pairs with `unlock`: what was copied back; and with the exchange of `lock`: the
        // record.
        let mut header = object.header.load(Ordering::Acquire);
        while let Some(record) = NonNull::new(header)
            && self.takes_copy(record)
        {
            // The record may be of a write set that was aborted before its log was committed: by a
            // wrong clock that looks like a commit that is seen. Its room is not used again while
            // this section lasts, so what still locks the object is what was committed.
            // Acquire: as above.
            let now = object.header.load(Ordering::Acquire);
            if now != header {
                header = now;
                continue;
            }
            let record = record.cast::<RecordOf<T>>();
            // SAFETY: the log does not begin anew before this section has ended.
            let copy = unsafe { &(*record.as_ptr()).copy };
            // SAFETY: of a live record.
            return copy
                .with(|place| unsafe { NonNull::new_unchecked(place.cast::<T>().cast_mut()) });
        }
        object
            .data
            // SAFETY: of a live object.
            .with(|place| unsafe { NonNull::new_unchecked(place.cast_mut()) })
    }

    /// True where the copy of a locked object is what this section sees.
    #[inline(never)]
    fn takes_copy(&self, record: NonNull<Record>) -> bool {
        // SAFETY: the header was read in this section.
        let log = unsafe { Record::log_of(record) };
        // SAFETY: logs live as long as their slots.
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
            let mut backoff = Backoff::new();
            while take == Take::Wait {
                backoff.wait();
                hint::in_vain(backoff.yields());
                stage = log.stage();
                take = stage.take(self.local);
            }
        }
        let Some(visible) = stage.visible() else {
            return false;
        };
        let boundary = self.inner.clock.boundary();
        if take == Take::Original {
            // Drawn at `visible - boundary`; not certainly later than this section.
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
    /// Locks the cell until this section's changes are copied back, and gives its copy to be
    /// changed.
    ///
    /// # Errors
    /// Where another session has locked it; to be returned from the section.
    ///
    /// # Panics
    /// Where the cell is of another domain.
    #[inline]
    pub fn try_lock<'a, T: Copy + Send + Sync>(
        &'a mut self,
        cell: &'a Rlu<T, C>,
    ) -> Result<&'a mut T, Abort> {
        let object = cell.object(self.section.inner);
        // SAFETY: the handle keeps it; a handle that is dropped leaves a locked object in a grave.
        let mut place = unsafe { self.lock(object) }?;
        // SAFETY: the copy is this section's, which the reference borrows.
        Ok(unsafe { place.as_mut() })
    }

    /// An abort to be returned: everything is undone, and [`Session::write`] tries again.
    pub fn abort(&self) -> Abort {
        Abort(())
    }

    /// # Safety
    /// The object lives, and is freed only behind a sync of this session, or when it is unlocked.
    #[inline]
    pub(super) unsafe fn lock<T: Copy>(
        &mut self,
        object: NonNull<Object<T>>,
    ) -> Result<NonNull<T>, Abort> {
        // SAFETY: the caller's duty; begun in `write_section`.
        unsafe { self.journal.lock(self.section.slot, object) }.map_err(|()| {
            self.section.slot.counters.aborts_locked.add(1);
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
        inner.publish(slot, journal, Some(local));
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
    /// Aborted, or unwinding.
    #[inline]
    fn drop(&mut self) {
        if !self.is_kept {
            self.journal.drop_set();
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
