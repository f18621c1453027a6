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
//! * One client and a trivial operation that waits for its answer: a round trip between
//!   cores costs more than an uncontended lock.
//! * Far more objects than threads: locks and atomics spread, a trustee is one core.
//! * Long read-only scans; machines where no core can be spared.
//!
//! `cargo run --release -- compare` in the repository measures which way wins on your
//! machine.
//!
//! # Guarantees
//! Order, panics, nesting, lifetime and idle cost are stated in `docs/guide/guarantees.md`
//! and, item by item, at [`Trust`].
//!
//! # Ways of sharing
//! [`Trust`] and every lock of [`locks`] offer [`Shared`] and [`Session`]: code written
//! against these traits swaps one for another.

pub use corelay_delegate::{
    BarrierError, Builder, ClientGuard, Metrics, Poisoned, StartError, Trust, TrustSession,
    Trustees, TryApplyError, TryApplyThenError, TryPostError, barrier, poll,
};
pub use corelay_sync::{Issue, Session, Shared};

/// Locks, a small file each, that share a value as [`Trust`] does.
pub use corelay_locks as locks;
/// CPUs, caches and nodes of this machine, orders of placement, pinning.
pub use corelay_topology as topology;
