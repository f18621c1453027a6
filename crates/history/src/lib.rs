//! Records what threads do to a shared structure, and checks that it is *linearizable*:
//! that every call could have taken effect at one moment between its invocation and its
//! return, so that in the order of these moments a plain sequential structure would have
//! answered the same (Herlihy and Wing, 1990).
//!
//! A final count that is right says little. This finds the stale read, the value that came
//! out twice and the update that was lost, in calls that really overlapped, and prints the
//! few calls that cannot be explained.
//!
//! [`transactions`] checks the isolation level of stores with transactions on several objects.
//!
//! ```
//! use corelay_history::model::register::{Operation, Output, Register};
//! use corelay_history::{History, Recorder, check};
//! use std::sync::Mutex;
//!
//! let shared = Mutex::new(0);
//! let mut recorders = [Recorder::new(), Recorder::new()];
//! std::thread::scope(|s| {
//!     for (value, recorder) in (1..).zip(&mut recorders) {
//!         let shared = &shared;
//!         s.spawn(move || for _ in 0..100 {
//!             recorder.record(Operation::Write(value), |_| {
//!                 *shared.lock().unwrap() = value;
//!                 Output::Written
//!             });
//!             recorder.record(Operation::Read, |_| Output::Value(*shared.lock().unwrap()));
//!         });
//!     }
//! });
//! let history: History<_, _> = recorders.into_iter().collect();
//! check(&Register::new(0), &history).unwrap(); // prints a picture where it fails
//! ```
//!
//! # When not to use it
//! * To prove something. A history shows what happened in one run. Schedules that the
//!   machine does not take by itself are for a model checker (loom, shuttle).
//! * For reorderings within a thread: a stamp is a fence, so what one call leaves in its
//!   core's store buffer is drained before the next begins.
//! * For structures that may answer in several ways, and for consistency weaker than
//!   linearizability of each call, such as sequential consistency. For serializability and other
//!   levels of isolation there is a checker of its own: [`transactions`].
//! * To measure: two stamps per call cost some tens of nanoseconds, and slow fast
//!   structures down several times.
//!
//! # Guarantees
//! * **No false accusation**, as long as the model is right and stamps keep the promise of
//!   [`ticks`](corelay_sync::ticks()): intervals are never too short, and equal stamps count as
//!   overlap. See [`Recorder`].
//! * **No false acquittal.** `Ok` means that there is an order that explains every call, and keeps
//!   all that [the stamps say](History#what-the-stamps-say). If a thread's call on one object
//!   returns at the very stamp at which its next one, on another object, is invoked, the stamps do
//!   not say which came first.
//! * **Calls that never returned** may have taken effect at any time after they began, or not. A
//!   panic in a recorded call leaves it so.
//! * **A counterexample proves.** The remaining part of the history has no explanation, so neither
//!   has the whole. See [`Counterexample`].
//! * **It ends.** Checking is NP-hard in general. If the search would need more memory than it may
//!   take, it says so ([`GaveUp`]), and the history may be right or wrong.
//!
//! # Cost
//! Recording shares nothing between threads. Checking takes time in proportion to the length
//! of the history, and to how many ways things may stand at one moment: which of the calls
//! *in flight* have taken effect, and the state. That grows fast with the number of threads,
//! and with values that wait in a structure in an order nobody knows yet. Registers,
//! counters, sets and maps are easy: of 100,000 calls on a register with four values, by eight
//! clients that always overlap, right ones take 0.4 s and ones that are wrong near their end
//! 1.3 s (release build, one virtual CPU of an AMD EPYC). Queues and stacks are harder:
//! 10,000 calls of eight such clients take 3 to 5 s if they are right, and the search may
//! give up where they are wrong, with four clients already. Record fewer threads then, or
//! keep the structure short.
//!
//! # How it works
//! | file | idea |
//! |---|---|
//! | `history` | calls and their stamps |
//! | `recorder` | a thread's notes; why their order is sound |
//! | `file` | histories as lines of JSON |
//! | `serialize` | calls and histories as values for `serde` |
//! | [`model`] | sequential specifications; `model/lives`: what is read off when values come out |
//! | `check/calls` | the calls of one object; partition by key |
//! | `check/search` | just-in-time linearization, breadth-first |
//! | `check/shrink` | from a history that fails to the calls that make it fail |
//! | `counterexample`, `timeline` | the picture |
//! | [`transactions`] | histories of transactions, and the levels of isolation |
//!
//! The search is Wing and Gong's ("Testing and verifying concurrent objects", 1993) with the
//! improvements of Lowe ("Testing for linearizability", 2017); objects are checked by
//! themselves, as Horn and Kroening do ("Faster linearizability checking via
//! P-compositionality", 2015).

#![forbid(unsafe_code)]

mod check;
mod counterexample;
mod file;
mod history;
pub mod model;
mod recorder;
mod serialize;
mod timeline;
pub mod transactions;

pub use check::{CONFIGURATIONS, Failure, GaveUp, check, check_within};
pub use counterexample::Counterexample;
pub use file::ReadError;
pub use history::{Call, History};
pub use model::Model;
pub use recorder::{Invocation, Recorder};
