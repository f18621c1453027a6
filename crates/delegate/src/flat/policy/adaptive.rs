//! `adaptive`: finds the balance between client and server by itself, which the thesis leaves
//! open.
//!
//! **When to serve.** Whoever has waited for long rings the doorbell. Besides, it serves after a
//! number of requests, its *interval*. A ring says that the interval was too long: it halves.
//! A pass without one doubles it. So members that keep each other busy serve when they have to
//! wait anyway, many requests at a time, which costs the least; one that the others wait for,
//! because it asks mostly itself, serves as often as they need it.
//!
//! **Which way to its own objects.** Run at once, a request costs less than through the ring.
//! But where requests to own objects and to others' alternate, the processor guesses wrong
//! which of the two ways comes next, and that costs more than the ring does: then all go the
//! same way. What share its own requests have is counted over some hundreds.

use super::{Schedule, Seat};
use std::cell::Cell;

/// Requests between two passes. A pass that finds nothing costs a look at a line or two for
/// each client.
const SHORTEST: u32 = 16;
const LONGEST: u32 = 1024;

/// Requests after which the way to own objects is chosen anew.
const STRETCH: u32 = 512;

pub(crate) struct Adaptive {
    interval: Cell<u32>,
    left: Cell<u32>,
    /// The pass that is due answers a ring.
    rung: Cell<bool>,
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
            rung: Cell::new(false),
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
        self.rung.set(seat.has_rung());
        left == 0 || self.rung.get()
    }

    #[inline]
    fn served(&self) {
        let interval = self.interval.get();
        let next = if self.rung.get() {
            interval / 2
        } else {
            interval * 2
        };
        let next = next.clamp(SHORTEST, LONGEST);
        self.interval.set(next);
        self.left.set(next);
    }
}
