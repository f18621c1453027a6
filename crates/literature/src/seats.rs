//! Seats: the right to be client `i`. Lines have one writer, so a client needs one.

#![forbid(unsafe_code)]

use corelay_sync::facade::atomic::{AtomicBool, Ordering};

/// The seats of all clients that there are lines for.
#[derive(Debug)]
pub(crate) struct Seats(Box<[AtomicBool]>);

impl Seats {
    pub(crate) fn new(clients: usize) -> Self {
        Self((0..clients).map(|_| AtomicBool::new(false)).collect())
    }

    /// Takes a seat. Returns false if another client has it.
    pub(crate) fn take(&self, index: usize) -> bool {
        // Acquire: pairs with the Release in `leave`; what the previous client wrote into its
        // lines, and what it has seen answered, comes before what this one does.
        // Relaxed: on failure nothing is read.
        self.0[index]
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives a seat back. Called by the client that took it.
    pub(crate) fn leave(&self, index: usize) {
        // Release: pairs with the Acquire in `take`; carries what this client did with its lines.
        self.0[index].store(false, Ordering::Release);
    }

    /// Takes all seats. `None` if a client has one.
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

/// A guard that has the first `len` seats, until it is dropped.
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
