//! What a benchmark is asked to do, and what came of it: the same for every method.
//!
//! | benchmark | what a fibre does again and again | an operation |
//! |---|---|---|
//! | cycle (C2) | waits to be woken, wakes the next of its ring | one such pass |
//! | yield (C3) | yields | one yield |
//! | churn (C4) | V, then P, on a semaphore chosen at random | one such pair |
//! | locality (C5) | touches its array, takes a random seat, wakes who sat there, waits | one wait |
//! | transfer (C6) | one leads and spins until all others have seen it; they park or yield | one leader |

use corelay_lab_measure::schema::fibres::Outcome;
use std::fmt;
use std::time::Duration;

/// Fibres of a ring of `cycle`.
pub const RING: usize = 5;

/// Leaders without progress for so long did not complete (C6).
pub(crate) const NO_PROGRESS: Duration = Duration::from_secs(5);

/// Units that each semaphore of `churn` is given at the end, so that nobody waits for ever.
pub(crate) const FAREWELL: u32 = 10_000;

/// Beyond that it is a slip of the fingers.
pub const MOST_PROCESSORS: usize = 1024;

/// As above.
pub const MOST_FIBRES: usize = 10_000_000;

/// A benchmark with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bench {
    /// Rings of fibres; [`Spec::fibres`] is the number of rings.
    Cycle {
        /// Fibres of a ring (r).
        ring: usize,
    },
    /// Every fibre yields.
    Yield,
    /// Random counting semaphores.
    Churn {
        /// Semaphores (s).
        spots: usize,
    },
    /// Random seats, and an array of its own for each fibre.
    Locality {
        /// Seats (n).
        spots: usize,
        /// 64-bit words of each array (w).
        words: usize,
        /// Touches of the array in each pass (c).
        touches: usize,
        /// Whether who is woken gets the array of who woke it.
        share: bool,
    },
    /// A leader that spins.
    Transfer {
        /// What the others do once they have seen the leader.
        flavour: Flavour,
    },
}

/// What the followers of `transfer` do once they have seen the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// They wait on a semaphore: in the end only the leader is ready.
    Park,
    /// They yield: as many stay ready as there are.
    Yield,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After this time; not for `transfer`.
    Time(Duration),
    /// `cycle` and `yield`: when each fibre has done so many operations. `transfer`: after so
    /// many leaders. The others have no such end: fibres that leave would strand those that stay.
    Iterations(u64),
}

/// One run of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Which, with its parameters.
    pub bench: Bench,
    /// Processors (p).
    pub processors: usize,
    /// Fibres (t); for `cycle` rings, see `all_fibres`.
    pub fibres: usize,
    /// When it ends.
    pub length: Length,
    /// Seed of all random choices; each fibre draws a stream of its own from it.
    pub seed: u64,
}

impl Bench {
    /// Its name on the command line and in results.
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
    /// Its name on the command line and in results.
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
    /// Fibres that are spawned: rings have several.
    pub(crate) fn all_fibres(&self) -> usize {
        match self.bench {
            Bench::Cycle { ring } => ring.saturating_mul(self.fibres),
            _ => self.fibres,
        }
    }

    /// Whether it can be run at all.
    ///
    /// ```
    /// use corelay_lab_bench::fibres::spec::{Bench, Flavour, Length, Spec};
    /// let spec = Spec {
    ///     bench: Bench::Transfer { flavour: Flavour::Park },
    ///     processors: 2,
    ///     fibres: 8,
    ///     length: Length::Iterations(500),
    ///     seed: 1,
    /// };
    /// assert_eq!(spec.check(), Ok(()));
    /// let alone = Spec { processors: 1, ..spec };
    /// assert!(alone.check().unwrap_err().contains("at least 2"));
    /// ```
    ///
    /// # Errors
    /// One sentence that names what does not fit.
    pub fn check(&self) -> Result<(), String> {
        let (name, p, t) = (self.bench.name(), self.processors, self.fibres);
        within(name, "processors", p, 1, MOST_PROCESSORS)?;
        within(name, "fibres", t, 1, MOST_FIBRES)?;
        match self.bench {
            Bench::Cycle { ring } => {
                within(name, "fibres in a ring", ring, 2, MOST_FIBRES)?;
                within(name, "fibres", self.all_fibres(), 1, MOST_FIBRES)?;
            }
            Bench::Yield => {}
            Bench::Churn { spots } => {
                within(name, "semaphores", spots, 1, MOST_FIBRES)?;
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
                within(name, "spots", spots, 1, MOST_FIBRES)?;
                within(name, "words", words, 1, MOST_WORDS)?;
                within(name, "touches", touches, 0, MOST_WORDS)?;
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
                        "transfer with {p} processor cannot move anybody away from a leader that \
                         spins; it needs at least 2"
                    ));
                }
                within(name, "fibres", t, 2, MOST_FIBRES)?;
            }
        }
        self.check_length()
    }

    fn check_length(&self) -> Result<(), String> {
        match (self.bench, self.length) {
            (_, Length::Time(Duration::ZERO) | Length::Iterations(0)) => Err(format!(
                "{} for no time at all measures nothing",
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

    /// Whether stacks and arrays fit into nine tenths of the available memory, in bytes.
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
                "{} with {} fibres would take {:.1} GiB, and {:.1} GiB are available",
                self.bench,
                self.all_fibres(),
                gib(bytes),
                gib(available)
            )),
            _ => Ok(()),
        }
    }

    /// Whether what a method says came of it can be right, as far as any reader can know.
    ///
    /// # Errors
    /// One sentence that says what contradicts what.
    pub(crate) fn judge(&self, outcome: &Outcome) -> Result<(), String> {
        let Outcome {
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
        if *operations == 0 || outcome.wall_s.is_nan() || outcome.wall_s <= 0.0 {
            return Err(format!(
                "wrong result: {operations} operations in {} s",
                outcome.wall_s
            ));
        }
        Ok(())
    }
}

/// Memory that a fibre takes whose stack is hardly touched: a page of it, with its share of
/// page tables.
const FIBRE_BYTES: u64 = 4300;

/// Words of an array, and touches of it in a pass: as many as fit into 8 GiB.
const MOST_WORDS: usize = 1 << 30;

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
    fn what_would_hang_is_refused() {
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
    fn what_cannot_be_counted_is_refused() {
        refused(spec(Bench::Yield, 0, 1), &["yield", "processors, not 0"]);
        refused(spec(Bench::Yield, 1, 0), &["fibres, not 0"]);
        refused(spec(Bench::Cycle { ring: 1 }, 1, 1), &["ring"]);
        let many = Bench::Cycle { ring: RING };
        refused(spec(many, 1, MOST_FIBRES), &["fibres, not 50000000"]);
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
    fn what_does_not_fit_into_memory_is_refused() {
        let spec = spec(Bench::Yield, 1, 1_000_000);
        assert_eq!(spec.check_memory(None), Ok(()));
        assert_eq!(spec.check_memory(Some(8 << 30)), Ok(()));
        let sentence = spec.check_memory(Some(4 << 30)).unwrap_err();
        assert!(sentence.contains("1000000 fibres") && sentence.contains("4.0 GiB"));
    }

    #[test]
    fn figures_that_contradict_themselves_are_wrong() {
        let spec = Spec {
            length: Length::Iterations(3),
            ..spec(Bench::Yield, 2, 4)
        };
        let right = Outcome {
            operations: 12,
            wall_s: 0.5,
            per_fibre: PerFibre::of(vec![3; 4]),
            per_processor: Some(vec![6, 6]),
            completed: true,
            ..Outcome::default()
        };
        assert_eq!(spec.judge(&right), Ok(()));
        let wrong = |change: fn(&mut Outcome)| {
            let mut outcome = right.clone();
            change(&mut outcome);
            spec.judge(&outcome).unwrap_err()
        };
        assert!(wrong(|o| o.operations = 13).contains("sum up to 12"));
        assert!(wrong(|o| o.per_fibre = PerFibre::of(vec![4; 3])).contains("3 fibres"));
        assert!(wrong(|o| o.per_processor = Some(vec![6, 5])).contains("processors"));
        assert!(wrong(|o| o.completed = false).contains("not completed"));
        assert!(wrong(|o| o.wall_s = f64::NAN).contains("NaN s"));
        let fewer = |o: &mut Outcome| {
            o.per_fibre = PerFibre::of(vec![3, 3, 3, 2]);
            o.operations = 11;
        };
        assert!(wrong(fewer).contains("instead of 12"));
    }

    /// A transfer that did not complete is a result: its leaders were fewer.
    #[test]
    fn a_transfer_need_not_complete() {
        let outcome = Outcome {
            operations: 0,
            wall_s: 5.0,
            per_fibre: PerFibre::of(vec![0; 8]),
            ..Outcome::default()
        };
        assert_eq!(spec(PARK, 2, 8).judge(&outcome), Ok(()));
    }

    #[test]
    fn an_outcome_is_read_as_it_is_written() {
        let read: Outcome = serde_json::from_str(
            r#"{"operations":3,"wall_s":1.0,"cpu_s":2.0,
                "per_fibre":{"fibres":2,"min":1,"median":1,"max":2,"sum":3}}"#,
        )
        .unwrap();
        assert!(read.completed && read.rechecks.is_none());
        let text = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), read);
    }
}
