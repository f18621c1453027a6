//! The parameters of a fibre benchmark and the checks of its result, the same for every method.
//!
//! | benchmark | a fibre's loop | an operation |
//! |---|---|---|
//! | cycle (C2) | wait to be woken, wake the next fibre of the ring | one such pass |
//! | yield (C3) | yield | one yield |
//! | churn (C4) | V, then P, on a semaphore chosen at random | one such pair |
//! | locality (C5) | touch an array, enter a random spot, wake its occupant, wait | one wait |
//! | transfer (C6) | lead: spin until all others have seen it; others park or yield | one leader |

use corelay_lab_measure::schema::fibres::FibreResult;
use std::fmt;
use std::time::Duration;

/// Fibres per ring of `cycle`.
pub const RING: usize = 5;

/// Time without progress after which a run of `transfer` counts as not completed (C6).
pub(crate) const NO_PROGRESS: Duration = Duration::from_secs(5);

/// Units that each semaphore of `churn` gets at the end, so that no fibre waits for ever.
pub(crate) const FINAL_UNITS: u32 = 10_000;

/// Most processors of a run; a larger number is probably a typing error.
pub const MAX_PROCESSORS: usize = 1024;

/// Most fibres of a run; a larger number is probably a typing error.
pub const MAX_FIBRES: usize = 10_000_000;

/// A benchmark with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bench {
    /// Rings of fibres; [`Spec::fibres`] is the number of rings.
    Cycle {
        /// Fibres per ring (r).
        ring: usize,
    },
    /// Every fibre yields.
    Yield,
    /// Every fibre uses counting semaphores at random.
    Churn {
        /// Number of semaphores (s).
        spots: usize,
    },
    /// Every fibre touches an array and waits in a random spot.
    Locality {
        /// Number of spots (n); at most one fibre waits in each.
        spots: usize,
        /// 64-bit words of each array (w).
        words: usize,
        /// Touches of the array in each pass (c).
        touches: usize,
        /// Whether a woken fibre gets the waker's array.
        share: bool,
    },
    /// A leader spins until all other fibres have seen it.
    Transfer {
        /// The waiting of the other fibres, once they have seen the leader.
        flavour: Flavour,
    },
}

/// The waiting of `transfer`'s followers, once they have seen the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// The followers wait on a semaphore, so in the end only the leader is ready.
    Park,
    /// The followers yield, so all fibres stay ready.
    Yield,
}

/// The condition that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The run ends after this time. Not for `transfer`.
    Time(Duration),
    /// `cycle` and `yield` end when each fibre has done so many operations, `transfer` after so
    /// many leaders. `churn` and `locality` cannot: fibres that end would strand the others.
    Iterations(u64),
}

/// The parameters of one run of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The benchmark with its own parameters.
    pub bench: Bench,
    /// Number of processors (p).
    pub processors: usize,
    /// Number of fibres (t); for `cycle`, number of rings (see `all_fibres`).
    pub fibres: usize,
    /// The condition that ends the run.
    pub length: Length,
    /// Seed of all random choices, from which each fibre draws its own stream.
    pub seed: u64,
    /// Whether the fibres of `cycle`, `yield` and `locality` note their migrations, so that chains
    /// of them can be counted. It takes a little of each operation. Peers do not.
    pub chains: bool,
}

impl Bench {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycle { .. } => "cycle",
            Self::Yield => "yield",
            Self::Churn { .. } => "churn",
            Self::Locality { .. } => "locality",
            Self::Transfer { .. } => "transfer",
        }
    }
}

impl Flavour {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Park => "park",
            Self::Yield => "yield",
        }
    }
}

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Spec {
    /// Number of fibres to spawn; a ring has several.
    pub(crate) fn all_fibres(&self) -> usize {
        match self.bench {
            Bench::Cycle { ring } => ring.saturating_mul(self.fibres),
            _ => self.fibres,
        }
    }

    /// Checks that the parameters allow a run.
    ///
    /// ```
    /// use corelay_lab_bench::fibres::spec::{Bench, Flavour, Length, Spec};
    /// let spec = Spec {
    ///     bench: Bench::Transfer { flavour: Flavour::Park },
    ///     processors: 2,
    ///     fibres: 8,
    ///     length: Length::Iterations(500),
    ///     seed: 1,
    ///     chains: false,
    /// };
    /// assert_eq!(spec.check(), Ok(()));
    /// let alone = Spec { processors: 1, ..spec };
    /// assert!(alone.check().unwrap_err().contains("at least 2"));
    /// ```
    ///
    /// # Errors
    /// A sentence that names the parameter at fault.
    pub fn check(&self) -> Result<(), String> {
        let (name, p, t) = (self.bench.name(), self.processors, self.fibres);
        within(name, "processors", p, 1, MAX_PROCESSORS)?;
        within(name, "fibres", t, 1, MAX_FIBRES)?;
        match self.bench {
            Bench::Cycle { ring } => {
                within(name, "fibres in a ring", ring, 2, MAX_FIBRES)?;
                within(name, "fibres", self.all_fibres(), 1, MAX_FIBRES)?;
            }
            Bench::Yield => {}
            Bench::Churn { spots } => {
                within(name, "semaphores", spots, 1, MAX_FIBRES)?;
                if t < spots + p {
                    return Err(format!(
                        "churn with {t} fibres, {spots} semaphores and {p} processors could run out \
                         of ready fibres; it needs at least semaphores + processors = {}",
                        spots + p
                    ));
                }
            }
            Bench::Locality {
                spots,
                words,
                touches,
                ..
            } => {
                within(name, "spots", spots, 1, MAX_FIBRES)?;
                within(name, "words", words, 1, MAX_WORDS)?;
                within(name, "touches", touches, 0, MAX_WORDS)?;
                if t <= spots {
                    return Err(format!(
                        "locality with {t} fibres and {spots} spots could end with every fibre \
                         waiting in a spot; it needs more fibres than spots"
                    ));
                }
            }
            Bench::Transfer { .. } => {
                if p < 2 {
                    return Err(format!(
                        "transfer with {p} processor cannot move fibres away from a spinning leader; \
                         it needs at least 2"
                    ));
                }
                within(name, "fibres", t, 2, MAX_FIBRES)?;
            }
        }
        self.check_length()
    }

    /// Checks that the run ends by a condition that fits the benchmark.
    fn check_length(&self) -> Result<(), String> {
        match (self.bench, self.length) {
            (_, Length::Time(Duration::ZERO) | Length::Iterations(0)) => Err(format!(
                "{} for no time measures nothing; give it more than 0",
                self.bench
            )),
            (Bench::Transfer { .. }, Length::Time(_)) => {
                Err("transfer ends after a number of leaders, not after a time".to_owned())
            }
            (Bench::Churn { .. } | Bench::Locality { .. }, Length::Iterations(_)) => Err(format!(
                "{} ends after a time, not after a number of operations: fibres that leave would \
                 strand those that stay",
                self.bench
            )),
            _ => Ok(()),
        }
    }

    /// Checks that stacks and arrays fit into nine tenths of `available`, in bytes.
    ///
    /// # Errors
    /// A sentence that names the number of fibres.
    pub fn check_memory(&self, available: Option<u64>) -> Result<(), String> {
        let array = match self.bench {
            Bench::Locality { words, .. } => 8 * words as u64,
            _ => 0,
        };
        let bytes = (self.all_fibres() as u64).saturating_mul(FIBRE_BYTES + array);
        let gib = |bytes: u64| bytes as f64 / f64::from(1u32 << 30);
        match available {
            Some(available) if bytes > available / 10 * 9 => Err(format!(
                "{} with {} fibres would take {:.1} GiB, and {:.1} GiB are available; use fewer",
                self.bench,
                self.all_fibres(),
                gib(bytes),
                gib(available)
            )),
            _ => Ok(()),
        }
    }

    /// Checks a method's result for contradictions, as far as possible without knowing the method.
    ///
    /// # Errors
    /// A sentence that names the contradiction.
    pub(crate) fn check_result(&self, outcome: &FibreResult) -> Result<(), String> {
        let FibreResult {
            operations,
            per_fibre,
            ..
        } = outcome;
        if per_fibre.sum != *operations {
            return Err(format!(
                "wrong result: {operations} operations, but the fibres sum up to {}",
                per_fibre.sum
            ));
        }
        if per_fibre.fibres != self.all_fibres() as u64 {
            return Err(format!(
                "wrong result: {} fibres instead of {}",
                per_fibre.fibres,
                self.all_fibres()
            ));
        }
        if !outcome.completed {
            return match self.bench {
                Bench::Transfer { .. } => Ok(()),
                _ => Err(format!("wrong result: {} was not completed", self.bench)),
            };
        }
        let expected = match (self.bench, self.length) {
            (Bench::Transfer { .. }, Length::Iterations(leaders)) => Some(leaders),
            (_, Length::Iterations(each)) => Some(each * self.all_fibres() as u64),
            _ => None,
        };
        if let Some(expected) = expected.filter(|expected| expected != operations) {
            return Err(format!(
                "wrong result: {operations} operations instead of {expected}"
            ));
        }
        let by_processor: Option<u64> = outcome.per_processor.as_ref().map(|all| all.iter().sum());
        if let Some(sum) = by_processor.filter(|sum| sum != operations) {
            return Err(format!(
                "wrong result: {operations} operations, but the processors sum up to {sum}"
            ));
        }
        if outcome.wall_s.is_nan() || outcome.wall_s <= 0.0 {
            return Err(nothing_in_time(outcome));
        }
        Ok(())
    }
}

/// A sentence for a result without operations, or without time.
pub(super) fn nothing_in_time(outcome: &FibreResult) -> String {
    let FibreResult {
        operations, wall_s, ..
    } = outcome;
    format!("wrong result: {operations} operations in {wall_s} s")
}

/// Memory of a fibre whose stack is hardly touched, in bytes: one page of it, and its share of page
/// tables.
const FIBRE_BYTES: u64 = 4300;

/// Most words of an array, and most touches of it per pass: 8 GiB of words.
const MAX_WORDS: usize = 1 << 30;

/// Checks that `n` of `what` is within the bounds of a benchmark.
fn within(bench: &str, what: &str, n: usize, least: usize, most: usize) -> Result<(), String> {
    if (least..=most).contains(&n) {
        return Ok(());
    }
    Err(format!("{bench} takes {least} to {most} {what}, not {n}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::schema::fibres::PerFibre;

    fn spec(bench: Bench, processors: usize, fibres: usize) -> Spec {
        let length = match bench {
            Bench::Transfer { .. } => Length::Iterations(10),
            _ => Length::Time(Duration::from_millis(20)),
        };
        Spec {
            bench,
            processors,
            fibres,
            length,
            seed: 1,
            chains: false,
        }
    }

    #[track_caller]
    fn refused(spec: Spec, words: &[&str]) {
        let sentence = spec.check().unwrap_err();
        for word in words {
            assert!(
                sentence.contains(word),
                "`{word}` is missing in: {sentence}"
            );
        }
    }

    const PARK: Bench = Bench::Transfer {
        flavour: Flavour::Park,
    };

    fn locality(spots: usize) -> Bench {
        Bench::Locality {
            spots,
            words: 2,
            touches: 2,
            share: true,
        }
    }

    #[test]
    fn parameters_that_would_hang_are_refused() {
        let churn = |spots| Bench::Churn { spots };
        assert_eq!(spec(churn(2), 2, 4).check(), Ok(()));
        refused(spec(churn(3), 2, 4), &["churn", "4 fibres", "= 5"]);
        assert_eq!(spec(PARK, 2, 2).check(), Ok(()));
        refused(spec(PARK, 1, 8), &["transfer", "1 processor ", "2"]);
        refused(spec(PARK, 2, 1), &["transfer", "fibres, not 1"]);
        assert_eq!(spec(locality(3), 2, 4).check(), Ok(()));
        refused(spec(locality(4), 2, 4), &["locality", "4 spots"]);
    }

    #[test]
    fn parameters_that_measure_nothing_are_refused() {
        refused(spec(Bench::Yield, 0, 1), &["yield", "processors, not 0"]);
        refused(spec(Bench::Yield, 1, 0), &["fibres, not 0"]);
        refused(spec(Bench::Cycle { ring: 1 }, 1, 1), &["ring"]);
        let many = Bench::Cycle { ring: RING };
        refused(spec(many, 1, MAX_FIBRES), &["fibres, not 50000000"]);
        let without = |length, bench| Spec {
            length,
            ..spec(bench, 2, 8)
        };
        let second = Length::Time(Duration::from_secs(1));
        refused(without(second, PARK), &["transfer", "leaders"]);
        refused(without(Length::Iterations(0), PARK), &["no time"]);
        let counted = Length::Iterations(1);
        refused(without(counted, Bench::Churn { spots: 2 }), &["churn"]);
        refused(without(counted, locality(2)), &["locality"]);
        assert_eq!(without(counted, Bench::Yield).check(), Ok(()));
    }

    #[test]
    fn run_larger_than_memory_is_refused() {
        let spec = spec(Bench::Yield, 1, 1_000_000);
        assert_eq!(spec.check_memory(None), Ok(()));
        assert_eq!(spec.check_memory(Some(8 << 30)), Ok(()));
        let sentence = spec.check_memory(Some(4 << 30)).unwrap_err();
        assert!(sentence.contains("1000000 fibres") && sentence.contains("4.0 GiB"));
    }

    #[test]
    fn contradictory_results_are_wrong() {
        let spec = Spec {
            length: Length::Iterations(3),
            ..spec(Bench::Yield, 2, 4)
        };
        let right = FibreResult {
            operations: 12,
            wall_s: 0.5,
            per_fibre: PerFibre::of(vec![3; 4]),
            per_processor: Some(vec![6, 6]),
            completed: true,
            ..FibreResult::default()
        };
        assert_eq!(spec.check_result(&right), Ok(()));
        let wrong = |change: fn(&mut FibreResult)| {
            let mut outcome = right.clone();
            change(&mut outcome);
            spec.check_result(&outcome).unwrap_err()
        };
        assert!(wrong(|o| o.operations = 13).contains("sum up to 12"));
        assert!(wrong(|o| o.per_fibre = PerFibre::of(vec![4; 3])).contains("3 fibres"));
        assert!(wrong(|o| o.per_processor = Some(vec![6, 5])).contains("processors"));
        assert!(wrong(|o| o.completed = false).contains("not completed"));
        assert!(wrong(|o| o.wall_s = f64::NAN).contains("NaN s"));
        let fewer = |o: &mut FibreResult| {
            o.per_fibre = PerFibre::of(vec![3, 3, 3, 2]);
            o.operations = 11;
        };
        assert!(wrong(fewer).contains("instead of 12"));
    }

    /// Tests that a transfer with fewer leaders, which did not complete, is a valid result.
    #[test]
    fn transfer_need_not_complete() {
        let outcome = FibreResult {
            operations: 0,
            wall_s: 5.0,
            per_fibre: PerFibre::of(vec![0; 8]),
            ..FibreResult::default()
        };
        assert_eq!(spec(PARK, 2, 8).check_result(&outcome), Ok(()));
    }

    #[test]
    fn result_round_trips_through_json() {
        let read: FibreResult = serde_json::from_str(
            r#"{"operations":3,"wall_s":1.0,"cpu_s":2.0,
                "per_fibre":{"fibres":2,"min":1,"median":1,"max":2,"sum":3}}"#,
        )
        .unwrap();
        assert!(read.completed && read.rechecks.is_none());
        let text = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<FibreResult>(&text).unwrap(), read);
    }
}
