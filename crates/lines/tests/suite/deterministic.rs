//! The counts are the same, whatever else the computer does.

use corelay_lines::{Count, Machine, Method, Setup, Workload};

fn setup(workload: Workload) -> Setup {
    Setup {
        machine: Machine::new(2, 4, 2).unwrap(),
        // Round robin over the sockets, siblings last.
        places: [0, 4, 1, 5, 2, 6, 3, 7, 8].into(),
        workload,
        size: 64,
        operations: 100,
        work: 1,
    }
}

/// On a thread of its own, whose heap has holes.
fn elsewhere(workload: Workload, method: Method, holes: usize) -> Count {
    let count = move || {
        let kept: Vec<Vec<u8>> = (1..holes).map(|n| vec![0; n * 24 % 1000]).collect();
        let count = setup(workload).count(method);
        drop(kept);
        count
    };
    std::thread::spawn(count).join().unwrap()
}

/// All methods with the number, and some of each kind with the structures.
fn pairs() -> impl Iterator<Item = (Workload, Method)> {
    Workload::ALL.into_iter().flat_map(|workload| {
        let some = [Method::Mcs, Method::FlatCombining, Method::Trust];
        let methods = match workload {
            Workload::FetchAdd => Method::ALL.to_vec(),
            // A long run.
            Workload::List => vec![Method::CcSynch],
            _ => some.to_vec(),
        };
        methods.into_iter().map(move |method| (workload, method))
    })
}

#[test]
fn two_runs_are_equal() {
    for (workload, method) in pairs() {
        let first = setup(workload).count(method);
        for holes in [0, 1000] {
            let other = elsewhere(workload, method, holes);
            assert_eq!(other, first, "{method}, {workload}, with {holes} holes");
        }
    }
}

#[test]
fn steady_states_fetch_nothing_from_memory() {
    for (workload, method) in pairs() {
        let count = setup(workload).count(method);
        let share = count.per_operation(count.all.from_memory);
        assert!(
            share < 0.01,
            "{method}, {workload}: {share} lines an operation are new"
        );
    }
}

/// Distances are those of the machine: on one socket nothing goes across, on one core nothing
/// leaves it.
#[test]
fn lines_move_only_as_far_as_they_must() {
    for (machine, zero) in [
        ("1x16x1", [0, 2].as_slice()),
        ("1x1x16", &[1, 2]),
        ("16x1x1", &[0, 1]),
    ] {
        for method in Method::ALL {
            let setup = Setup {
                machine: machine.parse().unwrap(),
                places: (0..6).collect(),
                workload: Workload::FetchAdd,
                size: 0,
                operations: 50,
                work: 1,
            };
            let count = setup.count(method);
            assert!(count.all.lines() > 0, "{method} on {machine}");
            for &distance in zero {
                assert_eq!(count.all.moved[distance], 0, "{method} on {machine}");
                assert_eq!(count.all.claimed[distance], 0, "{method} on {machine}");
            }
        }
    }
}
