//! Fibres: threads of the user's own, many on few processors, whose waits are cheap.
//!
//! A fibre has a stack and runs any code; where it waits, another runs on the same thread, some ten
//! nanoseconds later. So code that waits a lot (for a semaphore, for another fibre, for an answer of a
//! trustee) is written as if it had a thread to itself.
//!
//! ```
//! use corelay_fibre::{Cluster, Semaphore, yield_now};
//! use std::sync::Arc;
//!
//! // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
//! let cluster = unsafe { Cluster::start(2) }?; // two processors: threads that run fibres
//! let doors = Arc::new(Semaphore::new(3));
//! let visitors: Vec<_> = (0..1_000)
//!     .map(|i| {
//!         let doors = Arc::clone(&doors);
//!         cluster.spawn(move || {
//!             doors.acquire(); // a fibre that waits costs a page and no thread
//!             yield_now();
//!             doors.release();
//!             i
//!         })
//!     })
//!     .collect();
//! let sum: u32 = visitors.into_iter().map(|v| v.join().unwrap()).sum();
//! assert_eq!(sum, 499_500);
//! # Ok::<(), corelay_fibre::StartError>(())
//! ```
//!
//! # When not to use it
//! Code that computes and hardly waits: threads do that, and the system interrupts them. Code that
//! blocks in system calls or in locks of other libraries: it blocks its processor, and all fibres
//! that stay there. Code that is written as futures already.
//!
//! # Guarantees
//! * **Soundness.** Fibres of a processor share the thread-locals of its thread. Whoever
//!   [starts a cluster](Cluster::start) or takes a [`host`] promises, by one `unsafe`, that nothing
//!   waits inside a thread-local's initialiser or destructor, or inside a call scoped by one;
//!   everything beyond that is safe. A fibre of [`Cluster::spawn`] may be taken by any processor until
//!   it first runs, and stays on that thread then, with its `Rc`s, guards and references to
//!   thread-locals. [`Builder::migrating`] lets a fibre go on elsewhere after each wait; it is a second,
//!   larger promise.
//! * **Fairness.** Fibres are not interrupted. Those that are ready on a processor run in order; of
//!   its two kinds, those that stay and those that may go, one of each in turn. A fibre that may run
//!   elsewhere (it is `migrating`, or has not begun) does not wait for a processor that is stuck in
//!   another fibre: the others take it, after microseconds where one of them has nothing to do, after
//!   some milliseconds otherwise. Where *all* processors are stuck, nothing else runs.
//! * **Waiting.** A permit goes to who has waited longest, directly. All of it works on plain threads
//!   too, which block. Where nothing may wait, inside a delegated closure, a wait is a panic that names
//!   it. Under [`on_thread`](corelay_sync::wait::on_thread), in a callback, it blocks the processor,
//!   which dumps say.
//! * **Destructors** of a fibre that unwinds may wait. Calls that can say so return at once
//!   ([`Interrupted::Unwinding`]); the others let other fibres run, and no cancellation ends them. A
//!   panic hook must not wait.
//! * **Panic.** A panic ends its fibre, and reaches who [joins](JoinHandle::join) it.
//! * **Cancellation** is asked for: [`Fibre::cancel`] ends the wait that the fibre is in, and every
//!   later one; the fibre unwinds, or gets [`Interrupted`] from calls that can say so. A fibre is never
//!   dropped in the middle.
//! * **Memory.** A stack of 64 KiB of addresses ([`Builder::stack_size`]), of which a fibre that waits
//!   near its root has touched one page: 4,241 bytes a fibre at 100,000 of them, page tables included
//!   (measured on Linux 6.18, x86-64). Below each stack lies a guard; who runs into it is named
//!   before the process ends. Stacks of fibres that have ended serve again. The memory of those that
//!   nobody needs goes back to the system: all of it when the last cluster has ended and the last
//!   handle to one of its fibres is gone, but for up to 64 stacks that a thread keeps until it ends;
//!   while clusters run, what is more than is in use, and more than 1,024 stacks of a size, within some
//!   seconds.
//! * **Idle cost.** None: processors without work sleep.
//!
//! # How it works
//! A switch goes from a fibre to its processor's own stack and from there to the next. What is to be
//! done with the one that has stopped, such as putting it into a semaphore's list, is done *after* the
//! switch, on the processor's stack: so whoever wakes it can run it at once.
//!
//! | file | idea |
//! |---|---|
//! | `switch` | stop, and say what is to be done then |
//! | `wait`, `waiter` | a wait that can be interrupted, and be looked at |
//! | `header` | a fibre's record, at the top of its stack |
//! | `processor` | a thread that runs fibres: where they lie ready, who is next |
//! | `ready` | lane, ring, pinned and inbox: the places where they lie |
//! | `help`, `idle`, `monitor` | taking from the stuck; sleeping; who looks after it |
//! | `timers` | deadlines |
//! | `park`, `join`, `semaphore`, `mutex`, `condition`, `barrier`, `channel` | what can be waited for |
//! | `wait_queue`, `spin` | who waits in what, first come first served; the lock around it |
//! | `host` | a processor that lends itself to a trustee's thread |
//! | `scope`, `local` | fibres that borrow; values of each fibre |
//! | `registry`, `dump` | what all fibres do |
//! | `stack` | stacks, guards, overflows |
//!
//! Source: the micro-benchmarks of the C∀ scheduler (`docs/sources.md`, C1 to C8), and what its two
//! lanes and helping are for; the lane that only stuck processors lose is ours
//! (`docs/design/0007-fibres.md`).

mod barrier;
mod builder;
mod channel;
mod cluster;
mod condition;
mod counters;
mod dump;
mod fibre;
mod header;
mod help;
mod host;
mod idle;
mod join;
mod local;
#[cfg(any(corelay_loom, corelay_shuttle))]
#[doc(hidden)]
pub mod model;
mod monitor;
mod mutex;
mod park;
mod processor;
mod ready;
mod registry;
mod scope;
mod seam;
mod semaphore;
mod spin;
mod stack;
mod switch;
mod timers;
mod wait;
mod wait_queue;
mod waiter;

pub use barrier::Barrier;
pub use builder::{Builder, ClusterBuilder, SpawnError};
pub use channel::{
    Closed, Iter, Receiver, RecvUntilError, SendError, SendUntilError, Sender, TryRecvError,
    TrySendError, channel,
};
pub use cluster::{Cluster, StartError};
pub use condition::Condition;
pub use counters::Counters;
pub use dump::{Dump, DumpedFibre, State};
pub use fibre::{Fibre, current, is_cancelled, park, processor, sleep, spawn, yield_now};
pub use host::host;
pub use join::JoinHandle;
pub use local::{AccessError, FibreLocal};
pub use mutex::{Mutex, MutexGuard};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use semaphore::{BinarySemaphore, Semaphore};
pub use stack::{StackError, StackSize, StackSizeError};
pub use wait::{Cancelled, Interrupted};
