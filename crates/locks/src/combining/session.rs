//! The session of a combining lock.

use super::operation::Operation;
use super::{Combiner, Combining, Limited};
use corelay_sync::Session;
use corelay_sync::facade::memory;
use corelay_sync::wait::NoSwitch;
use std::fmt;
use std::marker::PhantomData;

/// The session of a thread with a combining lock, by which the thread has closures run on the lock's
/// value. It keeps what the algorithm remembers of the thread between closures.
///
/// Nesting in one session does not compile:
/// ```compile_fail,E0499
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::CcSynch::new(0);
/// let mut session = lock.session();
/// session.apply(|_| session.apply(|n| *n += 1));
/// ```
/// nor does sending a session to another thread:
/// ```compile_fail,E0277
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::CcSynch::new(0);
/// let mut session = lock.session();
/// std::thread::scope(|s| {
///     s.spawn(move || session.apply(|n| *n += 1));
/// });
/// ```
/// nor does a closure that must stay on its thread:
/// ```compile_fail,E0277
/// use corelay_sync::{Session, Shared};
///
/// let lock = corelay_locks::CcSynch::new(0);
/// let mine = std::rc::Rc::new(1);
/// lock.session().apply(|n| *n += *mine);
/// ```
pub struct CombiningSession<'a, C: Combiner, T> {
    lock: &'a Combining<C, T>,
    seat: C::Seat,
    /// Neither `Send` nor `Sync`.
    on_its_thread: PhantomData<*const ()>,
}

impl<'a, C: Combiner, T> CombiningSession<'a, C, T> {
    #[inline(always)]
    pub(super) fn new(lock: &'a Combining<C, T>) -> Self {
        Self {
            lock,
            seat: C::Seat::default(),
            on_its_thread: PhantomData,
        }
    }
}

impl<C: Combiner, T> Session for CombiningSession<'_, C, T> {
    type Value = T;

    /// # Panics
    /// With the panic of `f`. In a place where nothing may wait (inside a delegated closure, or
    /// inside another one of a combining lock), if the lock is taken: the message names this call's
    /// place and what runs.
    #[inline]
    #[track_caller]
    fn apply<R: Send, F: FnOnce(&mut T) -> R + Send>(&mut self, f: F) -> R {
        let Limited { limit, value } = &*self.lock.value;
        let combiner = &self.lock.combiner;
        let operation = Operation::new(value, f);
        let request = operation.request();
        // For the made-up machine, here and below: the operation goes to the combiner and back.
        memory::write(&raw const operation, 1);
        if NoSwitch::is_active() {
            // SAFETY: the operation is a local that stays here, and nobody has run it; the seat is
            // of this lock.
            if !unsafe { combiner.try_apply(&mut self.seat, request, *limit) } {
                NoSwitch::refuse(C::WAIT);
            }
        } else {
            // SAFETY: as above.
            unsafe { combiner.apply(&mut self.seat, request, *limit) };
        }
        memory::read(&raw const operation, 1);
        operation.into_result()
    }
}

impl<C: Combiner, T> fmt::Debug for CombiningSession<'_, C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CombiningSession").finish_non_exhaustive()
    }
}
