//! The user's code that this crate runs on the side, inside its own calls: destructors and wakers.
//!
//! A payload, a capture or a result may have a destructor that calls corelay, waits, retires this
//! thread's clients or panics, and so may a waker. So every value that this crate drops on behalf
//! of the user, and every task that it wakes, during one of its calls, goes through here.

use super::thread::run_user_code;
use crate::catch::guarded;
use std::task::Waker;

/// Drops `value` as user code. A panic of its destructor ends here; the payload of that panic is
/// leaked rather than dropped in turn.
pub(crate) fn discard<Q>(value: Q) {
    run_aside(|| drop(value));
}

/// Wakes a task as user code. A panic of the waker ends here, as for [`discard`].
pub(crate) fn wake(waker: Waker) {
    run_aside(|| waker.wake());
}

/// Runs `f` as user code. Its panic ends here, as for [`discard`].
pub(super) fn run_aside(f: impl FnOnce()) {
    run_user_code(|| {
        if let Err(payload) = guarded(f) {
            std::mem::forget(payload);
        }
    });
}
