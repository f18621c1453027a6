//! Churn (C4): V, then P, on a counting semaphore chosen at random, so that fibres push each
//! other out of the semaphores.
//!
//! The first s fibres leave out their first V. All other V and P of one semaphore cancel out, so
//! that never more than s fibres wait at all of them together: with t ≥ s + p there is always one
//! for each processor.

use super::fibre::Semaphore;
use super::spec::{FAREWELL, Spec};
use super::team::{Dice, End, Tally, Work};
use corelay_sync::CachePadded;

pub(super) struct Churn {
    spots: Box<[CachePadded<Semaphore>]>,
    seed: u64,
    /// Units for each semaphore at the end: enough even if all fibres wait at one.
    farewell: u32,
}

impl Churn {
    pub(super) fn new(spec: &Spec, spots: usize) -> Self {
        let spot = || CachePadded::new(Semaphore::new(0));
        Self {
            spots: (0..spots).map(|_| spot()).collect(),
            seed: spec.seed,
            farewell: FAREWELL.max(spec.fibres.try_into().unwrap_or(u32::MAX)),
        }
    }
}

impl Work for Churn {
    fn fibre(&self, me: usize, end: &End) -> Tally {
        let (spots, mut dice) = (&*self.spots, Dice::of(self.seed, me));
        let mut operations = 0;
        let mut spot = &spots[dice.below(spots.len())];
        if me >= spots.len() {
            spot.release();
        }
        loop {
            spot.acquire();
            operations += 1;
            if end.is_reached(operations) {
                return Tally::of(operations);
            }
            spot = &spots[dice.below(spots.len())];
            spot.release();
        }
    }

    fn wake_all(&self) {
        let farewell = |spot: &CachePadded<Semaphore>| spot.release_many(self.farewell);
        self.spots.iter().for_each(farewell);
    }

    /// Every pass took a unit and gave one, but for the first of the first s fibres: with
    /// those of the end, so many must be left.
    fn check(&self, _tallies: &[Tally]) -> Result<(), String> {
        let spots = self.spots.len() as u64;
        let expected = spots * u64::from(self.farewell) - spots;
        let units = |spot: &CachePadded<Semaphore>| {
            std::iter::repeat_with(|| spot.try_acquire())
                .take_while(|had| *had)
                .count() as u64
        };
        let left: u64 = self.spots.iter().map(units).sum();
        if left == expected {
            return Ok(());
        }
        Err(format!(
            "wrong result: {left} units are left in the semaphores instead of {expected}"
        ))
    }
}
