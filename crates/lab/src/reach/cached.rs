//! The targets of the cache server: paired with memcached, the server on one CPU and the load on another.

use super::Bound;
use corelay_lab_bench::cache::options::{Options, Scan, Sizes};

/// A load under which two servers are compared, and the figures that have targets.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The point's name in the output.
    pub name: &'static str,
    /// Flags of both servers.
    pub flags: &'static str,
    /// The load.
    pub options: Options,
    /// Whether all CPUs are both servers' and the load's.
    pub is_crowded: bool,
    /// Whether each key is set before anything is measured.
    pub is_filled: bool,
    /// Whether requests arrive at half of the highest rate that memcached bears.
    pub is_at_half_load: bool,
    /// The figures with their targets: of corelay-cached by that of memcached.
    pub targets: Vec<(&'static str, &'static str, Bound)>,
}

/// The points, in the order in which they are measured.
pub(crate) fn points() -> Vec<Point> {
    let usual = Point {
        name: "",
        flags: "-t 1 -m 1024",
        options: Options::default(),
        is_crowded: false,
        is_filled: true,
        is_at_half_load: false,
        targets: vec![],
    };
    let rate = |bound| vec![("ops/s", "cached / memcached", Bound::AtLeast(bound))];
    let gets = |get_ratio| Options {
        get_ratio,
        ..Options::default()
    };
    let two_threads = Point {
        flags: "-t 2 -m 1024",
        is_crowded: true,
        targets: rate(1.0),
        ..usual.clone()
    };
    vec![
        Point {
            name: "GET",
            options: gets(1.0),
            targets: rate(1.25),
            ..usual.clone()
        },
        Point {
            name: "SET",
            options: gets(0.0),
            targets: rate(1.25),
            ..usual.clone()
        },
        Point {
            name: "90/10",
            targets: rate(1.25),
            ..usual.clone()
        },
        Point {
            name: "GET, 16 pipelined",
            options: Options {
                pipeline: 16,
                ..gets(1.0)
            },
            targets: rate(8.0),
            ..usual.clone()
        },
        Point {
            name: "90/10, half of memcached's highest load",
            is_at_half_load: true,
            targets: vec![
                ("p99", "p99: cached / memcached", Bound::AtMost(1.0)),
                ("p99.9", "p99.9: cached / memcached", Bound::AtMost(1.0)),
            ],
            ..usual.clone()
        },
        Point {
            name: "90/10, 2 threads beside the load",
            ..two_threads.clone()
        },
        Point {
            name: "90/10, 2 threads beside the load, a hot key",
            options: Options {
                hot: 0.5,
                ..Options::default()
            },
            ..two_threads
        },
        Point {
            name: "Zipf 0.9 with scans in 64 MiB",
            flags: "-t 1 -m 64",
            options: Options {
                zipf: 0.9,
                value_size: Sizes::of(100),
                key_size: 16,
                get_ratio: 1.0,
                miss_set: true,
                pipeline: 16,
                scan: Some(Scan {
                    every: 10_000,
                    length: 1000,
                }),
                ..Options::default()
            },
            targets: vec![("hits", "hits: cached / memcached", Bound::AtLeast(1.0))],
            ..usual
        },
    ]
}

/// The most bytes of an item of a 12-byte key and a 100-byte value: 0.75 of what memcached says it takes, 171.
pub(crate) const ITEM_BYTES: f64 = 0.75 * 171.0;
/// The most resident bytes with [`IDLE_CONNECTIONS`] idle connections.
pub(crate) const IDLE_BYTES: f64 = 12e6;
/// The number of idle connections.
pub(crate) const IDLE_CONNECTIONS: usize = 10_000;
/// The largest share of a CPU that an idle server takes.
pub(crate) const IDLE_SHARE: f64 = 0.001;
