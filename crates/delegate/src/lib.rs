//! Delegation: send the operation to the thread that owns the data.

mod channel;
mod client;
mod dedicated;
mod error;
mod inbox;
mod launch;
mod leaf;
mod metrics;
mod object;
mod session;
mod slot;
mod thread;
mod trust;
mod trustee;

pub use client::{ClientGuard, barrier, poll};
pub use dedicated::{Builder, StartError, Trustees};
pub use error::{BarrierError, Poisoned, TryApplyError, TryApplyThenError, TryPostError};
pub use metrics::Metrics;
pub use session::TrustSession;
pub use trust::Trust;
