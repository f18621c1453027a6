//! The JSON schema of the lab's results: every workload writes it, every plot reads it.
//!
//! ```text
//! Results { schema, machine, commit, command, runs: [Run] }
//! Run     { workload, method, params, correct, median_mops, harmonic_mean_mops,
//!           by_mode: { near|far: ModeSummary }, samples: [Sample],
//!           trustees?: [Trustee], loads?: { local, remote }, notes? }
//! Sample  { mops, mode, rtt_ns, per_thread, cpu_s }
//! Trustee { requests, batches, passes, passes_with_work, sleeps, rings, panics,
//!           asked?: ClientCounts }
//! ClientCounts { polls, ready, pops, failed_pops, failed_pushes, flushes, depths, timed, latency_ns }
//! ```
//!
//! Throughput is in Mops (10^6 operations per second of wall time), latency in nanoseconds, CPU
//! time in seconds. Readers ignore unknown fields, so that later workloads can add their own;
//! `schema` is raised when the meaning of a field changes.
//!
//! # Runs under a load, such as those of the workload `latency`
//! Operations arrive on a schedule, whether or not earlier operations are done (an open loop), and
//! latency counts from the moment at which an operation *should* have begun. `mops` is then the
//! achieved rate, and there are more fields:
//!
//! ```text
//! Run         { …, latency_ns: Percentiles, load: Load }
//!   params    { …, load: 100000, arrivals: "poisson" }
//!   by_mode   { near|far: { …, latency_ns: Percentiles, limit } }
//!   samples   [ { …, latency_ns: Percentiles, arrivals: Arrivals } ]
//! Percentiles { p50, p99, p999, max }
//! Load        { offered, achieved, generator, limit: none|method|generator|cpus, … }
//! Arrivals    { due, late, unserved, waiting_s, wall_s }
//! ```
//!
//! `latency_ns` of a run or a mode covers all operations of its kept samples together, that of a
//! sample its own operations. An operation that was due but had not begun when its sample ended
//! counts with the time it had waited by then. So if `limit` is not `none`, latencies are lower
//! bounds that grow with the length of the samples.
//!
//! # Runs of fibre benchmarks
//! `threads` are the processors. `fibres::spec` of `corelay-lab-bench` defines the operation of
//! each benchmark. A sample contains its `FibreResult`; `mops` is 0 if it did not complete.
//!
//! ```text
//! Run       { …, not_installed? }
//!   params  { …, fibres, size: hi|lo|N, ring?, rings?, spots?, words?, touches?, share?,
//!             flavour?, iterations?, chains? }
//!   samples [ { …, fibres: FibreResult } ]
//! FibreResult { operations, wall_s, cpu_s, per_fibre: { fibres, min, median, max, sum },
//!             per_processor?, fibre_migrations?, data_migrations?, rechecks?, chains?: MigrationChains,
//!             completed, note? }
//! MigrationChains { within_us, over_s, migrations, chains, alone, median, longest, most_fibres,
//!             most_processors }
//! ```
//!
//! # Runs of the ordered workloads
//! The workloads of `ordered` of `corelay-lab-bench`, in which a clock orders the operations:
//! `timestamp`, `rlu-list`, `rlu-hash`, `stm-transfer`, `stm-read`, `oplog-rmap`, `ycsb`, `tpcc`,
//! `kept`, `recover`.
//! `vars` is 0; a point's parameters are in `params`:
//!
//! ```text
//!   params  { …, size?, buckets?, updates?, variables?, reads?, reads_every?, pages?,
//!             mix?, rows?, bytes?, requests?, theta?, warehouses?, shrink?, isolation?,
//!             dir?, log_bytes?, cold?,
//!             boundary_ns?, boundary_ticks?, boundary_scale?, no_longer_correct? }
//!   samples [ { …, counts: ConflictCounts } ]
//! ConflictCounts { aborts: { lock, validation, version, phantom, uncertain, unknown }, uncertain,
//!                parts?: { copying, locking, ordering, waiting, whole } }
//! ```
//!
//! Runs of `ycsb` and `tpcc`, and their modes and samples, have `latency_ns`: the time of one
//! transaction in 32, from its first attempt to its answer, in a closed loop. In `kept` each transaction
//! is timed, and `window` is the number that a client has outstanding. In `recover`
//! an operation is a kilobyte (10^3 bytes) that was read, and `latency_ns` the time of an opening.
//!
//! `updates` is in percent. Methods on a clock with a boundary have `boundary_ns`, the boundary as
//! used, and `boundary_scale`, the factor by which the measured one was multiplied. If that is
//! below 1, `no_longer_correct` is true whatever the check has found: comparisons that the clock
//! calls certain may then be wrong.
//!
//! # Runs of `raytrace`
//! A sample lasts until its picture is done. Its operations are the requests to the queue and to
//! the statistics; `secs` is 0, and `vars` counts these two objects.
//!
//! ```text
//!   params  { …, size: "WxH", tile, depth, alone_s }
//!   samples [ { …, picture: PictureResult } ]
//! PictureResult { seconds, hash, tiles, rays, reflections, tiles_ns, slowest_tile_ns }
//! ```
//!
//! # Runs of `cache`
//! A run is a server, its method the command that started it or its address. A sample is a block of
//! load. `threads` are the load's, `vars` the keys, `placement` the load threads' CPUs.
//!
//! ```text
//! Run       { …, cache: CacheRun }
//!   params  { …, connections, pipeline, get_ratio, key_size, value_size, miss_set, idle_connections,
//!             spin, hot?, load?, arrivals?, scan_every?, scan_length? }
//!   samples [ { …, cache: CacheBlock } ]
//! CacheRun    { server, version, filled: { stored, refused, secs }, counts: Counts, latency_ns, by_mode,
//!               first_refusal, resident_bytes, peak_bytes,
//!               against: [ { of, figure, mode, blocks, low, ratio, high } ] }
//! CacheBlock  { secs, counts: Counts, latency_ns, server_cpu_s, load_cpu_s, waiting_s }
//! Counts      { gets, scans, sets, refills, hits, misses, refused, wrong, unserved, sent, received }
//! ```

pub mod cache;
mod extra;
pub mod fibres;
mod picture;

pub use extra::{Extra, Size};
pub use picture::PictureResult;

use cache::{CacheBlock, CacheRun};
use fibres::FibreResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version written into [`Results::schema`].
pub const SCHEMA: u32 = 1;

/// All that one invocation measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the schema: [`SCHEMA`].
    pub schema: u32,
    /// The machine on which the runs were measured.
    pub machine: Machine,
    /// The commit of the program, or `unknown`.
    pub commit: String,
    /// The command line of the invocation.
    pub command: String,
    /// One entry per method and point of the sweep.
    pub runs: Vec<Run>,
}

/// The machine, as far as it explains figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// CPU model, or `unknown`.
    pub model: String,
    /// Architecture, as Rust names it.
    pub arch: String,
    /// Kernel release.
    pub kernel: String,
    /// Hypervisor vendor, if one is detected.
    pub hypervisor: Option<String>,
    /// CPUs this process may use.
    pub cpus: usize,
    /// Physical cores among them.
    pub cores: usize,
    /// Packages (sockets) among them.
    pub packages: usize,
    /// NUMA nodes among them.
    pub nodes: usize,
    /// CPU quota of the control group, in CPUs, if there is one.
    pub quota_cpus: Option<f64>,
    /// Data and unified caches of the first CPU.
    pub caches: Vec<CacheLevel>,
    /// The rate of the first CPU's core in GHz, as the kernel reported it when measuring began. If
    /// the core changes its rate, it may have run at another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_ghz: Option<f64>,
    /// Smallest round trip ever seen between the probed pair of CPUs, in nanoseconds.
    pub rtt_min_ns: Option<f64>,
    /// Facts and measurements that could not be had here: a sentence with the reason for each.
    pub unavailable: Vec<String>,
}

/// A level of data or unified cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheLevel {
    /// The level: 1, 2, 3, …
    pub level: u32,
    /// Size of one instance, in bytes.
    pub bytes: u64,
    /// CPUs that share one instance.
    pub sharers: usize,
    /// Instances among the CPUs this process may use.
    pub instances: usize,
}

/// One method at one point of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The workload, such as `fetch-add`, or the name of a user's structure.
    pub workload: String,
    /// The method, such as `mutex`.
    pub method: String,
    /// The parameters of this point.
    pub params: Params,
    /// Whether the result was checked and right. A run that was wrong has no figure.
    pub correct: bool,
    /// Median over the kept samples of all modes, in Mops.
    pub median_mops: f64,
    /// Harmonic mean over the kept samples of all modes, in Mops (D16).
    pub harmonic_mean_mops: f64,
    /// Summaries of the kept samples, by mode of the machine.
    pub by_mode: BTreeMap<Mode, ModeSummary>,
    /// All samples, including the discarded ones.
    pub samples: Vec<Sample>,
    /// The counts of each trustee, for methods that have trustees. They cover the trustees' whole
    /// life, including set-up, warm-up and final check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trustees: Vec<Trustee>,
    /// Latency of all operations of the kept samples, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Percentiles>,
    /// The load and whether the method bore it, if operations arrived on a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// Loads from memory, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<MemoryLoads>,
    /// The reason why there are no samples, if the method is a peer that this machine lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_installed: Option<String>,
    /// The server and all its blocks, if a cache server was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheRun>,
    /// Remarks for the reader, such as a rounded parameter or a missing pinning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Run {
    /// Whether the run is marked as having used too small a clock boundary.
    pub fn is_no_longer_correct(&self) -> bool {
        self.params.extra.no_longer_correct == Some(true)
    }
}

/// Loads that no cache answered, per operation, over clients and servers together (D25).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryLoads {
    /// Loads answered by the node's own memory.
    pub local: f64,
    /// Loads answered by the memory of other nodes.
    pub remote: f64,
}

/// Percentiles of latencies, in nanoseconds, each within 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: u64,
    /// The latency that 99 of 100 operations did not exceed.
    pub p99: u64,
    /// The latency that 999 of 1,000 operations did not exceed.
    pub p999: u64,
    /// The longest latency.
    pub max: u64,
}

/// An offered load and whether it was borne. Rates are operations per second of all clients
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// The rate at which operations were due.
    pub offered: f64,
    /// The rate at which operations were done: the median over the kept samples.
    pub achieved: f64,
    /// The rate that the load's generator reaches with operations that do nothing and as many
    /// clients; 0 if it was not measured.
    pub(crate) generator: f64,
    /// The verdict on the median of the kept samples: whether it bore the load, and if not, why.
    /// A mode of the machine can differ; its summary has a limit of its own.
    pub limit: Limit,
    /// Share of the operations, 0 to 1, that were issued more than a microsecond after they were
    /// due, or not at all.
    pub late: f64,
    /// CPU time of the whole process per wall time, including that of generators which spin for
    /// the next arrival.
    pub cpus: f64,
    /// The part of `cpus` in which generators waited for the next arrival.
    pub waiting_cpus: f64,
    /// Cost of reading the clock once, in nanoseconds. Each latency contains about one read.
    pub stamp_ns: f64,
}

/// The cause that kept a method from bearing the offered load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// No cause: the operations were done as they arrived.
    #[default]
    None,
    /// The method was saturated.
    Method,
    /// The generator was saturated: it took most of an operation's time, or cannot issue so much.
    /// So it is unknown what the method could have borne.
    Generator,
    /// The clients had no CPU to issue on: other programs used the CPUs, or there are more threads
    /// than CPUs. So it is unknown what the method could have borne.
    Cpus,
}

/// The parameters of a run. Those of particular workloads are in `extra`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Params {
    /// Number of all threads, servers included.
    pub threads: usize,
    /// Number of dedicated trustees among them, as used (D18); 0 for other methods.
    pub servers: usize,
    /// Number of shared variables, as used (D18).
    pub vars: u64,
    /// Requests in flight per client and trustee.
    pub window: usize,
    /// Length of a sample in seconds.
    pub secs: f64,
    /// The distribution of choices among variables: `uniform` or `zipf:θ`.
    pub dist: String,
    /// Seed of the random generators.
    pub seed: u64,
    /// The CPU of each thread, servers first; `null` for a thread that is not pinned.
    pub placement: Vec<Option<usize>>,
    /// The parameters that only some workloads have.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The mode of the machine around a sample, told by its round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The round trip was at most twice the pair's smallest ever seen.
    Near,
    /// The round trip was longer than that.
    Far,
    /// The probes before and after the sample disagree, or found both CPUs on one core. The sample
    /// is used for no figure.
    Discarded,
    /// There is no pair of CPUs to probe (one CPU), or the pair was never seen on two cores.
    Unknown,
}

/// A summary of the samples of one mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeSummary {
    /// Median throughput, in Mops.
    pub median_mops: f64,
    /// Number of samples.
    pub n: usize,
    /// First quartile, in Mops.
    pub q1_mops: f64,
    /// Third quartile, in Mops.
    pub q3_mops: f64,
    /// Latency of all operations of these samples, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Percentiles>,
    /// The verdict on these samples, if a load was offered: whether they bore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// The counts of one trustee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trustee {
    /// Closures run or refused.
    pub requests: u64,
    /// Batches: times that the trustee found requests of a client.
    pub batches: u64,
    /// Passes: rounds over all clients.
    pub passes: u64,
    /// Passes that found work.
    pub passes_with_work: u64,
    /// Times that the trustee slept.
    pub sleeps: u64,
    /// Times that a member of a flat team found its doorbell rung by a waiting client.
    pub rings: u64,
    /// Closures and destructors that panicked.
    pub panics: u64,
    /// The counts of the trustee's clients, if they have request lines or the trustee is
    /// observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<ClientCounts>,
}

/// The counts that the clients of one server or trustee keep. Clients of request lines count all
/// of them; clients of an observed trustee only polls, answers, pops, failed pushes and latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientCounts {
    /// Polls of a response while a request was in flight.
    pub polls: u64,
    /// Polls that found the answer: the response-ready rate is `ready / polls`.
    pub ready: u64,
    /// Times that a line was free for a request from the pending queue. For an observed trustee, looks
    /// for requests to publish while the window had room.
    pub pops: u64,
    /// Failed pops: pops that found no request.
    pub failed_pops: u64,
    /// Requests that found the queue, or the window, full.
    pub failed_pushes: u64,
    /// Passes over all lines.
    pub flushes: u64,
    /// Requests in the queue at the start of each pass, added up: `depths / flushes` on average.
    pub depths: u64,
    /// Requests whose latency was measured.
    pub timed: u64,
    /// Latencies of the measured requests, from issue to callback, in nanoseconds, added up.
    pub latency_ns: u64,
}

/// A sample: one measured slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Operations per second of wall time, in millions.
    pub mops: f64,
    /// The mode of the machine.
    pub mode: Mode,
    /// Larger of the two probed round trips around the sample, in nanoseconds.
    pub rtt_ns: Option<f64>,
    /// Operations of each client thread.
    pub per_thread: Vec<u64>,
    /// CPU time of the whole process during the sample, in seconds, servers included.
    pub cpu_s: f64,
    /// Latency of the sample's operations, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Percentiles>,
    /// The operations that arrived, if they arrived on a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The result of the fibres, in fibre benchmarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fibres: Option<FibreResult>,
    /// Aborts and uncertain comparisons, in ordered workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<ConflictCounts>,
    /// The picture that was painted, in `raytrace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<PictureResult>,
    /// The block of load that a cache server was under, in `cache`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheBlock>,
}

/// The aborts and uncertain comparisons of a sample of an ordered workload, by methods with a clock
/// and by their rivals (O9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConflictCounts {
    /// Attempts that were aborted and made again, by reason.
    pub aborts: Aborts,
    /// Comparisons of two times that the clock left open. Each was deferred (a thread waited) or
    /// aborted its attempt.
    pub uncertain: u64,
    /// The time of the parts of an operation, by methods that take it.
    #[serde(skip_serializing_if = "TimeOfParts::is_none")]
    pub parts: TimeOfParts,
}

/// The time that clients spent on the parts of their operations, in ticks of the CPUs' counter,
/// added up. All are 0 in methods that do not take it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeOfParts {
    /// Copying objects, and copying them back.
    pub copying: u64,
    /// Locking objects and unlocking them, and waits for those that others have locked.
    pub locking: u64,
    /// Ordering a commit by the clock.
    pub ordering: u64,
    /// Waiting for readers.
    pub waiting: u64,
    /// All the clients' time, the parts above included.
    pub whole: u64,
}

impl TimeOfParts {
    /// Whether no time was taken.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The time of the four parts, in the order of the fields, and the rest of the whole.
    pub fn with_rest(self) -> [u64; 5] {
        let Self {
            copying,
            locking,
            ordering,
            waiting,
            whole,
        } = self;
        let rest = whole.saturating_sub(copying + locking + ordering + waiting);
        [copying, locking, ordering, waiting, rest]
    }

    /// The sums or differences of both, field by field.
    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            copying: of(self.copying, other.copying),
            locking: of(self.locking, other.locking),
            ordering: of(self.ordering, other.ordering),
            waiting: of(self.waiting, other.waiting),
            whole: of(self.whole, other.whole),
        }
    }
}

/// Aborted attempts by reason, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Aborts {
    /// Aborts because another thread held a lock.
    pub lock: u64,
    /// Aborts because a value that was read had changed.
    pub validation: u64,
    /// Aborts because another transaction had written a newer version of a row.
    pub version: u64,
    /// Aborts because a row had been inserted where none was found.
    pub phantom: u64,
    /// Aborts because the clock could not say whether a value had changed.
    pub uncertain: u64,
    /// Aborts by methods that do not report the reason.
    pub unknown: u64,
}

impl Aborts {
    /// The number of aborts for all reasons.
    pub fn all(self) -> u64 {
        let known = self.lock + self.validation + self.version + self.phantom;
        known + self.uncertain + self.unknown
    }
}

impl std::ops::AddAssign for ConflictCounts {
    fn add_assign(&mut self, more: Self) {
        self.aborts.lock += more.aborts.lock;
        self.aborts.validation += more.aborts.validation;
        self.aborts.version += more.aborts.version;
        self.aborts.phantom += more.aborts.phantom;
        self.aborts.uncertain += more.aborts.uncertain;
        self.aborts.unknown += more.aborts.unknown;
        self.uncertain += more.uncertain;
        self.parts = self.parts.with(more.parts, std::ops::Add::add);
    }
}

impl std::ops::Sub for ConflictCounts {
    type Output = Self;

    /// The counts since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self {
            aborts: Aborts {
                lock: self.aborts.lock - earlier.aborts.lock,
                validation: self.aborts.validation - earlier.aborts.validation,
                version: self.aborts.version - earlier.aborts.version,
                phantom: self.aborts.phantom - earlier.aborts.phantom,
                uncertain: self.aborts.uncertain - earlier.aborts.uncertain,
                unknown: self.aborts.unknown - earlier.aborts.unknown,
            },
            uncertain: self.uncertain - earlier.uncertain,
            parts: self.parts.with(earlier.parts, std::ops::Sub::sub),
        }
    }
}

impl std::iter::Sum for ConflictCounts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// The number of operations that arrived during a sample, and the clients' waiting time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrivals {
    /// Operations that were due before the sample was over.
    pub due: u64,
    /// Operations that were issued more than a microsecond late; part of `due`.
    pub late: u64,
    /// Operations that were not issued before the sample was over; part of `due`.
    pub unserved: u64,
    /// Time that clients spent waiting for the next arrival, in seconds, added up.
    pub waiting_s: f64,
    /// Actual length of the sample, in seconds of wall time.
    pub wall_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run as it is written today, with `trustees`.
    fn run(trustees: Vec<Trustee>) -> Run {
        Run {
            workload: "fetch-add".to_owned(),
            method: "trust".to_owned(),
            params: Params {
                placement: vec![Some(0), None],
                extra: Extra {
                    size: Some(Size::Asked("hi".to_owned())),
                    x: Some(2.0),
                    ..Extra::from([("ring", 3.into())])
                },
                ..Params::default()
            },
            correct: true,
            median_mops: 1.5,
            harmonic_mean_mops: 1.25,
            by_mode: BTreeMap::from([(
                Mode::Near,
                ModeSummary {
                    median_mops: 1.5,
                    n: 1,
                    q1_mops: 1.5,
                    q3_mops: 1.5,
                    latency_ns: None,
                    limit: None,
                },
            )]),
            samples: vec![Sample {
                mops: 1.5,
                mode: Mode::Near,
                rtt_ns: Some(110.0),
                per_thread: vec![150],
                cpu_s: 0.002,
                latency_ns: None,
                arrivals: None,
                fibres: None,
                counts: None,
                picture: None,
                cache: None,
            }],
            trustees,
            latency_ns: None,
            load: None,
            loads: None,
            not_installed: None,
            cache: None,
            notes: vec!["said".to_owned()],
        }
    }

    fn results(trustees: Vec<Trustee>) -> Results {
        Results {
            schema: SCHEMA,
            machine: Machine::default(),
            commit: "unknown".to_owned(),
            command: "corelay bench".to_owned(),
            runs: vec![run(trustees)],
        }
    }

    #[test]
    fn results_round_trip_through_json() {
        let counted = Trustee {
            requests: 1,
            batches: 2,
            passes: 3,
            passes_with_work: 4,
            sleeps: 5,
            rings: 6,
            panics: u64::MAX,
            asked: Some(ClientCounts {
                polls: 7,
                ..ClientCounts::default()
            }),
        };
        let written = results(vec![counted, Trustee::default()]);
        let text = serde_json::to_string_pretty(&written).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), written);
        let params = &serde_json::to_value(&written).unwrap()["runs"][0]["params"];
        assert_eq!(
            (&params["size"], &params["ring"]),
            (&"hi".into(), &3.into())
        );
        assert!(params.get("flavour").is_none() && params.get("other").is_none());
    }

    /// Tests that the field is left out for methods without trustees, as in older files.
    #[test]
    fn trustees_are_optional() {
        let written = results(vec![]);
        let text = serde_json::to_string(&written).unwrap();
        assert!(!text.contains("trustees"), "{text}");
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), written);
        // A trustee that counts less, or more, than today's is read, too.
        let other = text.replace(
            r#""notes":"#,
            r#""trustees":[{"requests":7,"naps":1}],"notes":"#,
        );
        let read: Results = serde_json::from_str(&other).unwrap();
        let seven = Trustee {
            requests: 7,
            ..Trustee::default()
        };
        assert_eq!(read.runs[0].trustees, [seven]);
    }
}
