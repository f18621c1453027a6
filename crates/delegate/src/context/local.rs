//! The state of a thread that every request to an object of its own looks at.
//!
//! One thread-local for all of it: a library's code gets the address of each as if by a call, and
//! an executable's code keeps each in a register of its own.

use super::member::Duty;
use super::serving::Serving;
use super::thread::{NO_TABLE, Table};
use corelay_sync::facade::thread_local;
use std::cell::Cell;
use std::ptr;

/// The part of a thread's state that is read at each request.
pub(super) struct Local {
    /// The clients of this thread by trustee number, or what stands for them: see
    /// [`thread`](super::thread).
    pub(super) table: Cell<Table>,
    /// The duty of this thread, while a team's function runs: see [`member`](super::member).
    pub(super) duty: Cell<*const Duty<'static>>,
    /// The state that the trustee of this thread keeps while it serves; null on a thread that is no
    /// trustee.
    pub(super) serving: Cell<*const Serving>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            table: Cell::new(NO_TABLE),
            duty: Cell::new(ptr::null()),
            serving: Cell::new(ptr::null()),
        }
    };
}

/// Runs `f` with the state of this thread. Without a destructor it can be used as long as the thread
/// runs; loom takes it away earlier, and then this returns `None`.
#[inline(always)]
pub(super) fn with_local<R>(f: impl FnOnce(&Local) -> R) -> Option<R> {
    LOCAL.try_with(f).ok()
}
