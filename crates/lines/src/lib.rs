//! A model of how many cache lines the shipped protocols move for an operation.
//!
//! Four packages in `shadow/` compile the sources of `corelay-sync`, `corelay-locks`,
//! `corelay-literature` and `corelay-delegate` a second time, on the facade that counts lines.
//! Here they run on a [`Machine`] of up to 512 hardware threads, which need not exist.
//!
//! ```
//! use corelay_lines::{Machine, Method, Setup, Workload};
//!
//! let setup = Setup {
//!     machine: "2x4x1".parse::<Machine>().unwrap(),
//!     places: vec![0, 4], // one thread in each socket
//!     workload: Workload::FetchAdd,
//!     size: 0, // a number has no entries
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
//! All clients share one object: a 64-bit number to which they add, as in the workload `fetch-add`
//! with one variable, or a structure (see [`Workload`]). A client pauses once between two
//! operations. An operation itself takes one step too, unless [`work`](Setup::work) says otherwise.
//! The clients first warm up: they make operations until later ones take no step that an earlier
//! one has not taken, such as growing a ring. Then operations are counted, until all clients
//! together have made [`operations`](Setup::operations) for each client. At the end the object is
//! checked.
//!
//! # When not to use it
//! To learn how fast a method is: there are no times here, see [`corelay_coherence`].
//!
//! # What is counted
//! Accesses that go through the facade, by their address: atomics, cells, prefetches, and the
//! records and answers of delegation's channel, which are plain memory. That is all that two
//! threads hand to each other for an operation. Memory that one thread keeps for itself (a client's
//! callbacks, a trustee's lanes) is not counted, nor is memory that is never written once all
//! threads know it.
//!
//! The structures are plain sequential code of this crate, which reports each word that it reads or
//! writes: links and keys of the nodes that a search really passes, buckets, values in arrays. A
//! node has a line of its own; an array has eight words to a line. The first fields (the head of the
//! list, the length of the queue) are in the shared object itself, which counts as written by every
//! operation. A removed node is the next to be inserted.
//!
//! Clients of a list or a hash table choose from twice as many keys as there are at the beginning.
//! A queue or a stack has room for twice as many values. If it is full or empty, an operation only
//! touches the shared object.

#![deny(unsafe_code)]

mod method;
mod window;
mod workload;

pub use corelay_coherence::{Counts, Distance, Machine, MachineError};
pub use method::{Method, MethodError};
pub use workload::{Workload, WorkloadError};

use window::{Fair, Window};
use workload::Object;

/// The setup of a run: a machine, the places of the threads on it, and the operations to count.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine.
    pub machine: Machine,
    /// A place for each thread, the server first if the method has one. A place is the number of a
    /// hardware thread of the machine. There are as many clients as places remain.
    pub places: Vec<usize>,
    /// The object that the clients share.
    pub workload: Workload,
    /// Entries that a structure begins with, 1 to [`MAX_SIZE`](Workload::MAX_SIZE); not used by
    /// [`Workload::FetchAdd`].
    pub size: u32,
    /// Operations that are counted, for each client on average; 0 counts as 1. See
    /// [`Method::operations`].
    pub operations: u64,
    /// Steps that an operation itself takes, on the thread that runs it. A line takes one step to
    /// move. With 0 steps an addition is over before another thread runs, so no client ever finds a
    /// lock taken.
    pub work: u64,
}

/// The counts of a run. [`per_operation`](Self::per_operation) divides them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The number of operations that were counted, of all clients together.
    pub operations: u64,
    /// The events of all threads.
    pub all: Counts,
    /// The events of the server; all 0 if there is none.
    pub server: Counts,
    /// The counted operations of the client that made the fewest.
    pub fewest: u64,
    /// The counted operations of the client that made the most.
    pub most: u64,
}

impl Count {
    /// Divides a number of events by the number of operations.
    pub fn per_operation(&self, events: u64) -> f64 {
        events as f64 / self.operations as f64
    }
}

impl Setup {
    /// Runs `method` and counts its events.
    ///
    /// # Panics
    /// If there is no place for a client, if a place is not of the machine, if the method does not
    /// [serve](Method::serves) the workload, if a structure's size is out of range, or if the method
    /// gives a wrong result.
    pub fn count(&self, method: Method) -> Count {
        let clients = self.places.len().saturating_sub(method.servers());
        assert!(clients > 0, "{method} needs a client");
        let workload = self.workload;
        assert!(
            method.serves(workload),
            "{method} does not serve {workload}"
        );
        assert!(
            !workload.has_size() || (1..=Workload::MAX_SIZE).contains(&self.size),
            "{workload} of size {}: give 1 to {}",
            self.size,
            Workload::MAX_SIZE
        );
        let (operations, size) = (self.operations.max(1), self.size);
        workload::set_work(self.work);
        let (places, machine) = (self.places.clone(), self.machine);
        let run = match workload {
            Workload::FetchAdd => run::<u64>,
            Workload::List => run::<workload::List>,
            Workload::Queue => run::<workload::Queue>,
            Workload::Stack => run::<workload::Stack>,
            Workload::Hash => run::<workload::Hash>,
        };
        let main = move || run(method, size, clients, operations);
        // SAFETY: locks and protocols take their thread-locals from the facade, which are the
        // machine's. The one of this crate, `WORK`, only holds a number.
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

/// Runs the clients of `method` with an object of `size` entries, and counts `operations` for each.
fn run<O: Object>(
    method: Method,
    size: u32,
    clients: usize,
    operations: u64,
) -> (Vec<Counts>, Fair) {
    // The description of the layout above relies on it: a lock's word has 8 bytes of the line.
    const { assert!(size_of::<O>() <= 56, "an object lies beside a lock's word") };
    let warm_up = O::warm_up(size).max(clients as u64 * method.warm_up());
    let window = Window::new(clients, size, operations, warm_up);
    method.run(O::new(size), &window);
    window.result()
}
