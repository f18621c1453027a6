//! A session of fibre benchmarks: all methods, sampled in turn.
//!
//! Every sample starts anew, with a cluster or a program of its own, on a thread that may run only
//! on the CPUs of the placement. So all rivals are kept to the same CPUs in the same way, and each
//! places its threads among these as it does anywhere.

use super::method::{Failure, Method};
use super::spec::{Bench, Length, Spec};
use corelay_lab_measure::measure::mode::{Bracket, tag};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{kept, summary};
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::schema::fibres::FibreResult;
use corelay_lab_measure::schema::{Extra, Params, Run, Sample, Size};
use corelay_topology::{CpuSet, confine_current_thread};
use std::collections::BTreeMap;

/// A planned contender: a method with the parameters of a run.
#[derive(Clone, Debug)]
pub struct Item {
    /// The method.
    pub method: Method,
    /// The parameters of the run.
    pub spec: Spec,
    /// The number of fibres as the user wrote it: `hi`, `lo`, or a number.
    pub size: String,
    /// The CPUs, one per processor; each processor may run on any of them.
    pub placement: Vec<Option<usize>>,
    /// Remarks for the reader of the contender's figures.
    pub notes: Vec<String>,
}

/// Contenders that are measured together.
#[derive(Debug, Default)]
pub struct Session {
    entries: Vec<Measured>,
}

/// A contender and its samples.
#[derive(Debug)]
struct Measured {
    item: Item,
    taken: Vec<(FibreResult, Option<Bracket>)>,
    failure: Option<Failure>,
}

impl Session {
    /// Prepares the contenders; this builds the programs of peers.
    pub fn new(items: Vec<Item>) -> Self {
        let mut known: BTreeMap<&str, Option<Failure>> = BTreeMap::new();
        let entry = |item: Item| {
            let prepared = known.entry(item.method.name());
            let failure = prepared.or_insert_with(|| item.method.prepare().err());
            Measured {
                failure: failure.clone(),
                item,
                taken: Vec::new(),
            }
        };
        Self {
            entries: items.into_iter().map(entry).collect(),
        }
    }

    /// Takes one sample of each contender that may still be sampled. Returns false if an
    /// interrupt ended the round early.
    pub fn round(&mut self, rig: &mut Rig, mut tick: impl FnMut()) -> bool {
        let mut before = rig.distance();
        for entry in &mut self.entries {
            if rig.is_interrupted() {
                return false;
            }
            if entry.is_running() {
                let outcome = entry.item.sample(rig);
                let after = rig.distance();
                if !rig.is_interrupted() {
                    match outcome {
                        Ok(outcome) => entry.taken.push((outcome, rig.bracket(before, after))),
                        Err(failure) => entry.failure = Some(failure),
                    }
                }
                before = after;
            }
            tick();
        }
        true
    }

    /// Summarizes the samples of each contender.
    pub fn finish(self, rig: &Rig) -> Vec<Run> {
        let smallest = rig.smallest_ns();
        let finish = |entry: Measured| entry.finish(smallest);
        self.entries.into_iter().map(finish).collect()
    }
}

impl Item {
    /// Runs the benchmark once, on a thread that is confined to the placement's CPUs.
    fn sample(&self, rig: &Rig) -> Result<FibreResult, Failure> {
        let cpus: CpuSet = self.placement.iter().flatten().copied().collect();
        std::thread::scope(|scope| {
            let run = || {
                if !cpus.is_empty() {
                    confine_current_thread(&cpus).map_err(|error| {
                        Failure::Wrong(format!(
                            "--pin: this process may not run on CPUs {cpus}: {error}"
                        ))
                    })?;
                }
                self.method.run(&self.spec, &rig.interrupted)
            };
            let joined = scope.spawn(run).join();
            joined.unwrap_or_else(|_| Err(Failure::Wrong("the benchmark panicked".to_owned())))
        })
    }

    /// The parameters for the result file.
    fn params(&self) -> Params {
        let Spec {
            bench,
            processors,
            fibres,
            length,
            seed,
            chains,
        } = self.spec;
        let mut extra = Extra {
            fibres: Some(self.spec.all_fibres() as u64),
            size: Some(Size::Asked(self.size.clone())),
            ..Extra::default()
        };
        let mut add = |name: &str, n: u64| extra.other.insert(name.to_owned(), n.into());
        match bench {
            Bench::Cycle { ring } => {
                add("ring", ring as u64);
                add("rings", fibres as u64);
            }
            Bench::Yield => {}
            Bench::Churn { spots } => {
                add("spots", spots as u64);
            }
            Bench::Locality {
                spots,
                words,
                touches,
                share,
            } => {
                add("spots", spots as u64);
                add("words", words as u64);
                add("touches", touches as u64);
                extra.share = Some(share);
            }
            Bench::Transfer { flavour } => extra.flavour = Some(flavour.name().to_owned()),
        }
        if chains {
            extra.other.insert("chains".to_owned(), true.into());
        }
        let secs = match length {
            Length::Time(time) => time.as_secs_f64(),
            Length::Iterations(n) => {
                extra.other.insert("iterations".to_owned(), n.into());
                0.0
            }
        };
        Params {
            threads: processors,
            secs,
            seed,
            placement: self.placement.clone(),
            extra,
            ..Params::default()
        }
    }
}

impl Measured {
    /// Whether to take further samples: not after a failure, nor after a run that did not complete.
    fn is_running(&self) -> bool {
        self.failure.is_none() && self.taken.iter().all(|(outcome, _)| outcome.completed)
    }

    /// Summarizes the samples as a run.
    fn finish(self, smallest: Option<f64>) -> Run {
        let params = self.item.params();
        let mut notes = self.item.notes;
        for (outcome, _) in &self.taken {
            notes.extend(outcome.note.clone());
        }
        notes.sort();
        notes.dedup();
        let (correct, not_installed) = match self.failure {
            None => (true, None),
            Some(Failure::NotInstalled(why)) => (true, Some(why)),
            Some(Failure::Wrong(sentence)) => {
                notes.push(sentence);
                (false, None)
            }
        };
        let completed = self.taken.iter().all(|(outcome, _)| outcome.completed);
        let samples: Vec<Sample> = self
            .taken
            .into_iter()
            .map(|(outcome, bracket)| sample(outcome, bracket, smallest))
            .collect();
        // A contender has no figure if a run did not complete or was wrong.
        let by_mode = match correct && completed {
            true => kept(&samples),
            false => BTreeMap::new(),
        };
        let all: Vec<f64> = by_mode.values().flatten().copied().collect();
        if correct && completed && all.is_empty() && not_installed.is_none() {
            notes.push("no sample could be used".to_owned());
        }
        let summaries = by_mode.into_iter();
        Run {
            workload: self.item.spec.bench.name().to_owned(),
            method: self.item.method.name().to_owned(),
            params,
            correct,
            median_mops: stats::median(&all).unwrap_or(0.0),
            harmonic_mean_mops: stats::harmonic_mean(&all).unwrap_or(0.0),
            by_mode: summaries
                .filter_map(|(mode, mops)| Some((mode, summary(&mops)?)))
                .collect(),
            samples,
            trustees: Vec::new(),
            latency_ns: None,
            load: None,
            loads: None,
            not_installed,
            cache: None,
            notes,
        }
    }
}

/// The sample of a result file.
fn sample(outcome: FibreResult, bracket: Option<Bracket>, smallest: Option<f64>) -> Sample {
    Sample {
        mops: match outcome.completed {
            true => outcome.operations as f64 / outcome.wall_s / 1e6,
            false => 0.0,
        },
        mode: tag(bracket, smallest),
        rtt_ns: bracket.map(Bracket::larger_ns),
        per_thread: outcome.per_processor.clone().unwrap_or_default(),
        cpu_s: outcome.cpu_s,
        latency_ns: None,
        arrivals: None,
        fibres: Some(outcome),
        counts: None,
        picture: None,
        cache: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fibres::method::METHODS;
    use crate::fibres::spec::Flavour;
    use corelay_lab_measure::schema::Mode;
    use corelay_lab_measure::schema::fibres::PerFibre;
    use std::sync::Arc;
    use std::time::Duration;

    fn spec(bench: Bench) -> Spec {
        Spec {
            bench,
            processors: 2,
            fibres: 4,
            length: match bench {
                Bench::Transfer { .. } => Length::Iterations(10),
                _ => Length::Time(Duration::from_millis(5)),
            },
            seed: 1,
            chains: false,
        }
    }

    fn measure(methods: &[Method], bench: Bench) -> Vec<Run> {
        let mut rig = Rig::new(&[None], &[], "test", Arc::default()).unwrap();
        let item = |&method: &Method| Item {
            method,
            spec: spec(bench),
            size: "4".to_owned(),
            placement: vec![None; 2],
            notes: vec!["said before".to_owned()],
        };
        let mut session = Session::new(methods.iter().map(item).collect());
        for _ in 0..3 {
            assert!(session.round(&mut rig, || {}));
        }
        session.finish(&rig)
    }

    /// Makes up a result: a million operations in half a second.
    fn fine(_: &Spec) -> Result<FibreResult, Failure> {
        Ok(FibreResult {
            operations: 1_000_000,
            wall_s: 0.5,
            per_fibre: PerFibre::of(vec![250_000; 4]),
            completed: true,
            note: Some("in another way".to_owned()),
            ..FibreResult::default()
        })
    }

    fn lossy(spec: &Spec) -> Result<FibreResult, Failure> {
        let outcome = fine(spec)?;
        Ok(FibreResult {
            operations: outcome.operations + 1,
            ..outcome
        })
    }

    fn stuck(_: &Spec) -> Result<FibreResult, Failure> {
        Ok(FibreResult {
            operations: 3,
            wall_s: 5.0,
            per_fibre: PerFibre::of(vec![1, 1, 1, 0]),
            ..FibreResult::default()
        })
    }

    #[test]
    fn own_fibres_have_figures() {
        // The programs of peers have tests of their own.
        let own = METHODS.iter().filter(|method| method.is_own());
        let own: Vec<Method> = own.copied().collect();
        let runs = measure(&own, Bench::Yield);
        assert_eq!(runs.len(), own.len());
        for run in runs {
            assert!(run.correct && run.not_installed.is_none(), "{run:?}");
            assert_eq!((run.workload.as_str(), run.samples.len()), ("yield", 3));
            assert_eq!(run.by_mode[&Mode::Unknown].n, 3);
            assert_eq!((run.params.threads, run.params.extra.fibres), (2, Some(4)));
        }
    }

    #[test]
    fn figure_is_operations_per_time_and_notes_are_not_repeated() {
        let runs = measure(&[Method::fake("fine", fine)], Bench::Yield);
        assert_eq!(runs[0].median_mops, 2.0);
        assert_eq!(runs[0].notes, ["in another way", "said before"]);
    }

    #[test]
    fn wrong_and_missing_methods_have_no_figure_and_are_not_run_again() {
        let absent = |_: &Spec| Err(Failure::NotInstalled("there is no compiler".to_owned()));
        let runs = measure(
            &[
                Method::fake("lossy", lossy),
                Method::fake("fine", fine),
                Method::fake("absent", absent),
            ],
            Bench::Yield,
        );
        let [lossy, fine, absent] = &runs[..] else {
            panic!("{runs:?}")
        };
        assert!(!lossy.correct && lossy.median_mops == 0.0 && lossy.samples.is_empty());
        assert!(lossy.notes.iter().any(|note| note.contains("sum up")));
        assert_eq!(fine.samples.len(), 3);
        assert!(absent.correct && absent.by_mode.is_empty());
        assert_eq!(
            absent.not_installed.as_deref(),
            Some("there is no compiler")
        );
    }

    #[test]
    fn run_that_does_not_complete_has_no_figure() {
        let flavour = Flavour::Park;
        let runs = measure(&[Method::fake("stuck", stuck)], Bench::Transfer { flavour });
        assert!(runs[0].correct && runs[0].by_mode.is_empty() && runs[0].median_mops == 0.0);
        // One sample is enough: each would take five seconds.
        assert_eq!(runs[0].samples.len(), 1);
        assert!(!runs[0].samples[0].fibres.as_ref().unwrap().completed);
        assert_eq!(runs[0].params.extra.flavour.as_deref(), Some("park"));
    }
}
