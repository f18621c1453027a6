//! Runs the five benchmarks on corelay's own fibres.

use super::churn::Churn;
use super::cycle::Cycle;
use super::locality::Locality;
use super::migrate::Mobility;
use super::spec::{Bench, Spec};
use super::team;
use super::transfer::Transfer;
use super::yield_::Yield;
use corelay_lab_measure::schema::fibres::FibreResult;
use corelay_sync::facade::atomic::AtomicBool;

/// Runs the benchmark once.
///
/// # Errors
/// A sentence that says what could not be had, or what was wrong with the result.
pub(super) fn run(
    spec: &Spec,
    mobility: Mobility,
    interrupted: &AtomicBool,
) -> Result<FibreResult, String> {
    match spec.bench {
        Bench::Cycle { .. } if spec.chains => {
            team::run(spec, mobility, interrupted, Cycle::<true>::new(spec))
        }
        Bench::Cycle { .. } => team::run(spec, mobility, interrupted, Cycle::<false>::new(spec)),
        Bench::Yield if spec.chains => team::run(spec, mobility, interrupted, Yield::<true>),
        Bench::Yield => team::run(spec, mobility, interrupted, Yield::<false>),
        Bench::Churn { spots } => team::run(spec, mobility, interrupted, Churn::new(spec, spots)),
        Bench::Locality {
            spots,
            words,
            touches,
            share,
        } => {
            let work = Locality::new(spec, spots, words, touches, share);
            team::run(spec, mobility, interrupted, work)
        }
        Bench::Transfer { flavour } => {
            team::run(spec, mobility, interrupted, Transfer::new(spec, flavour))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fibres::spec::{Flavour, Length, RING};
    use std::time::Duration;

    const BOTH: [Mobility; 2] = [Mobility::Stays, Mobility::Migrates];

    /// Runs the benchmark with both kinds of fibres, and checks both results.
    fn runs(bench: Bench, fibres: usize, length: Length) -> [FibreResult; 2] {
        BOTH.map(|mobility| run_one(bench, fibres, length, mobility))
    }

    fn run_one(bench: Bench, fibres: usize, length: Length, mobility: Mobility) -> FibreResult {
        let spec = Spec {
            bench,
            processors: 2,
            fibres,
            length,
            seed: 7,
            chains: false,
        };
        spec.check().unwrap();
        let outcome = run(&spec, mobility, &AtomicBool::new(false)).unwrap();
        spec.check_result(&outcome).unwrap();
        outcome
    }

    const SHORT: Length = Length::Time(Duration::from_millis(30));

    #[test]
    fn tokens_go_round_every_ring() {
        let bench = Bench::Cycle { ring: RING };
        for counted in runs(bench, 4, Length::Iterations(50)) {
            assert_eq!((counted.per_fibre.min, counted.per_fibre.max), (50, 50));
        }
        for timed in runs(bench, 4, SHORT) {
            assert!(timed.per_fibre.min > 0, "{timed:?}");
        }
    }

    #[test]
    fn every_fibre_yields() {
        for counted in runs(Bench::Yield, 6, Length::Iterations(50)) {
            assert_eq!((counted.per_fibre.min, counted.per_fibre.max), (50, 50));
        }
        let [stays, _] = runs(Bench::Yield, 6, SHORT);
        assert_eq!(stays.per_processor.unwrap().len(), 2);
    }

    #[test]
    fn fibres_note_their_migrations_if_asked() {
        let locality = Bench::Locality {
            spots: 1,
            words: 1,
            touches: 1,
            share: false,
        };
        for (bench, fibres) in [
            (Bench::Yield, 2),
            (Bench::Cycle { ring: RING }, 2),
            (locality, 3),
        ] {
            for (chains, mobility) in [(true, BOTH[0]), (true, BOTH[1]), (false, BOTH[1])] {
                let spec = Spec {
                    bench,
                    processors: 2,
                    fibres,
                    length: SHORT,
                    seed: 7,
                    chains,
                };
                let outcome = run(&spec, mobility, &AtomicBool::new(false)).unwrap();
                assert_eq!(outcome.chains.is_some(), chains, "{outcome:?}");
                let Some(found) = outcome.chains else {
                    continue;
                };
                assert!(found.chains <= found.migrations, "{outcome:?}");
                assert!(
                    found.most_fibres as usize <= spec.all_fibres(),
                    "{outcome:?}"
                );
                assert!(
                    found.most_processors <= 2 && found.over_s > 0.0,
                    "{outcome:?}"
                );
                // Fibres that stay have nothing to note.
                assert!(
                    mobility == Mobility::Migrates || found.migrations == 0,
                    "{outcome:?}"
                );
            }
        }
    }

    #[test]
    fn units_are_conserved() {
        for spots in [1, 4] {
            runs(Bench::Churn { spots }, 8, SHORT);
        }
    }

    #[test]
    fn no_fibre_and_no_touch_is_lost() {
        for share in [true, false] {
            let bench = Bench::Locality {
                spots: 6,
                words: 5,
                touches: 3,
                share,
            };
            for outcome in runs(bench, 8, SHORT) {
                let moved = outcome.fibre_migrations.zip(outcome.data_migrations);
                let most = outcome.operations;
                assert!(
                    moved.is_some_and(|(f, d)| f <= most && d <= most),
                    "{outcome:?}"
                );
            }
        }
    }

    /// Runs of a time so short that some fibres, or all, start after the stop.
    #[test]
    fn fibres_that_start_after_the_stop_are_no_wrong_result() {
        let locality = Bench::Locality {
            spots: 6,
            words: 5,
            touches: 3,
            share: false,
        };
        let churn = Bench::Churn { spots: 4 };
        for bench in [Bench::Cycle { ring: RING }, Bench::Yield, churn, locality] {
            for nanos in [1, 10_000, 100_000] {
                runs(bench, 8, Length::Time(Duration::from_nanos(nanos)));
            }
        }
    }

    /// Tests migrating fibres only: others can be stuck on the processor of a leader that spins.
    #[test]
    fn every_leader_is_seen() {
        for flavour in [Flavour::Park, Flavour::Yield] {
            let length = Length::Iterations(40);
            let outcome = run_one(Bench::Transfer { flavour }, 5, length, Mobility::Migrates);
            assert!(outcome.completed, "{outcome:?}");
            // The seed is used: more than one fibre has led.
            assert!(outcome.per_fibre.max < 40, "{outcome:?}");
            assert!(outcome.rechecks.is_some());
        }
    }
}
