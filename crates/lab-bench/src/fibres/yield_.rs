//! Yield (C3): every fibre yields. Nothing is special about it in the cluster's scheduler:
//! a fibre that yields is pushed and popped as any other.

use super::fibre;
use super::team::{End, Tally, Work};

pub(super) struct Yield;

impl Work for Yield {
    fn fibre(&self, _me: usize, end: &End) -> Tally {
        let mut operations = 0;
        loop {
            fibre::yield_now();
            operations += 1;
            if end.is_reached(operations) {
                return Tally::of(operations);
            }
        }
    }
}
