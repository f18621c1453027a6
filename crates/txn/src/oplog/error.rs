//! The errors of an `OpLog`.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::RangeInclusive;

/// The capacities that a log may have, in operations: its index has words of 32 bits.
pub(super) const CAPACITIES: RangeInclusive<usize> = 1..=1 << 24;

/// The error of making an [`OpLog`](super::OpLog) with a capacity that its logs cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityError {
    pub(super) asked: usize,
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "an `OpLog` with logs of capacity {}: a log holds between {} and {} operations",
            self.asked,
            CAPACITIES.start(),
            CAPACITIES.end(),
        )
    }
}

impl std::error::Error for CapacityError {}

/// The error of using an `OpLog` in which an operation has panicked while it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poisoned;

impl Poisoned {
    #[cold]
    #[track_caller]
    pub(super) fn refuse() -> ! {
        panic!("{Poisoned}")
    }
}

impl fmt::Display for Poisoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this `OpLog` is poisoned: one of its operations has panicked while it was applied, \
             and its state may be half changed; make a new one",
        )
    }
}

impl std::error::Error for Poisoned {}
