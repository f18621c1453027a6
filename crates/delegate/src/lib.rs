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
//! | file | idea |
//! |---|---|
//! | `trust` | the handle, and the ways to ask |
//! | `dedicated` | trustees on threads of their own, from start to shutdown |
//! | `entrust` | giving them values |
//! | `flat/` | trustees that run a function of yours too |
//! | `trustee`, `trustee/hosted` | what such a thread does: pass, look, sleep, close; beside closures that wait |
//! | `channel/` | how a request travels: replaceable as a whole |
//! | `future/` | results that tasks wait for |
//! | `held/` | closures that wait |
//! | `object` | a value and its life |
//! | `inbox` | how channels and dead objects announce themselves |
//! | `thread` | a thread's clients; what its callbacks leave |
//! | `client` | poll, barrier, and the end of a client |
//! | `leaf` | a delegated closure may not wait |
//! | `nested` | what a delegated closure may ask for |
//! | `session` | delegated objects as one of the ways of sharing |
//! | `border` | refusals as values, for the C interface |
//! | `launch`, `slot` | a trustee's thread, and its number |
//! | `error`, `metrics` | what can go wrong, and what is counted |
//! | [`report`] | who owns what, and where time goes |
//!
//! Not for data that threads seldom want at the same time, nor for far more objects than
//! threads: see the guide. What is promised, and where the limits are, is in
//! `docs/guide/guarantees.md`; how it works, in `docs/design/0001-channel.md`.

#[doc(hidden)]
pub mod border;
mod byway;
mod channel;
mod client;
mod dedicated;
mod discard;
mod entrust;
mod error;
mod flat;
mod future;
mod held;
mod inbox;
mod large;
mod launch;
mod leaf;
mod marks;
mod metrics;
mod nested;
mod object;
pub mod report;
mod serving;
mod session;
mod slot;
mod thread;
mod trust;
mod trustee;

pub use client::{ClientGuard, barrier, poll};
pub use dedicated::{Builder, StartError, Trustees};
pub use error::{
    AsyncError, BarrierError, Poisoned, TryApplyAsyncError, TryApplyError, TryApplyThenError,
    TryLaunchError, TryPostError,
};
pub use flat::{Member, ParsePolicyError, Policy, Team, TeamBuilder};
pub use future::ApplyFuture;
pub use held::circle::CircularWait;
pub use held::handle::LaunchHandle;
pub use metrics::Metrics;
#[doc(inline)]
pub use report::{Report, Reporter};
pub use session::TrustSession;
pub use trust::Trust;
#[cfg(any(corelay_loom, corelay_shuttle))]
#[doc(hidden)]
pub use {
    flat::seat::checked::{Doorbell, Dozer, Jobs},
    future::checked,
};
