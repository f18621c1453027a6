//! Model: how many cache lines the shipped protocols move for an operation.
//!
//! Four packages in `shadow/` compile the sources of `corelay-sync`, `corelay-locks`,
//! `corelay-literature` and `corelay-delegate` a second time, on the facade that counts lines.
//! Here they run on a [`Machine`] of up to 512 hardware threads, which need not exist.
//!
//! ```
//! use corelay_lines::{Machine, Method, Setup};
//!
//! let setup = Setup {
//!     machine: "2x4x1".parse::<Machine>().unwrap(),
//!     places: vec![0, 4], // one thread in each socket
//!     operations: 1000,
//!     work: 1,
//! };
//! // The word goes over for every addition.
//! let atomic = setup.count(Method::Atomic);
//! assert_eq!(atomic.per_operation(atomic.all.moved[2]), 1.0);
//! assert_eq!(setup.count(Method::Atomic), atomic); // always the same
//! ```
//!
//! # What an operation is
//! All clients add to one 64-bit number, as the workload `fetch-add` with one variable does, and
//! pause once between two operations; an addition itself takes as long, unless that is set. Each first makes as many as it takes until nothing is
//! new; then they are counted until all together have made so many for each client. What they
//! return is checked.
//!
//! # When not to use it
//! To learn how fast something is: there are no times here, see [`corelay_coherence`].
//!
//! # What is counted
//! What goes through the facade, by its address: atomics, cells, prefetches, and the records and
//! answers of delegation's channel, which are plain memory. That is all that two threads hand
//! to each other for an operation. Not counted is what one thread keeps for itself (a
//! client's callbacks, a trustee's lanes) and what is never written once all threads know it.

#![deny(unsafe_code)]

mod method;
mod window;

pub use corelay_coherence::{Counts, Distance, Machine, MachineError};
pub use method::{Method, MethodError};

/// A machine and who runs where on it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine.
    pub machine: Machine,
    /// A place for each thread, servers first.
    pub places: Vec<usize>,
    /// Operations that are counted, for each client; at least 1.
    pub operations: u64,
    /// Steps that an operation takes itself, where its thread has the number. A line takes one to
    /// move. In none at all nobody ever finds a lock taken.
    pub work: u64,
}

/// What was counted. For one operation: see [`per_operation`](Self::per_operation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Operations of all clients.
    pub operations: u64,
    /// What all threads did.
    pub all: Counts,
    /// What the server did; nothing where there is none.
    pub server: Counts,
    /// Operations of the client that made the fewest, and the most.
    pub fewest: u64,
    /// See `fewest`.
    pub most: u64,
}

impl Count {
    /// Events for each operation.
    pub fn per_operation(&self, events: u64) -> f64 {
        events as f64 / self.operations as f64
    }
}

impl Setup {
    /// Counts what `method` does.
    ///
    /// # Panics
    /// Where there is no place for a client, or one is not of the machine; where the method
    /// gives a wrong result.
    pub fn count(&self, method: Method) -> Count {
        let clients = self.places.len().saturating_sub(method.servers());
        assert!(clients > 0, "{method} needs a client");
        let operations = self.operations.max(1);
        window::set_work(self.work);
        let (places, machine) = (self.places.clone(), self.machine);
        let main = move || {
            let window = window::Window::new(clients, operations, method.warm_up());
            method.run(&window);
            window.result()
        };
        // SAFETY: locks and protocols take their thread-locals from the facade, which are the
        // machine's; the one of this crate holds a number.
        #[allow(unsafe_code)]
        let (all, window) = unsafe { corelay_coherence::run(machine, places, main) };
        let server = match method.servers() {
            0 => Counts::default(),
            _ => all[self.places[0]],
        };
        Count {
            operations: window.total,
            all: all.iter().fold(Counts::default(), |sum, &one| sum + one),
            server,
            fewest: window.fewest,
            most: window.most,
        }
    }
}
