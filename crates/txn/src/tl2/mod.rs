//! Software transactional memory, ordered by a clock (TL2).
//!
//! A transaction reads and writes variables as if it were alone. When it ends, all of its writes
//! happen at one moment, at which all that it has read was still so; otherwise it is undone and run
//! again. After Dice, Shalev and Shavit, "Transactional Locking II" (DISC 2006).
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
//! * One variable, or a few that are always taken together: a mutex costs less. If two threads do
//!   nothing else, two ordered mutexes transfer more than twice as fast (see the design note).
//! * One hot variable: every transaction aborts the others; delegate it.
//! * Long scans beside many writers: each time that a scan draws anew, it looks again at all that
//!   it has read.
//!
//! # Guarantees
//! * **Order.** Strictly serializable, under every [`Clock`](corelay_clock::Clock) that keeps its
//!   promises: transactions behave as if run one by one, and one that begins after another has
//!   returned sees what that wrote, also by [`Ordo`](corelay_clock::Ordo). No transaction waits out
//!   the boundary for it.
//! * **Opacity.** All values that *any* attempt reads existed together at one moment, also in an
//!   attempt that will be aborted: a closure never sees half of another transaction.
//! * **Progress.** A transaction that has been aborted more than 64 times ([`Stm::with_attempts`])
//!   runs alone: all other commits wait for it, and it commits. A closure that never returns never
//!   ends its transaction, and if it runs alone, no other writer of its domain ends either. By
//!   opacity, inconsistent values never lead it there.
//! * **`retry`** sleeps, through the [waiting seam](corelay_sync::wait), until a variable that was
//!   read changes. No wake-up is lost; some are spurious.
//! * **Nesting.** [`Tx::or_else`] nests; the writes of an alternative are taken back with it. A
//!   transaction inside another of the same domain panics (but see [`Session`]); pass `tx` on
//!   instead. One of another domain inside is a transaction of its own.
//! * **Panic.** If the closure panics, nothing is written, everything is released, and the panic
//!   goes on. So it is with a panic of the clock, at whichever call.
//! * **A wrong clock** loses no update; [below](#a-clock-that-is-wrong) is what else it may do.
//! * **Fibres.** A closure may wait; nothing is locked while it runs, unless it runs alone.
//! * **Memory.** A variable takes 32 bytes; a thread keeps a log of at most 4,096 reads and 1,024
//!   writes between transactions. A log grows with the number of variables read, not with the
//!   reads. Boxed values are freed by epochs: a thread that is stopped in the middle of cloning one
//!   delays all of them. Dropping a value or a node must not run a transaction.
//! * **Idle cost.** None.
//!
//! # How it works
//! Each variable has a version word: the time of its last write, locked or not. A transaction has a
//! time `t`, the last that its thread has drawn; it draws none when it begins.
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
//! A transaction that writes takes place at its moment *L*, when all its locks are taken, by
//! read-modify-writes that every thread sees. One that only reads takes place at any moment between
//! *P*, when its time was drawn, and its next read.
//!
//! *Reads.* Let a read find the word `v` of writer `V`, free, and the same word again after the
//! value. Then `V` had locked before *P*: either `v` is certainly before `t`, so `V` drew `v`
//! before *P* and had locked before it drew; or `t` was drawn after `v` was seen. Suppose the next
//! writer of the variable locked before *P*. Then a look after *P* would find the lock or something
//! newer (by the clock's promise; by causality in the second case). But the second look came after
//! *P* and saw `v`, so the next writer locks after *P*. Hence the value is the variable's at *P*.
//! The same holds for all variables that were read before, since drawing anew looks at all of them
//! again after the new *P*. That is opacity: it holds after every read, whatever becomes of the
//! attempt.
//!
//! *Commits.* The looks of step 4 come after *L* and find the words as they were read, so a
//! transaction that overwrites them locks after *L*: what was read is so at *L*. Words that the
//! commit itself has locked were compared when they were locked. Two writers of one variable lock
//! it one after the other, in the order of their *L*.
//!
//! *Real time.* *L* and the end of *P*'s interval lie between call and return. A time from before
//! the call does no harm: a value read holds from *P* on until it is read, so it holds at the first
//! read too.
//!
//! Clocks decide only how often a time must be drawn anew. If they say "certainly before" wrongly,
//! because the skew exceeds the boundary, the proof breaks at its first case, and the tests see
//! that. Times of one variable only have to differ: hence "later than what it overwrites" in step
//! 3, not "certainly later". The boundary is never waited out.
//!
//! # A clock that is wrong
//! Some hosts move virtual CPUs to cores with other offsets, by more than was measured. Then:
//!
//! * **No update is lost, and no transaction that commits a write has seen a torn state**, whatever
//!   the clock says. The proof for commits compares words, never times.
//! * **The clock is caught** as soon as a transaction meets a version that is certainly later than
//!   a time drawn afterwards ([`Stats::beyond`]). From then on the domain draws from a counter of
//!   its own, and everything holds again. The same happens if a clock stands still or gives out
//!   impossible times. The [clock is told](corelay_clock::Clock::met_beyond).
//! * **Until then** a transaction that only reads, and an attempt that will be aborted, may see a
//!   part of a commit. That takes a thread whose counter is ahead by more than the boundary, a time
//!   drawn there, and soon afterwards (by no more than what exceeds the boundary) a commit by a
//!   thread that is not ahead. If that other thread never meets a time of the first one, nobody can
//!   notice. A program that cannot accept this uses [`Logical`](corelay_clock::Logical), or starts
//!   a [`Watchdog`](corelay_clock::Watchdog).
//!
//! Step 3 needs the locks to be visible before the draw, and nothing more: see
//! [`announced_time`](corelay_clock::Clock::announced_time), `lfence; rdtsc` on x86-64. The looks
//! of step 4 may come before the draw, for *L* is not the draw but the last lock.
//!
//! Each of these files has its own argument: `serial.rs` for the token of the transaction that runs
//! alone, `sleepers.rs` for the sleepers, `times.rs` for the change from the clock to the counter.

mod boxes;
mod cell;
mod commit;
mod log;
pub(crate) mod pool;
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
