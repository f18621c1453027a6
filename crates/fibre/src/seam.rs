//! Tokens of the waiting seam, waited for by fibres.

use crate::fibre;
use crate::park;
use crate::switch;
use corelay_sync::wait::Token;

/// Parks the fibre that runs here until `token` is set; returns at once where none runs.
pub(crate) fn wait(token: &Token) {
    let Some(running) = switch::running() else {
        return;
    };
    let Some(waker) = fibre::current().map(fibre::waker) else {
        return;
    };
    // SAFETY: this fibre is the one waiter, and keeps the token.
    unsafe { token.subscribe(waker) };
    while !token.is_set() {
        // SAFETY: the seam asks only where a fibre may be suspended.
        let ended = unsafe { park::park(running.as_ref()) };
        if ended.is_err() {
            // The answer is written into this frame: the thread waits for it.
            return;
        }
    }
}
