//! Fibres: user-level threads, many of them on a few processors, that wait cheaply.
//!
//! A fibre has a stack and runs any code. While it waits, another fibre runs on the same thread,
//! some ten nanoseconds later. So code that waits a lot (for a semaphore, for another fibre, for
//! the answer of a trustee) is written as if it had a thread to itself.
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
//! * Code that computes and hardly waits: threads do that, and the system interrupts them.
//! * Code that blocks in system calls or in locks of other libraries: it blocks its processor, and
//!   all fibres that stay there.
//! * Code that is written as futures already.
//!
//! # Guarantees
//! * **Soundness.** The fibres of a processor share the thread-locals of its thread. Whoever
//!   [starts a cluster](Cluster::start) or takes a [`host()`] promises, by one `unsafe`, that nothing
//!   waits inside a thread-local's initialiser or destructor, or inside a call scoped by one.
//!   Everything beyond that is safe. Any processor may take a fibre of [`Cluster::spawn`] until it
//!   first runs; then it stays on that thread, with its `Rc`s, guards and references to
//!   thread-locals. [`Builder::migrating`] lets a fibre continue elsewhere after each wait; it is a
//!   second, larger promise.
//! * **Fairness.** Fibres are not interrupted. Those that are ready on a processor run in order. Of
//!   its two kinds, those that stay and those that may run elsewhere, one of each runs in turn. A
//!   fibre that may run elsewhere (it is `migrating`, or has not begun) does not wait for a
//!   processor that is stuck in another fibre: other processors take it, after microseconds if one
//!   of them is idle, after some milliseconds otherwise. If *all* processors are stuck, nothing
//!   else runs.
//! * **Waiting.** A permit goes directly to the waiter that has waited longest. All of it works on
//!   plain threads, too, which block. In a place where nothing may wait, such as a delegated
//!   closure, a wait is a panic that names the place. Under
//!   [`on_thread`](corelay_sync::wait::on_thread), as in a callback, a wait blocks the processor,
//!   and dumps say so.
//! * **Destructors** of a fibre that unwinds may wait. Calls that have an error for it return at
//!   once ([`Interrupted::Unwinding`]); the others let other fibres run, and no cancellation ends
//!   them. A panic hook must not wait.
//! * **Panic.** A panic ends its fibre, and reaches whoever [joins](JoinHandle::join) it.
//! * **Cancellation** is a request: [`Fibre::cancel`] ends the wait that the fibre is in, and every
//!   later one. The fibre unwinds, or gets [`Interrupted`] from calls that have an error for it. A
//!   fibre is never dropped in the middle.
//! * **Memory.** A stack takes 64 KiB of addresses ([`Builder::stack_size`]), of which a fibre that
//!   waits near its root has touched one page: 4,241 bytes a fibre at 100,000 of them, page tables
//!   included (measured on Linux 6.18, x86-64). Below each stack lies a guard; a fibre that runs
//!   into it is named before the process ends. Stacks of fibres that have ended are used again.
//!   Memory that nobody needs goes back to the system. All of it does when the last cluster has
//!   ended and the last handle to one of its fibres is gone, except up to 64 stacks that a thread
//!   keeps until it ends. While clusters run, free stacks beyond as many as are in use, and beyond
//!   1,024 of a size, go back within some seconds.
//! * **Idle cost.** None: processors without work sleep.
//!
//! # How it works
//! A switch goes from a fibre to its processor's own stack, and from there to the next fibre.
//! Whatever is to be done with the fibre that has stopped, such as enqueuing it at a semaphore, is
//! done *after* the switch, on the processor's stack. So the thread that wakes the fibre can run it
//! at once.
//!
//! | file | idea |
//! |---|---|
//! | `switch` | stopping a fibre, and what is done with it then |
//! | `wait`, `waiter` | a wait that can be interrupted, and be looked at |
//! | `header` | everything about a fibre but its frames, at the top of its stack |
//! | `processor` | a thread that runs fibres: which are ready, and which is next |
//! | `ready` | lane, ring, pinned and inbox: the queues of ready fibres |
//! | `help`, `idle`, `monitor` | taking from stuck processors; sleeping; the thread that looks after both |
//! | `timers` | deadlines |
//! | `park`, `join`, `semaphore`, `mutex`, `condvar`, `barrier`, `channel` | what fibres can wait for |
//! | `wait_queue`, `spin` | the queue of waiters, first come, first served; the lock around it |
//! | `host` | a processor on the thread of its caller, a trustee's |
//! | `scope`, `local` | fibres that borrow; values of each fibre |
//! | `registry`, `dump` | all fibres, and what each is doing |
//! | `stack` | stacks, guards, overflows |
//!
//! Sources: the micro-benchmarks of the C∀ scheduler (`docs/sources.md`, C1 to C8), and the purpose
//! of its two lanes and of its helping. The lane that only stuck processors lose is our own
//! (`docs/design/0007-fibres.md`).

#[cfg(not(unix))]
compile_error!(
    "fibres need the mappings and signals of a Unix system; `corelay` is built without them elsewhere"
);

mod barrier;
mod builder;
mod channel;
mod cluster;
mod condvar;
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
    Iter, Receiver, RecvError, RecvUntilError, SendError, SendUntilError, Sender, TryRecvError,
    TrySendError, channel,
};
pub use cluster::{Cluster, StartError};
pub use condvar::Condvar;
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
