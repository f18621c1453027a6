//! Cycle (C2): rings of fibres, each of which wakes the next and then waits.
//!
//! One token goes round each ring. Fibre i is followed by i + t of r·t, so that the fibres of
//! a ring were not spawned next to each other.

use super::fibre::BinarySemaphore;
use super::spec::{Length, Spec};
use super::team::{End, Tally, Work, seats};
use corelay_sync::CachePadded;

pub(super) struct Cycle {
    rings: usize,
    seats: Box<[CachePadded<BinarySemaphore>]>,
    /// Whether each fibre has a number of passes to do, and so nobody is woken by others.
    is_counted: bool,
}

impl Cycle {
    pub(super) fn new(spec: &Spec) -> Self {
        Self {
            rings: spec.fibres,
            seats: seats(spec.all_fibres()),
            is_counted: matches!(spec.length, Length::Iterations(_)),
        }
    }

    fn next(&self, me: usize) -> usize {
        (me + self.rings) % self.seats.len()
    }
}

impl Work for Cycle {
    fn fibre(&self, me: usize, end: &End) -> Tally {
        let (mine, next) = (&self.seats[me], &self.seats[self.next(me)]);
        let mut operations = 0;
        loop {
            mine.wait();
            next.post();
            operations += 1;
            if end.is_reached(operations) {
                return Tally::of(operations);
            }
        }
    }

    fn begin(&self) {
        self.seats[..self.rings].iter().for_each(|seat| seat.post());
    }

    fn wake_all(&self) {
        self.seats.iter().for_each(|seat| seat.post());
    }

    /// A fibre passes as often as the one before it has posted, and once more if the token began
    /// with it. Around the stop that is not exact: everybody gets a token more, and who has just
    /// posted may leave before its own token is back, and the one after that. Any other
    /// difference is a token that was lost or doubled.
    fn check(&self, tallies: &[Tally]) -> Result<(), String> {
        let (more, less) = if self.is_counted { (0, 0) } else { (1, 2) };
        for (me, tally) in tallies.iter().enumerate() {
            let next = self.next(me);
            // In a ring that counts, the last token finds its fibre gone.
            let first = u64::from(!self.is_counted && next < self.rings);
            let (passed, posted) = (tallies[next].operations, tally.operations + first);
            if passed > posted + more || passed + less < posted {
                return Err(format!(
                    "wrong result: fibre {next} passed {passed} times on {posted} tokens"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fibres::spec::{Bench, RING};
    use std::time::Duration;

    #[test]
    fn a_token_that_is_lost_or_doubled_is_seen() {
        let work = Cycle::new(&Spec {
            bench: Bench::Cycle { ring: RING },
            processors: 1,
            fibres: 2,
            length: Length::Time(Duration::from_secs(1)),
            seed: 1,
        });
        let check = |counts: [u64; 10]| work.check(&counts.map(Tally::of));
        // The ring of the even fibres stopped with its token before fibre 4.
        assert_eq!(check([8, 8, 8, 8, 7, 7, 7, 7, 7, 7]), Ok(()));
        assert_eq!(check([8, 8, 8, 8, 8, 8, 8, 8, 8, 8]), Ok(()));
        let lost = check([8, 8, 8, 8, 5, 7, 5, 7, 5, 7]).unwrap_err();
        assert!(lost.contains("fibre 4 passed 5 times on 8"), "{lost}");
        let doubled = check([8, 8, 8, 8, 8, 8, 8, 8, 10, 8]).unwrap_err();
        assert!(doubled.contains("fibre 8 passed 10 times"), "{doubled}");
    }
}
