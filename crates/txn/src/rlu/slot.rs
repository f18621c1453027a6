//! One session's place in its domain: what it shows to the others, and its journal.
//!
//! # Whose the journal is
//! | presence | service | the journal is of |
//! |---|---|---|
//! | inside | FREE, REQUESTED | the session |
//! | outside | FREE, REQUESTED | nobody |
//! | outside | BUSY | who has made it busy: the session itself, or another that helps |
//! | inside | BUSY | nobody: one of the two sees the other and takes it back |
//!
//! Both sides store, pass a full fence and look: a session at its presence then the service, a
//! helper at the service then the presence. At least one of them sees the other.

use super::journal::Journal;
use super::stats::Counters;
use super::words::Presence;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use corelay_sync::facade::cell::{UnsafeCell, place_of};
use std::panic::Location;
use std::ptr::{self, NonNull};

const FREE: u32 = 0;
/// Somebody waits for what this session has locked.
const REQUESTED: u32 = 1;
/// Somebody works on the journal from outside a section.
const BUSY: u32 = 2;

pub(super) struct SessionSlot {
    /// Written by its session at each section, read by those who wait for sections.
    own: CachePadded<Own>,
    /// Read by its session at each section, written by others, seldom.
    service: CachePadded<AtomicU32>,
    pub(super) counters: CachePadded<Counters>,
    taken: AtomicBool,
    next: *const SessionSlot,
    journal: UnsafeCell<Journal>,
}

struct Own {
    presence: AtomicU64,
    /// Sections that begin have local times above it.
    horizon: AtomicU64,
    /// Where the section began.
    at: AtomicPtr<Location<'static>>,
}

/// What a session has found at the beginning of a section.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    None,
    /// Others wait for this session's locks.
    Requested,
    /// Somebody has the journal.
    Busy,
}

impl SessionSlot {
    fn new() -> Box<Self> {
        Box::new(Self {
            own: CachePadded::new(Own {
                presence: AtomicU64::new(Presence::OUTSIDE.bits()),
                horizon: AtomicU64::new(0),
                at: AtomicPtr::default(),
            }),
            service: CachePadded::new(AtomicU32::new(FREE)),
            counters: CachePadded::default(),
            taken: AtomicBool::new(true),
            next: ptr::null(),
            journal: UnsafeCell::new(Journal::new()),
        })
    }

    /// Notes where a section begins, for reports.
    #[inline(always)]
    pub(super) fn set_at(&self, at: &'static Location<'static>) {
        // Relaxed: what it points at never changes.
        self.own
            .at
            .store(ptr::from_ref(at).cast_mut(), Ordering::Relaxed);
    }

    /// Says that a section begins, with a full fence behind: before anything in it is read.
    ///
    /// The fence pairs with that of a syncer, and with that of a helper: see [`sync`](super::sync)
    /// and the module.
    ///
    /// | | what is stored | what holds back later loads | what holds back the store |
    /// |---|---|---|---|
    /// | x86-64 | `xchg` | itself: no later load is performed before a locked instruction | it needs the local time |
    /// | elsewhere | a store | the fence (aarch64: `dmb ish`; riscv64: `fence rw, rw`) | the same: a dependency on data |
    ///
    /// On x86-64 this is the processor's promise, and not the language's, by which a `SeqCst` exchange is
    /// no fence for the weaker loads behind it; so the compiler is held back besides. Everywhere else, and
    /// in the models, it is the language's: a release and a `SeqCst` fence, which need nothing of the
    /// processor but what the compiler makes of them. That the local time is drawn before it is stored
    /// needs no order but that of data on either.
    #[inline(always)]
    pub(super) fn enter(&self, presence: Presence) {
        #[cfg(all(
            target_arch = "x86_64",
            not(any(corelay_loom, corelay_shuttle, corelay_tsan))
        ))]
        {
            // SeqCst: a locked instruction is a full barrier here.
            self.own.presence.swap(presence.bits(), Ordering::SeqCst);
            corelay_sync::barrier::compiler_only();
        }
        #[cfg(not(all(
            target_arch = "x86_64",
            not(any(corelay_loom, corelay_shuttle, corelay_tsan))
        )))]
        {
            // Release: as `leave`: who sees it takes the section before for ended. The fence: SeqCst,
            // pairs with those of `raise_horizon`, `try_help` and a syncer's scan.
            self.own.presence.store(presence.bits(), Ordering::Release);
            fence(Ordering::SeqCst);
        }
    }

    /// Whether somebody wants something of this session; to be asked behind `enter`.
    #[inline(always)]
    pub(super) fn service(&self) -> Service {
        // Acquire: pairs with the Release of who had the journal.
        match self.service.load(Ordering::Acquire) {
            FREE => Service::None,
            REQUESTED => Service::Requested,
            _ => Service::Busy,
        }
    }

    /// The time that a section must be beyond which begins now; to be asked behind `enter`.
    #[inline(always)]
    pub(super) fn horizon(&self) -> u64 {
        // Relaxed: ordered by the fence of `enter`; what the section sees is ordered by the times
        // that are compared.
        self.own.horizon.load(Ordering::Relaxed)
    }

    /// Has sections that begin here from now on be beyond `time`. A full fence.
    pub(super) fn raise_horizon(&self, time: u64) {
        corelay_sync::prefetch_write(&raw const self.own);
        // Relaxed: as in `horizon`.
        self.own.horizon.fetch_max(time, Ordering::Relaxed);
        // SeqCst: pairs with the fence of `enter`.
        fence(Ordering::SeqCst);
    }

    /// Says at what time the section reads, which did not know it when it entered.
    #[inline(always)]
    pub(super) fn set_local(&self, local: u64) {
        // Release: who sees it and goes on, writes over what sections of this session before this
        // one have read.
        self.own
            .presence
            .store(Presence::since(local).bits(), Ordering::Release);
    }

    /// Says that the section has ended.
    #[inline(always)]
    pub(super) fn leave(&self) {
        // Release: pairs with the Acquire of `presence`: what the section has read is read before
        // it is overwritten or freed.
        self.own
            .presence
            .store(Presence::OUTSIDE.bits(), Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn presence(&self) -> Presence {
        // Acquire: pairs with `leave`, `set_local` and `enter`.
        Presence::from_bits(self.own.presence.load(Ordering::Acquire))
    }

    /// Where its section began.
    pub(super) fn at(&self) -> Option<&'static Location<'static>> {
        // Relaxed: what it points at never changes.
        let at = self.own.at.load(Ordering::Relaxed);
        // SAFETY: null, or of a `&'static`.
        unsafe { at.as_ref() }
    }

    /// True where others wait for this session's locks.
    #[inline(always)]
    pub(super) fn is_requested(&self) -> bool {
        // Relaxed: a hint; who takes the journal acquires.
        self.service.load(Ordering::Relaxed) == REQUESTED
    }

    /// True while somebody works on the journal from outside.
    pub(super) fn is_busy(&self) -> bool {
        // Relaxed: only for waiting; who takes the journal acquires.
        self.service.load(Ordering::Relaxed) == BUSY
    }

    /// Takes the service of one's own slot, outside of sections; none where somebody has it.
    pub(super) fn try_take_service(&self) -> Option<Serving<'_>> {
        // Relaxed: the exchange decides.
        let seen = self.service.load(Ordering::Relaxed);
        // Acquire: pairs with `leave_service`: the journal as the last one left it.
        let is_taken = seen != BUSY
            && self
                .service
                .compare_exchange(seen, BUSY, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        is_taken.then(|| Serving(self))
    }

    /// Takes the service of another's slot where its session is outside; where that is in a
    /// section, it is asked to serve itself.
    pub(super) fn try_help(&self) -> Option<Serving<'_>> {
        let service = self.try_take_service()?;
        // SeqCst: pairs with the fence of `enter`: the session sees BUSY, or we see its section.
        fence(Ordering::SeqCst);
        if self.presence().is_outside() {
            return Some(service);
        }
        std::mem::forget(service);
        // Release: the journal was not touched, but the order of those who had it goes on.
        self.service.store(REQUESTED, Ordering::Release);
        None
    }

    /// Leaves the service, requests are served.
    fn leave_service(&self) {
        // A write, to loom, at this end of the work too.
        self.journal();
        // Release: pairs with the Acquire of `enter` and of `try_take_service`.
        self.service.store(FREE, Ordering::Release);
    }

    /// The journal; to be used by the one whose it is: see the module.
    #[inline(always)]
    pub(super) fn journal(&self) -> NonNull<Journal> {
        // SAFETY: a field of a live slot.
        unsafe { NonNull::new_unchecked(place_of(&self.journal)) }
    }

    /// Gives the slot to the next session.
    pub(super) fn release(&self) {
        // Release: pairs with the Acquire of `Slots::take`; hands the journal over.
        self.taken.store(false, Ordering::Release);
    }
}

/// The service of a slot; left when this is dropped, also by the unwinding of a refused wait, at
/// which the journal is whole.
pub(super) struct Serving<'a>(&'a SessionSlot);

impl Serving<'_> {
    /// The journal, the caller's for as long as this lives.
    pub(super) fn journal(&mut self) -> &mut Journal {
        // SAFETY: the service is ours and the session outside; the reference borrows `self`.
        unsafe { &mut *self.0.journal().as_ptr() }
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.leave_service();
    }
}

/// All slots of a domain: as many as sessions have lived at once. They are never removed, so that
/// who walks along them needs no protection.
pub(super) struct Slots {
    first: AtomicPtr<SessionSlot>,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            first: AtomicPtr::default(),
        }
    }

    #[inline(always)]
    pub(super) fn first(&self) -> *const SessionSlot {
        // Acquire: pairs with the Release in `take`: a slot is initialised.
        self.first.load(Ordering::Acquire)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SessionSlot> {
        let mut at = self.first();
        std::iter::from_fn(move || {
            // SAFETY: null, or a slot, which lives as long as `self`.
            let slot = unsafe { at.as_ref() }?;
            at = slot.next;
            Some(slot)
        })
    }

    /// Gives a new slot the horizon that it would have if it had been there all the time.
    fn catch_up(&self, new: *const SessionSlot) {
        // SeqCst: pairs with the fence in `raise_horizon` of a syncer's own slot: the syncer sees
        // this slot, or we see its commit on its slot.
        fence(Ordering::SeqCst);
        let newest = self.iter().map(SessionSlot::horizon).max();
        // SAFETY: just pushed.
        let new = unsafe { &*new };
        new.raise_horizon(newest.unwrap_or(0));
    }

    /// A slot for a new session.
    pub(super) fn take(&self) -> NonNull<SessionSlot> {
        for slot in self.iter() {
            // Relaxed: the exchange decides.
            if !slot.taken.load(Ordering::Relaxed)
                // Acquire: pairs with `release`: the journal as the last session left it.
                && !slot.taken.swap(true, Ordering::Acquire)
            {
                return NonNull::from(slot);
            }
        }
        let mut new = SessionSlot::new();
        let mut first = self.first();
        loop {
            new.next = first;
            let place = Box::into_raw(new);
            // AcqRel: pairs with the Acquire of `first`; hands on what was pushed before.
            match self.first.compare_exchange(
                first.cast_mut(),
                place,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    // SAFETY: a box, which lives from now on as long as `self`.
                    let slot = unsafe { NonNull::new_unchecked(place) };
                    self.catch_up(place);
                    return slot;
                }
                Err(now) => first = now,
            }
            // SAFETY: from the box above, and nobody has seen it.
            new = unsafe { Box::from_raw(place) };
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let mut at = self.first().cast_mut();
        while !at.is_null() {
            // SAFETY: pushed from a box; no session lives.
            let slot = unsafe { Box::from_raw(at) };
            at = slot.next.cast_mut();
        }
    }
}
