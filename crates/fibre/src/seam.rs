//! The waiting seam: how code waits that runs on a fibre and does not know of fibres.

use crate::builder::Builder;
use crate::fibre;
use crate::header::Header;
use crate::processor::{self, Processor};
use crate::switch::{self, Runnable, Running};
use crate::wait::{Limit, block_fibre, block_processor, limit_of};
use crate::waiter::Waiter;
use corelay_sync::facade::atomic::{AtomicPtr, Ordering};
use corelay_sync::wait::{Call, Cancelled, Context, CoroutineState, Task, Token};
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// The stand of a fibre.
pub(crate) fn stand() -> CoroutineState {
    // SAFETY: `go_on` makes ready the fibre that has the stand in its header, from any thread.
    unsafe { CoroutineState::new(go_on) }
}

/// # Safety
/// `stand` is a fibre's, which has stopped and is the caller's to make ready.
unsafe fn go_on(stand: NonNull<CoroutineState>) {
    // SAFETY: `running` has given it, which is in a header.
    let header = unsafe { stand.byte_sub(offset_of!(Header, stand)) }.cast::<Header>();
    // SAFETY: the caller's duty.
    processor::ready(unsafe { Runnable::new(header) });
}

/// What waits of code that runs on fibres go to, while the thread is a processor.
pub(crate) struct Seam<'a>(pub(crate) &'a Processor);

// SAFETY: the processor says who runs; a cancellation does not make ready who waits for a spot.
unsafe impl Context for Seam<'_> {
    fn wait(&self, call: Call, token: &Token) -> Result<(), Cancelled> {
        match switch::running() {
            Some(running) => wait(running, call, token),
            // Whoever calls blocks the thread.
            None => Ok(()),
        }
    }

    fn block(&self, call: Call, wait: &mut dyn FnMut()) {
        match switch::running() {
            Some(running) => block_processor(running, Limit::None, (call.name, call.at), wait),
            None => wait(),
        }
    }

    #[inline]
    fn running(&self) -> Option<NonNull<CoroutineState>> {
        // Relaxed: set by this thread.
        let running = NonNull::new(self.0.running.load(Ordering::Relaxed))?;
        // SAFETY: it lives.
        NonNull::new(unsafe { &raw mut (*running.as_ptr()).stand })
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        spawn_here(self.0, task)
    }

    fn give_turn(&self) -> bool {
        self.has_ready() && switch::running().is_some() && {
            fibre::yield_now();
            true
        }
    }

    fn has_ready(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Runs `task` in a fibre that stays on this thread from the beginning.
fn spawn_here(processor: &Processor, task: Task) -> Result<(), Task> {
    // Handed over when there is a stack: it comes back otherwise.
    let place = Rc::new(Cell::new(None));
    let handed = Rc::clone(&place);
    let body = move || {
        if let Some(task) = handed.take() {
            let task: Task = task;
            task();
        }
    };
    let fibre = Builder::new(processor.shared()).at_home(processor);
    // SAFETY: the processor of this thread.
    match unsafe { fibre.spawn_here(body) } {
        Ok(_detached) => {
            place.set(Some(task));
            Ok(())
        }
        Err(_) => Err(task),
    }
}

/// Suspends the fibre that runs here until `token` is set, or until a cancellation if the call is
/// cancellable. It leaves the fibre's ticket alone, which is its user's.
fn wait(running: Running, call: Call, token: &Token) -> Result<(), Cancelled> {
    let woken = Arc::new(Woken(AtomicPtr::default()));
    let remove = |_| woken.take();
    let ended = block_fibre(
        running,
        limit_of(call),
        (call.name, call.at),
        &remove,
        |waiter| {
            // Of its own: the fibre may go on as soon as the token has it.
            let woken = Arc::clone(&woken);
            // Relaxed: shown to who takes it by the token, or by the publication of this wait.
            woken.0.store(waiter.into_word(), Ordering::Relaxed);
            let subscribed = token.subscribe(Waker::from(Arc::clone(&woken)));
            if subscribed { None } else { woken.take() }
        },
    );
    ended.map_err(|_| Cancelled::default())
}

/// Wakes one waiter, once.
struct Woken(AtomicPtr<u8>);

impl Woken {
    fn take(&self) -> Option<Waiter> {
        // Acquire: pairs with whatever has handed the waker over; one takes it.
        let waiter = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: of a waiter, which has just been taken.
        (!waiter.is_null()).then(|| unsafe { Waiter::from_word(waiter) })
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        if let Some(waiter) = self.take() {
            waiter.wake();
        }
    }
}
