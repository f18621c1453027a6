//! Measures the variants in turn, each with all threads at once: each round runs each variant once,
//! with a new counter, and reads the number in the end.

use super::{Counter, Variant};
use corelay_lab_measure::measure::cpu::process_cpu_s;
use corelay_lab_measure::measure::crew::Crew;
use corelay_lab_measure::measure::mode::{Bracket, tag};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{kept, summary};
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::schema::{Extra, Params, Run, Sample};
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The workload's name in files of results.
pub(crate) const WORKLOAD: &str = "course-race";

/// The size of the race.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Threads that add to the number.
    pub threads: usize,
    /// Updates of each thread in each round.
    pub updates: u64,
    /// Rounds, in each of which every variant runs once.
    pub rounds: usize,
}

impl Plan {
    /// Returns the number that must come out of a round.
    pub fn expected(&self) -> u64 {
        self.threads as u64 * self.updates
    }
}

/// The outcome of one variant.
#[derive(Debug)]
pub struct Counted {
    /// The variant that counted.
    pub(crate) variant: Variant,
    /// The number after each round.
    pub(crate) found: Vec<u64>,
    /// The run in the schema of all workloads. `correct` says whether all numbers were right,
    /// even of a variant that need not be.
    pub(crate) run: Run,
    /// The reason that the variant was given up, if it was.
    pub(crate) failure: Option<String>,
}

/// A variant and its rounds so far.
struct Entry {
    variant: Variant,
    taken: Vec<(Taken, Option<Bracket>)>,
    failure: Option<String>,
}

/// One round of one variant.
struct Taken {
    found: u64,
    wall_s: f64,
    cpu_s: f64,
}

/// Runs `variants` in turn until all rounds are done or Ctrl-C comes. Calls `tick` after each
/// run.
pub fn measure(plan: &Plan, variants: &[Variant], rig: &mut Rig, tick: &dyn Fn()) -> Vec<Counted> {
    let entry = |&variant: &Variant| Entry {
        variant,
        taken: Vec::new(),
        failure: None,
    };
    let mut entries: Vec<Entry> = variants.iter().map(entry).collect();
    let mut before = rig.distance();
    for _ in 0..plan.rounds {
        for entry in &mut entries {
            if rig.is_interrupted() {
                break;
            }
            if entry.failure.is_none() {
                match once(plan, entry.variant, &rig.crew) {
                    Ok(taken) => {
                        let after = rig.distance();
                        entry.taken.push((taken, rig.bracket(before, after)));
                        before = after;
                    }
                    Err(sentence) => entry.failure = Some(sentence),
                }
            }
            tick();
        }
    }
    let finish = |entry: Entry| entry.finish(plan, rig);
    entries.into_iter().map(finish).collect()
}

/// Runs one variant once. The threads wait for each other, so all race from the first update on.
fn once(plan: &Plan, variant: Variant, crew: &Crew) -> Result<Taken, String> {
    let (threads, updates) = (plan.threads, plan.updates);
    let cpus: Vec<Option<usize>> = (0..threads).map(|thread| crew.cpu(thread)).collect();
    let counter: Arc<dyn Counter> = Arc::from((variant.make)(&cpus)?);
    let arrived = AtomicUsize::new(0);
    let race = move |counter: &dyn Counter| {
        // Relaxed, both: only the number of threads that have arrived matters.
        arrived.fetch_add(1, Ordering::Relaxed);
        let mut backoff = Backoff::new();
        while arrived.load(Ordering::Relaxed) < threads {
            backoff.wait();
        }
        let start = Instant::now();
        counter.count(updates);
        (start, Instant::now())
    };
    let cpu_before = process_cpu_s();
    let times = match counter.team() {
        Some(team) => team.run(|_| race(&*counter)),
        None => {
            let counter = Arc::clone(&counter);
            let running = crew.start(0..threads, move |_| race(&*counter));
            let times = running.join().into_iter().collect::<Result<Vec<_>, _>>();
            times.map_err(|panic| format!("a thread panicked: {panic}"))?
        }
    };
    let cpu = cpu_before.zip(process_cpu_s());
    let start = times.iter().map(|time| time.0).min();
    let end = times.iter().map(|time| time.1).max();
    let wall = start.zip(end).map(|(start, end)| end - start);
    // A counting thread reads the number: the main thread could wait for the CPU of a busy owner.
    let total = crew.start(0..1, move |_| counter.total()).join();
    let found = total.into_iter().collect::<Result<Vec<u64>, _>>();
    let found = found.map_err(|panic| format!("looking at the number panicked: {panic}"))?;
    Ok(Taken {
        found: found[0],
        wall_s: wall.map_or(0.0, |wall| wall.as_secs_f64()),
        cpu_s: cpu.map_or(0.0, |(before, after)| after - before),
    })
}

impl Entry {
    fn finish(self, plan: &Plan, rig: &Rig) -> Counted {
        let smallest = rig.smallest_ns();
        let found: Vec<u64> = self.taken.iter().map(|(taken, _)| taken.found).collect();
        let sample = |(taken, bracket): &(Taken, Option<Bracket>)| Sample {
            // A clock that has not moved gives no throughput.
            mops: match taken.wall_s > 0.0 {
                true => plan.expected() as f64 / taken.wall_s / 1e6,
                false => 0.0,
            },
            mode: tag(*bracket, smallest),
            rtt_ns: bracket.map(Bracket::larger_ns),
            per_thread: vec![plan.updates; plan.threads],
            cpu_s: taken.cpu_s,
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
            picture: None,
            cache: None,
        };
        let samples: Vec<Sample> = self.taken.iter().map(sample).collect();
        let is_exact = found.iter().all(|&found| found == plan.expected());
        let correct = self.failure.is_none() && is_exact;
        // A wrong result has no figure, here as everywhere.
        let by_mode = match correct {
            true => kept(&samples),
            false => BTreeMap::new(),
        };
        let all: Vec<f64> = by_mode.values().flatten().copied().collect();
        let mut notes: Vec<String> = self.failure.iter().cloned().collect();
        if let Some(lost) = lost(plan, &found).filter(|lost| *lost != 0.0) {
            notes.push(format!("{lost:.3} % of the updates were lost"));
        }
        notes.extend(rig.crew.notes(plan.threads).map(str::to_owned));
        let placement = (0..plan.threads).map(|thread| rig.crew.cpu(thread));
        let summaries = by_mode.into_iter();
        let run = Run {
            workload: WORKLOAD.to_owned(),
            method: self.variant.name.to_owned(),
            params: Params {
                threads: plan.threads,
                vars: 1,
                placement: placement.collect(),
                extra: Extra {
                    updates: Some(plan.updates),
                    ..Extra::default()
                },
                ..Params::default()
            },
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
            not_installed: None,
            cache: None,
            notes,
        };
        Counted {
            variant: self.variant,
            found,
            run,
            failure: self.failure,
        }
    }
}

/// Returns the lost updates in percent, over all rounds; `None` if there was no round. Negative
/// if the number is larger than the updates made.
pub(crate) fn lost(plan: &Plan, found: &[u64]) -> Option<f64> {
    let expected = plan.expected() as f64 * found.len() as f64;
    let found: f64 = found.iter().map(|&found| found as f64).sum();
    (expected > 0.0).then(|| (expected - found) / expected * 100.0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::race::{VARIANTS, named};

    pub(in crate::race) const PLAN: Plan = Plan {
        threads: 3,
        updates: 2000,
        rounds: 3,
    };

    pub(in crate::race) fn count(variants: &[Variant]) -> Vec<Counted> {
        count_as(&PLAN, variants)
    }

    fn count_as(plan: &Plan, variants: &[Variant]) -> Vec<Counted> {
        let mut rig = Rig::new(&[None; PLAN.threads], &[], "test", Arc::default()).unwrap();
        measure(plan, variants, &mut rig, &|| ())
    }

    /// A counter that claims to be right and drops the last update.
    struct Drops(Box<dyn Counter>);

    impl Counter for Drops {
        fn count(&self, updates: u64) {
            self.0.count(updates - 1);
        }

        fn total(&self) -> u64 {
            self.0.total()
        }
    }

    struct Panics;

    impl Counter for Panics {
        fn count(&self, _: u64) {
            panic!("by design");
        }

        fn total(&self) -> u64 {
            0
        }
    }

    pub(in crate::race) fn broken() -> [Variant; 2] {
        let mutex = named("mutex").unwrap();
        [
            Variant {
                name: "drops",
                make: |cpus| Ok(Box::new(Drops((named("mutex")?.make)(cpus)?))),
                ..mutex
            },
            Variant {
                name: "panics",
                make: |_| Ok(Box::new(Panics)),
                ..mutex
            },
        ]
    }

    #[test]
    fn a_right_variant_is_exact_and_has_a_figure() {
        // Enough updates for threads to meet, so that a variant that is only nearly right is found.
        let plan = Plan {
            updates: 100_000,
            ..PLAN
        };
        for counted in count_as(&plan, &VARIANTS) {
            let name = counted.variant.name;
            assert_eq!(counted.failure, None, "{name}");
            assert_eq!(counted.found.len(), plan.rounds, "{name}");
            assert_eq!(counted.run.samples.len(), plan.rounds, "{name}");
            assert_eq!(counted.run.params.vars, 1);
            let is_exact = counted.found.iter().all(|&n| n == plan.expected());
            assert_eq!(counted.run.correct, is_exact, "{name}");
            assert_eq!(counted.run.by_mode.is_empty(), !is_exact, "{name}");
            if counted.variant.is_right {
                assert!(is_exact, "{name}: {:?}", counted.found);
            } else {
                // Whatever is lost, no update is added.
                let most = plan.expected();
                assert!(counted.found.iter().all(|n| (1..=most).contains(n)));
            }
        }
    }

    #[test]
    fn a_lost_update_is_seen_and_a_panic_ends_one_variant_only() {
        let all = [&broken()[..], &[named("cas").unwrap()]].concat();
        let counted = count(&all);
        let [drops, panics, cas] = &counted[..] else {
            panic!("{counted:?}")
        };
        assert!(!drops.run.correct && drops.run.by_mode.is_empty());
        assert_eq!(drops.found, [PLAN.expected() - 3; 3]);
        assert_eq!(drops.run.notes, ["0.050 % of the updates were lost"]);
        assert_eq!(lost(&PLAN, &drops.found), Some(0.05));
        assert!(panics.failure.as_ref().unwrap().contains("by design"));
        assert!(panics.run.samples.is_empty() && !panics.run.correct);
        assert!(cas.run.correct && cas.run.samples.len() == 3);
    }

    #[test]
    fn nothing_is_counted_after_an_interrupt() {
        let mut rig = Rig::new(&[None; 3], &[], "test", Arc::default()).unwrap();
        // Relaxed: the flag carries no data.
        rig.interrupted.store(true, Ordering::Relaxed);
        let counted = measure(&PLAN, &VARIANTS, &mut rig, &|| ());
        assert!(counted.iter().all(|counted| counted.found.is_empty()));
        assert_eq!(lost(&PLAN, &[]), None);
    }
}
