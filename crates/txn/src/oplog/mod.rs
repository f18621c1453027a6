//! OpLog: updates wait in their session's log until the structure is read.
//!
//! If all cores update a structure and few threads read it, its updates need not change it at once.
//! Each thread notes its update in a log of its own, with the time. A reader takes all logs,
//! applies their operations in the order of the times, and looks at the result (Boyd-Wickizer,
//! Kaashoek, Morris and Zeldovich, "OpLog: a library for scaling update-heavy data structures",
//! MIT-CSAIL-TR-2014-019; on hardware clocks: Kashyap and others, EuroSys 2018, section 4.3).
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
//! * Reads are not rare: each stops all updates for some hundred nanoseconds and then applies what
//!   they have left. With a read for every few hundred updates a mutex is quicker.
//! * An update must answer something ("was it there?"): it has not happened yet.
//! * Every operation takes long to apply and none is absorbed: one thread applies them all.
//!
//! # Guarantees
//! * **Order.** Linearizable: see [below](#why-reads-are-linearizable).
//! * **Panic.** If an operation panics while it is [applied](Operation::apply), the panic reaches
//!   the reader (or the session with a full log), and *poisons*: the rest of that merge is dropped,
//!   and every later read and update is refused with a message that says so. A panic of a read's
//!   closure, or of an operation's `key` or `absorb` in an update, reaches its caller and harms
//!   nothing. But a merge asks for the `key` too, and is poisoned by its panic. A panic of the
//!   clock reaches its caller and poisons nothing: an update has then been made, somewhere in the
//!   order, or not at all; a read has applied everything that was logged, or nothing.
//! * **Nothing lost, nothing twice.** An operation is applied once, or absorbed, or (if the `OpLog`
//!   is dropped or poisoned) dropped.
//! * **Memory.** A log holds up to its capacity; a session that finds its log full merges all logs.
//!   Each log has one more buffer of its size, which a reader exchanges. If something may be
//!   absorbed, it also has an index of 8 to 16 bytes for each operation of its capacity. Operations
//!   that a merge has to sort go through one more buffer, for all logs, which grows to what all of
//!   them held at once and keeps that size. So does a table of 4 to 8 bytes for each of these
//!   operations, if those of different keys commute. There are as many logs as there have been
//!   sessions at one time: the next session takes over the log of one that is gone.
//! * **Waiting.** An update waits while a reader exchanges buffers, and on a clock with a boundary
//!   until that has passed. It never waits for a read or a merge, unless its log is full. A reader
//!   waits for other readers and merges. On a fibre others get their turn meanwhile.
//! * **Nesting.** Inside a read's closure this same `OpLog` may be updated. Reading it is refused
//!   by a panic that names the place, and so is every wait that would suspend a fibre.
//! * **Idle cost.** None.
//!
//! # Why reads are linearizable
//! An update draws a time, appends, and waits until the time has [passed](Clock::wait_out). A
//! reader holds the state and then has [all logs at one moment](self::OpLog::read): it waits for
//! sessions that are appending, and no other comes in. The operations that it takes are a *batch*.
//! Order all operations by (batch, time, slot, position in the log): that is the order in which
//! they are applied, and a read comes after the batch that it took. This keeps every order that can
//! be observed:
//!
//! * **Update A returned before update B began.** When B is found in a log, A has been in one
//!   before; so A's batch is B's or an earlier one. If it is B's, A's time is less: A waited until
//!   every time drawn afterwards, on whichever core, is greater.
//! * **A returned before read R began.** A is in a log, or taken by an earlier reader, when R takes
//!   all.
//! * **R returned before A began.** A is in a later batch than any that R applied.
//! * Reads hold the state, one after the other.
//!
//! So it does not matter when an update draws its time, as long as it has begun and has not waited
//! yet. The rule "announce before you draw" protects a reader that goes by its own *time*. There is
//! none here: the reader's moment is the closed gate. An update draws first, so that the append
//! overlaps with the wait.
//!
//! Operations that [commute](Commutes) need not be in that order: any order will do that leaves the
//! same readable states. So if all commute, no time is drawn at all. If those of different keys do,
//! a merge sorts only the keys that several logs have. An absorbed operation took effect where the
//! one that absorbed it does, by [its law](Absorbed).
//!
//! An update has to wait out the boundary. A reader cannot repair the order of two updates that
//! came one after the other on two cores, if the cores' clocks are further apart than the updates.
//! With a boundary that is too small this is seen to go wrong, in `tests/oplog_histories.rs`.
//!
//! # How it works
//! | file | idea |
//! |---|---|
//! | `operation` | logged operations; what may be absorbed |
//! | `log` | one log, its capacity, and the index that finds candidates for absorption |
//! | `slots` | all logs, and the gate by which a reader has them at one moment: states and proof |
//! | `merge` | times in order, if they matter |
//! | `stats` | how often the clock left the order open |
//! | `locked` | one holder of the state; all waiting happens here |
//! | `session` | an update |
//! | `counter`, `multiset`, `reverse_map`, `counted_map` | structures |
//!
//! Experiments that lost are in `docs/design/0010-oplog.md`.

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
use corelay_sync::wait::{CodeName, NoSwitch};
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
/// Linearizable reads; bounded memory; a panicking operation poisons. [The module](self) has all of
/// them.
pub struct OpLog<S, Op: Operation<S>, C> {
    pub(in crate::oplog) clock: C,
    capacity: usize,
    slots: Slots<Op>,
    merged: CachePadded<Locked<Merged<S, Op>>>,
    /// The counts of merges. They are on lines of their own, since merges write them and updates
    /// read the rest.
    counters: CachePadded<Counters>,
}

impl<S, Op: Operation<S>, C: Clock> OpLog<S, Op, C> {
    /// The number of operations that a log holds before its session has to merge, by default.
    pub const CAPACITY: usize = 4_096;

    /// An `OpLog` with this state; each log holds up to 4,096 operations.
    pub fn new(state: S, clock: C) -> Self {
        Self::with(Self::CAPACITY, state, clock)
    }

    /// An `OpLog` with this state; each log holds up to `operations`, `1..=16_777_216`, before its
    /// session has to merge.
    ///
    /// A larger log suits many updates between reads. A smaller one takes less of the caches, and
    /// leaves a read less to do. Memory is taken as it is needed.
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
    /// If `operations` is not in its range.
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

    /// A session: a log for one thread or fibre, as long as the session lives. Do not open one for
    /// a single update: it searches all logs for a free one. A session may move between threads.
    pub fn session(&self) -> Session<'_, S, Op, C> {
        Session::new(self, self.slots.claim(self.capacity))
    }

    /// The number of logs: as many as there have been sessions at one time. They are kept, and used
    /// again.
    pub fn logs(&self) -> usize {
        self.slots.len()
    }

    /// The counts of all merges since the log was made.
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

    /// Applies all that has been logged, and shows the state to `f`. It has every update that
    /// returned before this was called.
    ///
    /// # Panics
    /// If the log is poisoned. If another thread or fibre reads or merges and this code may not
    /// wait, as in a read of the same log. A panic of an operation or of `f` is passed on.
    #[track_caller]
    pub fn read<R>(&self, f: impl FnOnce(&S) -> R) -> R {
        match self.try_read(f) {
            Ok(result) => result,
            Err(Poisoned) => Poisoned::refuse(),
        }
    }

    /// Reads as [`read`](Self::read) does, but returns an error if an operation has panicked.
    ///
    /// # Errors
    /// [`Poisoned`] if an operation has panicked in an earlier call.
    ///
    /// # Panics
    /// As `read` does, except for a poisoned log.
    #[track_caller]
    pub fn try_read<R>(&self, f: impl FnOnce(&S) -> R) -> Result<R, Poisoned> {
        let mut held = self.hold();
        locked::without_switching(const { &CodeName::fixed(&"an `OpLog` read") }, || {
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
            // A panic of the clock harms nothing: the state is whole.
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

    /// Applies all that has been logged and returns the state.
    ///
    /// # Panics
    /// If the log is poisoned.
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
