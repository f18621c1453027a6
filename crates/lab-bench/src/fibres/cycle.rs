//! Cycle (C2): rings of fibres, each of which wakes the next and then waits.
//!
//! One token goes round each ring. With t rings of r fibres, fibre i is followed by fibre i + t
//! (mod r·t), so that the fibres of a ring were not spawned next to each other.

use super::chains::Trail;
use super::fibre::BinarySemaphore;
use super::spec::{Length, Spec};
use super::team::{StopCondition, Tally, Work, semaphores};
use corelay_sync::CachePadded;

/// The rings of a run. If `NOTES`, the fibres note their migrations.
pub(super) struct Cycle<const NOTES: bool> {
    rings: usize,
    semaphores: Box<[CachePadded<BinarySemaphore>]>,
    /// Whether each fibre does a fixed number of passes. Then the main thread wakes no fibre.
    is_counted: bool,
}

impl<const NOTES: bool> Cycle<NOTES> {
    pub(super) fn new(spec: &Spec) -> Self {
        Self {
            rings: spec.fibres,
            semaphores: semaphores(spec.all_fibres()),
            is_counted: matches!(spec.length, Length::Iterations(_)),
        }
    }

    /// The fibre after `me` in its ring.
    fn next(&self, me: usize) -> usize {
        (me + self.rings) % self.semaphores.len()
    }
}

impl<const NOTES: bool> Work for Cycle<NOTES> {
    fn fibre(&self, me: usize, end: &StopCondition) -> Tally {
        let (mine, next) = (&self.semaphores[me], &self.semaphores[self.next(me)]);
        let (mut operations, mut trail) = (0, Trail::start());
        loop {
            mine.wait();
            if NOTES {
                trail.look();
            }
            next.post();
            operations += 1;
            if end.is_reached(operations) {
                return Tally {
                    trail: NOTES.then_some(trail),
                    ..Tally::of(operations)
                };
            }
        }
    }

    fn begin(&self) {
        self.semaphores[..self.rings]
            .iter()
            .for_each(|semaphore| semaphore.post());
    }

    fn wake_all(&self) {
        self.semaphores
            .iter()
            .for_each(|semaphore| semaphore.post());
    }

    /// Compares the passes of neighbours. A fibre passes as often as its predecessor has posted,
    /// and once more if the token started with it. The stop allows for a small difference: every
    /// fibre gets one token more, and a fibre that has just posted may leave before its own token
    /// returns, and so may the next one. Any other difference is a lost or doubled token.
    fn check(&self, tallies: &[Tally]) -> Result<(), String> {
        let (more, less) = if self.is_counted { (0, 0) } else { (1, 2) };
        for (me, tally) in tallies.iter().enumerate() {
            let next = self.next(me);
            // If passes are counted, the last token comes back after its fibre has ended.
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
    fn lost_and_doubled_tokens_are_found() {
        let work = Cycle::<false>::new(&Spec {
            bench: Bench::Cycle { ring: RING },
            processors: 1,
            fibres: 2,
            length: Length::Time(Duration::from_secs(1)),
            seed: 1,
            chains: false,
        });
        let check = |counts: [u64; 10]| work.check(&counts.map(Tally::of));
        // The ring of the even fibres stopped with its token at fibre 4.
        assert_eq!(check([8, 8, 8, 8, 7, 7, 7, 7, 7, 7]), Ok(()));
        assert_eq!(check([8, 8, 8, 8, 8, 8, 8, 8, 8, 8]), Ok(()));
        let lost = check([8, 8, 8, 8, 5, 7, 5, 7, 5, 7]).unwrap_err();
        assert!(lost.contains("fibre 4 passed 5 times on 8"), "{lost}");
        let doubled = check([8, 8, 8, 8, 8, 8, 8, 8, 10, 8]).unwrap_err();
        assert!(doubled.contains("fibre 8 passed 10 times"), "{doubled}");
    }
}
