//! The results of a load on a cache server.

use super::Mode;
use serde::{Deserialize, Serialize};

/// The requests of a load, and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Gets that were answered, those of scans apart.
    pub gets: u64,
    /// Gets of keys that are never asked for again.
    pub scans: u64,
    /// Sets that were answered, those after a miss apart.
    pub sets: u64,
    /// Sets of keys that a get had missed.
    pub refills: u64,
    /// Gets that found a value; those of scans are not among them.
    pub hits: u64,
    /// Gets that found none; those of scans are not among them.
    pub misses: u64,
    /// Requests that the server answered with an error.
    pub refused: u64,
    /// Gets that found a wrong value.
    pub wrong: u64,
    /// Requests that had not been sent when the block was over, although they were due.
    pub unserved: u64,
    /// Bytes that were sent.
    pub sent: u64,
    /// Bytes that were received.
    pub received: u64,
}

impl Counts {
    /// The number of requests that were answered.
    pub fn operations(&self) -> u64 {
        self.gets + self.scans + self.sets + self.refills
    }

    /// The share of the gets that found a value, 0 to 1; `None` if there was no get.
    pub fn hit_ratio(&self) -> Option<f64> {
        let looked = self.hits + self.misses;
        (looked > 0).then(|| self.hits as f64 / looked as f64)
    }

    /// Each count of both, combined by `with`.
    fn combined(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            gets: with(self.gets, other.gets),
            scans: with(self.scans, other.scans),
            sets: with(self.sets, other.sets),
            refills: with(self.refills, other.refills),
            hits: with(self.hits, other.hits),
            misses: with(self.misses, other.misses),
            refused: with(self.refused, other.refused),
            wrong: with(self.wrong, other.wrong),
            unserved: with(self.unserved, other.unserved),
            sent: with(self.sent, other.sent),
            received: with(self.received, other.received),
        }
    }
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| {
            sum.combined(one, std::ops::Add::add)
        })
    }
}

/// Percentiles of latencies, in nanoseconds, each within 1 %. In a closed loop they count from the
/// write that sent a request, on a schedule from the moment at which it was due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// The median.
    pub p50: u64,
    /// The latency that 9 of 10 requests did not exceed.
    pub p90: u64,
    /// The latency that 99 of 100 requests did not exceed.
    pub p99: u64,
    /// The latency that 999 of 1,000 requests did not exceed.
    pub p999: u64,
    /// The longest latency.
    pub max: u64,
}

/// A block: one server under load for a short time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheBlock {
    /// Seconds that the counts cover.
    pub secs: f64,
    /// Requests and answers.
    pub counts: Counts,
    /// Latencies; `None` if nothing was answered.
    pub latency_ns: Option<Latency>,
    /// CPU time of the server, in seconds, if the lab started it.
    pub server_cpu_s: Option<f64>,
    /// CPU time of the load threads, in seconds; `None` if the system does not say.
    pub load_cpu_s: Option<f64>,
    /// Seconds in which load threads that do not sleep had nothing to do, added up.
    pub waiting_s: f64,
}

/// The facts of a load on one server that concern all blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheRun {
    /// The server's address.
    pub server: String,
    /// The version that the server says it is.
    pub version: String,
    /// The first phase, in which each key was set.
    pub filled: Option<Filled>,
    /// Requests and answers of all kept blocks.
    pub counts: Counts,
    /// Latencies of all kept blocks.
    pub latency_ns: Option<Latency>,
    /// Latencies of the kept blocks, by mode of the machine.
    pub by_mode: Vec<(Mode, Latency)>,
    /// The first error that the server answered.
    pub first_refusal: Option<String>,
    /// Resident memory of the server at the end, in bytes, if the lab started it.
    pub resident_bytes: Option<u64>,
    /// The most resident memory that the server ever had, in bytes, if the lab started it.
    pub peak_bytes: Option<u64>,
    /// This server compared with the other one.
    pub against: Vec<CacheRatio>,
}

/// The phase in which each key is set once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filled {
    /// Keys that were stored.
    pub stored: u64,
    /// Keys that the server refused.
    pub refused: u64,
    /// Seconds that it took.
    pub secs: f64,
}

/// A figure of one server divided by that of another, over blocks of one mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheRatio {
    /// The other server: its `method`.
    pub of: String,
    /// The figure: `ops/s`, `ops/CPU s` (of the server), `p50`, `p99`, `p99.9` or `hits` (the share of the
    /// gets that found a value).
    pub figure: String,
    /// The mode.
    pub mode: Mode,
    /// Blocks of the server with fewer of them.
    pub blocks: usize,
    /// The lower end of the 95 % interval (bootstrap).
    pub low: f64,
    /// The ratio of the medians.
    pub ratio: f64,
    /// The upper end of the interval.
    pub high: f64,
}
