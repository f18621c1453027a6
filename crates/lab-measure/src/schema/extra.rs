//! Parameters that only some workloads have.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The size of a structure: a number, or the word that the user wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// The number of keys in a structure.
    Keys(u64),
    /// The number of fibres as the user wrote it (`hi`, `lo`, or a number), or a picture's width and
    /// height (`320x240`).
    Asked(String),
}

/// Declares [`Extra`]: parameters that are left out of the file if they are `None`.
macro_rules! extra {
    ($($(#[$what:meta])* $name:ident: $type:ty,)*) => {
        /// The parameters beyond those that all runs have. The lab reads each named one back;
        /// parameters that it only writes are in `other`.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Extra {
            $(
                $(#[$what])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )*
            /// Parameters that the lab writes and does not read back, by name.
            #[serde(flatten)]
            pub other: BTreeMap<String, Value>,
        }
    };
}

extra! {
    /// Time in which one thread traces the picture without a queue, in seconds.
    alone_s: f64,
    /// The boundary of an Ordo clock as used, in nanoseconds.
    boundary_ns: f64,
    /// The factor by which the measured boundary was multiplied.
    boundary_scale: f64,
    /// The boundary of an Ordo clock as used, in ticks of the CPUs' counter.
    boundary_ticks: u64,
    /// Number of lists in a hash table.
    buckets: u64,
    /// Bytes of a row.
    bytes: u64,
    /// Rounds that a client computes before each request.
    client_work: u32,
    /// The most times that a ray is mirrored.
    depth: u64,
    /// Number of fibres, all together.
    fibres: u64,
    /// The waiting of the followers of `transfer`: `park` or `yield`.
    flavour: String,
    /// The line of a figure to which the run belongs.
    line: String,
    /// Bytes of a store's log, about.
    log_bytes: u64,
    /// The mix of a database's transactions, or of their requests.
    mix: String,
    /// Whether the boundary was too small, so that comparisons which the clock calls certain may be
    /// wrong.
    no_longer_correct: bool,
    /// The panel of a figure to which the run belongs.
    panel: String,
    /// Number of variables that a transaction reads.
    reads: u64,
    /// Updates by a thread between two of its reads of the whole structure.
    reads_every: u64,
    /// Number of requests in a transaction.
    requests: u64,
    /// Number of rows.
    rows: u64,
    /// Rounds that an operation computes on its server.
    server_work: u32,
    /// Whether a woken fibre takes over the array of the fibre that woke it.
    share: bool,
    /// The number by which a database's specified size was divided.
    shrink: u64,
    /// Keys of a list, number of fibres as the user wrote it, or width and height of a picture.
    size: Size,
    /// The skew θ of Zipf's law, by which rows are chosen.
    theta: f64,
    /// Side of a picture's tile, in pixels.
    tile: u64,
    /// Percentage of the operations that update; in the course, their number.
    updates: u64,
    /// Number of transactional variables.
    variables: u64,
    /// Number of warehouses.
    warehouses: u64,
    /// The position of the run on a figure's x axis.
    x: f64,
}

impl<const N: usize> From<[(&str, Value); N]> for Extra {
    /// Parameters that the lab writes and does not read back, from names and values.
    fn from(other: [(&str, Value); N]) -> Self {
        let own = |(name, value): (&str, Value)| (name.to_owned(), value);
        Self {
            other: other.into_iter().map(own).collect(),
            ..Self::default()
        }
    }
}
