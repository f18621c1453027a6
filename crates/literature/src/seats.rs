//! Who may be which client: lines have one writer.

#![forbid(unsafe_code)]

use corelay_sync::facade::atomic::{AtomicBool, Ordering};

/// A seat for each client that there are lines for.
#[derive(Debug)]
pub(crate) struct Seats(Box<[AtomicBool]>);

impl Seats {
    pub(crate) fn new(clients: usize) -> Self {
        Self((0..clients).map(|_| AtomicBool::new(false)).collect())
    }

    /// Takes the seat; false where somebody has it.
    pub(crate) fn take(&self, index: usize) -> bool {
        // Acquire: pairs with the Release in `leave`; what the one before wrote into its lines,
        // and what it has seen answered, comes before what we do.
        // Relaxed: on failure nothing is read.
        self.0[index]
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives the seat back. Only whoever took it.
    pub(crate) fn leave(&self, index: usize) {
        // Release: pairs with the Acquire in `take`; see there.
        self.0[index].store(false, Ordering::Release);
    }

    /// Takes all seats; `None` where somebody has one.
    pub(crate) fn take_all(&self) -> Option<AllSeats<'_>> {
        let mut taken = AllSeats {
            seats: self,
            len: 0,
        };
        while taken.len < self.0.len() {
            if !self.take(taken.len) {
                return None;
            }
            taken.len += 1;
        }
        Some(taken)
    }
}

/// The first `len` seats, until this is dropped.
#[derive(Debug)]
pub(crate) struct AllSeats<'a> {
    seats: &'a Seats,
    len: usize,
}

impl Drop for AllSeats<'_> {
    fn drop(&mut self) {
        (0..self.len).for_each(|index| self.seats.leave(index));
    }
}
