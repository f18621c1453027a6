//! The targets of what a clock orders (R1–R7): time stamps, read-log-update, transactional memory and
//! logs merged at read, beside their rivals.
//!
//! The default clock of each structure is held to the rivals, the cores' own clocks to the default.

use super::Bound::{AtLeast, AtMost};
use super::Figure::{Mops, Ns};
use super::{Bound, Figure, Outcome, Target, judge};
use corelay_lab_bench::ordered::method::named;
use corelay_lab_bench::ordered::spec::{Bench, Scale, Spec};
use corelay_lab_measure::method::Method;
use corelay_lab_measure::schema::Run;

/// One workload at one size, with those who are measured at it.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// What is done.
    pub spec: Spec,
    /// All threads.
    pub threads: usize,
    /// How.
    pub methods: Vec<Method<Spec>>,
    /// What is promised.
    pub targets: Vec<Target>,
    /// What is shown beside it, and held to nothing.
    pub beside: Vec<Target>,
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

/// In both modes alike.
const fn target(what: &'static str, top: Figure, bottom: Figure, bound: Bound) -> Target {
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
/// Everybody who draws times: for the slope.
const STAMPS: &[&str] = &["fetch-add", "cas", "logical", "ordo", "ordo-now", "rdtscp"];
const LOGS: &[&str] = &["mutex", "oplog-logical", "oplog-ordo", "oplog-counted"];

/// Everything that is measured.
///
/// # Errors
/// A method that there is not on this architecture.
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
        .beside(deferred(0.85)),
        Point::of(
            LIST_20,
            2,
            lists,
            vec![
                rlu_by_rcu("R2 RLU / RCU-style list", 0.75),
                ordo_by_logical("R7 RLU on Ordo / on Logical", RLU, 0.9),
            ],
        )?
        .beside(deferred(0.75)),
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
        // Every transaction writes: R7 speaks of fewer updates.
        .beside(ordo_by_logical("TL2 on Ordo / on Logical", TL2, 0.9)),
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
    fn of(
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
            methods: methods.collect::<Result<_, _>>()?,
            targets,
            beside: Vec::new(),
        })
    }

    fn beside(mut self, target: Target) -> Self {
        self.beside.push(target);
        self
    }

    /// What it is called in the table.
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
        };
        let plural = if self.threads == 1 { "" } else { "s" };
        format!("{name}{form}, {} thread{plural}", self.threads)
    }

    /// Judges its samples: what is held to a target, then what is shown beside it.
    pub(crate) fn judge(&self, runs: &[Run], blocks: usize) -> (Vec<Outcome>, Vec<Outcome>) {
        let judge = |targets: &[Target]| judge(targets, runs, blocks);
        (judge(&self.targets), judge(&self.beside))
    }
}

/// By how much each method grows from one thread to two, where a workload is measured at both:
/// without a floor, for on two CPUs the cores' own clocks win by their slope alone.
pub(crate) fn slopes(points: &[Point], runs: &[Vec<Run>], blocks: usize) -> Vec<(String, Outcome)> {
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
            let outcomes = judge(&[slope], &both, blocks).into_iter();
            let name = format!("{bench}, {}", method.name());
            Some(outcomes.map(move |outcome| (name.clone(), outcome)))
        };
        let outcomes: Vec<_> = one.methods.iter().filter_map(of).flatten().collect();
        outcomes
    };
    pairs.flat_map(slope).collect()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn every_target_speaks_of_who_is_measured_and_all_seven_are_there() {
        let points = points().unwrap();
        let mut ids = Vec::new();
        for point in &points {
            assert_eq!(point.spec.bench.check(), Ok(()));
            for target in point.targets.iter().chain(&point.beside) {
                for figure in [target.top, target.bottom] {
                    let is_there = |name| point.methods.iter().any(|m| m.name() == name);
                    assert!(figure.methods().iter().all(|name| is_there(*name)));
                }
            }
            ids.extend(point.targets.iter().map(|target| &target.what[..2]));
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, ["R1", "R2", "R3", "R4", "R5", "R6", "R7"]);
    }
}
