//! Software transactional memory, ordered by a clock (TL2).
//!
//! A transaction reads and writes variables as if it were alone; when it ends, all of its writes
//! happen at one moment, at which all that it has read was so, or it is undone and run again. After
//! Dice, Shalev and Shavit, "Transactional Locking II" (DISC 2006).
//!
//! ```
//! use corelay_txn::tl2::{TVar, atomically};
//!
//! let (from, to) = (TVar::new(10_i64), TVar::new(0_i64));
//! std::thread::scope(|s| {
//!     for _ in 0..2 {
//!         s.spawn(|| {
//!             for _ in 0..5 {
//!                 atomically(|tx| {
//!                     tx.update(&from, |cents| cents - 1)?;
//!                     tx.update(&to, |cents| cents + 1)
//!                 });
//!             }
//!         });
//!     }
//!     // Never in between.
//!     let sum = atomically(|tx| Ok(tx.read(&from)? + tx.read(&to)?));
//!     assert_eq!(sum, 10);
//! });
//! assert_eq!((from.load(), to.load()), (0, 10));
//! ```
//!
//! # When not to use it
//! For one variable, or a few that are always taken together: a mutex costs less, and where two
//! threads do nothing else, two ordered mutexes transfer more than twice as fast (see the design
//! note). For one hot variable: every transaction aborts the others; delegate it. For long scans
//! beside many writers: each new time that a scan draws has it look at all that it has read.
//!
//! # Guarantees
//! * **Order.** Strictly serializable, under every [`Clock`](corelay_clock::Clock) that keeps its
//!   promises: transactions are as if run one by one, and one that begins after another has returned
//!   sees what it wrote, also by [`Ordo`](corelay_clock::Ordo). Nobody waits out the boundary for it.
//! * **Opacity.** What *any* attempt reads was there together at one moment, also an attempt that
//!   will be aborted: a closure never sees half of another transaction.
//! * **Progress.** After 64 aborts ([`Stm::with_attempts`]) a transaction runs alone: all others'
//!   commits wait for it, and it commits. A closure that never returns never ends its transaction,
//!   and if it runs alone, no other writer's of its domain. Opacity means that it is never led there
//!   by values that do not fit together.
//! * **`retry`** sleeps, through the [waiting seam](corelay_sync::wait), until something read changes.
//!   No wake-up is lost; some are for nothing.
//! * **Nesting.** [`Tx::or_else`] nests; what an alternative has written is taken back with it. A
//!   transaction inside another of the same domain panics (but see [`Session`]); pass `tx` on
//!   instead. One of another domain inside is a transaction of its own.
//! * **Panic.** A panic of the closure writes nothing, releases everything and goes on. So does a panic
//!   of the clock, at whichever call.
//! * **A wrong clock** loses no update; see [below](#a-clock-that-is-wrong) what else it may do.
//! * **Fibres.** A closure may wait; nothing is locked while it runs, unless it runs alone.
//! * **Memory.** A variable takes 32 bytes; a thread keeps a log of at most 4,096 reads and 1,024
//!   writes between transactions. A log grows with the variables that are read, not with the reads.
//!   Boxed values are freed by epochs: a thread that is stopped in the middle of cloning one holds
//!   them all up. Dropping a value or a node must not run a transaction.
//! * **Idle cost.** None.
//!
//! # How it works
//! Each variable has a version word: the time of its last write, locked or not. A transaction
//! has a time `t`, the last that its thread has drawn; it draws none when it begins.
//!
//! | step | what | fails |
//! |---|---|---|
//! | read | word free and certainly before `t`; value; the word again | locked for long: *locked* |
//! | | word not certainly before `t`: draw `t`, look at all words read again | one has changed: *version*, or *uncertain* |
//! | write | into the write set | |
//! | commit 1 | lock the write set; what was read before only if its word is still so | *locked*, *validation* |
//! | 2 | nobody runs alone? | *yielded* |
//! | 3 | draw the time of the commit, later than what it overwrites | |
//! | 4 | look at the words of the read set again | *validation* |
//! | 5 | write each value, unlock its word with the time | |
//!
//! A variable's states:
//! ```text
//!   free, v ──1──► locked, v ──5──► free, w      v < w
//!      ▲              │
//!      └── 1, 2, 4 ───┘ failed
//! ```
//!
//! # Proof sketch
//! A transaction that writes takes place at its moment *L*: all its locks are taken, by
//! read-modify-writes that every thread sees. One that only reads takes place at any moment between
//! *P*, when its time was drawn, and its next read.
//!
//! *Reads.* Let a read find word `v` of writer `V`, free, and the same again behind the value. Then
//! `V` had locked before *P*: either `v` is certainly before `t`, so `V` drew `v` before *P* and had
//! locked before it drew; or `t` was drawn after `v` was seen. The next writer of the variable locks
//! after *P*: what is locked before *P* is seen locked, or newer, by looks behind *P* (the clock's
//! promise; by causality in the second case), and the second look was behind *P* and saw `v`. So
//! the value is the variable's at *P*, and the same holds for all that were read before, since
//! drawing anew looks at them all again behind the new *P*. That is opacity: it is so after every
//! read, whatever becomes of the attempt.
//!
//! *Commits.* Looks in step 4 come after *L* and find the words as they were read, so whoever
//! overwrites them locks after *L*: what was read is so at *L*. Words that are locked by the commit
//! itself were compared when they were locked. Two writers of one variable lock it one after the
//! other, in the order of their *L*.
//!
//! *Real time.* *L* and *P*'s end lie between call and return. A time from before the call is no
//! harm: what is read holds from *P* on until it is read, so it holds at the first read too.
//!
//! Clocks decide only how often a time must be drawn anew: where they say "certainly before" in vain,
//! by more skew than the boundary, the proof breaks at its first case, and the tests see that. Times
//! of one variable only have to differ: hence "later than those overwritten" in step 3, not
//! "certainly later". The boundary is never waited out.
//!
//! # A clock that is wrong
//! Some hosts move virtual CPUs to cores with other offsets, by more than was measured. Then:
//!
//! * **No update is lost, and no transaction that commits a write has seen anything torn**, whatever the
//!   clock says. The proof for commits compares words, never times.
//! * **The clock is caught** as soon as a version is met that is certainly later than a time drawn
//!   afterwards ([`Stats::beyond`]). From then on the domain draws from a counter of its own, and
//!   everything holds again. So it does where a clock stands still or says what no clock does. The
//!   [clock is told](corelay_clock::Clock::met_beyond).
//! * **Until then** a transaction that only reads, and an attempt that will be aborted, may see a part of a
//!   commit. It takes a thread whose counter is ahead by more than the boundary, a time drawn there, and a
//!   commit within as much of it as exceeds the boundary, by a thread that is not ahead. Where that other
//!   thread never meets a time of the first one, nobody can notice. A program for which that is too much
//!   uses [`Logical`](corelay_clock::Logical), or has a [`Watchdog`](corelay_clock::Watchdog) look.
//!
//! Step 3 needs the locks to be seen before the draw, and no more: see
//! [`announced_time`](corelay_clock::Clock::announced_time), `lfence; rdtsc` on x86-64. The looks of
//! step 4 may come before the draw, for *L* is not the draw but the last lock.
//!
//! The token of who runs alone is in `serial.rs`, the sleepers in `sleepers.rs`, the change from the clock
//! to the counter in `times.rs`, each with its argument.

mod boxes;
mod cell;
mod commit;
mod log;
mod pool;
mod serial;
mod sleepers;
mod stats;
mod stm;
mod times;
mod tvar;
mod tx;
mod value;
mod word;
mod writes;

pub use stats::Stats;
pub use stm::{Session, Stm};
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
pub use stm::{atomically, default_stm};
pub use tvar::TVar;
pub use tx::{Abort, Result, Tx};
pub use value::Value;
