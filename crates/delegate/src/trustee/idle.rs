//! The steps of a trustee that finds nothing: it polls, looks at every head now and then, and
//! sleeps when its budget is used up.

use crate::trustee::{LOOK_AFTER, MODEL};
use corelay_sync::Backoff;
use corelay_sync::facade::{hint, thread};
use std::time::{Duration, Instant};

/// The idle time of a trustee: since when, and how many polls have found nothing.
#[derive(Default)]
pub(super) struct Idle {
    polls: u32,
    /// The time at which the trustee became idle, or `None` if it has not. The inner `None` stands
    /// for a model, in which the time is always up.
    since: Option<Option<Instant>>,
    /// Whether another thread has been found to need this CPU.
    yields: bool,
}

impl Idle {
    /// Ends the idle time, because a pass has found something.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Notes that a pass over `lanes` has found nothing. Returns whether it is time to look at the
    /// heads.
    #[inline(always)]
    pub(super) fn is_time_to_look(&mut self, lanes: usize) -> bool {
        self.polls += lanes.max(1) as u32;
        if self.polls < LOOK_AFTER {
            hint::spin_loop();
            return false;
        }
        self.polls = 0;
        true
    }

    /// Notes that there is nothing at the heads either. Returns whether the trustee has polled for
    /// `spin` and is to sleep. From when another thread `needs_the_cpu`, the trustee yields until
    /// then: the system may let the trustee go on several times before it runs that thread.
    pub(super) fn is_time_to_sleep(&mut self, spin: Duration, needs_the_cpu: bool) -> bool {
        let since = *self
            .since
            .get_or_insert_with(|| (!MODEL).then(Instant::now));
        let is_over = since.is_none_or(|since| since.elapsed() >= spin);
        if is_over {
            *self = Self::default();
            return true;
        }
        self.yields |= needs_the_cpu;
        if self.yields || Backoff::new().is_yielding() {
            // The thread that is to answer needs a CPU, and so does a client if there is only one.
            thread::yield_now();
        }
        false
    }
}
