//! Delegation: send the operation to the thread that owns the data.
//!
//! ```
//! use corelay_delegate::{Trustees, barrier};
//!
//! let trustees = Trustees::dedicated(1).start()?;
//! let hits = trustees.entrust(0u64);
//! let n = hits.apply(|h| { *h += 1; *h }); // waits
//! hits.post(|h| *h += 1); // wants no answer
//! hits.apply_then(|h| *h, move |m| assert_eq!(m, n + 1)); // callback, later
//! barrier()?; // everything is done, the callback has run
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate is built in layers. Each uses those above it in this table, never those below:
//!
//! | layer | idea |
//! |---|---|
//! | `error`, `catch`, `operation`, `large`, `metrics` | errors, panics, operations and their names, large closures, counters |
//! | `wire` | the memory that a client and a trustee share: rings, mail line, inbox |
//! | `observe` | notes for reports |
//! | `policy` | when a member of a flat team serves |
//! | `object` | a value, its handles, and the state that its trustee shows to clients |
//! | `slots` | memory in which results wait for futures |
//! | `wait_graph` | which launched closures wait for each other |
//! | `context` | the state that this crate keeps for a thread: clients, trustee, activity |
//! | `request` | closures, callbacks and answers as words in a ring |
//! | `client` | a client's side of a channel: each kind of request, room, answers, callbacks |
//! | `lane` | a trustee's side of a channel |
//! | `trustee` | the loop of a trustee's thread: pass, look, sleep, close |
//! | `trust` | the handle, and its ways to send requests |
//! | `dedicated` | trustees on threads of their own, from start to shutdown |
//! | `flat` | trustees that run a function of yours too |
//! | `launched` | closures that may wait |
//! | [`report`] | reports: objects, clients, and where time goes |
//!
//! The features `metrics`, `serde` and `tracing` are off by default and cost nothing then: figures of
//! reports for a recorder, reports as values, and events for a subscriber. `docs/guide/watching.md`
//! has a section on each.
//!
//! Delegation is not for data that threads seldom want at the same time, nor for far more objects
//! than threads: see the guide. What is promised, and where the limits are, is in
//! `docs/guide/guarantees.md`; how it works, in `docs/design/0001-channel.md`.

// First, so that rustdoc shows its methods before those of `launched`.
mod trust;

mod catch;
mod client;
mod context;
mod dedicated;
mod error;
mod flat;
mod lane;
mod large;
mod launched;
mod metrics;
mod object;
mod observe;
mod operation;
mod policy;
pub mod report;
mod request;
mod slots;
mod trustee;
mod wait_graph;
mod wire;

pub use client::future::ApplyFuture;
pub use client::poll::{ClientGuard, barrier, poll};
pub use client::post_async::PostFuture;
pub use dedicated::{Builder, Trustees};
pub use error::{
    AsyncError, BarrierError, CircularWait, Poisoned, TryApplyAsyncError, TryApplyError,
    TryApplyThenError, TryLaunchError, TryPostError,
};
#[cfg(any(unix, corelay_loom, corelay_shuttle))]
pub use flat::Dozing;
pub use flat::{Member, Team, TeamBuilder};
pub use launched::handle::LaunchHandle;
pub use metrics::Metrics;
pub use operation::{RequestName, TypeName};
pub use policy::{ParsePolicyError, Policy};
#[doc(inline)]
pub use report::{Report, Reporter};
pub use trust::Trust;
pub use trust::into_inner::IntoInnerError;
pub use trust::many::Trusts;
#[doc(hidden)]
pub use trust::no_unwind;
pub use trust::session::TrustSession;
pub use trust::timed::{TimedFuture, TimeoutError};
pub use trust::weak::Weak;
pub use trust::zip::{Zip, ZipError};
pub use trustee::spawn::StartError;
#[cfg(any(corelay_loom, corelay_shuttle))]
#[doc(hidden)]
pub use {
    client::future::checked,
    flat::job::checked::{Doorbell, Dozer, Jobs},
    trust::claim::checked::Side,
};
