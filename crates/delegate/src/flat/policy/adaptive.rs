//! `adaptive`: finds the balance between client and server by itself, which the thesis leaves
//! open.
//!
//! It serves after a number of requests, its *interval*. A pass that has found a quarter as much
//! work as the member itself has made meanwhile was late: the interval halves. One that has
//! found nothing was for nothing: it doubles. In between it stays. So a member that
//! is asked much serves often, one that is asked nothing hardly looks, and either takes a few
//! passes to change its ways. Whoever waits rings the doorbell, so that a long interval is
//! nobody's wait.

use super::{Schedule, Seat};
use std::cell::Cell;

/// Requests between two passes. A pass that finds nothing costs a look at a line or two for
/// each client: at the shortest interval a few per cent of the cheapest requests.
const SHORTEST: u32 = 16;
const LONGEST: u32 = 128;

pub(crate) struct Adaptive {
    interval: Cell<u32>,
    left: Cell<u32>,
}

impl Adaptive {
    pub(super) fn new() -> Self {
        Self {
            interval: Cell::new(SHORTEST),
            left: Cell::new(SHORTEST),
        }
    }
}

impl Schedule for Adaptive {
    fn is_direct(&self) -> bool {
        true
    }

    #[inline(always)]
    fn is_due(&self, requests: u32, seat: &Seat) -> bool {
        let left = self.left.get().saturating_sub(requests);
        self.left.set(left);
        left == 0 || seat.has_rung()
    }

    #[inline]
    fn served(&self, ran: u32) {
        let interval = self.interval.get();
        let made = interval - self.left.get().min(interval);
        let next = if ran == 0 {
            interval * 2
        } else if ran >= made / 4 {
            interval / 2
        } else {
            interval
        };
        let next = next.clamp(SHORTEST, LONGEST);
        self.interval.set(next);
        self.left.set(next);
    }
}
