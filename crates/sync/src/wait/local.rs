//! The state of a thread that its waits look at.
//!
//! One thread-local for all of it. A library is compiled before its place in a program is known, so
//! its code gets the address of each thread-local as if by a call.
//!
//! A compiler takes the address of a thread-local for constant within a function. A coroutine that
//! migrates may find itself on another thread after a wait, and a function that was inlined into it
//! would use the state of the thread before. So a function that is called after a wait, in code that
//! waits, is not inlined if it looks at this state; and code that may migrate must promise the same:
//! see `migrating` in `corelay-fibre`.

use super::Context;
use super::no_switch::{Entry, NOTHING};
use crate::facade::thread_local;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// The state of a thread that its waits look at.
pub(super) struct Local {
    /// The context that [`enter`](super::enter) has installed.
    pub(super) context: Cell<Option<NonNull<dyn Context>>>,
    /// The number of living guards of [`on_thread`](super::on_thread).
    pub(super) blocking: Cell<usize>,
    /// The entry of the innermost [`NoSwitch`](super::NoSwitch).
    pub(super) no_switch: Cell<Entry>,
    /// The pointer that [`scheduler`] returns.
    scheduler: Cell<*const ()>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            context: Cell::new(None),
            blocking: Cell::new(0),
            no_switch: Cell::new(NOTHING),
            scheduler: Cell::new(ptr::null()),
        }
    };
}

/// Runs `f` with the state of this thread. Without a destructor it can be used as long as the thread
/// runs; loom takes it away earlier, and then this returns `None`.
#[inline(always)]
pub(super) fn with_local<R>(f: impl FnOnce(&Local) -> R) -> Option<R> {
    LOCAL.try_with(f).ok()
}

/// The pointer that the scheduler of this thread has [put](set_scheduler) beside what waits look at;
/// null if none has. A scheduler that looks at both, at each wait, finds them by one address.
///
/// It may be inlined. A coroutine that migrates calls it only in functions that are not inlined
/// themselves and that are never suspended: see [`here`](super::here).
#[inline]
pub fn scheduler() -> *const () {
    with_local(|local| local.scheduler.get()).unwrap_or(ptr::null())
}

/// Keeps `scheduler` for this thread, until another is kept.
///
/// # Safety
/// A scheduler follows the pointer that [`scheduler`] gives it. So one kind of scheduler uses this
/// place on a thread, and what `scheduler` points to lives until the place is null or points
/// elsewhere.
pub unsafe fn set_scheduler(scheduler: *const ()) {
    with_local(|local| local.scheduler.set(scheduler));
}
