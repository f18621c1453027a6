//! The targets of the structures that a clock orders (R1–R7): time stamps, read-log-update,
//! transactional memory, and logs merged at read, against their rivals.
//!
//! The structure with its default clock is compared with the rivals, and the structure with the
//! cores' own clocks (Ordo) with the default.

use super::Bound::{AtLeast, AtMost};
use super::Term::{Mops, Ns};
use super::{Bound, Judgement, Target, Term, judge};
use corelay_lab_bench::ordered::method::named;
use corelay_lab_bench::ordered::spec::{Bench, Scale, Spec};
use corelay_lab_measure::method::Method;
use corelay_lab_measure::schema::Run;

/// A workload at one size, its methods and its targets.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The workload and its size.
    pub spec: Spec,
    /// All threads.
    pub threads: usize,
    /// Transactions that a thread has outstanding, for methods that can.
    pub window: usize,
    /// The methods that are measured.
    pub methods: Vec<Method<Spec>>,
    /// The targets that are judged.
    pub targets: Vec<Target>,
    /// Ratios that are shown without being held to a target.
    pub untargeted: Vec<Target>,
}

const LIST_2: Bench = Bench::List {
    size: 256,
    updates: 2,
};
const LIST_20: Bench = Bench::List {
    size: 256,
    updates: 20,
};
const HASH_2: Bench = Bench::Hash {
    buckets: 1000,
    size: 10,
    updates: 2,
};
const HASH_20: Bench = Bench::Hash {
    buckets: 1000,
    size: 10,
    updates: 20,
};
const TRANSFER: Bench = Bench::Transfer { variables: 1024 };
const RMAP: Bench = Bench::Rmap {
    pages: 1024,
    reads_every: 10_000,
};

const fn read(updates: u32) -> Bench {
    Bench::Read {
        variables: 1024,
        reads: 16,
        updates,
    }
}

/// Makes a target with the same bound in both modes.
pub(super) const fn target(what: &'static str, top: Term, bottom: Term, bound: Bound) -> Target {
    Target {
        what,
        top,
        bottom,
        near: bound,
        far: bound,
    }
}

const fn ordo_by_logical(what: &'static str, of: [&'static str; 2], least: f64) -> Target {
    target(what, Mops(of[0]), Mops(of[1]), AtLeast(least))
}

const RLU: [&str; 2] = ["rlu-ordo", "rlu-logical"];
const TL2: [&str; 2] = ["tl2-ordo", "tl2-logical"];
/// The methods that draw times, for the slope from one thread to two.
const STAMPS: &[&str] = &["fetch-add", "cas", "logical", "ordo", "ordo-now", "rdtscp"];
const LOGS: &[&str] = &["mutex", "oplog-logical", "oplog-ordo", "oplog-counted"];

/// Returns the points that are measured.
///
/// # Errors
/// If this architecture lacks one of the methods.
pub(crate) fn points() -> Result<Vec<Point>, String> {
    let lists = &["rcu", "rlu-logical", "rlu-ordo", "rlu-logical-w10"];
    let banks = &["fast-stm", "mutex-ordered", "tl2-logical", "tl2-ordo"];
    let deferred = |least| {
        target(
            "with 10 write sets deferred / rcu",
            Mops("rlu-logical-w10"),
            Mops("rcu"),
            AtLeast(least),
        )
    };
    let rlu_by_rcu = |what, least| target(what, Mops("rlu-logical"), Mops("rcu"), AtLeast(least));
    // `rdtscp` is an instruction of x86-64; without it there is nothing to compare a draw with.
    let is_there = |name: &&str| named(Bench::Timestamp, name).is_ok();
    let stamps: Vec<&str> = STAMPS.iter().copied().filter(is_there).collect();
    let plain_draw = target(
        "R1 now() / rdtscp, time",
        Ns("ordo-now"),
        Ns("rdtscp"),
        AtMost(1.05),
    );
    let plain_draw = stamps.contains(&"rdtscp").then_some(plain_draw);
    Ok(vec![
        Point::of(Bench::Timestamp, 1, &stamps, vec![])?,
        Point::of(
            Bench::Timestamp,
            2,
            &stamps,
            plain_draw.into_iter().collect(),
        )?,
        Point::of(
            LIST_2,
            2,
            lists,
            vec![
                rlu_by_rcu("R2 RLU / RCU-style list", 0.85),
                ordo_by_logical("R3 RLU on Ordo / on Logical", RLU, 0.95),
            ],
        )?
        .untargeted(deferred(0.85)),
        Point::of(
            LIST_20,
            2,
            lists,
            vec![
                rlu_by_rcu("R2 RLU / RCU-style list", 0.75),
                ordo_by_logical("R7 RLU on Ordo / on Logical", RLU, 0.9),
            ],
        )?
        .untargeted(deferred(0.75)),
        Point::of(
            HASH_2,
            2,
            lists,
            vec![ordo_by_logical("R3 RLU on Ordo / on Logical", RLU, 0.9)],
        )?,
        Point::of(
            HASH_20,
            2,
            lists,
            vec![ordo_by_logical("R7 RLU on Ordo / on Logical", RLU, 0.9)],
        )?,
        Point::of(
            TRANSFER,
            2,
            banks,
            vec![
                target(
                    "R4 TL2 / fast-stm",
                    Mops("tl2-logical"),
                    Mops("fast-stm"),
                    AtLeast(5.0),
                ),
                target(
                    "R4 TL2 / two ordered mutexes",
                    Mops("tl2-logical"),
                    Mops("mutex-ordered"),
                    AtLeast(0.6),
                ),
            ],
        )?
        // Every transaction writes here, and R7 is about fewer updates.
        .untargeted(ordo_by_logical("TL2 on Ordo / on Logical", TL2, 0.9)),
        Point::of(
            read(0),
            2,
            banks,
            vec![
                target(
                    "R5 TL2 / fast-stm",
                    Mops("tl2-logical"),
                    Mops("fast-stm"),
                    AtLeast(10.0),
                ),
                ordo_by_logical("R7 TL2 on Ordo / on Logical", TL2, 0.9),
            ],
        )?,
        Point::of(
            read(20),
            2,
            banks,
            vec![ordo_by_logical("R7 TL2 on Ordo / on Logical", TL2, 0.9)],
        )?,
        Point::of(RMAP, 1, LOGS, vec![])?,
        Point::of(
            RMAP,
            2,
            LOGS,
            vec![
                target(
                    "R6 Oplog on Logical / mutex",
                    Mops("oplog-logical"),
                    Mops("mutex"),
                    AtLeast(4.0),
                ),
                target(
                    "R6 Oplog on Ordo / mutex",
                    Mops("oplog-ordo"),
                    Mops("mutex"),
                    AtLeast(2.0),
                ),
                target(
                    "R6 Oplog that counts / mutex",
                    Mops("oplog-counted"),
                    Mops("mutex"),
                    AtLeast(4.0),
                ),
            ],
        )?,
    ])
}

impl Point {
    pub(super) fn of(
        bench: Bench,
        threads: usize,
        methods: &[&str],
        targets: Vec<Target>,
    ) -> Result<Self, String> {
        let methods = methods.iter().map(|name| named(bench, name));
        let scale = Scale::ONE;
        Ok(Self {
            spec: Spec { bench, scale },
            threads,
            window: 1,
            methods: methods.collect::<Result<_, _>>()?,
            targets,
            untargeted: Vec::new(),
        })
    }

    pub(super) fn untargeted(mut self, target: Target) -> Self {
        self.untargeted.push(target);
        self
    }

    /// Returns the point's heading in the output.
    pub(crate) fn name(&self) -> String {
        let name = self.spec.bench.name();
        let form = match self.spec.bench {
            Bench::List { size, updates } => format!(" of {size}, {updates} % updates"),
            Bench::Hash {
                buckets,
                size,
                updates,
            } => format!(" of {buckets} × {size}, {updates} % updates"),
            Bench::Transfer { variables } => format!(" of {variables}"),
            Bench::Read { reads, updates, .. } => format!(" of {reads}, {updates} % updates"),
            Bench::Rmap { reads_every, .. } => format!(", a read per {reads_every}"),
            Bench::Timestamp => String::new(),
            Bench::Ycsb { shape, .. } => {
                format!(
                    " {}, {} of {} rows, θ {}",
                    shape.mix, shape.requests, shape.rows, shape.theta
                )
            }
            Bench::Kept { shape, .. } => format!(
                ", {} of {} rows of {} bytes",
                shape.requests, shape.rows, shape.bytes
            ),
            Bench::Recover { shape, .. } => format!(
                ", a log of {} MB, {} rows of {} bytes",
                shape.log_bytes / 1_000_000,
                shape.rows,
                shape.bytes
            ),
            Bench::Tpcc { shape, .. } => {
                let plural = if shape.warehouses == 1 { "" } else { "s" };
                format!(" {}, {} warehouse{plural}", shape.mix, shape.warehouses)
            }
        };
        let plural = if self.threads == 1 { "" } else { "s" };
        let window = match self.window {
            1 => String::new(),
            window => format!(", {window} outstanding each"),
        };
        format!("{name}{form}, {} thread{plural}{window}", self.threads)
    }

    /// Judges the samples of this point. Returns the targets, then the ratios without a target.
    pub(crate) fn judge(&self, runs: &[Run], blocks: usize) -> (Vec<Judgement>, Vec<Judgement>) {
        let judge = |targets: &[Target]| judge(targets, runs, blocks);
        (judge(&self.targets), judge(&self.untargeted))
    }
}

/// Returns each method's throughput on two threads over that on one, for the workloads that are
/// measured with both. It has no target, because on two CPUs the cores' own clocks win by this slope
/// alone.
pub(crate) fn slopes(
    points: &[Point],
    runs: &[Vec<Run>],
    blocks: usize,
) -> Vec<(String, Judgement)> {
    let all = || points.iter().zip(runs);
    let alone = all().filter(|(point, _)| point.threads == 1);
    let pairs = alone.filter_map(|(one, of_one)| {
        let is_pair = |(two, _): &(&Point, _)| two.threads == 2 && two.spec == one.spec;
        let (_, of_two) = all().find(is_pair)?;
        Some((one, of_one, of_two))
    });
    let slope = |(one, of_one, of_two): (&Point, &Vec<Run>, &Vec<Run>)| {
        let bench = one.spec.bench.name();
        let of = |method: &Method<Spec>| {
            let named = |runs: &[Run], name: &str| {
                let run = runs.iter().find(|run| run.method == method.name())?;
                let mut run = run.clone();
                run.method = name.to_owned();
                Some(run)
            };
            let both = [named(of_two, "two")?, named(of_one, "one")?];
            let what = "from 1 thread to 2";
            let slope = target(what, Mops("two"), Mops("one"), AtLeast(0.0));
            let judgements = judge(&[slope], &both, blocks).into_iter();
            let name = format!("{bench}, {}", method.name());
            Some(judgements.map(move |judgement| (name.clone(), judgement)))
        };
        let judgements: Vec<_> = one.methods.iter().filter_map(of).flatten().collect();
        judgements
    };
    pairs.flat_map(slope).collect()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn every_target_names_measured_methods_and_all_seven_ids_occur() {
        let points = points().unwrap();
        let mut ids = Vec::new();
        for point in &points {
            assert_eq!(point.spec.bench.check(), Ok(()));
            for target in point.targets.iter().chain(&point.untargeted) {
                for term in [target.top, target.bottom] {
                    let is_there = |name| point.methods.iter().any(|m| m.name() == name);
                    assert!(term.methods().iter().all(|name| is_there(*name)));
                }
            }
            ids.extend(point.targets.iter().map(|target| &target.what[..2]));
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, ["R1", "R2", "R3", "R4", "R5", "R6", "R7"]);
    }
}
