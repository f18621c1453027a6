//! The targets of flat teams: the policy `adaptive` against the best fixed policy, on six loads, and
//! flat delegation against `fetch_add`.
//!
//! | load | variables that a member chooses among |
//! |---|---|
//! | all-local | its own |
//! | all-remote | those of the other members |
//! | uniform | all |
//! | one-hot-member | those of the first member, also for that member |
//! | slow-operations | all, and each operation computes for about a microsecond |
//! | bursts | all; after each 256 requests it computes for about 20 µs without a call of corelay |
//!
//! The best fixed policy is found in the same run, separately for near and far. The luckiest of five
//! policies is a harder rival than each of them, so the ratio errs against `adaptive`.

use super::Bound::AtLeast;
use super::Term::{Best, Mops};
use super::{Area, Target};
use corelay::Policy;
use corelay_lab_measure::method::{Method, atomic, flat, pattern::Pattern};
use corelay_lab_measure::workload::slow::Slow;

/// The most members for which there are targets.
const MOST_MEMBERS: usize = 8;

/// A load: the policies that run on it, and the target.
struct Row {
    contenders: [Method; 6],
    target: Target,
}

/// Makes the row of a load from its name, the load, and the workload if it is not fetch-add.
macro_rules! row {
    ($name:literal, $load:expr) => {
        row!($name, $load, |add| add)
    };
    ($name:literal, $load:expr, |$add:ident| $workload:expr) => {{
        macro_rules! contender {
            ($policy:literal, $chosen:expr) => {
                flat::method(concat!($policy, "/", $name), |$add, point, setup_limit| {
                    flat::start($workload, point, setup_limit, $chosen, $load)
                })
            };
        }
        Row {
            contenders: [
                contender!("flat-queue", Policy::Queue),
                contender!("flat-blocked", Policy::Blocked),
                contender!("flat-fast-path", Policy::FastPath),
                contender!("flat-bound", Policy::Bound(flat::BOUND)),
                contender!("flat-doorbell", Policy::Doorbell),
                contender!("flat-adaptive", Policy::Adaptive),
            ],
            target: Target {
                what: concat!("adaptive / best fixed, ", $name),
                top: Mops(concat!("flat-adaptive/", $name)),
                bottom: Best(&[
                    concat!("flat-queue/", $name),
                    concat!("flat-blocked/", $name),
                    concat!("flat-fast-path/", $name),
                    concat!("flat-bound/", $name),
                    concat!("flat-doorbell/", $name),
                ]),
                near: AtLeast(0.95),
                far: AtLeast(0.95),
            },
        }
    }};
}

const ROWS: [Row; 6] = [
    row!("all-local", Pattern::AllLocal),
    row!("all-remote", Pattern::AllRemote),
    row!("uniform", Pattern::Uniform),
    row!("one-hot-member", Pattern::OneHotMember),
    row!("slow-operations", Pattern::Uniform, |_add| {
        Slow::MICROSECOND
    }),
    row!("bursts", Pattern::Bursts),
];

const FETCH_ADD: Target = Target {
    what: "flat all-remote (adaptive, window 64) / fetch_add, 1,024 variables",
    top: Mops("flat-adaptive/all-remote"),
    bottom: Mops("atomic"),
    near: AtLeast(0.8),
    far: AtLeast(0.8),
};

/// Returns the area, with as many members as there are `cpus`, but at least 2 and at most 8.
pub(super) fn area(cpus: usize) -> Area {
    let (mut methods, mut targets) = (vec![atomic::METHOD], Vec::new());
    for row in ROWS {
        methods.extend(row.contenders);
        targets.push(row.target);
    }
    targets.push(FETCH_ADD);
    Area {
        methods,
        targets,
        threads: cpus.clamp(2, MOST_MEMBERS),
        vars: 1024,
        window: 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::measure::plan::Item;
    use corelay_lab_measure::measure::rig::Rig;
    use corelay_lab_measure::measure::session::{Session, Timing};
    use corelay_lab_measure::method::SetupLimit;
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn all_policies_are_right_under_all_loads() {
        for threads in [2, 3] {
            let area = Area { threads, ..area(2) };
            let mut rig = Rig::new(&vec![None; threads], &[], "test", Arc::default()).unwrap();
            let mut session = Session::new();
            for &method in &area.methods {
                let item = Item {
                    method,
                    point: area.point(vec![None; threads].into()),
                    notes: vec![],
                };
                session.add(item, &SetupLimit::default()).unwrap();
            }
            let timing = Timing {
                sample: Duration::from_millis(2),
                warm: Duration::from_millis(1),
            };
            session.round(&mut rig, timing, None, || {});
            let runs = session.finish(&rig, timing);
            assert_eq!(runs.len(), area.methods.len());
            for run in runs {
                assert!(run.correct && run.median_mops > 0.0, "{run:?}");
                if run.method == "atomic" {
                    continue;
                }
                assert_eq!((run.trustees.len(), run.params.window), (threads, 64));
                // A member whose objects no other member used has run only the check's requests.
                let asked: u64 = run.trustees[1..].iter().map(|t| t.requests).sum();
                let is_hot = run.method.ends_with("/one-hot-member");
                assert!(!is_hot || asked <= run.params.vars, "{run:?}");
            }
        }
    }

    #[test]
    fn every_target_names_measured_methods() {
        let area = area(64);
        assert_eq!(area.threads, 8);
        let names: HashSet<_> = area.methods.iter().map(Method::name).collect();
        assert_eq!(names.len(), area.methods.len(), "no name twice");
        for target in &area.targets {
            for term in [target.top, target.bottom] {
                assert!(term.methods().iter().all(|name| names.contains(name)));
            }
        }
        for row in &ROWS {
            let Best(fixed) = row.target.bottom else {
                panic!("{:?}", row.target)
            };
            let names = row.contenders.map(|method| method.name());
            assert_eq!(names.split_last().unwrap().1, fixed);
            assert_eq!([*names.last().unwrap()], row.target.top.methods()[..]);
            let of = |name: &str| name.split_once('/').unwrap().1.to_owned();
            assert!(names.iter().all(|name| of(name) == of(names[0])));
            assert!(row.target.what.ends_with(&of(names[0])));
        }
    }
}
