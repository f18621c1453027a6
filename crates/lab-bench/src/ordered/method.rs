//! The catalogue of ordered methods, with one table for each kind of workload.
//!
//! A new method takes a file of its own, and here its entry.

use super::spec::{Bench, Spec};
use super::{bank, clocks, database, kept, rmap, set, stamp};
use corelay_lab_measure::method::{Contender, Kind, Method, SetupLimit};
use corelay_lab_measure::workload::point::Point;

/// A function that sets a method up.
pub(super) type Build = fn(Spec, &Point, &SetupLimit) -> Result<Box<dyn Contender>, String>;

/// A method of a workload and its properties.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The method: its name, its kind, and how it is set up.
    pub method: Method<Spec>,
    /// A description of the method, in a clause.
    pub what: &'static str,
    /// Whether the method compares times by the boundary of an Ordo clock.
    pub has_boundary: bool,
}

/// A method whose threads are all clients.
const fn direct(name: &'static str, what: &'static str, build: Build) -> Entry {
    Entry {
        method: Method::new(name, Kind::Direct, build),
        what,
        has_boundary: false,
    }
}

/// A method with a trustee.
const fn served(name: &'static str, what: &'static str, build: Build) -> Entry {
    Entry {
        method: Method::new(name, Kind::Dedicated, build),
        ..direct(name, what, build)
    }
}

/// A method whose threads are all clients, on an Ordo clock.
const fn ordo(name: &'static str, what: &'static str, build: Build) -> Entry {
    Entry {
        has_boundary: true,
        ..direct(name, what, build)
    }
}

/// The same method, with as many transactions outstanding as is asked for.
const fn windowed(entry: Entry) -> Entry {
    Entry {
        method: entry.method.windowed(),
        ..entry
    }
}

/// The methods of `timestamp`.
static STAMPS: &[Entry] = &[
    direct(
        "fetch-add",
        "one shared counter, advanced by one instruction",
        stamp::FETCH_ADD,
    ),
    direct(
        "cas",
        "one shared counter, advanced by compare-and-swap in a loop",
        stamp::CAS,
    ),
    direct(
        "logical",
        "corelay's logical clock: a shared counter",
        stamp::LOGICAL,
    ),
    ordo(
        "ordo",
        "corelay's Ordo clock, the time of a commit: earlier stores are visible by then",
        stamp::ORDO,
    ),
    ordo(
        "ordo-after",
        "corelay's Ordo clock, a time certainly after the thread's last one: waits out the boundary",
        stamp::ORDO_AFTER,
    ),
    ordo(
        "ordo-after-other",
        "corelay's Ordo clock, a time certainly after the latest that any thread has published",
        stamp::ORDO_AFTER_OTHER,
    ),
    ordo(
        "ordo-update",
        "corelay's Ordo clock, the time of an update of OpLog: waits until later ones are greater",
        stamp::ORDO_UPDATE,
    ),
    ordo(
        "ordo-cmp",
        "corelay's Ordo clock, the time of a reader, compared with the last one",
        stamp::ORDO_CMP,
    ),
    ordo(
        "ordo-now",
        "corelay's Ordo clock, the time now",
        stamp::ORDO_NOW,
    ),
    ordo(
        "ordo-read",
        "corelay's Ordo clock, the time of a reader",
        stamp::ORDO_READ,
    ),
    #[cfg(target_arch = "x86_64")]
    direct("rdtsc", "the bare instruction", stamp::RDTSC),
    #[cfg(target_arch = "x86_64")]
    direct(
        "rdtscp",
        "the bare instruction that waits for earlier ones",
        stamp::RDTSCP,
    ),
    direct(
        "clock-gettime",
        "the system's monotonic clock",
        stamp::CLOCK_GETTIME,
    ),
];

/// The methods of the lists.
static SETS: &[Entry] = &[
    direct(
        "mutex",
        "the standard library's mutex around each list",
        set::MUTEX,
    ),
    served(
        "trust",
        "corelay's delegation: lists on a trustee",
        set::TRUST,
    ),
    direct(
        "rcu",
        "readers in epochs, updates in the lock of the list",
        set::RCU,
    ),
    direct(
        "rlu-logical",
        "corelay's read-log-update on a shared counter",
        set::RLU_LOGICAL,
    ),
    ordo(
        "rlu-ordo",
        "corelay's read-log-update on each core's own clock",
        set::RLU_ORDO,
    ),
    direct(
        "rlu-logical-w10",
        "`rlu-logical`, with updates made visible to others ten at a time",
        set::RLU_LOGICAL_10,
    ),
    ordo(
        "rlu-ordo-w10",
        "`rlu-ordo`, with updates made visible to others ten at a time",
        set::RLU_ORDO_10,
    ),
    direct(
        "rlu-logical-timed",
        "`rlu-logical`, which takes the time of its parts and is slower for it",
        set::RLU_LOGICAL_TIMED,
    ),
    ordo(
        "rlu-ordo-timed",
        "`rlu-ordo`, which takes the time of its parts and is slower for it",
        set::RLU_ORDO_TIMED,
    ),
];

/// The methods of the accounts.
static BANKS: &[Entry] = &[
    direct("mutex", "one mutex around all accounts", bank::MUTEX),
    direct(
        "mutex-map",
        "one mutex around a hash map of all accounts",
        bank::MUTEX_MAP,
    ),
    direct(
        "mutex-ordered",
        "a mutex for each account, taken in order",
        bank::MUTEX_ORDERED,
    ),
    served(
        "trust",
        "corelay's delegation: all accounts on a trustee",
        bank::TRUST,
    ),
    direct("stm", "transactions of the crate `stm`", bank::STM),
    direct(
        "fast-stm",
        "transactions of the crate `fast-stm`",
        bank::FAST_STM,
    ),
    direct(
        "tl2-logical",
        "corelay's transactions on a shared counter",
        bank::TL2_LOGICAL,
    ),
    ordo(
        "tl2-ordo",
        "corelay's transactions on each core's own clock",
        bank::TL2_ORDO,
    ),
];

/// The methods of the reverse map.
static RMAPS: &[Entry] = &[
    direct("mutex", "one mutex around the map", rmap::MUTEX),
    served(
        "trust",
        "corelay's delegation: the map on a trustee, each update waited for",
        rmap::TRUST,
    ),
    served(
        "trust-post",
        "corelay's delegation: the map on a trustee, updates not waited for",
        rmap::TRUST_POST,
    ),
    direct(
        "oplog-logical",
        "corelay's logs, merged at a read, ordered by a shared counter",
        rmap::OPLOG_LOGICAL,
    ),
    ordo(
        "oplog-ordo",
        "corelay's logs, merged at a read, ordered by each core's own clock",
        rmap::OPLOG_ORDO,
    ),
    direct(
        "oplog-counted",
        "corelay's logs of a map that counts, whose updates need no order",
        rmap::OPLOG_COUNTED,
    ),
];

/// The methods of `tpcc`, and of `ycsb` but for `dashmap`.
macro_rules! databases {
    ($($more:expr)?) => {
        &[
            direct(
                "mutex",
                "one mutex around the standard library's maps",
                database::MUTEX,
            ),
            served(
                "trust",
                "corelay's delegation: the standard library's maps on a trustee, a closure for each transaction",
                database::TRUST,
            ),
            $($more,)?
            direct(
                "occ-logical",
                "corelay's store: optimistic, on a shared counter",
                database::OCC_LOGICAL,
            ),
            ordo(
                "occ-ordo",
                "corelay's store: optimistic, on each core's own clock",
                database::OCC_ORDO,
            ),
            direct(
                "silo",
                "corelay's store: optimistic, without a clock, as Silo",
                database::SILO,
            ),
            direct(
                "tictoc",
                "corelay's store: optimistic, times computed from what is read, as TicToc",
                database::TICTOC,
            ),
            direct(
                "mvcc-logical",
                "corelay's store: many versions, on a shared counter",
                database::MVCC_LOGICAL,
            ),
            ordo(
                "mvcc-ordo",
                "corelay's store: many versions, on each core's own clock",
                database::MVCC_ORDO,
            ),
        ]
    };
}

/// The methods of `ycsb`.
static YCSB: &[Entry] = databases!(direct(
    "dashmap",
    "a hash table in shards with a lock each, of that crate: single requests only",
    database::DASHMAP,
));

/// The methods of `tpcc`.
static TPCC: &[Entry] = databases!();

/// The methods of corelay's store on disk, after others.
macro_rules! kept_stores {
    ($($other:expr),* $(,)?) => {
        &[
            $($other,)*
            windowed(direct(
                "occ-logical",
                "corelay's store: optimistic, on a shared counter",
                kept::OCC_LOGICAL,
            )),
            windowed(ordo(
                "occ-ordo",
                "corelay's store: optimistic, on each core's own clock",
                kept::OCC_ORDO,
            )),
            windowed(direct(
                "silo",
                "corelay's store: optimistic, without a clock, as Silo",
                kept::SILO,
            )),
            windowed(direct(
                "tictoc",
                "corelay's store: optimistic, times computed from what is read, as TicToc",
                kept::TICTOC,
            )),
            windowed(direct(
                "mvcc-logical",
                "corelay's store: many versions, on a shared counter",
                kept::MVCC_LOGICAL,
            )),
            windowed(ordo(
                "mvcc-ordo",
                "corelay's store: many versions, on each core's own clock",
                kept::MVCC_ORDO,
            )),
        ]
    };
}

/// The methods of `recover`.
static RECOVER: &[Entry] = kept_stores!();

/// The methods of `kept`.
static KEPT: &[Entry] = kept_stores![
    direct(
        "redb",
        "the crate `redb`: one writer at a time, each commit synced",
        kept::REDB,
    ),
    windowed(direct(
        "redb-grouped",
        "`redb`, with one commit for the transactions of all threads that wait",
        kept::REDB_GROUPED,
    )),
    direct(
        "fjall",
        "the crate `fjall`: one writer at a time, the journal synced at each commit",
        kept::FJALL,
    ),
    windowed(direct(
        "fjall-grouped",
        "`fjall`, with one commit for the transactions of all threads that wait",
        kept::FJALL_GROUPED,
    )),
    direct(
        "sled",
        "the crate `sled`: each transaction flushed, and its file synced",
        kept::SLED,
    ),
    windowed(direct(
        "sled-grouped",
        "`sled`, with one commit for the transactions of all threads that wait",
        kept::SLED_GROUPED,
    )),
    direct(
        "sled-flush",
        "`sled` without that sync: on Linux its flush leaves the disk's cache alone, so less is promised",
        kept::SLED_FLUSH,
    ),
    direct(
        "heed",
        "the crate `heed` (LMDB): one writer at a time, each commit synced",
        kept::HEED,
    ),
    windowed(direct(
        "heed-grouped",
        "`heed`, with one commit for the transactions of all threads that wait",
        kept::HEED_GROUPED,
    ))
];

/// The methods of a workload, in the order of tables.
pub fn methods(bench: Bench) -> &'static [Entry] {
    match bench {
        Bench::Timestamp => STAMPS,
        Bench::List { .. } | Bench::Hash { .. } => SETS,
        Bench::Transfer { .. } | Bench::Read { .. } => BANKS,
        Bench::Rmap { .. } => RMAPS,
        Bench::Ycsb { .. } => YCSB,
        Bench::Tpcc { .. } => TPCC,
        Bench::Kept { .. } => KEPT,
        Bench::Recover { .. } => RECOVER,
    }
}

/// The entry of the method called `name`.
///
/// # Errors
/// A clause that says that there is no such method.
pub fn entry(bench: Bench, name: &str) -> Result<Entry, String> {
    let found = methods(bench).iter().find(|entry| entry.name() == name);
    found
        .copied()
        .ok_or_else(|| format!("there is no method `{name}`"))
}

/// The method called `name`.
///
/// ```
/// use corelay_lab_bench::ordered::{method, spec::Bench};
/// let bench = Bench::Transfer { variables: 8 };
/// assert_eq!(method::named(bench, "stm").unwrap().name(), "stm");
/// assert!(method::named(bench, "magic").unwrap_err().contains("`magic`"));
/// ```
///
/// # Errors
/// A clause that says that there is no such method.
pub fn named(bench: Bench, name: &str) -> Result<Method<Spec>, String> {
    entry(bench, name).map(|entry| entry.method)
}

impl Entry {
    /// The method's name on the command line and in results.
    pub fn name(&self) -> &'static str {
        self.method.name()
    }

    /// The boundary that the method is set up with, in ticks and in nanoseconds; `None` if it has
    /// none.
    pub(crate) fn boundary(&self, spec: Spec) -> Option<(u64, f64)> {
        let scale = Some(spec.scale).filter(|_| self.has_boundary);
        scale.and_then(clocks::boundary_of)
    }
}
