//! The measurement of throughput: the answer, the start and the reference in turn.

use super::fault::{Fault, Kind};
use super::project::Workshop;
use super::run::{AnswerResult, Limited, bad_end};
use corelay_lab_measure::measure::session::summary;
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::schema::{Mode, Params, Run, Sample};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

/// Blocks wanted. In each block every table has a turn with each number of threads.
const BLOCKS: usize = 15;
/// Blocks made at most to get [`BLOCKS`] in which the CPUs were free.
const MOST_BLOCKS: usize = 60;
/// Free blocks that a figure needs.
const FEWEST_BLOCKS: usize = 5;
/// Length of a turn, in milliseconds.
const TURN_MS: u64 = 20;
/// CPU time per thread and second. Below it, other programs had the CPUs.
const FREE_CPU_SHARE: f64 = 0.8;
/// Number of keys, equal to that of `harness/scale.rs`.
const KEYS: u64 = 1 << 14;

/// One turn, a line of the program's output.
#[derive(Clone, Debug, Deserialize)]
struct Turn {
    who: String,
    block: usize,
    threads: usize,
    seconds: f64,
    per_thread: Vec<u64>,
    cpu_s: f64,
}

/// Throughput of one table with one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Median {
    /// The table's name: `yours`, `start` or `reference`.
    pub(crate) who: String,
    /// Number of threads.
    pub(crate) threads: usize,
    /// Median throughput, in Mops.
    pub(crate) mops: f64,
}

/// The figures of all tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// The median of each table with each number of threads, ordered by table and then by threads.
    pub(crate) medians: Vec<Median>,
    /// The same in the lab's schema.
    pub(crate) runs: Vec<Run>,
    /// Blocks that were made.
    pub(crate) blocks: usize,
    /// Blocks in which the CPUs were free of other programs.
    pub(crate) free: usize,
}

impl Measured {
    /// Returns the median of a table with so many threads.
    pub(crate) fn of(&self, who: &str, threads: usize) -> Option<f64> {
        let mut medians = self.medians.iter();
        Some(medians.find(|m| m.who == who && m.threads == threads)?.mops)
    }

    /// Whether other programs had the CPUs so often that the figures say little.
    pub(crate) fn is_busy(&self) -> bool {
        self.free < FEWEST_BLOCKS
    }

    /// Returns the largest number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.medians.iter().map(|m| m.threads).max().unwrap_or(0)
    }
}

/// Returns the numbers of threads to measure: 1, 2, 4, … and the number of CPUs.
pub(crate) fn threads(cpus: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..)
        .map(|n| 1 << n)
        .take_while(|&threads| threads < cpus)
        .collect();
    all.push(cpus.max(1));
    all
}

impl Limited<'_> {
    /// Measures the tables of these names in turn, with these numbers of threads.
    ///
    /// # Errors
    /// A sentence if no answer is to blame.
    pub(crate) fn measure(
        &self,
        workshop: &Workshop,
        who: &[&str],
        threads: &[usize],
    ) -> AnswerResult<Measured> {
        let left = workshop.left();
        let listed: Vec<String> = threads.iter().map(usize::to_string).collect();
        let mut program = Command::new(workshop.program("scale"));
        program
            .arg(&left)
            .arg(self.limit.as_secs().to_string())
            .args([BLOCKS, MOST_BLOCKS].map(|n| n.to_string()))
            .args([TURN_MS.to_string(), listed.join(","), who.join(",")]);
        let ran = self.watch(program.current_dir(&left))?;
        if let Some((kind, what)) = bad_end(&ran, self.limit) {
            return Ok(Err(Fault {
                // The measuring program prints the panic and ends.
                kind: match ran.stderr.contains("panicked at") {
                    true => Kind::Panic,
                    false => kind,
                },
                stage: Some("measuring".to_owned()),
                what,
                listing: None,
            }));
        }
        let text = fs::read_to_string(left.join("samples.jsonl"));
        let text = text.map_err(|error| format!("the measured samples cannot be read: {error}"))?;
        let turns: Result<Vec<Turn>, _> = text.lines().map(serde_json::from_str).collect();
        let turns =
            turns.map_err(|error| format!("the measured samples cannot be parsed: {error}"))?;
        Ok(Ok(summed_up(&turns)))
    }
}

/// Whether the threads of a turn had their CPUs. Threads that sleep in a lock use no CPU time, so
/// only turns without waiting are judged: those of one thread, and of the reference.
fn is_free(turn: &Turn) -> bool {
    let asked = turn.threads == 1 || turn.who == "reference";
    // If the system does not count CPU time, the turn passes.
    !asked || turn.cpu_s == 0.0 || turn.cpu_s >= FREE_CPU_SHARE * turn.seconds * turn.threads as f64
}

fn summed_up(turns: &[Turn]) -> Measured {
    let blocks: BTreeSet<usize> = turns.iter().map(|turn| turn.block).collect();
    let busy = turns.iter().filter(|turn| !is_free(turn));
    let busy: BTreeSet<usize> = busy.map(|turn| turn.block).collect();
    let mut measured = Measured {
        blocks: blocks.len(),
        free: blocks.len() - busy.len(),
        ..Measured::default()
    };
    let mut by_point: BTreeMap<(&str, usize), Vec<&Turn>> = BTreeMap::new();
    for turn in turns {
        by_point
            .entry((&turn.who, turn.threads))
            .or_default()
            .push(turn);
    }
    for ((who, threads), turns) in by_point {
        // If too few blocks were free, all are shown, with a warning not to trust them.
        let counts = |turn: &Turn| measured.is_busy() || !busy.contains(&turn.block);
        let run = run(who, threads, &turns, &counts);
        measured.medians.push(Median {
            who: who.to_owned(),
            threads,
            mops: run.median_mops,
        });
        measured.runs.push(run);
    }
    measured
}

fn run(who: &str, threads: usize, turns: &[&Turn], counts: &dyn Fn(&Turn) -> bool) -> Run {
    let sample = |turn: &&Turn| Sample {
        mops: turn.per_thread.iter().sum::<u64>() as f64 / turn.seconds / 1e6,
        mode: match counts(turn) {
            true => Mode::Unknown,
            false => Mode::Discarded,
        },
        rtt_ns: None,
        per_thread: turn.per_thread.clone(),
        cpu_s: turn.cpu_s,
        latency_ns: None,
        arrivals: None,
        fibres: None,
        counts: None,
        picture: None,
        cache: None,
    };
    let samples: Vec<Sample> = turns.iter().map(sample).collect();
    let kept = samples.iter().filter(|sample| sample.mode == Mode::Unknown);
    let kept: Vec<f64> = kept.map(|sample| sample.mops).collect();
    Run {
        workload: "course-hash".to_owned(),
        method: who.to_owned(),
        params: Params {
            threads,
            vars: KEYS,
            window: 1,
            secs: TURN_MS as f64 / 1000.0,
            dist: "uniform".to_owned(),
            placement: vec![None; threads],
            extra: [("gets_percent", 80.into()), ("keys", KEYS.into())].into(),
            ..Params::default()
        },
        correct: true,
        median_mops: stats::median(&kept).unwrap_or(0.0),
        harmonic_mean_mops: stats::harmonic_mean(&kept).unwrap_or(0.0),
        by_mode: summary(&kept)
            .map(|kept| (Mode::Unknown, kept))
            .into_iter()
            .collect(),
        samples,
        trustees: Vec::new(),
        latency_ns: None,
        load: None,
        loads: None,
        not_installed: None,
        cache: None,
        notes: vec![
            "measured in a process of its own, without pinning and without the round-trip probe"
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_up_to_the_cpus() {
        assert_eq!(threads(0), [1]);
        assert_eq!(threads(1), [1]);
        assert_eq!(threads(2), [1, 2]);
        assert_eq!(threads(6), [1, 2, 4, 6]);
        assert_eq!(threads(8), [1, 2, 4, 8]);
    }

    fn turn(who: &str, block: usize, threads: usize, calls: u64, cpu_s: f64) -> Turn {
        Turn {
            who: who.to_owned(),
            block,
            threads,
            seconds: 0.02,
            per_thread: vec![calls; threads],
            cpu_s,
        }
    }

    #[test]
    fn blocks_without_the_cpus_do_not_count() {
        let mut turns = Vec::new();
        for block in 0..6 {
            turns.push(turn("start", block, 1, 100_000, 0.02));
            // Threads that wait use no CPU time, which is not the machine's fault.
            turns.push(turn("start", block, 2, 20_000, 0.01));
            turns.push(turn("reference", block, 2, 100_000, 0.04));
        }
        // Half of the CPU time, half of the calls.
        turns.push(turn("reference", 6, 2, 50_000, 0.02));
        turns.push(turn("start", 6, 2, 90_000, 0.01));
        let measured = summed_up(&turns);
        assert_eq!((measured.blocks, measured.free), (7, 6));
        assert!(!measured.is_busy());
        assert_eq!(measured.of("start", 2), Some(2.0));
        assert_eq!(measured.of("reference", 2), Some(10.0));
        assert_eq!(measured.of("start", 1), Some(5.0));
        assert_eq!(measured.of("yours", 2), None);
        assert_eq!(measured.threads(), 2);
        let discarded = measured.runs.iter().flat_map(|run| &run.samples);
        let discarded = discarded.filter(|sample| sample.mode == Mode::Discarded);
        assert_eq!(discarded.count(), 2);
    }

    #[test]
    fn a_run_without_free_blocks_is_reported_as_busy() {
        let turns: Vec<Turn> = (0..20)
            .map(|block| turn("reference", block, 2, 10_000, 0.01))
            .collect();
        let measured = summed_up(&turns);
        assert!(measured.is_busy());
        assert_eq!(measured.of("reference", 2), Some(1.0));
        // If the system counts no CPU time, every block passes.
        let turns: Vec<Turn> = (0..20)
            .map(|block| turn("reference", block, 2, 10_000, 0.0))
            .collect();
        assert!(!summed_up(&turns).is_busy());
    }
}
