//! What a trustee keeps while it serves, whichever lane a request comes from: counts, poison,
//! and whether closures have asked for something.

use crate::catch::guarded;
use crate::context::discard::discard;
use crate::context::holds::Holds;
use crate::context::leaf::Leaf;
use crate::error::Poisoned;
use crate::large::{is_large, run_boxed};
use crate::object::shared::Shared;
use crate::object::{CLEARED, HEALTHY, Header, Object, POISONED};
use crate::observe::sampler::Sampler;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::thread_local;
use std::any::{Any, type_name};
use std::cell::Cell;

/// What the lanes of one trustee have in common.
#[derive(Default)]
pub(crate) struct Serving {
    /// The trustee's trustee_number, while it has values.
    trustee_number: Cell<Option<u32>>,
    /// Objects that are poisoned, or were until their trustee has noticed otherwise; and those that
    /// are held.
    marked: Cell<u32>,
    /// Objects are held, so that requests to these are deferred.
    is_holding: Cell<bool>,
    /// What launched closures hold, and who waits.
    pub(crate) holds: Holds,
    /// Requests run.
    pub(crate) requests: Cell<u64>,
    /// Times that a lane had something to run.
    pub(crate) batches: Cell<u64>,
    /// Closures, values, callbacks and payloads that panicked.
    pub(crate) panics: Cell<u64>,
    /// Requests that closures have made wait to be sent.
    pub(crate) nested: Cell<bool>,
    /// The trustee is CLOSING: see `trustee::hosted`.
    pub(crate) is_closing: Cell<bool>,
    /// Times closures, where the trustee is observed.
    pub(crate) sampler: Option<Sampler>,
}

thread_local! {
    /// Of this thread's trustee.
    static SERVING: Cell<*const Serving> = const { Cell::new(std::ptr::null()) };
}

impl Serving {
    pub(crate) fn new(trustee_number: u32, sampler: Option<Sampler>) -> Self {
        Self {
            trustee_number: Cell::new(Some(trustee_number)),
            sampler,
            ..Self::default()
        }
    }

    /// Runs `f`, the trustee's life on this thread, with [`with_current`](Self::with_current)
    /// working.
    pub(crate) fn make_current<R>(&self, f: impl FnOnce() -> R) -> R {
        SERVING.with(|s| s.set(self));
        let result = f();
        SERVING.with(|s| s.set(std::ptr::null()));
        result
    }

    /// `None` where this thread is no trustee.
    pub(crate) fn with_current<R>(f: impl FnOnce(&Self) -> R) -> Option<R> {
        let current = SERVING.try_with(Cell::get).unwrap_or(std::ptr::null());
        // SAFETY: null, or set by `make_current`, which is further up this thread's stack.
        unsafe { current.as_ref() }.map(f)
    }

    /// True where the objects of `trustee` are this thread's own, and alive.
    pub(crate) fn owns(&self, trustee: &Shared) -> bool {
        self.trustee_number.get() == Some(trustee.number.get())
    }

    /// The values are about to be dropped.
    pub(crate) fn disown(&self) {
        self.trustee_number.set(None);
    }

    /// True where launched closures hold objects, so that requests to these are deferred.
    #[inline(always)]
    pub(crate) fn is_holding(&self) -> bool {
        self.is_holding.get()
    }

    /// One more object is held.
    pub(crate) fn mark(&self) {
        self.marked.set(self.marked.get() + 1);
        self.is_holding.set(true);
    }

    /// One less; `is_last` where none is.
    pub(crate) fn unmark(&self, is_last: bool) {
        self.marked.set(self.marked.get() - 1);
        if is_last {
            self.is_holding.set(false);
        }
    }

    pub(crate) fn count_panic(&self) {
        self.panics.set(self.panics.get() + 1);
    }

    /// Runs `f`; its panic is counted and ends here.
    pub(crate) fn contain(&self, f: impl FnOnce()) {
        if let Err(payload) = guarded(f) {
            self.count_panic();
            discard(payload);
        }
    }

    /// Runs `f` on an object of this thread's own, as a lane would. What goes wrong poisons
    /// the object.
    ///
    /// # Safety
    /// `object` is an `Object<T>` that this trustee [owns](Self::owns), alive while this runs,
    /// and no delegated closure runs.
    pub(crate) unsafe fn run_here<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<R, Box<dyn Any + Send>>
    where
        F: FnOnce(&mut T) -> R,
    {
        self.requests.set(self.requests.get() + 1);
        let name: fn() -> &'static str = type_name::<F>;
        let _leaf = Leaf::enter(&name, |name| name());
        if self.is_poisoned(object) {
            // As in a lane: what it has captured goes inside.
            return Err(match guarded(|| drop(f)) {
                Ok(()) => Box::new(Poisoned),
                Err(payload) => {
                    self.count_panic();
                    payload
                }
            });
        }
        // SAFETY: the caller's duties.
        let value = unsafe { Object::value(object.cast::<Object<T>>()) };
        let result = if const { is_large::<F>() } {
            let f = Box::new(f);
            guarded(|| run_boxed(f, value))
        } else {
            guarded(|| f(value))
        };
        if result.is_err() {
            self.poison(object);
        }
        result
    }

    /// True where requests have to be looked at, each on its own.
    #[inline(always)]
    pub(crate) fn any_marked(&self) -> bool {
        self.marked.get() != 0
    }

    /// Poisons `object`, for a closure that has panicked on it.
    pub(crate) fn poison(&self, object: *mut Header) {
        self.count_panic();
        // SAFETY: a request on it has just run, so it is alive.
        let word = unsafe { &(*object).poison };
        // Relaxed: what the users of the object know of each other goes through requests.
        if word.swap(POISONED, Ordering::Relaxed) == HEALTHY {
            self.marked.set(self.marked.get() + 1);
        }
    }

    /// The value of `object` is dropped: it counts as poisoned no more.
    pub(crate) fn forget_poison(&self, object: *mut Header) {
        // SAFETY: about to be dropped, so alive.
        let word = unsafe { &(*object).poison };
        // Relaxed: as in `poison`.
        if word.swap(HEALTHY, Ordering::Relaxed) != HEALTHY {
            self.marked.set(self.marked.get() - 1);
        }
    }

    /// Is `object` poisoned? Notices where the user has cleared it.
    #[inline(always)]
    pub(crate) fn is_poisoned(&self, object: *mut Header) -> bool {
        self.any_marked() && self.look_for_poison(object)
    }

    #[cold]
    fn look_for_poison(&self, object: *mut Header) -> bool {
        // SAFETY: a request on it waits, so it is alive.
        let word = unsafe { &(*object).poison };
        // Relaxed: as in `poison`.
        match word.load(Ordering::Relaxed) {
            CLEARED => {
                // Only the trustee leaves this state.
                word.store(HEALTHY, Ordering::Relaxed);
                self.marked.set(self.marked.get() - 1);
                false
            }
            state => state == POISONED,
        }
    }
}
