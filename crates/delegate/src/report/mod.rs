//! Reports on trustees: their objects, their clients, and where their time goes.
//! [`Trustees::report`](crate::Trustees::report) makes one.
//!
//! A report is made while trustees run, by any thread, and asks nothing of them: it reads what they
//! and their clients publish. So it also comes while a trustee stands in a closure that does not
//! end. Its figures are of slightly different moments.
//!
//! Names, counts and queue depths are always there. Figures that cost time are not:
//! [`Builder::observe`](crate::Builder::observe) asks for them, and the fields named `observed` are
//! `None` without.
//!
//! | figure | source |
//! |---|---|
//! | saturation, requests per batch | every pass and batch is counted; published when the trustee idles and every 64 passes with work |
//! | rings | counted when a member of a flat team finds its doorbell rung; published like saturation |
//! | held objects | launched closures say when they begin and end; their waits are in the graph in which rings are looked for |
//! | queue depth | the difference of two counters, when the report is made |
//! | ready rate, failed pops, waits | *observed*: counted by each client when it looks for answers, finds no room, waits |
//! | latency | *observed*: one `apply_then` in 64 of those that leave the client's fast path, at random, is timed until the client sees its answer |
//! | slowest closures | *observed*: batches are timed, at random, as often as costs a hundredth of the trustee's work: one in some dozens of short batches, every batch of ten microseconds |

mod footprint;
mod gather;
mod json;
mod place;
#[cfg(feature = "metrics")]
mod record;
#[cfg(feature = "serde")]
mod serialize;
mod table;

pub use crate::observe::State;
pub use crate::observe::counts::ClientObserved;
pub use footprint::{Footprint, Traffic};
pub use gather::Reporter;
pub use place::Places;
#[cfg(feature = "metrics")]
pub use record::describe_metrics;

use crate::metrics::Metrics;
use crate::observe::{mean, ratio};
use std::borrow::Cow;
use std::time::Duration;

/// The findings of [`Trustees::report`](crate::Trustees::report). `Display` shows them as a table,
/// [`to_json`](Self::to_json) as JSON. With the feature `serde` all its parts are `Serialize`, in that
/// form, and `Deserialize`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct Report {
    /// Nodes of this machine that have memory. `None` if the system does not say.
    pub nodes: Option<usize>,
    /// The trustees, in the order of their numbers.
    pub trustees: Vec<TrusteeReport>,
}

/// The report on one trustee.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct TrusteeReport {
    /// The name of the trustee's thread.
    pub name: String,
    /// The state of the trustee.
    pub state: State,
    /// The CPU that the trustee is pinned to, if it is.
    pub cpu: Option<usize>,
    /// The memory node of that CPU, on a machine with several.
    pub node: Option<usize>,
    /// The counters of the trustee since its start.
    pub metrics: Metrics,
    /// The objects that have a name, by type and name.
    pub objects: Vec<ObjectReport>,
    /// The objects without a name, by type.
    pub unnamed: Vec<TypeReport>,
    /// The objects that launched closures hold.
    pub held: Vec<HeldReport>,
    /// The clients, in the order in which they came.
    pub clients: Vec<ClientReport>,
    /// The number of clients that have gone.
    pub gone: u64,
    /// The largest number of requests that each client may have in flight.
    pub window: u32,
    /// Further figures, if the trustee is observed.
    pub observed: Option<TrusteeObserved>,
}

/// The report on an object that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct ObjectReport {
    /// The name given by [`Trust::named`](crate::Trust::named) or
    /// [`Trust::set_name`](crate::Trust::set_name).
    pub name: String,
    /// The name of the object's type.
    pub type_name: Cow<'static, str>,
    /// The memory node on which the object begins, on a machine with several, if that is known.
    pub node: Option<usize>,
}

/// The report on an object that a launched closure holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct HeldReport {
    /// The object's name, if it has one, and its type's.
    pub name: String,
    /// The objects held by the closures that this object's closure waits for. A launch that holds
    /// no object is listed by a text that says so. If the list is empty, the closure runs, or waits
    /// by other means: for an object that nobody holds, a lock, a sleep.
    pub waits_for: Vec<String>,
}

/// The report on the objects of one type that have no name.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct TypeReport {
    /// The name of the type.
    pub type_name: Cow<'static, str>,
    /// The number of such objects.
    pub count: usize,
    /// The memory nodes of up to 16 objects of the type, named ones included.
    pub places: Option<Places>,
}

/// The report on a client, that is on the channel to the trustee of one thread or launched closure.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct ClientReport {
    /// The name given by [`ClientGuard::named`](crate::ClientGuard::named), or the thread's name.
    pub name: Option<String>,
    /// The number of requests that the trustee has accepted and not executed.
    pub queued: u32,
    /// The memory node of the CPU on which the client connected, on a machine with several.
    pub node: Option<usize>,
    /// The memory nodes on which the client's request ring, answer ring and callback queue begin.
    /// Known if the trustee is observed.
    pub places: Option<Places>,
    /// The counts of the client, if the trustee is observed.
    pub observed: Option<ClientObserved>,
}

/// Further figures of a trustee that is observed: see
/// [`Builder::observe`](crate::Builder::observe).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct TrusteeObserved {
    /// The number of requests that were timed, of those that [`Metrics::requests`] counts: as many
    /// as cost about a hundredth of the time that requests take.
    pub samples: u64,
    /// The closures that took longest on average, by name, slowest first: up to [`SLOWEST`].
    pub slowest: Vec<ClosureReport>,
    /// The counts of the clients that have gone, added up.
    pub gone: ClientObserved,
}

/// The largest number of names of closures that a report lists.
pub const SLOWEST: usize = 10;

/// The report on the time that one type of closure, or the requests of one name, take, by samples. Equal requests that ran one
/// after the other are timed together. The time includes that of a stamp, some tens of nanoseconds,
/// and interruptions of the trustee. Closures that panic are not timed, nor those that other
/// closures have sent to their own trustee.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct ClosureReport {
    /// The name given by [`Trust::request`](crate::Trust::request), or that of the closure's type.
    pub name: Cow<'static, str>,
    /// The number of requests that were timed.
    pub samples: u64,
    /// The time of all samples together.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "total_ns", deserialize_with = "crate::observe::nanos")
    )]
    pub total: Duration,
    /// The longest time; for requests timed together, their average counts.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "longest_ns", deserialize_with = "crate::observe::nanos")
    )]
    pub longest: Duration,
}

impl TrusteeReport {
    /// The share of passes that found work: near 1 the trustee has no time left, near 0 it idles.
    /// `None` before the first pass has been published.
    pub fn saturation(&self) -> Option<f64> {
        ratio(self.metrics.passes_with_work, self.metrics.passes)
    }

    /// The average number of requests that the trustee found at a time. `None` before the first
    /// batch has been published.
    pub fn requests_per_batch(&self) -> Option<f64> {
        ratio(self.metrics.requests, self.metrics.batches)
    }

    /// The number of objects that the trustee owns, with and without names.
    pub fn objects_owned(&self) -> usize {
        self.objects.len() + self.unnamed.iter().map(|of| of.count).sum::<usize>()
    }
}

impl ClosureReport {
    /// The average time of the samples.
    pub fn mean(&self) -> Duration {
        mean(self.total, self.samples).unwrap_or_default()
    }
}
