//! The targets of the transactional store: absolute figures against those of a C++ engine, DBx1000, with
//! the same parameters on the reference machine in the mode near (S1–S4); what is kept on disk against
//! embedded stores, and its recovery (S5, S6).
//!
//! A hash map in a mutex is measured in the same blocks as S1 to S4, so that a slower hour is seen as such.

use super::Bound::AtLeast;
use super::Term::{Best, Fixed, Mops};
use super::txn::{Point, target};
use corelay_lab_bench::ordered::database::STORES;
use corelay_lab_bench::ordered::database::{tpcc, ycsb};
use corelay_lab_bench::ordered::kept;
use corelay_lab_bench::ordered::spec::{Bench, Isolation};
use corelay_lab_measure::schema::{ConflictCounts, Run};
use std::path::Path;

/// A target on aborts: the share of attempts of a method that were aborted.
pub(crate) struct Aborts {
    /// The target's name in the output.
    pub what: &'static str,
    /// The methods, of which the one with the fewest counts.
    pub methods: &'static [&'static str],
    /// The peer's share.
    pub most: f64,
}

const READS: Bench = requests(ycsb::Mix::C, 0.0);
const UPDATES: Bench = requests(ycsb::Mix::A, 0.9);
const ORDERS: Bench = Bench::Tpcc {
    shape: tpcc::Shape {
        mix: tpcc::Mix::PaymentNewOrder,
        warehouses: 1,
        shrink: 1,
    },
    isolation: Isolation::Serializable,
};
/// The yardstick.
const TRANSFER: Bench = Bench::Transfer { variables: 1024 };

const fn requests(mix: ycsb::Mix, theta: f64) -> Bench {
    Bench::Ycsb {
        shape: ycsb::Shape {
            mix,
            rows: 1 << 17,
            requests: 16,
            theta,
        },
        isolation: Isolation::Serializable,
        tape: None,
    }
}

const METHODS: &[&str] = &[
    "mutex",
    "silo",
    "tictoc",
    "occ-logical",
    "occ-ordo",
    "mvcc-logical",
    "mvcc-ordo",
];
const SILO: &[&str] = &["silo"];
const TICTOC: &[&str] = &["tictoc"];
const OCC: &[&str] = &["occ-logical", "occ-ordo"];
const MVCC: &[&str] = &["mvcc-logical", "mvcc-ordo"];

/// Returns the points that are measured.
///
/// # Errors
/// If one of the methods is missing.
pub(crate) fn points() -> Result<Vec<Point>, String> {
    let of = |bench, least: [(_, _, f64); 4]| {
        let targets = least
            .map(|(what, methods, k)| target(what, Best(methods), Fixed(k / 1e3), AtLeast(1.0)));
        Point::of(bench, 2, METHODS, targets.into())
    };
    Ok(vec![
        Point::of(TRANSFER, 2, &["mutex-map"], vec![])?,
        of(
            READS,
            [
                ("S1 Silo / 500 k txn/s", SILO, 500.0),
                ("S2 TicToc / 520 k txn/s", TICTOC, 520.0),
                ("S3 OCC / 265 k txn/s", OCC, 265.0),
                ("S4 MVCC / 420 k txn/s", MVCC, 420.0),
            ],
        )?,
        of(
            UPDATES,
            [
                ("S1 Silo / 500 k txn/s", SILO, 500.0),
                ("S2 TicToc / 720 k txn/s", TICTOC, 720.0),
                ("S3 OCC / 410 k txn/s", OCC, 410.0),
                ("S4 MVCC / 275 k txn/s", MVCC, 275.0),
            ],
        )?,
        of(
            ORDERS,
            [
                ("S1 Silo / 540 k txn/s", SILO, 540.0),
                ("S2 TicToc / 545 k txn/s", TICTOC, 545.0),
                ("S3 OCC / 325 k txn/s", OCC, 325.0),
                ("S4 MVCC / 320 k txn/s", MVCC, 320.0),
            ],
        )?,
    ])
}

/// Embedded stores whose commits are on disk, as they come: all but `sled-flush`, which promises less.
const EMBEDDED: &[&str] = &["redb", "fjall", "sled", "heed"];
/// The same, in a wrapper that commits the transactions of all threads in one of theirs.
const GROUPED: &[&str] = &[
    "redb-grouped",
    "fjall-grouped",
    "sled-grouped",
    "heed-grouped",
];
/// Returns the points of what is kept on disk in the folder `dir`. The target compares with the stores as
/// they come, where this one's threads have 64 transactions on their way. What remains of it beside the
/// wrapper, which has as many, and where every thread waits for each transaction, is shown without a
/// target.
///
/// # Errors
/// If one of the methods is missing.
pub(crate) fn kept_points(dir: &'static Path) -> Result<Vec<Point>, String> {
    let commits = Bench::Kept {
        shape: kept::Shape {
            rows: 10_000,
            bytes: 100,
            requests: 2,
        },
        dir,
    };
    let recovery = Bench::Recover {
        shape: kept::LogShape {
            rows: 500_000,
            bytes: 100,
            log_bytes: 200_000_000,
            is_cold: false,
        },
        dir,
    };
    let beside = |what, others| target(what, Best(STORES), Best(others), AtLeast(5.0));
    let all = &[EMBEDDED, GROUPED, STORES].concat();
    // Kilobytes are counted.
    let of_log = target(
        "S6 recovery / 200 MB of log per s",
        Mops("silo"),
        Fixed(0.2),
        AtLeast(1.0),
    );
    let ahead = beside("S5 store / best embedded store", EMBEDDED);
    let ahead = Point {
        window: 64,
        ..Point::of(commits, 2, all, vec![ahead])?
            .untargeted(beside("store / best embedded in a wrapper", GROUPED))
    };
    let waiting = Point::of(commits, 2, all, vec![])?
        .untargeted(beside("store / best embedded, each waits", EMBEDDED))
        .untargeted(beside("store / best in a wrapper, each waits", GROUPED));
    Ok(vec![
        ahead,
        waiting,
        Point::of(recovery, 1, &["silo"], vec![of_log])?,
    ])
}

/// Returns the targets on aborts of a point.
pub(crate) fn aborts(point: &Point) -> Vec<Aborts> {
    let of = |most: [f64; 4]| {
        let methods = [
            ("aborts of Silo", SILO),
            ("aborts of TicToc", TICTOC),
            ("aborts of OCC", OCC),
            ("aborts of MVCC", MVCC),
        ];
        let pairs = methods.into_iter().zip(most);
        pairs
            .map(|((what, methods), most)| Aborts {
                what,
                methods,
                most,
            })
            .collect()
    };
    match point.spec.bench {
        READS => of([0.0; 4]),
        UPDATES => of([0.14, 0.11, 0.20, 0.06]),
        ORDERS => of([0.25, 0.14, 0.25, 0.01]),
        _ => Vec::new(),
    }
}

impl Aborts {
    /// Returns the smallest share of aborted attempts among the methods, over all samples.
    pub(crate) fn share(&self, runs: &[Run]) -> Option<f64> {
        let of = |run: &Run| {
            let counts: ConflictCounts = run.samples.iter().filter_map(|s| s.counts).sum();
            let done: u64 = run.samples.iter().flat_map(|s| &s.per_thread).sum();
            let aborted = counts.aborts.all();
            (done > 0).then(|| aborted as f64 / (done + aborted) as f64)
        };
        let runs = runs.iter();
        let runs = runs.filter(|run| self.methods.contains(&run.method.as_str()));
        runs.filter_map(of).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_names_measured_methods_and_all_ids_occur() {
        let mut points = points().unwrap();
        points.extend(kept_points(Path::new("")).unwrap());
        let mut ids = Vec::new();
        for point in &points {
            assert_eq!(point.spec.bench.check(), Ok(()));
            let is_there = |name: &&str| point.methods.iter().any(|m| m.name() == *name);
            for target in &point.targets {
                assert!(target.top.methods().iter().all(is_there));
            }
            for aborts in aborts(point) {
                assert!(aborts.methods.iter().all(is_there));
            }
            ids.extend(point.targets.iter().map(|target| &target.what[..2]));
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, ["S1", "S2", "S3", "S4", "S5", "S6"]);
    }
}
