//! A delegated closure is a leaf: nothing in it may wait.
//!
//! While a trustee runs closures, its thread's client table is hidden, so that every call
//! of this crate takes its slow path and finds out here. That costs the fast paths
//! nothing. Other corelay waits find out through [`NoSwitch`].

use crate::channel::lane::Lane;
use crate::thread::{Table, enter_leaf, leave_leaf};
use corelay_sync::wait::NoSwitch;

/// Closures of a lane run on this thread until it is dropped.
pub(crate) struct Leaf<'a> {
    hidden: Table,
    _no_switch: NoSwitch<'a>,
}

impl<'a> Leaf<'a> {
    #[inline]
    pub(crate) fn enter(lane: &'a Lane) -> Self {
        // SAFETY: leaves are locals of the lane's functions and do not nest.
        let no_switch = unsafe { NoSwitch::enter(lane, Lane::running) };
        Self {
            hidden: enter_leaf(),
            _no_switch: no_switch,
        }
    }

    /// A closure runs that did not come through a lane; `name` gives its type.
    pub(crate) fn enter_here(name: &'a fn() -> &'static str) -> Self {
        // SAFETY: as above.
        let no_switch = unsafe { NoSwitch::enter(name, |name| name()) };
        Self {
            hidden: enter_leaf(),
            _no_switch: no_switch,
        }
    }

    /// Callbacks run on a trustee's thread, of requests that closures have made.
    pub(crate) fn enter_callbacks() -> Leaf<'static> {
        const WHAT: &str = "a callback on a trustee's thread";
        // SAFETY: as above; the name is static.
        let no_switch = unsafe { NoSwitch::enter(&WHAT, |what| what) };
        Leaf {
            hidden: enter_leaf(),
            _no_switch: no_switch,
        }
    }

    /// A value of the user that this crate discards is being dropped: a request that cannot run, a
    /// payload.
    pub(crate) fn enter_discarded() -> Leaf<'static> {
        const WHAT: &str = "the destructor of what a request has left";
        // SAFETY: as above; the name is static.
        let no_switch = unsafe { NoSwitch::enter(&WHAT, |what| what) };
        Leaf {
            hidden: enter_leaf(),
            _no_switch: no_switch,
        }
    }

    /// A value of this trustee is being dropped.
    pub(crate) fn enter_destructor() -> Leaf<'static> {
        const WHAT: &str = "the destructor of a delegated value";
        // SAFETY: as above; the name is static.
        let no_switch = unsafe { NoSwitch::enter(&WHAT, |what| what) };
        Leaf {
            hidden: enter_leaf(),
            _no_switch: no_switch,
        }
    }
}

impl Drop for Leaf<'_> {
    #[inline]
    fn drop(&mut self) {
        leave_leaf(self.hidden);
    }
}
