//! The exercise as a step of the course, and as the check of a reader's project.

use super::fault::Fault;
use super::mark::{Mark, RUBRIC, Scaling, mark};
use super::project::{Answer, Workshop};
use super::run::{Checked, Limited, new_seed};
use super::scaling::{Measured, threads};
use crate::guess::Question;
use crate::shown::{Guess, Part, Shown};
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::times;
use serde_json::json;
use std::path::Path;

/// The question that is asked before the step.
pub const QUESTION: Question = Question {
    text: "On two threads, how many times as fast as a table with one big lock is one with many \
           small ones?",
    unit: "×",
};

const STEP: &str = "hash";

/// The way in which the exercise is run.
#[derive(Clone, Copy)]
pub struct Exercise<'a> {
    /// Time limits, and the flag of Ctrl-C.
    pub limited: Limited<'a>,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Whether to measure the scaling.
    pub measure: bool,
    /// Called with a word or two about what is done next.
    pub tell: &'a dyn Fn(&str),
}

impl Exercise<'_> {
    /// Runs the step: checks and measures the start and the reference.
    ///
    /// # Errors
    /// A sentence that says what is missing, or that the step was interrupted.
    pub fn show(&self, guess: Guess) -> Result<Shown, String> {
        let mut shown = Shown::new(STEP, "A hash table that threads share: one lock, or many");
        let workshop = Workshop::open()?;
        let mut calls = 0;
        let seed = new_seed();
        // The reference comes last: the measuring program was already built with the start.
        for (answer, measure) in workshop.own()?.iter().zip([self.measure, false]) {
            match self.look(&workshop, answer, measure, seed)? {
                Ok(checked) => calls += checked.turn_calls + checked.calls,
                Err(fault) => {
                    shown.wrong.push(format!("The {}: {fault}", answer.shown));
                    shown.parts.extend(listing(&fault));
                    return Ok(shown);
                }
            }
        }
        shown.parts.push(Part::Words(format!(
            "Both were checked first, and no fault was found: no key twice, lost or left over, \
             every answer as it should be, and an order that explains them in {} recorded calls.",
            grouped(calls as u64)
        )));
        shown.figures = json!({ "recorded_calls": calls, "seed": seed });
        let mut guess = guess;
        if self.measure {
            match self.scale(&workshop, &["start", "reference"])? {
                Ok(measured) => {
                    guess.measured = ratio(&measured);
                    lay(&mut shown, measured);
                }
                Err(fault) => shown.wrong.push(fault.to_string()),
            }
        }
        shown.guess = Some(guess);
        shown.look_at = LOOK_AT.map(str::to_owned).into();
        Ok(shown)
    }

    /// Checks and marks the project in a folder.
    ///
    /// # Errors
    /// A sentence that says why the folder holds no project to check, or that the check was
    /// interrupted.
    pub fn check(&self, folder: &Path) -> Result<Shown, String> {
        (self.tell)("reading");
        let answer = Answer::of(folder, &self.limited)?;
        let mut shown = Shown::new(STEP, format!("The hash table in {}", answer.shown));
        let workshop = Workshop::open()?;
        let measure = self.measure && self.cpus > 1;
        let seed = new_seed();
        let mut checked = self.look(&workshop, &answer, measure, seed)?;
        let mut measured = None;
        if measure && checked.is_ok() {
            match self.scale(&workshop, &["yours", "start", "reference"])? {
                Ok(found) => measured = Some(found),
                // The table hangs or panics after all.
                Err(fault) => checked = Err(fault),
            }
        }
        let scaling = match &measured {
            Some(measured) => Scaling::Measured(measured),
            None if self.measure => Scaling::OneCpu,
            None => Scaling::NotAsked,
        };
        let mark = mark(&checked, scaling);
        shown.figures = json!({ "mark": &mark, "fault": checked.as_ref().err(), "seed": seed });
        if let Err(fault) = &checked {
            shown.wrong.push(fault.to_string());
            shown.parts.extend(listing(fault));
        }
        if let Some(measured) = measured {
            lay(&mut shown, measured);
        }
        shown.parts.extend(mark_parts(&mark, shown.is_right()));
        Ok(shown)
    }

    /// Builds and checks an answer.
    fn look(
        &self,
        workshop: &Workshop,
        answer: &Answer,
        measure: bool,
        seed: u64,
    ) -> Result<Result<Checked, Fault>, String> {
        (self.tell)("building");
        let has_points = match self.limited.build(workshop, answer, measure)? {
            Ok(has_points) => has_points,
            Err(fault) => return Ok(Err(fault)),
        };
        (self.tell)("checking");
        let checked = self.limited.check(workshop, seed)?;
        Ok(checked.map(|checked| Checked {
            is_plain: !has_points,
            ..checked
        }))
    }

    fn scale(&self, workshop: &Workshop, who: &[&str]) -> Result<Result<Measured, Fault>, String> {
        (self.tell)("measuring");
        self.limited.measure(workshop, who, &threads(self.cpus))
    }
}

/// Returns how many times as fast as the start the reference is on two threads; `None` if the
/// figures cannot be trusted.
fn ratio(measured: &Measured) -> Option<f64> {
    let of = |who| measured.of(who, 2).filter(|mops| *mops > 0.0);
    let ratio = of("reference")? / of("start")?;
    (!measured.is_busy()).then_some(ratio)
}

fn listing(fault: &Fault) -> Option<Part> {
    let text = fault.listing.clone()?;
    let caption = format!("{}:", fault.kind.words());
    Some(Part::Code { caption, text })
}

fn mark_parts(mark: &Mark, is_right: bool) -> Vec<Part> {
    let mut parts = vec![Part::Words(format!(
        "Mark: {} of {} points.",
        mark.points, mark.of
    ))];
    // The fault has been reported above.
    if is_right {
        parts.extend(mark.reasons.iter().cloned().map(Part::Words));
    }
    parts.push(Part::Words(RUBRIC.to_owned()));
    parts
}

/// Adds the figures to the step: as a table, and in the lab's schema.
fn lay(shown: &mut Shown, measured: Measured) {
    let mut whos: Vec<&str> = Vec::new();
    for who in ["start", "yours", "reference"] {
        whos.extend(measured.medians.iter().any(|m| m.who == who).then_some(who));
    }
    let mut counts: Vec<usize> = measured.medians.iter().map(|m| m.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let first = counts.first().copied().unwrap_or(1);
    let cell = |who: &str, threads: usize| {
        let mops = measured.of(who, threads).unwrap_or(0.0);
        let alone = measured.of(who, first).filter(|mops| *mops > 0.0);
        let gain = alone.map_or(String::new(), |alone| format!(" ({})", times(mops / alone)));
        format!("{}{gain}", significant(mops))
    };
    let row = |&threads: &usize| {
        let cells = whos.iter().map(|who| cell(who, threads));
        std::iter::once(threads.to_string()).chain(cells).collect()
    };
    let head = std::iter::once("threads").chain(whos.iter().copied());
    shown.parts.push(Part::Table(Grid {
        title: "Throughput in Mops (and as a share of one thread's)".to_owned(),
        head: head.map(str::to_owned).collect(),
        rows: counts.iter().map(row).collect(),
    }));
    let (free, blocks) = (measured.free, measured.blocks);
    shown.parts.push(Part::Words(match measured.is_busy() {
        true => format!(
            "Do not trust these figures: other programs had the CPUs in {} of {blocks} blocks.",
            blocks - free
        ),
        false => format!(
            "Medians of {free} blocks, in each of which every table has a turn of 20 ms with \
             each number of threads; 80 of 100 calls are lookups, 10 insertions, 10 removals. \
             {} blocks do not count: other programs had the CPUs.",
            blocks - free
        ),
    }));
    if let serde_json::Value::Object(figures) = &mut shown.figures {
        figures.insert("medians".to_owned(), json!(measured.medians));
        figures.insert("blocks".to_owned(), blocks.into());
        figures.insert("free_blocks".to_owned(), free.into());
    }
    shown.runs = measured.runs;
}

const LOOK_AT: [&str; 3] = [
    "The column of the start, from one thread to two: every call runs under one lock, so a second \
     thread can add nothing, and handing the lock over costs time on top.",
    "The column of the reference: two threads work on different keys at the same time. Still it is \
     not twice as fast, because each lock's cache line moves to the thread that takes it next.",
    "Do it yourself: `corelay lab hash --init DIR` writes the start, its README says what to do, \
     and `corelay lab hash --check DIR` checks and marks your version.",
];

#[cfg(test)]
mod tests {
    use super::super::scaling::Median;
    use super::*;

    fn measured(free: usize) -> Measured {
        let median = |(who, threads, mops): (&str, usize, f64)| Median {
            who: who.to_owned(),
            threads,
            mops,
        };
        let all = [
            ("reference", 1, 20.0),
            ("reference", 2, 30.0),
            ("start", 1, 20.0),
            ("start", 2, 5.0),
        ];
        Measured {
            medians: all.map(median).into(),
            blocks: 20,
            free,
            ..Measured::default()
        }
    }

    #[test]
    fn an_untrusted_ratio_is_not_set_beside_the_guess() {
        assert_eq!(ratio(&measured(15)), Some(6.0));
        assert_eq!(ratio(&measured(1)), None);
        assert_eq!(ratio(&Measured::default()), None);
    }

    #[test]
    fn the_table_has_a_column_for_each_answer() {
        let mut shown = Shown::new(STEP, "");
        shown.figures = json!({});
        lay(&mut shown, measured(15));
        let Some(Part::Table(grid)) = shown.parts.first() else {
            panic!("{shown:?}")
        };
        assert_eq!(grid.head, ["threads", "start", "reference"]);
        assert_eq!(grid.rows[1][1], "5.00 (0.25\u{a0}×)");
        assert_eq!(shown.figures["free_blocks"], 15);
        assert!(shown.to_string().contains("5 blocks do not count"));
        let mut shown = Shown::new(STEP, "");
        lay(&mut shown, measured(1));
        assert!(shown.to_string().contains("Do not trust"));
    }
}
