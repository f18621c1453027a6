//! The state that a trustee keeps while it serves, the same for all lanes: counts, poison, and
//! whether closures have made requests.

use crate::catch::guarded;
use crate::context::discard::discard;
use crate::context::events;
use crate::context::holds::Holds;
use crate::context::leaf::Leaf;
use crate::context::local::with_local;
use crate::error::Poisoned;
use crate::large::is_large;
use crate::object::shared::Shared;
use crate::object::{CLEARED, HEALTHY, Header, Object, POISONED};
use crate::observe::sampler::Sampler;
use crate::operation::Operation;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::wait::CodeName;
use std::any::Any;
use std::cell::Cell;

/// The payload with which a closure on two objects unwinds, unrun, because the second one is
/// poisoned.
pub(crate) struct PartnerPoisoned;

/// The state that all lanes of a trustee share while it serves on its thread.
#[derive(Default)]
pub(crate) struct Serving {
    /// The trustee's number, while it has values.
    trustee_number: Cell<Option<u32>>,
    /// The number of objects that are marked. An object counts once for being held, and once for
    /// being poisoned, until the trustee notices that the user has cleared the poison.
    marked: Cell<u32>,
    /// Whether objects are held, so that requests to these are deferred.
    is_holding: Cell<bool>,
    /// The objects that launched closures hold, and the coroutines that wait.
    pub(crate) holds: Holds,
    /// The number of requests run or refused so far.
    pub(crate) requests: Cell<u64>,
    /// The number of times that a lane had something to run.
    pub(crate) batches: Cell<u64>,
    /// The number of closures, destructors, callbacks and wakers that have panicked.
    pub(crate) panics: Cell<u64>,
    /// Whether the trustee has to look at requests that its closures have made and that wait to be
    /// sent. Also set when a launch has just begun to hold an object, so that the batch stops
    /// there.
    pub(crate) nested: Cell<bool>,
    /// Whether the trustee is CLOSING: see `trustee::hosted`.
    pub(crate) is_closing: Cell<bool>,
    /// The sampler that times closures, if the trustee is observed.
    pub(crate) sampler: Option<Sampler>,
}

impl Serving {
    pub(crate) fn new(trustee_number: u32, sampler: Option<Sampler>) -> Self {
        Self {
            trustee_number: Cell::new(Some(trustee_number)),
            sampler,
            ..Self::default()
        }
    }

    /// Runs `f`, the trustee's whole life on this thread. Meanwhile
    /// [`with_current`](Self::with_current) finds this state there.
    pub(crate) fn make_current<R>(&self, f: impl FnOnce() -> R) -> R {
        with_local(|local| local.serving.set(self));
        let result = f();
        with_local(|local| local.serving.set(std::ptr::null()));
        result
    }

    /// Runs `f` on the state of this thread's trustee. Returns `None` if this thread is no trustee.
    #[inline(always)]
    pub(crate) fn with_current<R>(f: impl FnOnce(&Self) -> R) -> Option<R> {
        let current = with_local(|local| local.serving.get()).unwrap_or(std::ptr::null());
        // SAFETY: null, or set by `make_current`, which has not returned on this thread's stack.
        unsafe { current.as_ref() }.map(f)
    }

    /// Whether `trustee` is the one that serves by this state, and has not begun to drop its
    /// values.
    pub(crate) fn owns(&self, trustee: &Shared) -> bool {
        self.trustee_number.get() == Some(trustee.number.get())
    }

    /// Notes that the trustee is about to drop its values, so that it [owns](Self::owns) no objects
    /// any more.
    pub(crate) fn disown(&self) {
        self.trustee_number.set(None);
    }

    /// Whether launched closures hold objects, so that requests to these are deferred.
    #[inline(always)]
    pub(crate) fn is_holding(&self) -> bool {
        self.is_holding.get()
    }

    /// Counts one more held object, so that lanes look at each request.
    pub(crate) fn mark(&self) {
        self.marked.set(self.marked.get() + 1);
        self.is_holding.set(true);
    }

    /// Counts one held object less; `is_last` says that none is left.
    pub(crate) fn unmark(&self, is_last: bool) {
        self.marked.set(self.marked.get() - 1);
        if is_last {
            self.is_holding.set(false);
        }
    }

    pub(crate) fn count_panic(&self) {
        self.panics.set(self.panics.get() + 1);
    }

    /// Runs `f`, and catches, counts and drops its panic.
    pub(crate) fn contain(&self, f: impl FnOnce()) {
        if let Err(payload) = guarded(f) {
            self.count_panic();
            discard(payload);
        }
    }

    /// Runs `f` on an object of this thread's own, as a lane would. A panic poisons the object.
    ///
    /// # Safety
    /// `object` is an `Object<T>` that this trustee [owns](Self::owns), alive while this runs, and
    /// no delegated closure runs.
    pub(crate) unsafe fn run_here<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<R, Box<dyn Any + Send>>
    where
        F: Operation<T, R>,
    {
        self.requests.set(self.requests.get() + 1);
        let _leaf = Leaf::enter(const { &CodeName::new(&(), |()| F::name()) });
        if self.is_poisoned(object) {
            // Its captures are dropped inside the leaf, as in a lane.
            return Err(match guarded(|| drop(f)) {
                Ok(()) => Box::new(Poisoned),
                Err(payload) => {
                    self.count_panic();
                    payload
                }
            });
        }
        // SAFETY: this trustee owns the object, which is alive; no other closure runs, so the
        // reference is the only one. The caller promises all of it.
        let value = unsafe { Object::value(object.cast::<Object<T>>()) };
        let result = if const { is_large::<F>() } {
            let f = Box::new(f);
            guarded(|| f.run_boxed(value))
        } else {
            guarded(|| f.run(value))
        };
        result.map_err(|payload| self.poison(object, F::name, payload))
    }

    /// Whether some object is held or poisoned, so that each request has to be checked before it
    /// runs.
    #[inline(always)]
    pub(crate) fn any_marked(&self) -> bool {
        self.marked.get() != 0
    }

    /// Poisons `object`, on which the closure of that name has just panicked with `payload`, and
    /// counts the panic. Returns the payload for the client. A closure that could not run, because
    /// its other value is poisoned, leaves the object as it is.
    pub(crate) fn poison(
        &self,
        object: *mut Header,
        closure: fn() -> &'static str,
        payload: Box<dyn Any + Send>,
    ) -> Box<dyn Any + Send> {
        if payload.is::<PartnerPoisoned>() {
            return Box::new(Poisoned);
        }
        self.count_panic();
        self.poison_too(object, closure, &*payload);
        payload
    }

    /// Poisons `object`, which the closure has used that has just panicked, without counting the
    /// panic.
    pub(crate) fn poison_too(
        &self,
        object: *mut Header,
        closure: fn() -> &'static str,
        payload: &(dyn Any + Send),
    ) {
        // SAFETY: a request on the object has run right before this, so it is alive.
        let object = unsafe { &*object };
        // Relaxed: users of the object learn of each other's work through requests.
        if object.poison.swap(POISONED, Ordering::Relaxed) == HEALTHY {
            self.marked.set(self.marked.get() + 1);
        }
        events::poisoned(object, closure(), payload);
    }

    /// Removes the poison of `object`, whose value is about to be dropped, so that it is not
    /// counted as marked any more. Returns whether it was poisoned.
    pub(crate) fn forget_poison(&self, object: *mut Header) -> bool {
        // SAFETY: the value is about to be dropped, so the object is alive.
        let word = unsafe { &(*object).poison };
        // Relaxed: as in `poison`.
        let before = word.swap(HEALTHY, Ordering::Relaxed);
        if before != HEALTHY {
            self.marked.set(self.marked.get() - 1);
        }
        before == POISONED
    }

    /// Whether `object` is poisoned. If the user has cleared the poison, makes the object healthy.
    #[inline(always)]
    pub(crate) fn is_poisoned(&self, object: *mut Header) -> bool {
        self.any_marked() && self.look_for_poison(object)
    }

    #[cold]
    fn look_for_poison(&self, object: *mut Header) -> bool {
        // SAFETY: a request on the object waits to be run, so it is alive.
        let word = unsafe { &(*object).poison };
        // Relaxed: as in `poison`.
        match word.load(Ordering::Relaxed) {
            CLEARED => {
                // Relaxed: only the trustee leaves this state.
                word.store(HEALTHY, Ordering::Relaxed);
                self.marked.set(self.marked.get() - 1);
                false
            }
            state => state == POISONED,
        }
    }
}
