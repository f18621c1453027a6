//! `adaptive`: finds the balance between client and server by itself, which the thesis leaves
//! open.
//!
//! **When to serve.** After a number of requests, its *interval*, ordinarily as many as make a
//! good batch. Whoever has waited for long rings: then at once, and where two passes running
//! answer a ring, the interval halves; once is no pattern. A pass that has found nothing doubles
//! it, so that a member that nobody asks hardly looks; the first that finds something brings it
//! back.
//!
//! **Which way to its own objects.** Run at once, a request costs less than through the ring.
//! But where requests to own objects and to others' alternate, the processor guesses wrong
//! which of the two ways comes next, and that costs more than the ring does: then all go the
//! same way. What share its own requests have is counted over some hundreds.

use super::{Schedule, Seat};
use std::cell::Cell;

/// Requests between two passes.
const SHORTEST: u32 = 16;
const USUAL: u32 = 64;
/// A pass that finds nothing costs a look at a line or two for each client.
const LONGEST: u32 = 512;

/// Requests after which the way to own objects is chosen anew.
const STRETCH: u32 = 512;

pub(crate) struct Adaptive {
    interval: Cell<u32>,
    /// Requests until the interval is over: 0 or less when it is.
    left: Cell<i32>,
    /// The last pass answered a ring.
    rung: Cell<bool>,
    /// Of this stretch: requests to others' objects, and all as of the last pass.
    others: Cell<u32>,
    all: Cell<u32>,
    is_direct: Cell<bool>,
}

impl Adaptive {
    pub(super) fn new() -> Self {
        Self {
            interval: Cell::new(SHORTEST),
            left: Cell::new(SHORTEST as i32),
            rung: Cell::new(false),
            others: Cell::new(0),
            all: Cell::new(0),
            is_direct: Cell::new(true),
        }
    }

    #[cold]
    fn choose_way(&self) {
        let (others, all) = (self.others.take(), self.all.take());
        let alternates = others > all / 8 && others < all - all / 8;
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
        if !own {
            self.others.set(self.others.get() + requests);
        }
        let left = self.left.get() - requests as i32;
        self.left.set(left);
        left <= 0 || seat.has_rung()
    }

    fn served(&self, ran: u32) {
        let (interval, left) = (self.interval.get(), self.left.get());
        self.all
            .set(self.all.get() + (interval as i32 - left) as u32);
        if self.all.get() >= STRETCH {
            self.choose_way();
        }
        // Before its time: somebody has rung.
        let rung = left > 0;
        let again = self.rung.replace(rung) && rung;
        let next = match (rung, ran) {
            (true, _) if again => interval / 2,
            (true, _) => interval,
            (false, 0) => interval * 2,
            (false, _) => (interval * 2).min(USUAL),
        };
        let next = next.clamp(SHORTEST, LONGEST);
        self.interval.set(next);
        self.left.set(next as i32);
    }
}
