//! A delegated closure is a leaf: nothing in it may wait.
//!
//! While a trustee runs closures, its thread's client table is hidden, so that every call
//! of this crate takes its slow path and finds out here. That costs the fast paths
//! nothing. Other corelay waits find out through [`NoSwitch`].

use super::thread::{Table, enter_leaf, leave_leaf};
use corelay_sync::wait::{CodeName, NoSwitch};

/// A guard under which user code that may not wait runs on this thread, until it is dropped.
pub(crate) struct Leaf<'a> {
    hidden: Table,
    _no_switch: NoSwitch<'a>,
}

impl<'a> Leaf<'a> {
    /// Enters a delegated closure, whose type has this name.
    #[inline]
    pub(crate) fn enter(name: &'a CodeName<'a>) -> Self {
        // SAFETY: leaves are locals of the functions that run user code, and do not nest.
        let no_switch = unsafe { NoSwitch::enter(name) };
        Self {
            hidden: enter_leaf(),
            _no_switch: no_switch,
        }
    }
}

impl Leaf<'static> {
    /// Enters callbacks that run on a trustee's thread, for requests that closures have made.
    pub(crate) fn enter_callbacks() -> Self {
        Self::enter(const { &CodeName::fixed(&"a callback on a trustee's thread") })
    }

    /// Enters the destructor of a user's value that this crate discards: a request that cannot run,
    /// a payload.
    pub(crate) fn enter_discarded() -> Self {
        Self::enter(const { &CodeName::fixed(&"the destructor of what a request has left") })
    }

    /// Enters the wakers of tasks that a trustee lets into a window.
    pub(crate) fn enter_wakers() -> Self {
        Self::enter(const { &CodeName::fixed(&"a waker on a trustee's thread") })
    }

    /// Enters a subscriber of `tracing`, which is told of an event.
    #[cfg(feature = "tracing")]
    pub(crate) fn enter_subscriber() -> Self {
        Self::enter(const { &CodeName::fixed(&"a subscriber of tracing") })
    }

    /// Enters the destructor of a delegated value.
    pub(crate) fn enter_destructor() -> Self {
        Self::enter(const { &CodeName::fixed(&"the destructor of a delegated value") })
    }
}

impl Drop for Leaf<'_> {
    #[inline]
    fn drop(&mut self) {
        leave_leaf(self.hidden);
    }
}
