//! What trustees own, whom they serve, and where their time goes:
//! [`Trustees::report`](crate::Trustees::report).
//!
//! A report is made while trustees run, by whatever thread, and asks nothing of them: it reads
//! what they and their clients publish. So it also comes while a trustee stands in a closure
//! that does not end. Its figures are of slightly different moments.
//!
//! Names, counts and queue depths are always there. What costs time is not:
//! [`Builder::observe`](crate::Builder::observe) asks for it, and the fields named `observed`
//! are `None` without.
//!
//! | figure | how it comes about |
//! |---|---|
//! | saturation, requests per batch | every pass and batch is counted; published when the trustee idles and every 64 passes with work |
//! | rings | counted where a member of a flat team finds its doorbell rung; published as above |
//! | held objects | launched closures say when they begin and end; what they wait for is in the graph in which rings are looked for |
//! | queue depth | the difference of two counters, when the report is made |
//! | ready rate, failed pops, waits | *observed*: counted by each client where it looks for answers, finds no room, waits |
//! | latency | *observed*: one `apply_then` in 64 of those that leave the client's fast path, at random, is timed until the client sees its answer |
//! | slowest closures | *observed*: batches are timed, at random, as often as costs a hundredth of the trustee's work: of short ones one in some dozens, of those of ten microseconds each |

mod footprint;
mod gather;
mod json;
mod place;
mod table;

pub use crate::observe::State;
pub use crate::observe::counts::ClientObserved;
pub use footprint::{Footprint, Traffic};
pub use gather::Reporter;
pub use place::Places;

use crate::metrics::Metrics;
use crate::observe::{mean, ratio};
use std::time::Duration;

/// What [`Trustees::report`](crate::Trustees::report) found. Shown as a table by `Display`,
/// as JSON by [`to_json`](Self::to_json).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Nodes of this machine that have memory; `None` where the system does not say.
    pub nodes: Option<usize>,
    /// The trustees, in the order of their numbers.
    pub trustees: Vec<TrusteeReport>,
}

/// What there is to say about one trustee.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrusteeReport {
    /// The name of its thread.
    pub name: String,
    /// What it does.
    pub state: State,
    /// The CPU that it is pinned to, if it is.
    pub cpu: Option<usize>,
    /// The memory node of that CPU, on a machine with several.
    pub node: Option<usize>,
    /// What it has counted since its start.
    pub metrics: Metrics,
    /// Its objects that have a name, by type and name.
    pub objects: Vec<ObjectReport>,
    /// The others, by type.
    pub unnamed: Vec<TypeReport>,
    /// The objects that launched closures hold.
    pub held: Vec<HeldReport>,
    /// Its clients, in the order in which they came.
    pub clients: Vec<ClientReport>,
    /// How many clients have gone.
    pub gone: u64,
    /// Requests that each client may have in flight.
    pub window: u32,
    /// What is known where the trustee is observed.
    pub observed: Option<TrusteeObserved>,
}

/// An object with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectReport {
    /// Given by [`Trust::named`](crate::Trust::named) or
    /// [`Trust::set_name`](crate::Trust::set_name).
    pub name: String,
    /// The name of its type.
    pub type_name: &'static str,
    /// The memory node that it begins on, on a machine with several, where that is known.
    pub node: Option<usize>,
}

/// An object that a launched closure holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldReport {
    /// The object's name, if it has one, and its type's.
    pub name: String,
    /// Objects held by those closures for which its closure waits. Where this is empty, the closure
    /// runs, or waits by other means: for an object that nobody holds, a lock, a sleep.
    pub waits_for: Vec<String>,
}

/// The objects of one type that have no name.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TypeReport {
    /// The name of the type.
    pub type_name: &'static str,
    /// How many there are.
    pub count: usize,
    /// Where up to 16 objects of the type lie, named ones included.
    pub places: Option<Places>,
}

/// A client: one thread's channel to the trustee.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientReport {
    /// Given by [`ClientGuard::named`](crate::ClientGuard::named), or the thread's name.
    pub name: Option<String>,
    /// Requests that are accepted and not executed.
    pub queued: u32,
    /// The memory node of the CPU on which it connected, on a machine with several.
    pub node: Option<usize>,
    /// Where its request ring, answer ring and callback queue begin. Known where the trustee
    /// is observed.
    pub places: Option<Places>,
    /// What the client has counted, where the trustee is observed.
    pub observed: Option<ClientObserved>,
}

/// What is known of a trustee that is observed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrusteeObserved {
    /// How many requests were timed, of those that [`Metrics::requests`] counts: as many as
    /// cost about a hundredth of the time that requests take.
    pub samples: u64,
    /// The types of closures that took longest on average, slowest first: up to
    /// [`SLOWEST`].
    pub slowest: Vec<ClosureReport>,
    /// The counts of the clients that have gone, added up.
    pub gone: ClientObserved,
}

/// How many types of closures a report lists at most.
pub const SLOWEST: usize = 10;

/// What a type of closure takes, by samples. Equal requests that ran behind each other are
/// timed together. A stamp's own time is in it, some tens of nanoseconds, and so is whatever
/// interrupted the trustee meanwhile. Closures that panic are not timed, nor those that other
/// closures have asked for on their own trustee.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosureReport {
    /// The name of the closure's type.
    pub type_name: &'static str,
    /// How many were timed.
    pub samples: u64,
    /// All of them together.
    pub total: Duration,
    /// The longest; of those timed together, the average.
    pub longest: Duration,
}

impl TrusteeReport {
    /// The share of passes that found work: near 1 the trustee has no time left, near 0 it
    /// idles. `None` before the first pass has been published.
    pub fn saturation(&self) -> Option<f64> {
        ratio(self.metrics.passes_with_work, self.metrics.passes)
    }

    /// Requests that a trustee found at a time, on average.
    pub fn requests_per_batch(&self) -> Option<f64> {
        ratio(self.metrics.requests, self.metrics.batches)
    }

    /// Objects that it owns, with and without names.
    pub fn objects_owned(&self) -> usize {
        self.objects.len() + self.unnamed.iter().map(|of| of.count).sum::<usize>()
    }
}

impl ClosureReport {
    /// The average.
    pub fn mean(&self) -> Duration {
        mean(self.total, self.samples).unwrap_or_default()
    }
}
