//! Builds the real programs and runs them at a tiny size, if their toolchain is installed.
//!
//! Building takes a while, and crates come from the registry, so these tests run only on demand:
//! `cargo test -p corelay-lab-bench --lib peer::smoke -- --ignored`.

use super::*;
use crate::fibres::spec::{Bench, Flavour, Length};

/// Tests a peer. Its program stays in the user's cache for the next test.
fn smoke(name: &str) {
    let peer = PEERS.iter().find(|peer| peer.name == name).unwrap();
    match peer.prepare() {
        Err(Error::NotInstalled(what)) => return println!("{name} is not installed: {what}"),
        Err(Error::BuildFailed { log }) => panic!("{log}"),
        built => built.unwrap(),
    }
    for processors in [1, 2] {
        for bench in benches(processors) {
            let outcome = run(peer, bench, processors);
            println!("{name} {bench:?} p = {processors}: {outcome:?}");
            check(bench, processors, &outcome);
        }
    }
    refusals(peer);
}

fn benches(processors: usize) -> Vec<Bench> {
    let locality = |share| Bench::Locality {
        spots: 10,
        words: 8,
        touches: 4,
        share,
    };
    let mut all = vec![
        Bench::Cycle { ring: 5 },
        Bench::Yield,
        Bench::Churn { spots: 6 },
        locality(true),
        locality(false),
    ];
    if processors > 1 {
        let flavours = [Flavour::Park, Flavour::Yield];
        all.extend(flavours.map(|flavour| Bench::Transfer { flavour }));
    }
    all
}

fn spec(bench: Bench, processors: usize) -> Spec {
    Spec {
        bench,
        processors,
        fibres: 12,
        length: match bench {
            Bench::Cycle { .. } | Bench::Yield => Length::Iterations(200),
            Bench::Churn { .. } | Bench::Locality { .. } => Length::Time(Duration::from_millis(50)),
            Bench::Transfer { .. } => Length::Iterations(20),
        },
        seed: 7,
        chains: false,
    }
}

#[track_caller]
fn run(peer: &Peer, bench: Bench, processors: usize) -> FibreResult {
    let spec = spec(bench, processors);
    let outcome = peer.run(&spec, &AtomicBool::new(false));
    outcome.unwrap_or_else(|error| panic!("{} {bench:?} p = {processors}: {error}", peer.name))
}

/// Checks more than every run is checked for.
#[track_caller]
fn check(bench: Bench, processors: usize, outcome: &FibreResult) {
    let fibres = outcome.per_fibre;
    match bench {
        Bench::Cycle { .. } | Bench::Yield => {
            assert_eq!((fibres.min, fibres.max), (200, 200));
        }
        Bench::Churn { .. } => {}
        Bench::Locality { .. } => {
            let sum: u64 = outcome.per_processor.as_ref().unwrap().iter().sum();
            assert_eq!(sum, outcome.operations);
            let migrations = (outcome.fibre_migrations, outcome.data_migrations);
            if processors == 1 {
                assert_eq!(migrations, (Some(0), Some(0)));
            }
            assert!(migrations.0.unwrap() <= outcome.operations);
        }
        // The seed is used to choose leaders: no fibre has most of them.
        Bench::Transfer { .. } if outcome.completed => {
            assert!(fibres.max <= 10, "one fibre led {} times of 20", fibres.max);
            assert!(outcome.rechecks.is_some());
        }
        Bench::Transfer { .. } => println!("did not complete"),
    }
}

/// Checks that a program itself refuses parameters that cannot be run.
#[track_caller]
fn refusals(peer: &Peer) {
    let churn = spec(Bench::Churn { spots: 12 }, 2);
    let flavour = Flavour::Park;
    let transfer = spec(Bench::Transfer { flavour }, 1);
    for (spec, word) in [(churn, "churn"), (transfer, "transfer")] {
        let error = peer.run(&spec, &AtomicBool::new(false)).unwrap_err();
        let Error::Failed { status, message } = error else {
            panic!("{error}")
        };
        assert!(
            status.contains('2') && message.contains(word),
            "{status}: {message}"
        );
    }
}

#[test]
#[ignore = "builds a program from crates of the registry"]
fn tokio() {
    smoke("tokio");
}

#[test]
#[ignore = "builds a program"]
fn go() {
    smoke("go");
}

#[test]
#[ignore = "builds a program"]
fn boost() {
    smoke("boost");
}

#[test]
#[ignore = "builds a program from crates of the registry"]
fn may() {
    smoke("may");
}

#[test]
#[ignore = "builds a program"]
fn libfibre() {
    smoke("libfibre");
}
