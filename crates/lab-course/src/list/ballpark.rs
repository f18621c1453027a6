//! The ballpark of the throughput, before anything of the ladder runs: a sum of what the steps of an
//! insertion cost alone.
//!
//! The source asks for an educated guess before the first measurement. The reader's own guess
//! stands beside the sum, and both beside the figure. A sum that is far off has left something out,
//! and what that is, is the subject of the course.

use super::memory::free_memory;
use super::nodes::{List, Node};
use crate::guess::Question;
use crate::shown::Guess;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::stats::median;
use corelay_lab_report::plot::significant;
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::times;
use serde::Serialize;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The question that is asked before anything is measured.
pub const QUESTION: Question = Question {
    text: "Make an educated guess of the ballpark before anything is measured: how many million keys per \
           second does one thread insert into one list under one lock (`biglock`), each in a node from the \
           system's allocator?",
    unit: "Mops",
};

/// Steps that are timed together: some tenths of a millisecond of the cheapest.
const STEPS: usize = 100_000;

/// Rounds, of which the median counts.
const ROUNDS: usize = 5;

/// Lines that move with a lock that changes hands: the lock's, the head's and the newest node's.
const LINES: f64 = 3.0;

/// Ratio within which a sum counts as the right ballpark.
const RIGHT: f64 = 2.0;

/// The costs of an insertion's steps, each measured alone, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Costs {
    /// Taking and releasing a lock that nobody else wants.
    pub(crate) lock: f64,
    /// A new node from the system's allocator, with its share of a page fault.
    pub(crate) node: f64,
    /// Writing a node of an array and linking it into a list.
    pub(crate) insert: f64,
    /// Moving a cache line to another core: half a round trip; `None` if it cannot be probed.
    pub(crate) line: Option<f64>,
    /// CPUs that the process may use: more threads than that do not work at once.
    pub(crate) cpus: usize,
}

/// An estimate of one rung with so many threads.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Estimate {
    pub(crate) rung: &'static str,
    pub(crate) threads: usize,
    /// The sum, in words.
    sum: String,
    /// The estimate, in Mops.
    mops: f64,
    /// The measured throughput, in Mops.
    measured: f64,
}

impl Costs {
    /// Measures each cost by itself, in some milliseconds.
    pub(crate) fn measure(rig: &mut Rig) -> Self {
        free_memory();
        Self {
            lock: per_step(locks),
            node: per_step(nodes),
            insert: per_step(insertions),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            line: rig.distance().map(|distance| distance.rtt_ns / 2.0),
        }
    }

    /// Says what each step costs.
    pub(crate) fn words(&self) -> String {
        let line = match self.line {
            Some(line) => format!(
                "{} ns to move a cache line to another core",
                significant(line)
            ),
            None => "a move of a cache line cannot be timed here".to_owned(),
        };
        format!(
            "The ballpark, summed up before the first run from costs that were measured alone: {} ns to take \
             and release a lock that nobody else wants, {} ns for a node from the system's allocator, {} ns \
             to write and link a node of an array, {line}. Shared lines and stragglers are in no sum but that \
             of the lock.",
            significant(self.lock),
            significant(self.node),
            significant(self.insert)
        )
    }

    /// Estimates a rung with so many threads; `None` for a rung whose steps are not among the costs.
    pub(crate) fn estimate(
        &self,
        rung: &'static str,
        threads: usize,
        measured: f64,
    ) -> Option<Estimate> {
        let at_once = threads.min(self.cpus);
        let n = at_once as f64;
        let by = |text: &str| match at_once {
            1 => text.to_owned(),
            _ => format!("({text}) / {at_once}"),
        };
        let (sum, ns) = match (rung, at_once) {
            ("biglock", 1) => (
                "node + lock + link".to_owned(),
                self.node + self.lock + self.insert,
            ),
            ("biglock", _) => (
                "lock + link + 3 lines".to_owned(),
                // Nodes are made outside the lock, by all threads at once.
                (self.lock + self.insert + LINES * self.line?).max(self.node / n),
            ),
            ("partitioned" | "system", _) => (by("node + link"), (self.node + self.insert) / n),
            ("preallocated" | "balanced" | "padded", _) => (by("link"), self.insert / n),
            _ => return None,
        };
        Some(Estimate {
            rung,
            threads,
            sum,
            mops: 1e3 / ns,
            measured,
        })
    }
}

/// Returns the time of a step in nanoseconds. `round` does [`STEPS`] steps and returns their time.
fn per_step(round: fn() -> f64) -> f64 {
    let rounds: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    // A clock that has not moved gives no cost; a tenth of a nanosecond is less than any step's.
    (median(&rounds).unwrap_or(0.0) / STEPS as f64).max(0.1)
}

fn locks() -> f64 {
    let lock = Mutex::new(0_u64);
    let begin = Instant::now();
    for _ in 0..STEPS {
        *black_box(&lock)
            .lock()
            .unwrap_or_else(PoisonError::into_inner) += 1;
    }
    begin.elapsed().as_nanos() as f64
}

fn nodes() -> f64 {
    let mut nodes = Vec::with_capacity(STEPS);
    let begin = Instant::now();
    for key in 0..STEPS as u64 {
        nodes.push(Box::new(Node::new(key)));
    }
    let ns = begin.elapsed().as_nanos() as f64;
    drop(black_box(nodes));
    // The next round asks the system for memory again, as a run does.
    free_memory();
    ns
}

fn insertions() -> f64 {
    let mut array: Vec<Node> = (0..STEPS).map(|_| Node::new(0)).collect();
    let mut list = List::default();
    let begin = Instant::now();
    for (key, node) in (0..).zip(&mut array) {
        *node = Node::new(key);
        list.push(node);
    }
    begin.elapsed().as_nanos() as f64
}

/// Makes the table of the sums beside the figures.
pub(super) fn table(estimates: &[Estimate]) -> Option<Grid> {
    let row = |estimate: &Estimate| {
        vec![
            estimate.rung.to_owned(),
            estimate.threads.to_string(),
            estimate.sum.clone(),
            significant(estimate.mops),
            significant(estimate.measured),
            off(estimate.mops, estimate.measured),
        ]
    };
    (!estimates.is_empty()).then(|| Grid {
        title: "The ballpark by a sum of costs, and as measured".to_owned(),
        head: [
            "rung",
            "threads",
            "the sum",
            "Mops, summed",
            "Mops, measured",
            "the sum was",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: estimates.iter().map(row).collect(),
    })
}

/// Says how far an estimate was off.
fn off(estimate: f64, measured: f64) -> String {
    match estimate / measured {
        ratio if !ratio.is_finite() || ratio <= 0.0 => "–".to_owned(),
        ratio if ratio >= 1.1 => format!("{} too high", times(ratio)),
        ratio if ratio <= 1.0 / 1.1 => format!("{} too low", times(1.0 / ratio)),
        _ => "right within 10 %".to_owned(),
    }
}

/// Says how far the reader's guess and the sums were off.
pub(super) fn sentences(guess: Option<&Guess>, estimates: &[Estimate]) -> Vec<String> {
    let both = guess.and_then(|guess| guess.guessed.zip(guess.measured));
    let guessed = both.map(|(guessed, measured)| {
        format!("Your guess of the ballpark was {}.", off(guessed, measured))
    });
    let factor = |estimate: &Estimate| {
        let ratio = estimate.mops / estimate.measured;
        ratio.max(1.0 / ratio)
    };
    let worst = estimates
        .iter()
        .max_by(|a, b| factor(a).total_cmp(&factor(b)));
    let summed = worst.map(|worst| {
        let far = off(worst.mops, worst.measured);
        if factor(worst) <= RIGHT {
            return format!(
                "Each sum of costs gives the right ballpark, within a factor of 2; the furthest off was that of \
                 `{}` with {}: {far}.",
                worst.rung,
                threads(worst.threads)
            );
        }
        let why = match worst.mops > worst.measured {
            true => "Something takes time that the sum has not: `corelay lab why` says what.",
            false => "Some of the costs are not paid for every key, or at the same time as others.",
        };
        format!(
            "Of the sums of costs the one of `{}` with {} was the furthest off: {far}. {why}",
            worst.rung,
            threads(worst.threads)
        )
    });
    guessed.into_iter().chain(summed).collect()
}

fn threads(n: usize) -> String {
    corelay_lab_report::words::count(n as u64, "thread", "threads")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const COSTS: Costs = Costs {
        lock: 10.0,
        node: 30.0,
        insert: 10.0,
        line: Some(60.0),
        cpus: 4,
    };

    #[test]
    fn sums_are_those_of_a_rungs_steps() {
        let mops = |rung, threads| COSTS.estimate(rung, threads, 1.0).map(|e| e.mops);
        assert_eq!(mops("biglock", 1), Some(20.0));
        assert_eq!(mops("biglock", 2), Some(5.0));
        assert_eq!(mops("partitioned", 2), Some(50.0));
        assert_eq!(mops("padded", 4), Some(400.0));
        // Threads that take turns on a CPU add nothing.
        assert_eq!(mops("padded", 64), Some(400.0));
        assert_eq!(mops("pool", 1), None);
        let no_line = Costs {
            line: None,
            ..COSTS
        };
        assert!(no_line.estimate("biglock", 2, 1.0).is_none());
        assert!(no_line.words().contains("cannot be timed"));
    }

    #[test]
    fn a_sentence_says_how_far_off_a_guess_was() {
        let told = |guessed: Option<f64>, measured: f64| {
            let mut guess = QUESTION.unasked();
            (guess.guessed, guess.measured) = (guessed, Some(measured));
            let estimate = COSTS.estimate("biglock", 1, measured).unwrap();
            let all = sentences(Some(&guess), &[estimate]).join(" ");
            all.replace('\u{a0}', " ")
        };
        for (guessed, measured, words) in [
            (Some(60.0), 20.0, ["3.0 × too high", "right ballpark"]),
            (Some(5.0), 20.0, ["4.0 × too low", "right within 10 %"]),
            (Some(21.0), 20.0, ["was right within", "factor of 2"]),
            (Some(2.0), 2.0, ["10 × too high", "Something takes time"]),
            (
                Some(99.0),
                99.0,
                ["5.0 × too low", "not paid for every key"],
            ),
        ] {
            let text = told(guessed, measured);
            for word in words {
                assert!(text.contains(word), "{word} is missing in {text}");
            }
        }
        assert!(!told(None, 2.0).contains("Your guess"));
    }

    #[test]
    fn each_cost_is_measured() {
        let mut rig = Rig::new(&[None], &[], "test", Arc::default()).unwrap();
        let costs = Costs::measure(&mut rig);
        assert!(
            costs.lock > 0.0 && costs.node > 0.0 && costs.insert > 0.0,
            "{costs:?}"
        );
        assert_eq!(costs.line, None);
    }
}
