//! Reports as figures of the crate `metrics`, in builds with the feature of that name.
//!
//! Counters are the totals that trustees and clients keep anyway. They are handed over when somebody
//! asks, so the counting itself is what it is without the feature.

use super::{ClientObserved, ClosureReport, Report, State, TrusteeReport};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use std::borrow::Cow;

/// A figure: its name, its unit, its meaning, and how it is read from a part of a report. It is left
/// out if the report has none.
type Figure<P, V> = (&'static str, Unit, &'static str, fn(&P) -> Option<V>);

/// The totals of a trustee, by the label `trustee`.
const TOTALS: &[Figure<TrusteeReport, u64>] = &[
    (
        "corelay_requests_total",
        Unit::Count,
        "Requests that the trustee has executed or refused",
        |of| Some(of.metrics.requests),
    ),
    (
        "corelay_batches_total",
        Unit::Count,
        "Times that the trustee found requests of a client",
        |of| Some(of.metrics.batches),
    ),
    (
        "corelay_passes_total",
        Unit::Count,
        "Looks at all clients in turn",
        |of| Some(of.metrics.passes),
    ),
    (
        "corelay_passes_with_work_total",
        Unit::Count,
        "Looks at all clients in turn that found something",
        |of| Some(of.metrics.passes_with_work),
    ),
    (
        "corelay_sleeps_total",
        Unit::Count,
        "Times that the trustee slept",
        |of| Some(of.metrics.sleeps),
    ),
    (
        "corelay_rings_total",
        Unit::Count,
        "Times that a member of a flat team found its doorbell rung",
        |of| Some(of.metrics.rings),
    ),
    (
        "corelay_panics_total",
        Unit::Count,
        "Panics of closures, destructors, callbacks and wakers on the trustee's thread",
        |of| Some(of.metrics.panics),
    ),
    (
        "corelay_clients_gone_total",
        Unit::Count,
        "Clients that have gone",
        |of| Some(of.gone),
    ),
    (
        "corelay_samples_total",
        Unit::Count,
        "Requests that were timed",
        |of| Some(of.observed.as_ref()?.samples),
    ),
    (
        "corelay_polls_total",
        Unit::Count,
        "Looks of clients for answers, while a callback waited for one",
        |of| Some(clients(of)?.polls),
    ),
    (
        "corelay_polls_ready_total",
        Unit::Count,
        "Looks of clients that found the oldest answer ready",
        |of| Some(clients(of)?.ready),
    ),
    (
        "corelay_pops_total",
        Unit::Count,
        "Looks of clients for requests to publish, while their window had room",
        |of| Some(clients(of)?.pops),
    ),
    (
        "corelay_pops_failed_total",
        Unit::Count,
        "Looks of clients that found no request to publish",
        |of| Some(clients(of)?.failed_pops),
    ),
    (
        "corelay_without_room_total",
        Unit::Count,
        "Requests that found the window or the rings full",
        |of| Some(clients(of)?.failed_pushes),
    ),
    (
        "corelay_waits_total",
        Unit::Count,
        "Waits of clients of more than a few microseconds, for an answer or for room",
        |of| Some(clients(of)?.waits),
    ),
    (
        "corelay_latencies_total",
        Unit::Count,
        "Requests of apply_then that were timed until their client saw the answer",
        |of| Some(clients(of)?.latencies),
    ),
    (
        "corelay_latency_nanoseconds_total",
        Unit::Nanoseconds,
        "The sum of those times",
        |of| Some(nanos(clients(of)?.latency_total)),
    ),
];

/// The present state of a trustee, by the label `trustee`.
const STATES: &[Figure<TrusteeReport, f64>] = &[
    (
        "corelay_busy_ratio",
        Unit::Count,
        "The share of passes that found work since the trustee's start, 0 to 1",
        TrusteeReport::saturation,
    ),
    (
        "corelay_asleep",
        Unit::Count,
        "1 while the trustee sleeps, otherwise 0",
        |of| Some(f64::from(u8::from(of.state == State::Asleep))),
    ),
    (
        "corelay_objects",
        Unit::Count,
        "Objects that the trustee owns",
        |of| Some(of.objects_owned() as f64),
    ),
    (
        "corelay_objects_held",
        Unit::Count,
        "Objects that launched closures hold",
        |of| Some(of.held.len() as f64),
    ),
    (
        "corelay_clients",
        Unit::Count,
        "Clients that are connected",
        |of| Some(of.clients.len() as f64),
    ),
    (
        "corelay_queued",
        Unit::Count,
        "Requests that are accepted and not executed, of all clients",
        |of| {
            Some(
                of.clients
                    .iter()
                    .map(|client| f64::from(client.queued))
                    .sum(),
            )
        },
    ),
    (
        "corelay_latency_longest_nanoseconds",
        Unit::Nanoseconds,
        "The longest of the times that corelay_latencies_total counts",
        |of| Some(nanos(clients(of)?.latency_longest) as f64),
    ),
];

/// The totals of the slowest closures of a trustee, by the labels `trustee` and `closure`.
const CLOSURE_TOTALS: &[Figure<ClosureReport, u64>] = &[
    (
        "corelay_closure_samples_total",
        Unit::Count,
        "Requests of that name that were timed",
        |of| Some(of.samples),
    ),
    (
        "corelay_closure_nanoseconds_total",
        Unit::Nanoseconds,
        "The time of these requests together",
        |of| Some(nanos(of.total)),
    ),
];

/// The state of the slowest closures of a trustee, by the labels `trustee` and `closure`.
const CLOSURE_STATES: &[Figure<ClosureReport, f64>] = &[(
    "corelay_closure_longest_nanoseconds",
    Unit::Nanoseconds,
    "The longest time of a request of that name",
    |of| Some(nanos(of.longest) as f64),
)];

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The counts of all clients that the trustee has ever had, if it is observed.
fn clients(of: &TrusteeReport) -> Option<ClientObserved> {
    let mut all = of.observed.as_ref()?.gone;
    for client in of.clients.iter().filter_map(|client| client.observed) {
        all.merge(client);
    }
    Some(all)
}

impl Report {
    /// Hands the figures of this report to the program's recorder of the crate `metrics`, as
    /// counters and gauges. The guide's page on watching lists their names. Call it whenever a
    /// collector asks; a counter then has its total at that moment.
    ///
    /// All figures have the label `trustee`, so trustees that are started apart should have
    /// different [names](crate::Builder::name). Those of closures have the label `closure`, too: it
    /// is the request's [name](crate::Trust::request).
    ///
    /// ```
    /// # use corelay_delegate::{Trustees, report};
    /// report::describe_metrics(); // once, after the recorder has been installed
    /// let trustees = Trustees::dedicated(1).observe(true).start()?;
    /// let reporter = trustees.reporter(); // for the thread that collects
    /// reporter.report().record();
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    pub fn record(&self) {
        for trustee in &self.trustees {
            let by_trustee = [("trustee", Cow::Owned(trustee.name.clone()))];
            for (name, _, _, read) in TOTALS {
                if let Some(total) = read(trustee) {
                    counter!(*name, &by_trustee).absolute(total);
                }
            }
            for (name, _, _, read) in STATES {
                if let Some(state) = read(trustee) {
                    gauge!(*name, &by_trustee).set(state);
                }
            }
            let observed = trustee.observed.iter();
            for closure in observed.flat_map(|observed| &observed.slowest) {
                let [by_trustee] = by_trustee.clone();
                let labels = [by_trustee, ("closure", closure.name.clone())];
                for (name, _, _, read) in CLOSURE_TOTALS {
                    if let Some(total) = read(closure) {
                        counter!(*name, &labels).absolute(total);
                    }
                }
                for (name, _, _, read) in CLOSURE_STATES {
                    if let Some(state) = read(closure) {
                        gauge!(*name, &labels).set(state);
                    }
                }
            }
        }
    }
}

/// Tells the program's recorder of the crate `metrics` the units and meanings of the figures that
/// [`Report::record`] hands over. Call it once, after the recorder has been installed.
pub fn describe_metrics() {
    for (name, unit, meaning, _) in TOTALS {
        describe_counter!(*name, *unit, *meaning);
    }
    for (name, unit, meaning, _) in STATES {
        describe_gauge!(*name, *unit, *meaning);
    }
    for (name, unit, meaning, _) in CLOSURE_TOTALS {
        describe_counter!(*name, *unit, *meaning);
    }
    for (name, unit, meaning, _) in CLOSURE_STATES {
        describe_gauge!(*name, *unit, *meaning);
    }
}
