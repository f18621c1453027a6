//! A value behind one word: the lock of a log, and of the state.
//!
//! Held for a few instructions by a log's own session, hardly ever wanted by anybody else; so it
//! is one swap to take and one store to release, and who finds it taken looks until it is not.

use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::hint;
use corelay_sync::wait::{self, NoSwitch};

/// A value that one at a time holds.
#[derive(Debug)]
pub(super) struct Locked<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the one `Held` that there is at a time, on whichever thread.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Holds the value if nobody does.
    #[inline]
    pub(super) fn try_hold(&self) -> Option<Held<'_, T>> {
        // Acquire: pairs with the Release in `Held::drop`; what the last holder did is seen.
        if self.held.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(Held { of: self })
    }

    pub(super) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

/// Waits a little for another thread, or for another fibre of this one.
pub(super) fn pause(backoff: &mut Backoff) {
    // Who holds it may be a fibre that only this thread can let go on.
    if backoff.is_yielding() && !NoSwitch::is_active() {
        wait::give_turn();
    }
    backoff.wait();
    hint::in_vain(backoff.yields());
}

/// The value, as long as this lives.
#[derive(Debug)]
pub(super) struct Held<'a, T> {
    of: &'a Locked<T>,
}

impl<T> Held<'_, T> {
    /// Runs `f` on the value.
    #[inline(always)]
    pub(super) fn with<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        self.of.value.with_mut(|value| {
            // SAFETY: `hold` let nobody else in, and `&mut self` lends it out once at a time.
            f(unsafe { &mut *value })
        })
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next holder; publishes what this one did.
        self.of.held.store(false, Ordering::Release);
    }
}

/// Runs `f`; where it waits, the wait is refused with the name.
#[inline]
pub(super) fn without_switching<R>(name: &'static &'static str, f: impl FnOnce() -> R) -> R {
    // SAFETY: dropped at the end of this function, also by unwinding, before every guard that was
    // entered earlier; the name is static.
    let _guard = unsafe { NoSwitch::enter(name, |name| name) };
    f()
}
