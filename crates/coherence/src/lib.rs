//! A made-up machine that runs real code and counts the cache lines it moves.
//!
//! Threads are coroutines on one thread of the process. They report every access to shared memory
//! to the machine, by address. The machine keeps the state of every line in every cache, lets
//! another thread run when a line has to move, and counts. There are no times: the same program
//! gives the same counts, whatever computer this runs on.
//!
//! ```
//! use corelay_coherence::{Access, Machine, access, counts, pause, restart_counts, run, spawn};
//! use std::cell::Cell;
//! use std::rc::Rc;
//!
//! // Two cores add to one word in turn, 100 times each. The machine is told of the word only.
//! let machine = Machine::new(1, 2, 1).unwrap();
//! let main = || {
//!     let word = Rc::new(Cell::new(0));
//!     let add = |word: Rc<Cell<u64>>| {
//!         move || {
//!             for _ in 0..100 {
//!                 access(word.as_ptr().addr(), 8, Access::Exchange);
//!                 word.set(word.get() + 1);
//!                 pause(); // what finds its line in its own cache takes no step
//!             }
//!         }
//!     };
//!     restart_counts();
//!     let threads = [spawn(add(Rc::clone(&word))), spawn(add(Rc::clone(&word)))];
//!     threads.map(|thread| thread.join().unwrap());
//!     assert_eq!(word.get(), 200);
//!     counts()
//! };
//! // SAFETY: nothing there uses a thread-local of `std`.
//! let counted = unsafe { run(machine, vec![0, 1], main) };
//! // Each addition moves the line, but for the first, which finds it in no cache.
//! assert_eq!(counted[0].lines() + counted[1].lines(), 199);
//! ```
//!
//! corelay's protocols reach it through the facade of `corelay-sync`, compiled with
//! `--cfg corelay_lines`; `corelay-lines` does that.
//!
//! # What is modelled
//! * **Caches**: one for each hardware thread, of unlimited size, MESI; see [`Caches`].
//! * **Steps.** All places go in lock step. Reading a line that is in the own cache takes no step.
//!   A line that has to move, a claim, a pause and a yield take one each. A line serves one move a
//!   step, in the order of the requests.
//! * **Waiting for a line.** Loads and read-modify-writes wait for it. Stores and prefetches do
//!   not, as they do not on a processor with a store buffer: they are seen at once, and their
//!   thread goes on a step later.
//!
//! # What is not modelled
//! Times and bandwidth, the size of caches, prefetchers, speculation, memory nodes, home agents and
//! directories, weak memory, system calls (a thread that sleeps costs nothing), and all memory
//! accesses that are not reported to the machine.

#![deny(unsafe_code)]

mod agenda;
mod caches;
mod local;
mod machine;
mod system;

pub use caches::{Caches, Counts, LINE, State};
pub use local::{AccessError, LocalKey};
pub use machine::{Distance, Machine, MachineError};
pub use system::{
    Access, Thread, access, counts, pause, restart_counts, run, sleep, spawn, wake_all, wake_one,
};
