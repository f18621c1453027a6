//! Park and unpark, where an unpark may come first.
//!
//! ```text
//!            unpark                      unpark
//!   RUNNING ────────► PENDING   PARKED ─────────► RUNNING, made ready
//!   RUNNING ── publish, after the switch ──► PARKED
//!   PENDING ── park ──► RUNNING, at once
//! ```

use crate::header::Header;
use crate::processor;
use crate::switch::{Runnable, Running};
use crate::wait::{CallSite, Interrupted, Limit, block_fibre};
use crate::waiter::Waiter;
use corelay_sync::facade::atomic::{AtomicU8, Ordering};
use std::ptr::NonNull;

const RUNNING: u8 = 0;
const PENDING: u8 = 1;
const PARKED: u8 = 2;

pub(crate) struct Ticket(AtomicU8);

impl Ticket {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(RUNNING))
    }

    /// Takes an unpark that has come already.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        // Relaxed, then Acquire: pairs with the Release of `unpark`. Only unparks change the word
        // meanwhile, and they leave PENDING as it is.
        self.0.load(Ordering::Relaxed) == PENDING && {
            self.0.swap(RUNNING, Ordering::Acquire);
            true
        }
    }

    /// Of a fibre that has stopped: true where it waits now, false where an unpark has come, which
    /// is taken.
    pub(crate) fn park(&self) -> bool {
        // Release: pairs with the Acquire of `unpark`: hands the stopped fibre over. Relaxed
        // where it fails: the exchange below acquires.
        let parked = self
            .0
            .compare_exchange(RUNNING, PARKED, Ordering::Release, Ordering::Relaxed);
        if parked.is_err() {
            // Acquire: pairs with the Release of `unpark`. An exchange, because others may have
            // come since: a store would wipe out their unparks, and show nothing of them.
            self.0.swap(RUNNING, Ordering::Acquire);
        }
        parked.is_ok()
    }

    /// True where the fibre was parked, and is the caller's: not as an unpark.
    pub(crate) fn withdraw(&self) -> bool {
        // Acquire: pairs with the Release of `park`.
        self.0
            .compare_exchange(PARKED, RUNNING, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// True where the fibre was parked and is the caller's to make ready.
    pub(crate) fn unpark(&self) -> bool {
        // Relaxed: checked by the exchange.
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let next = if now == PARKED { RUNNING } else { PENDING };
            // Release: what came before the unpark comes before what follows the park. Acquire:
            // pairs with the Release of `park`. Also where it was PENDING already.
            match self
                .0
                .compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return now == PARKED,
                Err(other) => now = other,
            }
        }
    }
}

/// Parks the fibre that runs here.
///
/// # Errors
/// It has been cancelled.
///
/// # Safety
/// It may be suspended.
#[inline(always)]
pub(crate) unsafe fn park(
    running: Running,
    limit: Limit,
    site: CallSite,
) -> Result<(), Interrupted> {
    if running.ticket.take() {
        return Ok(());
    }
    let remove = |_| {
        let header = running.as_ptr();
        // SAFETY: it was parked, and the ticket is ours.
        (running.ticket.withdraw()).then(|| Waiter::fibre(unsafe { Runnable::new(header) }))
    };
    block_fibre(running, limit, site, &remove, |waiter| {
        // Alive: nobody else can end it before it is published.
        if running.ticket.park() {
            forget(waiter)
        } else {
            Some(waiter)
        }
    })
}

/// Whoever unparks makes one anew.
fn forget(waiter: Waiter) -> Option<Waiter> {
    let _ = waiter.into_word();
    None
}

/// Lets `fibre` go on, or its next park return at once.
pub(crate) fn unpark(fibre: NonNull<Header>) {
    // SAFETY: the caller has a reference.
    if unsafe { fibre.as_ref() }.ticket.unpark() {
        // SAFETY: it was parked, and the ticket is ours.
        processor::ready(unsafe { Runnable::new(fibre) });
    }
}
