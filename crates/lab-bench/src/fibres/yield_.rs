//! Yield (C3): every fibre yields. The cluster's scheduler has no special case for it: a fibre that
//! yields is pushed and popped like any other.

use super::chains::Trail;
use super::fibre;
use super::team::{StopCondition, Tally, Work};

/// The benchmark, which has no state. If `NOTES`, the fibres note their migrations.
pub(super) struct Yield<const NOTES: bool>;

impl<const NOTES: bool> Work for Yield<NOTES> {
    fn fibre(&self, _me: usize, end: &StopCondition) -> Tally {
        let (mut operations, mut trail) = (0, Trail::start());
        loop {
            fibre::yield_now();
            if NOTES {
                trail.look();
            }
            operations += 1;
            if end.is_reached(operations) {
                return Tally {
                    trail: NOTES.then_some(trail),
                    ..Tally::of(operations)
                };
            }
        }
    }
}
