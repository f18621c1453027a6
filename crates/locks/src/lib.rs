//! Locks behind one interface, one file for each.
//!
//! There are eleven ways to give one thread at a time access to a value. All offer
//! [`Shared`](corelay_sync::Shared) and [`Session`](corelay_sync::Session), so a program swaps one
//! for another, or for delegation, without touching the callers:
//!
//! ```
//! use corelay_locks::Mcs;
//! use corelay_sync::{Session, Shared};
//!
//! let hits = Mcs::new(0_u64);
//! std::thread::scope(|s| {
//!     for _ in 0..3 {
//!         s.spawn(|| {
//!             let mut hits = hits.session();
//!             for _ in 0..100 {
//!                 hits.apply(|n| *n += 1);
//!             }
//!         });
//!     }
//! });
//! assert_eq!(hits.into_inner(), 300);
//! ```
//!
//! | type | waits by | order of entry | source |
//! |---|---|---|---|
//! | [`StdMutex`] | spinning, then sleeping | none | `std::sync::Mutex` |
//! | `ParkingLot` | spinning, then sleeping | eventually fair | `parking_lot::Mutex` |
//! | [`Tas`] | exchanging the lock word | none | Anderson 1990 |
//! | [`Ttas`] | reading the lock word, backing off | none | Rudolph and Segall 1984; Anderson 1990 |
//! | [`Ticket`] | reading the lock word | arrival | Reed and Kanodia 1979; Mellor-Crummey and Scott 1991 |
//! | [`Mcs`] | reading a word of its own | arrival | Mellor-Crummey and Scott 1991 |
//! | [`Clh`] | reading a word of its predecessor's | arrival | Craig 1993; Magnusson, Landin and Hagersten 1994 |
//! | [`CcSynch`] | spinning, then sleeping; the holder may run its closure | arrival | Fatourou and Kallimanis 2012 |
//! | [`DsmSynch`] | the same, reading a word of its own | arrival | Fatourou and Kallimanis 2012 |
//! | [`FlatCombining`] | the same, and reading the lock word | none, but no waiter starves | Hendler, Incze, Shavit and Tzafrir 2010 |
//! | [`Adaptive`] | spinning, then sleeping; the holder may run its closure | none | `std::sync::Mutex`, and flat combining |
//!
//! The last four are *combining* locks: a waiter hands its closure over, and the thread that holds
//! the lock runs it. Their waiters sleep, and on a fibre are suspended. See [`Combining`].
//! [`Adaptive`] is the one for programs that do not want to choose: it has the calls of
//! `std::sync::Mutex` too.
//!
//! # When not to use it
//! The five spin locks never sleep: a waiter pauses for a few microseconds and then yields, again
//! and again. With more runnable threads than CPUs, or with long sections, use [`Adaptive`],
//! [`StdMutex`] or `ParkingLot`. The locks that enter by arrival suffer most, because the thread whose
//! turn it is may not be running. For one hot value that many cores use all the time, use delegation.
//!
//! # Guarantees
//! * **Order.** As in the table. A thread that enters sees everything that those before it did.
//! * **Panic.** A panic of the closure reaches the caller of `apply`. The lock is released on the
//!   way and *not* poisoned, for all alike: the next `apply` sees the value as the panic left
//!   it. (`std::sync::Mutex` would poison; [`StdMutex`] ignores that mark, so that swapping methods
//!   does not change what a program does. So do the sessions of [`Adaptive`], whose other calls
//!   heed it.)
//! * **Nesting.** Nesting in one session is refused at compile time. Two sessions of one
//!   thread on *one* lock, one inside the other, deadlock as any lock does. Sessions on
//!   different locks nest freely. But a closure of a combining lock may not wait: if a lock is taken,
//!   the combining lock itself for one, `apply` inside panics and says so.
//! * **In a place where nothing may wait** (inside a delegated closure) a free lock is entered. If
//!   it is taken, `apply` panics before it joins the queue, and names the call's place and what
//!   runs. See [`NoSwitch`](corelay_sync::wait::NoSwitch).
//! * **Memory.** A lock and a value of up to 56 bytes share one 64-byte line; see
//!   [`Lock`]. So do an [`Adaptive`] lock and a value of up to 24. Another combining lock takes 256
//!   bytes or more. A session is one pointer and costs nothing to open, so that a thread can visit
//!   millions of locks. [`Mcs`], [`DsmSynch`] and [`Adaptive`] keep their nodes in the frame of
//!   `apply`, [`Clh`] and [`CcSynch`] in a small pool per thread; a session of [`FlatCombining`] that
//!   had to wait has a record of its own, until it ends.
//! * **Idle cost.** None: no lock owns a thread, a registration or heap memory, except the records of
//!   a `FlatCombining`.
//!
//! # How it works
//! [`Lock`] pairs a lock word with a value and has the only code that touches the value. An
//! [`Algorithm`] decides who enters. [`Combining`] does the same with a [`Combiner`], which decides
//! who runs the next closure. [`Adaptive`] has words and a value of its own. Each algorithm is a file
//! or a folder, and each of its orderings is listed in `mutants.toml` with the model that fails if it
//! is weakened.

mod adaptive;
mod cc_synch;
mod clh;
mod combining;
mod dsm_synch;
mod flat_combining;
mod lock;
mod mcs;
#[cfg(not(any(corelay_loom, corelay_shuttle, corelay_lines)))]
mod parking_lot;
mod pool;
mod session;
#[cfg(not(corelay_lines))]
mod std_mutex;
mod tas;
mod ticket;
mod ttas;
mod turn;

pub use adaptive::{Adaptive, AdaptiveGuard};
pub use cc_synch::{CcSynch, CcSynchWord};
pub use clh::{Clh, ClhWord};
pub use combining::{Combiner, Combining, CombiningSession};
pub use dsm_synch::{DsmSynch, DsmSynchWord};
pub use flat_combining::{FlatCombining, FlatCombiningWord};
pub use lock::{Algorithm, Lock};
pub use mcs::{Mcs, McsWord};
#[cfg(not(any(corelay_loom, corelay_shuttle, corelay_lines)))]
pub use parking_lot::ParkingLot;
pub use session::{Exclusive, LockSession};
#[cfg(not(corelay_lines))]
pub use std_mutex::StdMutex;
pub use tas::{Tas, TasWord};
pub use ticket::{Ticket, TicketWord};
pub use ttas::{Ttas, TtasWord};
