//! A value behind a lock of one word: the state of an `OpLog`, which readers and merges hold in
//! turn.
//!
//! Taking the lock is one swap and releasing it one store. A thread that finds it held
//! [pauses](pause) and tries again.

use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::hint;
use corelay_sync::wait::{self, CodeName, NoSwitch};

/// A value that has one holder at a time.
#[derive(Debug)]
pub(super) struct Locked<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the one `Held` of the time reaches the value, and `T: Send` allows any thread.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock if it is free. Returns `None` if it is held.
    #[inline]
    pub(super) fn try_hold(&self) -> Option<Held<'_, T>> {
        // Acquire: pairs with the Release in `Held::drop`; shows what the last holder did.
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
    // The holder may be a fibre that only this thread can resume.
    if backoff.is_yielding() && !NoSwitch::is_active() {
        wait::give_turn();
    }
    backoff.wait();
    hint::in_vain(backoff.yields());
}

/// The right of the lock's holder to use the value. Dropping it releases the lock.
#[derive(Debug)]
pub(super) struct Held<'a, T> {
    of: &'a Locked<T>,
}

impl<T> Held<'_, T> {
    /// Runs `f` on the value.
    #[inline(always)]
    pub(super) fn with<R>(&mut self, f: impl FnOnce(&mut T) -> R) -> R {
        self.of.value.with_mut(|value| {
            // SAFETY: this `Held` is the only one of the lock, and `&mut self` lends the value once
            // at a time.
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

/// Runs `f`. A wait inside it is refused by a panic with this name.
#[inline]
pub(super) fn without_switching<R>(name: &'static CodeName<'static>, f: impl FnOnce() -> R) -> R {
    // SAFETY: the guard is dropped at the end of this function, also by unwinding, before every
    // guard that was entered earlier; the name is static.
    let _guard = unsafe { NoSwitch::enter(name) };
    f()
}
