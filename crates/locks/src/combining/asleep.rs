//! Waiters that sleep: how a combiner wakes them, and how one of them relieves it.
//!
//! While a combiner runs closures of sleepers, others come and go to sleep. If nobody spins who could
//! go on, the combiner's own call would last as long as they come. So after [`PATIENCE`] times its
//! limit a combiner wakes the next sleeper that [can lead](Asleep::can_lead), to go on in its place.
//!
//! **Why not every sleeper can lead.** A fibre goes on when its scheduler gets to it. A thread polls
//! its sources while it sleeps, and these run callbacks. Such a callback, or code that the scheduler
//! runs between its fibres, may wait for the same lock. The waiter below cannot go on before that wait
//! has ended, which with its turn would be never. So only a thread that runs nothing else while it
//! sleeps can lead.
//!
//! **Who uses the memory.** The waiter's frame has the [`Asleep`]. Its address is in the waiter's
//! record or signal, and the combiner that answers there wakes the waiter. The waiter stays in its
//! frame until then, and `Token::notify` does not touch a token that is set.

use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::wait::{Call, Token, has_context, has_sources, wait_in};
use std::ptr::NonNull;

/// The multiple of its limit after which a combiner is relieved by a sleeper.
///
/// Nobody combines while that sleeper wakes up, which takes as long as some ten system calls that
/// wake. With this multiple and the usual limit, the combiner has made 192 such calls before. So the
/// gap is a small share of the time.
pub(crate) const PATIENCE: u32 = if MODEL { 1 } else { 4 };

/// A waiter that sleeps.
// In a build that counts lines it is in a line of its own, as an operation is.
#[cfg_attr(corelay_lines, repr(align(64)))]
#[derive(Debug)]
pub(crate) struct Asleep {
    token: Token,
    /// Whether the thread runs nothing else until it is woken.
    can_lead: bool,
    /// Whether the waiter goes on in the combiner's place.
    leads: AtomicBool,
}

impl Asleep {
    /// A waiter on the calling thread.
    // Not inlined: it looks at thread-locals. See `corelay_sync::wait`.
    #[inline(never)]
    pub(crate) fn new() -> Self {
        Self {
            token: Token::new(),
            can_lead: !has_context() && !has_sources(),
            leads: AtomicBool::new(false),
        }
    }

    /// Waits until a combiner wakes this waiter. Returns whether it shall go on in the combiner's
    /// place. No cancellation ends the wait, for the combiner uses this frame.
    pub(crate) fn wait(&self, call: Call) -> bool {
        let _ = wait_in(call, &self.token);
        // Relaxed: published by the token.
        self.leads.load(Ordering::Relaxed)
    }

    /// Whether the waiter goes on as soon as its token is set.
    #[inline]
    pub(crate) fn can_lead(&self) -> bool {
        self.can_lead
    }

    /// Wakes the waiter `this`, whose request has been run. The waiter may be gone when this returns,
    /// or earlier. So no reference to all of it is an argument of a function meanwhile.
    ///
    /// # Safety
    /// The waiter has not been woken.
    #[inline]
    pub(crate) unsafe fn wake(this: NonNull<Self>) {
        // SAFETY: the waiter stays in its frame until its token is set, which happens below.
        let token = unsafe { &this.as_ref().token };
        token.notify();
    }

    /// Wakes the waiter `this`, which goes on in this thread's place. The waiter may be gone when this
    /// returns.
    ///
    /// # Safety
    /// The waiter has not been woken, and can lead.
    #[cold]
    pub(crate) unsafe fn wake_to_lead(this: NonNull<Self>) {
        // SAFETY: the waiter stays in its frame until it is woken below (the caller's duty).
        let leads = unsafe { &this.as_ref().leads };
        // Relaxed: published by the token.
        leads.store(true, Ordering::Relaxed);
        // SAFETY: the caller's duty.
        unsafe { Self::wake(this) };
    }
}
