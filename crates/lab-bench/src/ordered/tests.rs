//! Tests every method of every workload at a tiny size. Helpers for the tests of broken methods.

use super::database::{Tape, tpcc, ycsb};
use super::method::{Entry, entry, methods};
use super::spec::{Bench, Isolation, Scale, Spec};
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::method::{Kind, Method, SetupLimit};
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_measure::workload::point::Point;
use std::sync::Arc;
use std::time::Duration;

pub(super) const BENCHES: [Bench; 16] = [
    Bench::Timestamp,
    Bench::List {
        size: 8,
        updates: 40,
    },
    Bench::List {
        size: 1,
        updates: 100,
    },
    Bench::Hash {
        buckets: 5,
        size: 2,
        updates: 20,
    },
    Bench::Transfer { variables: 3 },
    Bench::Read {
        variables: 3,
        reads: 16,
        updates: 0,
    },
    Bench::Read {
        variables: 6,
        reads: 4,
        updates: 30,
    },
    Bench::Rmap {
        pages: 7,
        reads_every: 50,
    },
    Bench::Rmap {
        pages: 1,
        reads_every: 1,
    },
    ycsb(ycsb::Mix::A, 1),
    ycsb(ycsb::Mix::B, 16),
    ycsb(ycsb::Mix::C, 4),
    ycsb(ycsb::Mix::F, 2),
    ycsb(ycsb::Mix::E, 4),
    tpcc(tpcc::Mix::PaymentNewOrder),
    tpcc(tpcc::Mix::Full),
];

const fn ycsb(mix: ycsb::Mix, requests: usize) -> Bench {
    Bench::Ycsb {
        shape: ycsb::Shape {
            mix,
            rows: 16,
            requests,
            theta: 0.9,
        },
        isolation: Isolation::Serializable,
        tape: None,
    }
}

const fn tpcc(mix: tpcc::Mix) -> Bench {
    Bench::Tpcc {
        shape: tpcc::Shape {
            mix,
            warehouses: 2,
            shrink: 100,
        },
        isolation: Isolation::Serializable,
    }
}

/// The methods that can run a benchmark.
fn able(bench: Bench) -> impl Iterator<Item = &'static Entry> {
    let is_single = !matches!(bench, Bench::Ycsb { shape, .. } if shape.requests > 1);
    let all = methods(bench).iter();
    all.filter(move |entry| is_single || entry.name() != "dashmap")
}

/// Samples `methods` in a few slices; their runs.
pub(super) fn measure(bench: Bench, methods: &[Method<Spec>], threads: usize) -> Vec<Run> {
    assert_eq!(bench.check(), Ok(()));
    let scale = Scale::ONE;
    let mut rig = Rig::new(&vec![None; threads], &[], "test", Arc::default()).unwrap();
    let mut session = Session::of(Spec { bench, scale });
    let timing = Timing::of(Duration::from_millis(5));
    for &method in methods {
        let item = Item {
            method,
            point: Point::small(threads),
            notes: vec![],
        };
        session.add(item, &SetupLimit::default()).unwrap();
    }
    for _ in 0..3 {
        session.round(&mut rig, timing, None, || {});
    }
    session.finish(&rig, timing)
}

#[test]
fn every_method_is_correct_with_two_and_with_four_threads() {
    for bench in BENCHES {
        for threads in [2, 4] {
            let all: Vec<_> = able(bench).map(|entry| entry.method).collect();
            for run in measure(bench, &all, threads) {
                assert!(run.correct, "{run:?}");
                assert_eq!(
                    (run.workload.as_str(), run.samples.len()),
                    (bench.name(), 3)
                );
                assert!(run.by_mode[&Mode::Unknown].median_mops > 0.0);
                assert!(run.samples.iter().all(|s| s.counts.is_some()));
                let kind = entry(bench, &run.method).unwrap().method.kind();
                let served = kind == Kind::Dedicated;
                assert_eq!(run.trustees.len(), usize::from(served));
                let clients = threads - usize::from(served);
                assert!(run.samples.iter().all(|s| s.per_thread.len() == clients));
            }
        }
    }
}

#[test]
fn every_method_of_ycsb_keeps_its_level_in_a_history() {
    for (mix, requests) in [(ycsb::Mix::A, 1), (ycsb::Mix::F, 3)] {
        let any = ycsb(mix, requests);
        for entry in able(any) {
            let tape: &'static Tape = Box::leak(Box::new(Tape::new(300)));
            let Bench::Ycsb {
                shape, isolation, ..
            } = any
            else {
                unreachable!("a mix of ycsb");
            };
            let bench = Bench::Ycsb {
                shape,
                isolation,
                tape: Some(tape),
            };
            let runs = measure(bench, &[entry.method], 3);
            assert!(runs[0].correct, "{:?}", runs[0]);
            let taped = tape.take().expect("the run has ended");
            assert_eq!(taped.anomalies, None);
            // Each client runs more than its share of the limit, in blocks of 32; its last transaction may
            // have many attempts.
            assert!((300..600).contains(&taped.history.len()), "{}", taped.found);
            assert!(taped.found.contains("the limit"), "{}", taped.found);
        }
    }
}

#[test]
fn method_names_are_unique_and_tell_ordo_methods() {
    for bench in BENCHES {
        let mut names: Vec<_> = methods(bench).iter().map(Entry::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), methods(bench).len());
        for entry in methods(bench) {
            assert_eq!(entry.has_boundary, entry.name().contains("ordo"));
            assert!(matches!(
                entry.method.kind(),
                Kind::Direct | Kind::Dedicated
            ));
        }
    }
}

/// Asserts that a run has no figure, and a note that contains `word`.
#[track_caller]
pub(super) fn assert_caught(run: &Run, word: &str) {
    assert!(!run.correct && run.by_mode.is_empty(), "{run:?}");
    assert!(
        run.notes.iter().any(|note| note.contains(word)),
        "{:?}",
        run.notes
    );
}

#[test]
fn timed_methods_take_the_time_of_their_parts_and_no_other_does() {
    let bench = Bench::List {
        size: 8,
        updates: 40,
    };
    let names = [
        "rlu-logical",
        "rlu-ordo",
        "rlu-logical-timed",
        "rlu-ordo-timed",
    ];
    let methods = names.map(|name| entry(bench, name).unwrap().method);
    for run in measure(bench, &methods, 2) {
        let is_timed = run.method.ends_with("-timed");
        for sample in &run.samples {
            let parts = sample.counts.unwrap().parts;
            assert_eq!(!is_timed, parts.is_none(), "{run:?}");
            let some = parts.copying + parts.locking + parts.ordering + parts.waiting;
            assert!(some <= parts.whole, "{run:?}");
            assert!(
                !is_timed || parts.ordering.min(parts.locking) > 0,
                "{run:?}"
            );
        }
    }
}
