//! The waiting seam: how code waits that runs on a fibre and does not know of fibres.

use crate::fibre;
use crate::header::Header;
use crate::park;
use crate::processor::Processor;
use crate::switch::{self, Runnable};
use corelay_sync::wait::{Context, Running, Task, Token};
use std::ptr::NonNull;

/// What waits of code that runs on fibres go to, while the thread is a processor.
pub(crate) struct Seam<'a>(pub(crate) &'a Processor);

// SAFETY: it lives in the frame of `Processor::run`, which ends when all fibres of the cluster have;
// `go_on` is the only one to make a fibre ready that waits for a spot: a cancellation does not.
unsafe impl Context for Seam<'_> {
    fn wait(&self, token: &Token) {
        wait(token);
    }

    #[inline]
    fn running(&self) -> Option<Running> {
        let running = NonNull::new(self.0.running.get().cast_mut())?;
        // SAFETY: it runs here.
        let yielder = unsafe { running.as_ref() }.yielder.get();
        Some(Running {
            yielder: NonNull::new(yielder.cast_mut())?,
            who: running.cast(),
        })
    }

    #[inline]
    unsafe fn go_on(&self, who: NonNull<()>) {
        // SAFETY: the caller's duty: it has stopped here, and nobody else has it.
        let fibre = unsafe { Runnable::new(who.cast::<Header>()) };
        self.0.make_ready(fibre);
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }
}

/// Parks the fibre that runs here until `token` is set; returns at once where none runs.
fn wait(token: &Token) {
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
