//! OpLog: updates wait in their session's log until somebody reads.
//!
//! A structure that all cores update and hardly anybody reads need not be changed by its updates. Each
//! thread notes what it would do in a log of its own, with the time; who reads takes all logs, does
//! what is in them in the order of the times, and looks (Boyd-Wickizer, Kaashoek, Morris and
//! Zeldovich, "OpLog: a library for scaling update-heavy data structures", MIT-CSAIL-TR-2014-019;
//! on hardware clocks: Kashyap and others, EuroSys 2018, section 4.3).
//!
//! ```
//! use corelay_clock::Logical;
//! use corelay_txn::oplog::{OpLog, Remap, ReverseMap};
//!
//! let rmap = OpLog::new(ReverseMap::new(), Logical::new());
//! std::thread::scope(|s| {
//!     for process in 0..3 {
//!         let rmap = &rmap;
//!         s.spawn(move || {
//!             let mut rmap = rmap.session(); // this thread's log
//!             for page in 0..100 {
//!                 rmap.update(Remap::Add(page, process)); // shares nothing but the clock
//!             }
//!             rmap.update(Remap::Remove(7, process));
//!         });
//!     }
//! });
//! assert!(rmap.read(|rmap| rmap.mappings(&6).eq(&[0, 1, 2])));
//! assert!(rmap.read(|rmap| rmap.mappings(&7).next().is_none()));
//! ```
//!
//! # When not to use it
//! * Where reads are not rare: each stops all updates for some hundred nanoseconds and then does what
//!   they have left to it. With a read for every few hundred updates a mutex is quicker.
//! * Where an update must answer something ("was it there?"): it has not happened yet.
//! * Where every operation takes long to apply and none is absorbed: one thread applies them all.
//!
//! # Guarantees
//! * **Order.** Linearizable: see [below](#why-reads-are-linearizable).
//! * **Panic.** A panic of an operation that is [applied](Operation::apply) reaches who reads (or has
//!   a full log), and *poisons*: the rest of that merge is dropped, every later read and update is
//!   refused with a message that says so. A panic of a read's closure, or of an operation's `key` or
//!   `absorb` in an update, reaches its caller and harms nothing; a merge asks for the `key` too, and is
//!   poisoned by its panic. A panic of the clock reaches its caller and poisons nothing: an update has then
//!   been made, somewhere in the order, or not at all; a read has applied all that was logged, or nothing.
//! * **Nothing lost, nothing twice.** An operation is applied once, or absorbed, or (where the `OpLog`
//!   is dropped or poisoned) dropped.
//! * **Memory.** A log holds up to its capacity; whoever finds its own full merges all of them. Each
//!   log has one more buffer of its size, which a reader exchanges, and, where something may be
//!   absorbed, an index of 8 to 16 bytes for each operation of its capacity. What a merge has to sort
//!   goes through one more buffer, for all logs, which grows to what all of them held at once, and
//!   keeps that size; so does a table of 4 to 8 bytes for each of these operations, where those of
//!   different keys commute. There are as many logs as there
//!   have been sessions at one time: the next session takes over the log of one that is gone.
//! * **Waiting.** An update waits while a reader exchanges buffers, and on a clock with a boundary
//!   until that has passed; it never waits for a read or a merge, unless its log is full. Who reads
//!   waits for who else reads or merges. On a fibre others get their turn meanwhile.
//! * **Nesting.** Inside a read's closure this same `OpLog` may be updated; reading it is refused by a
//!   panic that names the place, and so is every wait that would suspend a fibre.
//! * **Idle cost.** None.
//!
//! # Why reads are linearizable
//! An update draws a time, appends, and waits until the time has [passed](Clock::wait_out). A reader
//! holds the state and then has [all logs at one moment](self::OpLog::read): who is appending is
//! waited for, nobody else comes in. What it takes is a *batch*. Let the operations stand in the order
//! of (batch, time, slot, place in the log): that is the order in which they are applied, and reads
//! stand behind the batch that they took. It keeps every order that can be observed:
//!
//! * **Update A returned before update B began.** When B is found in a log, A has been in one before;
//!   so A's batch is B's or an earlier one. If it is B's, A's time is less: A waited until whatever is
//!   drawn afterwards, on whichever core, is greater.
//! * **A returned before read R began.** A is in a log, or taken by an earlier reader, when R takes all.
//! * **R returned before A began.** A is in a later batch than any that R applied.
//! * Reads hold the state, one after the other.
//!
//! So where the draw stands does not matter, as long as the update has begun and has not waited yet:
//! what the rule "announce before you draw" is for, a reader that goes by its own *time*, does not
//! occur; the reader's moment is the closed gate. We draw first, so that the append overlaps with the
//! wait.
//!
//! Operations that [commute](Commutes) need not stand in that order; an order in which any state that
//! can be read is the same will do. So where all commute no time is drawn at all, and where those of
//! different keys do, only what several logs have of one key is sorted. An absorbed operation took
//! effect where the one that absorbed it does, by [its law](Absorbed).
//!
//! That an update waits out the boundary is needed: a reader cannot repair the order of two that came
//! one after the other on two cores, whose clocks are apart by more than what lies between them. With
//! a boundary that is too small this is seen to go wrong, in `tests/oplog_histories.rs`.
//!
//! # How it works
//! | file | idea |
//! |---|---|
//! | `operation` | what is logged; what may be absorbed |
//! | `log` | one log, its capacity, and the index that finds what may absorb |
//! | `slots` | all logs, and the gate by which a reader has them at one moment: states and proof |
//! | `merge` | times in order, where they matter |
//! | `stats` | how often the clock left them open |
//! | `locked` | one holder of the state; what waits, waits here |
//! | `session` | an update |
//! | `counter`, `multiset`, `reverse_map`, `counted_map` | structures |
//!
//! What was tried and lost is in `docs/design/0010-oplog.md`.

mod counted_map;
mod counter;
mod error;
mod locked;
mod log;
mod merge;
mod multiset;
mod operation;
mod reverse_map;
mod session;
mod slots;
mod stats;

pub use counted_map::{Count, CountedMap};
pub use counter::{Add, Counter};
pub use error::{CapacityError, Poisoned};
pub use multiset::{Change, Multiset};
pub use operation::{Absorbed, Commutes, Operation, key};
pub use reverse_map::{Remap, ReverseMap};
pub use session::Session;
pub use stats::Stats;

use corelay_clock::Clock;
use corelay_sync::wait::NoSwitch;
use corelay_sync::{Backoff, CachePadded};
use error::CAPACITIES;
use locked::{Held, Locked, pause};
use merge::{Merged, Times};
use slots::Slots;
use stats::Counters;
use std::fmt;
use std::panic::resume_unwind;

/// A value that is updated often, on all cores, and seldom read: see [the module](self).
///
/// ```
/// use corelay_clock::Logical;
/// use corelay_txn::oplog::{Add, OpLog};
///
/// let hits = OpLog::new(0, Logical::new());
/// hits.session().update(Add(1));
/// assert_eq!(hits.read(|&n| n), 1);
/// ```
///
/// # Guarantees
/// Linearizable reads; bounded memory; a panicking operation poisons. [The module](self) has the whole
/// of it.
pub struct OpLog<S, Op: Operation<S>, C> {
    pub(in crate::oplog) clock: C,
    capacity: usize,
    slots: Slots<Op>,
    merged: CachePadded<Locked<Merged<S, Op>>>,
    /// Away from what updates read: merges write it.
    counters: CachePadded<Counters>,
}

impl<S, Op: Operation<S>, C: Clock> OpLog<S, Op, C> {
    /// Operations that a log holds before its session has to merge, unless told otherwise.
    pub const CAPACITY: usize = 4_096;

    /// Begins with `state`; each log holds up to 4,096 operations.
    pub fn new(state: S, clock: C) -> Self {
        Self::with(Self::CAPACITY, state, clock)
    }

    /// Begins with `state`; each log holds up to `operations`, `1..=16_777_216`, before its session
    /// has to merge.
    ///
    /// More is better for who updates much between reads; less takes less of the caches, and a read
    /// has less to do. Memory is taken as it is needed.
    ///
    /// ```
    /// use corelay_clock::Logical;
    /// use corelay_txn::oplog::{Add, OpLog};
    ///
    /// assert!(OpLog::<_, Add, _>::with_capacity(64, 0, Logical::new()).is_ok());
    /// let refused = OpLog::<_, Add, _>::with_capacity(0, 0, Logical::new()).unwrap_err();
    /// assert!(refused.to_string().contains("between 1 and"));
    /// ```
    ///
    /// # Errors
    /// Where `operations` is not in its range.
    pub fn with_capacity(operations: usize, state: S, clock: C) -> Result<Self, CapacityError> {
        match CAPACITIES.contains(&operations) {
            true => Ok(Self::with(operations, state, clock)),
            false => Err(CapacityError { asked: operations }),
        }
    }

    fn with(capacity: usize, state: S, clock: C) -> Self {
        Self {
            clock,
            capacity,
            slots: Slots::new(),
            merged: CachePadded::new(Locked::new(Merged::new(state))),
            counters: CachePadded::default(),
        }
    }

    /// A log for a thread or fibre, as long as the session lives. Not for a single update: it is
    /// looked for among all that there are. A session may move between threads.
    pub fn session(&self) -> Session<'_, S, Op, C> {
        Session::new(self, self.slots.claim(self.capacity))
    }

    /// Logs that there are: as many as there have been sessions at one time. They are kept, and used
    /// again.
    pub fn logs(&self) -> usize {
        self.slots.len()
    }

    /// What its merges have counted so far.
    ///
    /// ```
    /// use corelay_clock::Logical;
    /// use corelay_txn::oplog::{Add, OpLog};
    ///
    /// let hits = OpLog::new(0, Logical::new());
    /// hits.session().update(Add(1));
    /// hits.read(|&n| assert_eq!(n, 1));
    /// assert_eq!(hits.stats().uncertain, 0); // an exact clock, and additions commute
    /// ```
    pub fn stats(&self) -> Stats {
        self.counters.stats()
    }

    /// Applies all that has been logged, and shows the state: with every update that returned before
    /// this was called.
    ///
    /// # Panics
    /// Where the log is poisoned. Where somebody else reads or merges, inside code that may not wait,
    /// such as a read of the same log. A panic of an operation or of `f` is passed on.
    #[track_caller]
    pub fn read<R>(&self, f: impl FnOnce(&S) -> R) -> R {
        match self.try_read(f) {
            Ok(result) => result,
            Err(Poisoned) => Poisoned::refuse(),
        }
    }

    /// [`read`](Self::read), where an operation may have panicked.
    ///
    /// # Errors
    /// [`Poisoned`] where one has, in an earlier call.
    ///
    /// # Panics
    /// As `read`, but not where the log is poisoned.
    #[track_caller]
    pub fn try_read<R>(&self, f: impl FnOnce(&S) -> R) -> Result<R, Poisoned> {
        let mut held = self.hold();
        locked::without_switching(&"an `OpLog` read", || {
            held.with(|merged| {
                self.merge(merged)?;
                Ok(f(&merged.state))
            })
        })
    }

    /// Applies all that has been logged, so that the next read has less to do.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    ///
    /// # Panics
    /// As `try_read`.
    #[track_caller]
    pub fn try_merge(&self) -> Result<(), Poisoned> {
        self.try_read(|_| ())
    }

    fn merge(&self, merged: &mut Merged<S, Op>) -> Result<(), Poisoned> {
        struct PoisonOnUnwind<'a, Op>(&'a Slots<Op>);
        impl<Op> Drop for PoisonOnUnwind<'_, Op> {
            fn drop(&mut self) {
                self.0.poison();
            }
        }
        let times = Times::of(&self.clock);
        let poison = PoisonOnUnwind(&self.slots);
        let result = merged.merge(&self.slots, &times);
        std::mem::forget(poison);
        let looks = result?;
        self.counters.uncertain(looks.uncertain);
        if let Some((newest, now)) = looks.newest {
            // Its panic harms nothing: the state is whole.
            let now = now.unwrap_or_else(|panic| resume_unwind(panic));
            if self.clock.is_before(now, newest) {
                self.counters.beyond();
                self.clock.met_beyond(newest, now);
            }
        }
        Ok(())
    }

    #[track_caller]
    fn hold(&self) -> Held<'_, Merged<S, Op>> {
        if let Some(held) = self.merged.try_hold() {
            return held;
        }
        NoSwitch::refuse("waiting for an `OpLog` that somebody reads or merges");
        let mut backoff = Backoff::new();
        loop {
            pause(&mut backoff);
            if let Some(held) = self.merged.try_hold() {
                return held;
            }
        }
    }

    /// Applies all that has been logged and takes the state out.
    ///
    /// # Panics
    /// Where the log is poisoned.
    #[track_caller]
    pub fn into_inner(self) -> S {
        if self.try_merge().is_err() {
            Poisoned::refuse();
        }
        CachePadded::into_inner(self.merged).into_inner().state
    }
}

impl<S, Op: Operation<S>, C> fmt::Debug for OpLog<S, Op, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpLog").finish_non_exhaustive()
    }
}
