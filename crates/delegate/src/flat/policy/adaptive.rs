//! `adaptive`: finds the balance between client and server by itself, which the thesis leaves
//! open.
//!
//! **When to serve.** After a number of requests, its *interval*. A pass that has found a
//! quarter as much work as the member itself has made meanwhile was late: the interval halves.
//! One that has found nothing was for nothing: it doubles. In between it stays. So a member
//! that is asked much serves often, one that is asked nothing hardly looks, and either takes a
//! few passes to change its ways. Whoever waits rings the doorbell, so that a long interval is
//! nobody's wait.
//!
//! **Which way to its own objects.** Run at once, a request costs less than through the ring.
//! But where requests to own objects and to others' alternate, the processor guesses wrong
//! which of the two ways comes next, and that costs more than the ring does: then all go the
//! same way. What share its own requests have is counted over some hundreds.

use super::{Schedule, Seat};
use std::cell::Cell;

/// Requests between two passes. A pass that finds nothing costs a look at a line or two for
/// each client: at the longest interval a few per cent of the cheapest requests.
const SHORTEST: u32 = 16;
const LONGEST: u32 = 128;

/// Requests after which the way to own objects is chosen anew.
const STRETCH: u32 = 512;

pub(crate) struct Adaptive {
    interval: Cell<u32>,
    left: Cell<u32>,
    /// Of this stretch: requests to own objects, and all.
    own: Cell<u32>,
    all: Cell<u32>,
    is_direct: Cell<bool>,
}

impl Adaptive {
    pub(super) fn new() -> Self {
        Self {
            interval: Cell::new(SHORTEST),
            left: Cell::new(SHORTEST),
            own: Cell::new(0),
            all: Cell::new(0),
            is_direct: Cell::new(true),
        }
    }

    #[cold]
    fn choose_way(&self) {
        let (own, all) = (self.own.take(), self.all.take());
        let alternates = own > all / 8 && own < all - all / 8;
        self.is_direct.set(!alternates);
    }
}

impl Schedule for Adaptive {
    #[inline(always)]
    fn is_direct(&self) -> bool {
        self.is_direct.get()
    }

    #[inline(always)]
    fn is_due(&self, requests: u32, own: bool, seat: &Seat) -> bool {
        let all = self.all.get() + requests;
        self.all.set(all);
        self.own
            .set(self.own.get() + if own { requests } else { 0 });
        if all >= STRETCH {
            self.choose_way();
        }
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
