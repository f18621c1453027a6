//! A domain, and the cells that it has.

use super::log::Object;
use super::session::Session;
use super::slot::Slots;
use super::stats::Stats;
use corelay_clock::Clock;
use corelay_sync::facade::atomic::{AtomicBool, AtomicUsize, Ordering};
use corelay_sync::facade::sync::{Arc, Mutex};
use std::fmt;
use std::ptr::NonNull;

/// Objects that are read together under one snapshot, and locked for writing one by one.
///
/// A handle: clones are of the same domain, which lives as long as one of them, a session, a cell
/// or a structure in it.
///
/// ```
/// use corelay_clock::Logical;
/// use corelay_txn::rlu::Domain;
///
/// let domain = Domain::new(Logical::new());
/// let (a, b) = (domain.cell(7), domain.cell(0));
/// let mut session = domain.session();
/// session.write(|section| {
///     let taken = std::mem::take(section.try_lock(&a)?);
///     *section.try_lock(&b)? += taken;
///     Ok(())
/// });
/// let sum = session.read(|section| section.get(&a) + section.get(&b));
/// assert_eq!(sum, 7);
/// ```
pub struct Domain<C>(Arc<Inner<C>>);

/// What a domain is, behind its handles.
pub(super) struct Inner<C> {
    pub(super) clock: C,
    pub(super) slots: Slots,
    pub(super) deferral: usize,
    /// True where some section's time is no time of the clock.
    pub(super) caught: AtomicBool,
    /// How many graves there are.
    graves: AtomicUsize,
    morgue: Mutex<Vec<Grave>>,
}

/// Something that was dropped while a log had locked it.
pub(super) struct Grave {
    place: NonNull<()>,
    /// Frees it if no log has locked any of it; true where it has.
    try_free: unsafe fn(NonNull<()>) -> bool,
}

// SAFETY: what lies in a grave is `Send`, by the bounds of cells and structures.
unsafe impl Send for Grave {}

impl Grave {
    /// # Safety
    /// `try_free` may be called with `place`, on any thread, until it returns true.
    pub(super) unsafe fn new(place: NonNull<()>, try_free: unsafe fn(NonNull<()>) -> bool) -> Self {
        Self { place, try_free }
    }

    fn try_free(&self) -> bool {
        // SAFETY: by `new`, and it is not called again once it has returned true.
        unsafe { (self.try_free)(self.place) }
    }
}

impl<C: Clock> Domain<C> {
    /// A domain by this clock, without deferral: a commit is visible when it returns.
    pub fn new(clock: C) -> Self {
        Self::with_deferral(clock, 1)
    }

    /// A domain in which each session makes its write sets visible to others only when `write_sets`
    /// of them are pending, or another session waits for what they have locked, or on
    /// [`Session::sync`]. Fewer waits, and later news.
    ///
    /// # Panics
    /// Where `write_sets` is 0.
    pub fn with_deferral(clock: C, write_sets: usize) -> Self {
        assert!(
            write_sets > 0,
            "a deferral of 0 write sets would never commit: 1 is without deferral"
        );
        Self(Arc::new(Inner {
            clock,
            slots: Slots::new(),
            deferral: write_sets,
            caught: AtomicBool::new(false),
            graves: AtomicUsize::new(0),
            morgue: Mutex::new(Vec::new()),
        }))
    }

    /// A session, for one thread or fibre at a time.
    pub fn session(&self) -> Session<C> {
        Session::new(self.clone())
    }

    /// A cell of this domain.
    pub fn cell<T: Copy + Send + Sync + 'static>(&self, value: T) -> Rlu<T, C> {
        let object = Box::into_raw(Box::new(Object::new(value)));
        Rlu {
            // SAFETY: a box is not null.
            object: unsafe { NonNull::new_unchecked(object) },
            domain: self.clone(),
        }
    }

    /// What all its sessions have counted, those that have ended included.
    pub fn stats(&self) -> Stats {
        let slots = self.0.slots.iter();
        slots.fold(Stats::default(), |sum, slot| {
            sum.plus(slot.counters.stats())
        })
    }

    /// The clock that orders it.
    pub fn clock(&self) -> &C {
        &self.0.clock
    }

    #[inline(always)]
    pub(super) fn inner(&self) -> &Inner<C> {
        &self.0
    }
}

impl<C> Domain<C> {
    /// See [`Inner::bury`].
    pub(super) fn bury(&self, grave: Grave) {
        self.0.bury(grave);
    }

    /// True where both are handles of one domain.
    #[inline(always)]
    pub(super) fn is(&self, inner: &Inner<C>) -> bool {
        std::ptr::eq::<Inner<C>>(&*self.0, inner)
    }
}

impl<C> Clone for Domain<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for Domain<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("deferral", &self.0.deferral)
            .finish_non_exhaustive()
    }
}

impl<C> Inner<C> {
    /// Frees what is dead, now or when no log has it locked any more.
    pub(super) fn bury(&self, grave: Grave) {
        if grave.try_free() {
            return;
        }
        let mut morgue = self.morgue();
        morgue.push(grave);
        // Relaxed: a hint; the next sync looks again.
        self.graves.store(morgue.len(), Ordering::Relaxed);
    }

    /// Frees what can be freed by now.
    #[inline]
    pub(super) fn sweep(&self) {
        // Relaxed: a hint.
        if self.graves.load(Ordering::Relaxed) > 0 {
            self.sweep_some();
        }
    }

    #[cold]
    fn sweep_some(&self) {
        let mut morgue = self.morgue();
        morgue.retain(|grave| !grave.try_free());
        // Relaxed: as above.
        self.graves.store(morgue.len(), Ordering::Relaxed);
    }

    fn morgue(&self) -> corelay_sync::facade::sync::MutexGuard<'_, Vec<Grave>> {
        self.morgue
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<C> Drop for Inner<C> {
    fn drop(&mut self) {
        for slot in self.slots.iter() {
            // SAFETY: sessions hold the domain, so none lives.
            let journal = unsafe { &mut *slot.journal().as_ptr() };
            // SAFETY: as above.
            unsafe { journal.wind_up() };
        }
        // Nothing is locked now.
        self.sweep_some();
    }
}

/// A value of a domain, for as long as this handle lives: read and locked in sections.
///
/// `T` is copied when it is locked and when it is copied back.
pub struct Rlu<T: Copy + Send + Sync + 'static, C> {
    object: NonNull<Object<T>>,
    domain: Domain<C>,
}

// SAFETY: what is reached through it is `Send` and `Sync`; sections keep writers from readers.
unsafe impl<T: Copy + Send + Sync, C: Send + Sync> Send for Rlu<T, C> {}
// SAFETY: as above.
unsafe impl<T: Copy + Send + Sync, C: Send + Sync> Sync for Rlu<T, C> {}

impl<T: Copy + Send + Sync, C: Clock> Rlu<T, C> {
    /// The object, for a section of this domain.
    #[inline(always)]
    pub(super) fn object(&self, of: &Inner<C>) -> NonNull<Object<T>> {
        assert!(
            self.domain.is(of),
            "an RLU cell of another domain: use a session of the domain that made it"
        );
        self.object
    }
}

impl<T: Copy + Send + Sync, C> Drop for Rlu<T, C> {
    fn drop(&mut self) {
        /// # Safety
        /// A boxed object that nobody has but the log that may have locked it.
        unsafe fn try_free<T>(place: NonNull<()>) -> bool {
            let object = place.cast::<Object<T>>();
            // Acquire: pairs with `unlock`, the log's last access.
            // SAFETY: the caller's duty.
            if !unsafe { object.as_ref() }
                .header
                .load(Ordering::Acquire)
                .is_null()
            {
                return false;
            }
            // SAFETY: the caller's duty, and no log has it.
            drop(unsafe { Box::from_raw(object.as_ptr()) });
            true
        }
        // SAFETY: references to its value borrow the handle, which is gone.
        let grave = unsafe { Grave::new(self.object.cast(), try_free::<T>) };
        self.domain.bury(grave);
    }
}

impl<T: Copy + Send + Sync, C> fmt::Debug for Rlu<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rlu").finish_non_exhaustive()
    }
}
