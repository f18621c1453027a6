//! `adaptive`: finds the balance between client and server by itself, which the thesis leaves
//! open.
//!
//! **Which way to its own objects.** Run at once, a request costs less than through the ring.
//! But where requests to own objects and to others' alternate, the processor guesses wrong
//! which of the two ways comes next, and that costs more than the ring does: then all go the
//! same way. What share its own requests have is counted over some hundreds.
//!
//! **When to serve.** Where its own requests go through the ring, hardly ever: the ring is full
//! soon, and then all are served in one large batch. Who serves earlier, because it is asked to,
//! lets the others go ahead, and waits for them later (measured with bursts). But a member that
//! makes its requests so far apart that each is published by itself would fill no ring for long:
//! it serves with each.
//!
//! Where they run at once or are few, nothing else would make a member serve. Then it does after
//! a number of requests, its *interval*, ordinarily as many as make a good batch. Whoever has
//! waited for long rings: then soon, and where two passes running answer a ring, the interval
//! halves; once is no pattern. A pass that has found nothing doubles it, so that a member that
//! nobody asks hardly looks; the first that finds something brings it back.

use super::{Schedule, Seat};
use std::cell::Cell;

/// Requests between two passes.
const SHORTEST: u32 = 16;
const USUAL: u32 = 64;
/// A pass that finds nothing costs a look at a line or two for each client, and who waits
/// rings.
const LONGEST: u32 = 4096;

/// Own requests between two looks at all this, and between two looks at the bell: where they run
/// at once, each look is felt.
const LOOK_EVERY: i32 = 64;
const BELL_EVERY: i32 = 8;

/// Requests after which the way to own objects is chosen anew.
const STRETCH: u32 = 512;

pub(crate) struct Adaptive {
    interval: Cell<u32>,
    /// Requests since the last pass, up to the last look.
    made: Cell<u32>,
    /// Own requests until the next look: 0 or less when it is time.
    left: Cell<i32>,
    /// The last pass answered a ring.
    rung: Cell<bool>,
    /// Of this stretch: requests to others' objects, and all as of the last pass.
    others: Cell<u32>,
    all: Cell<u32>,
    is_direct: Cell<bool>,
    /// The last request was published by itself.
    is_slow: Cell<bool>,
}

impl Adaptive {
    pub(super) fn new() -> Self {
        Self {
            interval: Cell::new(SHORTEST),
            made: Cell::new(0),
            left: Cell::new(LOOK_EVERY),
            rung: Cell::new(false),
            others: Cell::new(0),
            all: Cell::new(0),
            is_direct: Cell::new(true),
            is_slow: Cell::new(false),
        }
    }

    /// Apart, so that own requests that run at once pay for a countdown only.
    #[inline(never)]
    fn look(&self, requests: u32, seat: &Seat) -> bool {
        let since = LOOK_EVERY - self.left.replace(LOOK_EVERY);
        let made = self.made.get() + since.cast_unsigned();
        self.made.set(made);
        if self.is_direct.get() {
            made >= self.interval.get() || seat.has_rung()
        } else {
            // One by itself is the first after a pause.
            let is_slow = requests == 1;
            let was_slow = self.is_slow.replace(is_slow);
            // A stretch at most, so that a change of load is noticed.
            is_slow && was_slow || made >= STRETCH
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
        let left = self.left.get() - requests.cast_signed();
        self.left.set(left);
        if own && left > 0 && self.is_direct.get() && (left % BELL_EVERY != 0 || !seat.has_rung()) {
            return false;
        }
        if !own {
            self.others.set(self.others.get() + requests);
        }
        self.look(requests, seat)
    }

    fn served(&self, ran: u32) {
        let (interval, made) = (self.interval.get(), self.made.take());
        self.all.set(self.all.get() + made);
        if self.all.get() >= STRETCH {
            self.choose_way();
        }
        // Before its time: somebody has rung (or the member is slow, where the interval is not
        // looked at).
        let rung = made < interval;
        let again = self.rung.replace(rung) && rung;
        let next = match (rung, ran) {
            (true, _) if again => interval / 2,
            (true, _) => interval,
            (false, 0) => interval * 2,
            (false, _) => (interval * 2).min(USUAL),
        };
        self.interval.set(next.clamp(SHORTEST, LONGEST));
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    /// As a member does; true where it has served, and found so much.
    fn made(policy: &Adaptive, seat: &Seat, requests: u32, own: bool, ran: u32) -> bool {
        let is_due = policy.is_due(requests, own, seat);
        if is_due {
            seat.hear();
            policy.served(ran);
        }
        is_due
    }

    /// A policy whose own and others' requests alternate, in batches.
    fn alternating(seat: &Seat) -> Adaptive {
        let policy = Adaptive::new();
        for i in 0..4 * STRETCH / 16 {
            made(&policy, seat, 16, i % 2 == 0, 1);
        }
        assert!(!policy.is_direct());
        policy
    }

    #[test]
    fn a_member_that_asks_only_itself_looks_less_and_less() {
        let (policy, seat) = (Adaptive::new(), Seat::new());
        let served = |requests| {
            (0..requests)
                .filter(|_| made(&policy, &seat, 1, true, 0))
                .count()
        };
        let (first, later) = (served(10_000), served(10_000));
        assert!(policy.is_direct());
        assert!(first > later && later > 0, "{first} {later}");
        // A ring is answered at the next look.
        seat.ring();
        assert_eq!(served(BELL_EVERY), 1);
    }

    #[test]
    fn a_busy_member_whose_requests_alternate_lets_its_ring_fill() {
        let seat = Seat::new();
        let policy = alternating(&seat);
        let mut since = 0;
        for i in 0..1_000 {
            seat.ring();
            since += 16;
            if made(&policy, &seat, 16, i % 2 == 0, 1) {
                assert!(since >= STRETCH, "{since}");
                since = 0;
            }
        }
    }

    #[test]
    fn a_slow_member_serves_with_each_request() {
        let seat = Seat::new();
        let policy = alternating(&seat);
        // The first after a pause.
        assert!(!made(&policy, &seat, 1, true, 0));
        assert!(!made(&policy, &seat, 2, false, 0));
        assert!(!made(&policy, &seat, 1, true, 0));
        for i in 0..100 {
            assert!(made(&policy, &seat, 1, i % 2 == 0, 0), "{i}");
        }
    }
}
