//! The quantities on a vertical axis, computed from a run.
//!
//! Throughput, and the scalability computed from it, have a value for each mode of the machine:
//! the harmonic mean of its samples, as in the thesis (D16), with their quartiles. The counters
//! (D8) are counted from a contender's start to its end, over all its samples, near and far
//! together.

use crate::mean::Outside;
use crate::plot::{percent, significant};
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::schema::{ClientCounts, ConflictCounts, Mode, Run, Trustee};
use serde::{Deserialize, Serialize};

/// A quantity on the vertical axis of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Million operations per second.
    Throughput,
    /// Operations per second, for slow operations.
    PerSecond,
    /// Time per operation times processors, in nanoseconds. It stays level if twice the
    /// processors do twice the work (C7).
    Scalability,
    /// Scalability in microseconds.
    ScalabilityUs,
    /// Average time from issuing a request to its callback, in nanoseconds.
    Latency,
    /// Requests of a client that have been issued and not answered, on average.
    Outstanding,
    /// Share of a server's passes that found work, 0 to 1.
    Saturation,
    /// Share of a client's looks for a response that found one, 0 to 1.
    Ready,
    /// Share of free lines that found nothing in their queue, 0 to 1.
    FailedPops,
    /// Requests that found the pending queue full, by all requests (D8).
    FailedPushes,
    /// Requests that a server found in a pass with work.
    Batch,
    /// Loads from the node's own memory, per operation.
    LocalLoads,
    /// Loads from other nodes' memory, per operation.
    RemoteLoads,
    /// Million operations per second of each thread.
    PerThread,
    /// Attempts that were given up, per 1,000 operations (O9).
    Aborts,
    /// Comparisons that the clock left open, per 1,000 operations (O9).
    Uncertain,
}

/// A value of a quantity, with its spread and its number of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The value itself.
    pub middle: f64,
    /// First and third quartile; the value itself if there are none.
    pub(crate) spread: (f64, f64),
    /// Number of samples; 0 for a counter over a whole run.
    pub(crate) n: usize,
}

/// The direction in which a quantity improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: the quantity explains others.
    Neither,
}

impl Quantity {
    /// Returns the value in a run, and for throughput in a mode; `None` if the run lacks it.
    pub fn of(self, run: &Run, mode: Mode) -> Option<Value> {
        if !run.correct {
            return None;
        }
        let value = match self {
            Self::Throughput => return throughput(run, mode),
            Self::PerSecond => return by_throughput(run, mode, |mops, _| 1e6 * mops),
            Self::Scalability => return by_throughput(run, mode, |mops, p| 1e3 / mops * p),
            Self::ScalabilityUs => return by_throughput(run, mode, |mops, p| 1.0 / mops * p),
            Self::PerThread => return by_throughput(run, mode, |mops, threads| mops / threads),
            Self::Aborts => per_thousand(run, |counts| counts.aborts.all()),
            Self::Uncertain => per_thousand(run, |counts| counts.uncertain),
            Self::Latency => ratio(asked(run)?, |a| a.latency_ns, |a| a.timed),
            Self::Outstanding => outstanding(run),
            Self::Ready => ratio(asked(run)?, |a| a.ready, |a| a.polls),
            Self::FailedPops => ratio(asked(run)?, |a| a.failed_pops, |a| a.pops),
            Self::FailedPushes => {
                let of = |t: &Trustee| t.asked.map_or(0, |a| a.failed_pushes);
                asked(run)?;
                let all = all(run)?;
                let failed = all.iter().map(of).sum::<u64>() as f64;
                let requests = all.iter().map(|t| t.requests).sum::<u64>();
                (requests > 0).then(|| failed / requests as f64)
            }
            Self::Saturation => ratio(all(run)?, |t| t.passes_with_work, |t| t.passes),
            Self::Batch => ratio(all(run)?, |t| t.requests, |t| t.passes_with_work),
            Self::LocalLoads => run.loads.map(|loads| loads.local),
            Self::RemoteLoads => run.loads.map(|loads| loads.remote),
        }?;
        Some(Value {
            middle: value,
            spread: (value, value),
            n: 0,
        })
    }

    /// Returns name and unit.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Throughput => "million operations per second",
            Self::PerSecond => "operations per second",
            Self::ScalabilityUs => "scalability: µs × processors per operation (lower is better)",
            Self::Scalability => "scalability: ns × processors per operation (lower is better)",
            Self::Latency => "average latency of a request, ns",
            Self::Outstanding => "requests outstanding at a client (latency × rate)",
            Self::Saturation => "saturation: passes with work / passes",
            Self::Ready => "response-ready rate: answers / looks",
            Self::FailedPops => "failed pops: no request for a free line",
            Self::FailedPushes => "failed pushes: requests that found the queue full",
            Self::Batch => "requests in a pass with work",
            Self::LocalLoads => "local DRAM loads per operation",
            Self::RemoteLoads => "remote DRAM loads per operation",
            Self::PerThread => "million operations per second and thread",
            Self::Aborts => "aborts per 1,000 operations",
            Self::Uncertain => "uncertain comparisons per 1,000 operations",
        }
    }

    /// Returns name and unit for the head of a column.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::Throughput => "Mops",
            Self::PerSecond => "ops/s",
            Self::Scalability => "ns·p/op",
            Self::ScalabilityUs => "µs·p/op",
            Self::Latency => "latency ns",
            Self::Outstanding => "outstanding",
            Self::Saturation => "saturation",
            Self::Ready => "ready",
            Self::FailedPops => "failed pops",
            Self::FailedPushes => "failed pushes",
            Self::Batch => "per pass",
            Self::LocalLoads => "local/op",
            Self::RemoteLoads => "remote/op",
            Self::PerThread => "Mops/thread",
            Self::Aborts => "aborts",
            Self::Uncertain => "uncertain",
        }
    }

    /// Formats a value of the quantity, without its unit.
    pub(crate) fn words(self, value: f64) -> String {
        match self {
            Self::Saturation | Self::Ready | Self::FailedPops => {
                percent(value).replace('\u{a0}', " ")
            }
            _ => significant(value),
        }
    }

    /// Whether the value is that of one mode; counters are over all modes.
    pub(crate) fn is_by_mode(self) -> bool {
        matches!(
            self,
            Self::Throughput
                | Self::PerThread
                | Self::PerSecond
                | Self::Scalability
                | Self::ScalabilityUs
        )
    }

    /// Returns the direction in which the quantity improves. Counters explain the others.
    pub(crate) fn better(self) -> Better {
        match self {
            Self::Throughput | Self::PerThread | Self::PerSecond => Better::Higher,
            Self::Scalability | Self::ScalabilityUs | Self::Latency => Better::Lower,
            _ => Better::Neither,
        }
    }

    /// Returns on which side of its quartiles a mean of samples lies; `None` between them.
    pub(crate) fn outside(self, value: &Value) -> Option<Outside> {
        let outside = Outside::of(value.middle, value.spread)?;
        Some(match (self.better(), outside) {
            // The less time, the faster.
            (Better::Lower, Outside::Slower) => Outside::Faster,
            (Better::Lower, Outside::Faster) => Outside::Slower,
            _ => outside,
        })
    }

    /// Whether the value lies between 0 and 1.
    pub(crate) fn is_share(self) -> bool {
        matches!(self, Self::Saturation | Self::Ready | Self::FailedPops)
    }
}

fn throughput(run: &Run, mode: Mode) -> Option<Value> {
    let of_mode = |s: &&corelay_lab_measure::schema::Sample| s.mode == mode && s.mops > 0.0;
    let mops: Vec<f64> = run.samples.iter().filter(of_mode).map(|s| s.mops).collect();
    Some(Value {
        middle: stats::harmonic_mean(&mops)?,
        spread: (stats::quantile(&mops, 0.25)?, stats::quantile(&mops, 0.75)?),
        n: mops.len(),
    })
}

/// Computes a value from throughput in Mops and processors, over the same samples. The harmonic
/// mean of throughput is the mean of times.
fn by_throughput(run: &Run, mode: Mode, of: fn(f64, f64) -> f64) -> Option<Value> {
    let Value { middle, spread, n } = throughput(run, mode)?;
    let of = |mops: f64| of(mops, run.params.threads as f64);
    let (one, other) = (of(spread.0), of(spread.1));
    Some(Value {
        middle: of(middle),
        spread: (one.min(other), one.max(other)),
        n,
    })
}

/// Returns a count over all samples, per 1,000 operations.
fn per_thousand(run: &Run, count: fn(&ConflictCounts) -> u64) -> Option<f64> {
    let counted = run.samples.iter().filter_map(|sample| {
        let operations: u64 = sample.per_thread.iter().sum();
        Some((count(&sample.counts?), operations))
    });
    let (counted, operations) =
        counted.fold((0, 0), |(sum, all), (count, ops)| (sum + count, all + ops));
    (operations > 0).then(|| counted as f64 * 1e3 / operations as f64)
}

/// Returns the requests of a client that are outstanding on average, by Little's law: the average
/// latency times the rate of a client, over all samples.
fn outstanding(run: &Run) -> Option<f64> {
    let latency_ns = ratio(asked(run)?, |a| a.latency_ns, |a| a.timed)?;
    let clients = run.params.threads.checked_sub(run.params.servers)?.max(1);
    let samples = run.samples.iter().filter(|sample| sample.mops > 0.0);
    let (operations, micros) = samples.fold((0.0, 0.0), |(operations, micros), sample| {
        let done = sample.per_thread.iter().sum::<u64>() as f64;
        (operations + done, micros + done / sample.mops)
    });
    (micros > 0.0).then(|| latency_ns / 1e3 * operations / micros / clients as f64)
}

/// Returns the clients' own counts, if they have counted.
fn asked(run: &Run) -> Option<Vec<ClientCounts>> {
    let asked: Vec<ClientCounts> = run.trustees.iter().filter_map(|t| t.asked).collect();
    (!asked.is_empty()).then_some(asked)
}

fn all(run: &Run) -> Option<Vec<Trustee>> {
    (!run.trustees.is_empty()).then(|| run.trustees.clone())
}

/// Returns the sum of one count divided by the sum of another.
fn ratio<T>(counted: Vec<T>, top: fn(&T) -> u64, bottom: fn(&T) -> u64) -> Option<f64> {
    let sum = |count: fn(&T) -> u64| counted.iter().map(count).sum::<u64>();
    let bottom = sum(bottom);
    (bottom > 0).then(|| sum(top) as f64 / bottom as f64)
}
