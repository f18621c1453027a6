//! The wait of a thread for its turn in a queue.

#![forbid(unsafe_code)]

use corelay_sync::Backoff;
use corelay_sync::facade::hint;

/// Pauses that a waiter makes at an even pace, one for each thread ahead of it between two polls.
/// After them the wait grows and then yields.
///
/// In a queue nobody enters until the thread whose turn it is has looked. So growing pauses, which
/// are good among rivals for one word, would only add to every hand-over here (Mellor-Crummey and
/// Scott 1991, section 2.2). The even pace lasts as long as [`Backoff`]'s own growing pauses (127
/// in sum).
const EVEN_POLLS: u32 = 127;

/// The wait loop of a queue lock: an even pace at first, then like [`Backoff`]. If spinning cannot
/// help (one CPU) it yields at once.
pub(crate) struct Turn {
    polls: u32,
    backoff: Backoff,
}

impl Turn {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            polls: 0,
            backoff: Backoff::new(),
        }
    }

    /// Whether the even pace has ended: after about a microsecond, or at once if spinning cannot help.
    /// A waiter that can sleep does so now.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.polls >= EVEN_POLLS || self.backoff.is_yielding()
    }

    /// Waits a little between two polls: longer, the more threads are `ahead` of this one (1 or
    /// more).
    #[inline]
    pub(crate) fn wait(&mut self, ahead: u32) {
        if self.is_over() {
            self.backoff.wait();
            hint::in_vain(self.backoff.yields());
            return;
        }
        let pauses = ahead.min(EVEN_POLLS - self.polls);
        for _ in 0..pauses {
            hint::spin_loop();
        }
        self.polls += pauses;
    }
}
