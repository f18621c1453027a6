//! Read-log-update: many objects read under one snapshot, locked for writing one by one.
//!
//! A *section* sees everything as of its beginning and takes nothing: no lock, no copy, one locked
//! instruction. A *write section* locks object by object and works on copies in its session's
//! *log*. When it commits, later sections read the copies; when the earlier sections have ended,
//! the copies replace the originals (Matveev, Shavit, Felber and Marlier, "Read-log-update: a
//! lightweight synchronization mechanism for concurrent programming", SOSP 2015; with hardware
//! clocks, Kashyap and others, "A Scalable Ordering Primitive for Multicore Machines", EuroSys
//! 2018).
//!
//! ```
//! use corelay_clock::Logical;
//! use corelay_txn::rlu::{Domain, RluHash, RluList};
//!
//! let domain = Domain::new(Logical::new());
//! let idle: RluList<_, u64> = RluList::new_in(&domain);
//! let busy: RluHash<_, u64, &str> = RluHash::new_in(&domain, 64);
//! let mut session = domain.session();
//! session.write(|section| idle.insert(section, 7, ()));
//!
//! // Worker 7 gets work: in one step, for all readers.
//! session.write(|section| {
//!     idle.remove(section, &7)?;
//!     busy.insert(section, 7, "tidy up")
//! });
//! let (idle, work) = session.read(|section| {
//!     (idle.iter(section).count(), busy.get(section, &7))
//! });
//! assert_eq!((idle, work), (0, Some("tidy up")));
//! ```
//!
//! **Nothing rests on the clock's promise**: neither memory nor snapshots nor their order. A clock
//! whose boundary is too small only costs waits.
//!
//! # When not to use it
//! * Most sections write, or all write the same object: a mutex is cheaper.
//! * Values are large: a lock copies them twice.
//! * Sections take long or wait: a section keeps every writer's memory. Wait after the section
//!   instead.
//!
//! # Guarantees
//! * **Snapshot.** A section sees all of another session's commit or nothing of it, and never an
//!   older state than an earlier section of its session. It sees its own session's changes.
//! * **Order.** Without deferral ([`Domain::new`]) a commit is visible when it returns: sections
//!   are linearizable. That includes write sections as far as they lock what they depend on. An
//!   object that a write section has only read may have been changed by another when it commits
//!   (write skew, as under snapshot isolation): lock it too. With deferral
//!   ([`Domain::with_deferral`]) a session sees its own changes at once, and others see them after
//!   a synchronisation.
//! * **Progress.** A reader waits for a writer in one case: the writer is between announcing a
//!   commit and saying its time. That takes a few hundred nanoseconds, or until the system lets the
//!   writer run again. A lock that a session keeps while it does nothing is taken from it by the
//!   session that needs it.
//! * **Abort.** [`Abort`] returned from a section undoes it, as does a panic in it.
//! * **Waiting** inside a section is refused by a panic that names it: the thread would run other
//!   fibres, and those might wait for the section. Sections do not nest.
//! * **Memory.** A removed object is freed when every section that began before has ended. A
//!   session has three logs, which grow with what one sync makes visible. A section that does not
//!   end keeps all of that; a writer that has waited two seconds for one prints where it began.
//! * **Idle cost.** None. A domain keeps a slot for as many sessions as have lived at once.
//! * **Cost of a commit.** One line for each other session, in whatever order (hardware clocks: two
//!   looks); so commits of hundreds of sessions want deferral.
//! * **Where the time goes.** On a [`Timed`](corelay_clock::Timed) clock [`Stats`] has the ticks of
//!   copying, locking, ordering and waiting. On other clocks nothing is measured, and nothing of it
//!   is compiled.
//!
//! # How it works
//! | file | idea |
//! |---|---|
//! | `words` | the state of a session and of a log, each in a word; the one comparison that decides |
//! | `slot` | what a session shows to others; who may use its journal |
//! | `log` | objects, records with copies, garbage that is freed with a log |
//! | `journal` | locks, write sets, three logs |
//! | `sync` | publish, wait for readers, copy back |
//! | `session`, `domain` | the safe face |
//! | `list`, `hash` | structures |
//!
//! ## State table
//! | an object's header | its log is | a section of local time *l* takes |
//! |---|---|---|
//! | null | | the original |
//! | a record | its own session's | the copy |
//! | a record | collecting | the original |
//! | a record | announced, not before *f* | the original if *l* ≤ *f*, else it waits |
//! | a record | visible from *v* | the copy if *v* < *l*, else the original |
//!
//! *v* = *w* + boundary, where *w* is the commit's time: *v* < *l* says that *w* is **certainly**
//! before *l*. It is computed once and written down. Readers and syncers compare with the same two
//! numbers, so they cannot disagree, even while the boundary is being raised.
//!
//! A commit takes these steps:
//!
//! 1. It announces and draws *w*.
//! 2. On a clock that knows uncertainty, it raises each session's *horizon* to *v*, and notes which
//!    sessions are inside a section. If one of those has *l* > *v*, it repeats this with the
//!    largest such *l* for *v*.
//! 3. It says *v*.
//! 4. Later, when no section is left with *l* ≤ *v*, it copies back, unlocks, and frees what was
//!    removed. The buffers are used again when the *next* commit has come as far. On an exact
//!    clock, times decide whether a section is left. On other clocks presence alone decides: each
//!    session that was seen inside has to show another word.
//!
//! A section begins on an exact clock so: say "inside"; fence; draw *l*; say it. On a clock that
//! knows uncertainty: draw *l*, say it by a locked instruction, look at the horizon; if *l* is not
//! beyond it, draw until it is, and enter anew. Suppose that the clock is certainly before the time
//! that raised the horizon, which its promise excludes. Then *l* is the number after the horizon
//! instead ([`Stats::beyond`]).
//!
//! ## Proof sketch
//! *A section that takes a copy sees all of the commit*, if *v* < *l*. On an exact clock *w* was
//! drawn before *l*, and the announcement came before *w*; the section reads after *l* was drawn.
//! On other clocks the commit announces, raises the horizon, passes a full fence, and looks; a
//! section says that it is inside, passes a full fence, and reads. If the commit's first look does
//! not see the section, the section sees the announcement. If it does, *v* is no less than that
//! section's *l*, so *v* < *l* holds for other sections only. Either way a section with *v* < *l*
//! finds at each of the commit's objects the lock, or the value that was copied back; in the log it
//! finds the announcement, and waits for *v*. How its number *l* relates to the time does not
//! matter.
//!
//! *A section that takes an original is waited for*, if the original is later overwritten. The
//! section says that it is inside, passes a full fence, and looks (at the clock, at its horizon).
//! The commit does its part (locks, announcement, the clock's increment or the horizon), passes a
//! full fence, and looks whether the section is inside. Either the commit sees the section, and
//! waits until it has left (exact: or said an *l* > *v*). Or the section sees the locks, and the
//! clock incremented or the horizon *v*: then *l* > *v*, and it takes the copies. Nothing here
//! depends on how long something takes: a thread may be interrupted between any two steps. For a
//! session that is created meanwhile, see `Slots::catch_up`.
//!
//! *A wrong clock breaks nothing.* On a clock that is not exact, the horizon and *v* are compared
//! as bare numbers, and no time decides which sections to wait for. So a section that was seen is
//! waited for, and one that was not takes the copies, whatever the numbers mean. A section that
//! takes a copy looks at the header again after the stage. If the record still locks its object
//! then, it is of the commit, and not of an earlier write set of the same log that was aborted and
//! whose new nodes are gone. And a write section can only lock objects that no commit has touched
//! that became visible since it began: until it ends, none of those commits is copied back, and
//! their locks stay. Only the clock's crate can call a clock exact.
//!
//! *Copies stay while they are read.* A section that reads a copy of log A has met its header
//! before it was unlocked. The session's next commit B draws its time after that, so the section is
//! not beyond B (and is inside when B looks). B waits for it, and A begins anew after B.
//!
//! *Order.* Horizons are raised before *v* is said. So a session that sees a commit, or its return,
//! and then tells another session, tells one whose horizon is *v*: what that begins next sees the
//! commit. And what that commits is not visible before *v*, for a commit's *v* is not below its
//! session's horizon.
//!
//! *No deadlock.* A session that waits for sections is in none; and inside a section the only wait
//! is for a time that is about to be said.

mod domain;
mod hash;
mod journal;
mod list;
mod log;
mod session;
mod slot;
mod stats;
mod sync;
mod words;

pub use domain::{Domain, Rlu};
pub use hash::{HashSession, RluHash};
pub use list::{ListSession, RluList};
pub use session::{Abort, Section, Session, WriteSection};
pub use stats::Stats;
