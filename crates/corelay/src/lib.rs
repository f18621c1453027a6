//! Share mutable state between cores fast: send the operation to the thread that owns the
//! data, instead of locking the data and moving it to the thread.
//!
//! ```
//! use corelay::Trustees;
//!
//! let trustees = Trustees::dedicated(1).start()?; // a thread that owns objects
//! let hits = trustees.entrust(0u64); // a handle: clone it, send it to other threads
//! let n = hits.apply(|h| { *h += 1; *h }); // waits for the answer
//! hits.post(|h| *h += 1); // wants none
//! hits.apply_then(|h| *h, |n| println!("{n} hits")); // callback on this thread, later
//! corelay::barrier()?; // all of it is done, the callback has run
//! assert_eq!(hits.apply(|h| *h), n + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use it
//! * Data that threads seldom want at the same time: a mutex is cheaper.
//! * One client and a trivial operation that waits for its answer: a round trip between cores costs
//!   more than an uncontended lock.
//! * Far more objects than threads: locks and atomics spread over the cores, while a trustee is one
//!   core.
//! * Long read-only scans; machines on which no core can be spared.
//!
//! `cargo run --release -- compare` in the repository measures which way wins on your machine;
//! [a page of the guide](guide::choosing_a_method) explains why.
//!
//! # Guarantees
//! This is the summary. [The guide](guide::guarantees) has the full text, and each method lists its
//! errors and panics.
//!
//! * **Order.** A trustee runs one thread's requests in the order in which the thread made them.
//!   While a launched closure holds an object, requests to other objects overtake those that wait
//!   for it. Nothing is promised across threads or trustees.
//! * **Panic.** A panic of a delegated closure poisons its object. It reaches the caller of
//!   [`apply`](Trust::apply), or the next [`barrier`]. The trustee lives on.
//! * **Accepted means executed**, even if the client never calls corelay again. Callbacks run
//!   inside later corelay calls of the thread that made the request.
//! * **Nesting.** A delegated closure is a leaf: a corelay call inside it that would wait is
//!   refused, with a message that names it; `post` and `apply_then` are sent when the closure has
//!   ended. Callbacks may make requests. A closure that has to wait is [launched](Trust::launch).
//! * **Memory.** Bounded for each client and trustee by a window. An object lives until every
//!   request that was accepted before its last handle was dropped has run.
//! * **Idle cost.** None: a trustee without work sleeps.
//!
//! # Features
//! All are off by default, and cost nothing then. [The guide](guide::watching) has a section on each.
//!
//! * `metrics`: [`Report::record`](report::Report) hands figures to a recorder of the crate `metrics`.
//! * `serde`: reports, times and rates of clocks are `Serialize` and `Deserialize`, calibrations
//!   `Serialize`.
//! * `tracing`: poisoned objects, circular waits, slow closures and waits for room are events for a
//!   subscriber of the crate `tracing`.
//!
//! # Systems
//! Linux is the home, and the only system on which corelay is tested and measured.
//!
//! * *Windows*: it compiles (`x86_64-pc-windows-gnu`, checked by `cargo xtask deep windows`) and has not
//!   been run. `fibre` is missing, and with it trustees that are [hosted](Builder::host) by fibres. A
//!   [topology] names no caches and nodes, and pinning a thread is an error that says so. There is no
//!   asymmetric barrier, so each request costs a fence.
//! * *macOS* and other Unix systems: untested. They have fibres, and lack the rest as Windows does.
//!
//! # Ways of sharing
//! [`Trust`] and every lock of [`locks`] offer [`Shared`] and [`Session`]. Code written against
//! these traits can swap one for another.
//!
//! ```
//! use corelay::{Session, Shared, Trustees, locks::Mcs};
//!
//! fn count(hits: &impl Shared<Value = u64>) -> u64 {
//!     let mut hits = hits.session(); // this thread's way in
//!     hits.apply(|h| { *h += 1; *h })
//! }
//!
//! let trustees = Trustees::dedicated(1).start()?;
//! assert_eq!(count(&trustees.entrust(0)), 1); // by delegation
//! assert_eq!(count(&Mcs::new(0)), 1); // by a queue lock
//! # Ok::<(), corelay::StartError>(())
//! ```

#[cfg(unix)]
pub use corelay_delegate::Dozing;
pub use corelay_delegate::{
    ApplyFuture, AsyncError, BarrierError, Builder, CircularWait, ClientGuard, IntoInnerError,
    LaunchHandle, Member, Metrics, ParsePolicyError, Poisoned, Policy, PostFuture, Report,
    Reporter, RequestName, StartError, Team, TeamBuilder, TimedFuture, TimeoutError, Trust,
    TrustSession, Trustees, Trusts, TryApplyAsyncError, TryApplyError, TryApplyThenError,
    TryLaunchError, TryPostError, TypeName, Weak, Zip, ZipError, barrier, name, poll, report,
};
pub use corelay_sync::{Issue, Session, Shared};

/// Clocks that order what threads do: one shared counter, or each core's own with a measured
/// boundary (Ordo).
///
/// ```
/// use corelay::clock::{Clock, Logical, Ordo, Time};
///
/// fn stamp(clock: &dyn Clock) -> Time {
///     clock.after(clock.now()) // certainly after everything stamped so far here
/// }
///
/// match Ordo::shared() {
///     Ok(clock) => println!("{:?}", stamp(clock)),
///     Err(why) => println!("{why}: {:?}", stamp(&Logical::new())),
/// }
/// ```
#[doc(inline)]
pub use corelay_clock as clock;
/// Fibres: many user-level threads on few processors. [`Trust::apply`] on a fibre suspends that
/// fibre, and others run meanwhile.
///
/// On trustees that are [hosted](Builder::host), closures can wait, too, each in a fibre on its
/// trustee's thread: [`Trust::launch`].
///
/// ```
/// use corelay::{Trustees, fibre};
/// use std::time::Duration;
///
/// // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
/// let host = unsafe { fibre::host() };
/// let trustees = Trustees::dedicated(1).host(host).start()?;
/// let (stock, log) = (trustees.entrust(3u32), trustees.entrust(Vec::new()));
/// let theirs = log.clone();
/// let sold = stock.launch(move |stock| {
///     fibre::sleep(Duration::from_millis(1)).unwrap(); // others are served meanwhile
///     *stock -= 1;
///     let left = *stock;
///     theirs.apply(|log| log.push(left)); // so it can wait for others' answers
///     left
/// });
/// assert_eq!(stock.apply(|stock| *stock), 2); // waits until the value is free
/// assert_eq!(sold.join()?, 2);
/// assert_eq!(log.apply(|log| log.clone()), [2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(unix)]
#[doc(inline)]
pub use corelay_fibre as fibre;
/// Locks, a small file each, that share a value in the way that [`Trust`] does.
#[doc(inline)]
pub use corelay_locks as locks;
/// Structures to share: plain lists, maps and queues to be put behind a [`Trust`] or a lock, a hash map
/// split over trustees, rivals with many locks and without any, and a pool of nodes.
///
/// ```
/// use corelay::{Trustees, structures::sharded::ShardedMap};
///
/// let trustees = Trustees::dedicated(2).start()?;
/// let stock = ShardedMap::new(&trustees); // a shard for each trustee; clone the handle
/// stock.insert("apples", 3);
/// assert_eq!(stock.update("apples", |n| { *n -= 1; *n }), Some(2));
/// assert_eq!(stock.get_many(["apples", "pears"]), [Some(2), None]); // waits once
/// # Ok::<(), corelay::StartError>(())
/// ```
///
/// ```
/// use corelay::Trustees;
/// use corelay::structures::seq::SortedList;
///
/// let trustees = Trustees::dedicated(1).start()?;
/// let list = trustees.entrust(SortedList::new());
/// assert_eq!(list.apply(|list| { list.extend([3, 1, 2]); list.pop_first() }), Some(1));
/// # Ok::<(), corelay::StartError>(())
/// ```
#[doc(inline)]
pub use corelay_structures as structures;
/// The CPUs, caches and memory nodes of this machine, orders of placement, and pinning.
#[doc(inline)]
pub use corelay_topology as topology;
/// Read-log-update, transactional memory, and logs that are merged when read: ways for many threads
/// to use one structure, ordered by a [`clock`].
#[doc(inline)]
pub use corelay_txn as txn;

pub use corelay_sync::trace;

#[cfg(doc)]
pub mod guide;
