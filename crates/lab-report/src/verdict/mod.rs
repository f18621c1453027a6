//! The verdict in words: where delegation loses, where it wins, what to use, and why.
//!
//! ```text
//!   samples ── judge (ratios with 95 % intervals, within one mode)
//!                ├── findings   delegation against the best rival, per level
//!                ├── advice     the fastest method for each need, per level or part of one
//!                ├── answer     what to use, in three sentences and a table
//!                ├── latency    p99 under load, of the loads that were borne
//!                └── why, notes explanations and reservations
//! ```
//!
//! Every sentence comes from the data of the file. "Wins" and "loses" mean that the interval of
//! the ratio does not contain 1; otherwise it is too close to call.

mod advice;
mod answer;
mod findings;
mod judge;
mod latency;
mod level;
mod notes;
mod terminal;
mod why;

pub use advice::{Advice, Need};
pub(crate) use answer::Answer;
pub use findings::{Comparison, Finding, Standing};
pub use latency::Latency;
pub use level::{Kind, Level};

pub(super) use judge::{Judge, MIN_SAMPLES};

use super::data::{self, Subject};
use super::latency::Group;
use super::table::{grid::Grid, structure};
use super::words;
use corelay_lab_measure::schema::{Machine, Results};
use corelay_lab_measure::workload::fetch_add;
use std::collections::BTreeMap;

/// The verdict on a results file, in words. [`Display`](std::fmt::Display) prints it for a
/// terminal of 88 columns or more. Names of methods stand in `backticks` in the sentences; the
/// terminal's text has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What to use: an answer for each section, or one for the file if there is no section.
    pub(crate) answers: Vec<Answer>,
    /// A section for each workload and distribution.
    pub(crate) sections: Vec<Section>,
    /// The verdicts on latency under load, if it was measured: one for each number of threads and
    /// variables.
    pub(crate) latency: Vec<Latency>,
    /// Tables of the best of delegation and its best rival on structures of the lab.
    pub(crate) best: Vec<Grid>,
    /// Notes on the whole file.
    pub(crate) notes: Vec<String>,
    /// Things that were unavailable or left out, and why. The page lists them with the machine.
    pub(crate) unavailable: Vec<String>,
}

/// The verdict on one workload with one distribution, at the most threads that have a CPU each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    /// The subject, for instance `fetch-add, uniform, 2 threads`.
    pub(crate) subject: String,
    /// What to use.
    pub(crate) answer: Answer,
    /// Delegation against its rivals.
    pub(crate) findings: Vec<Finding>,
    /// The methods to use on each level.
    pub(crate) advice: Vec<Advice>,
    /// Explanations of the figures, a sentence or two each.
    pub(crate) why: Vec<String>,
    /// Reservations about this section's figures.
    pub(crate) notes: Vec<String>,
}

/// Findings of one standing and comparison: for each level, those of each mode.
pub(super) type Grouped<'a> = BTreeMap<Comparison, BTreeMap<&'a Level, Vec<&'a Finding>>>;

impl Section {
    /// Groups the findings of one standing for printing.
    pub(super) fn grouped(&self, standing: Standing) -> Grouped<'_> {
        let mut groups = Grouped::new();
        for finding in self.findings.iter().filter(|f| f.standing() == standing) {
            let levels = groups.entry(finding.comparison).or_default();
            levels.entry(&finding.level).or_default().push(finding);
        }
        groups
    }
}

/// Judges `results` and returns the verdict in words.
///
/// ```
/// use corelay_lab_measure::schema::{Machine, Results, SCHEMA};
///
/// let nothing = Results {
///     schema: SCHEMA,
///     machine: Machine::default(),
///     commit: "unknown".into(),
///     command: "corelay compare".into(),
///     runs: Vec::new(),
/// };
/// let verdict = corelay_lab_report::verdict(&nothing);
/// assert!(verdict.to_string().contains("Nothing was measured"));
/// ```
pub fn verdict(results: &Results) -> Verdict {
    let one_cpu = results.machine.cpus == 1;
    let sections: Vec<Section> = Subject::all(results)
        .iter()
        .filter_map(|subject| section(subject, &results.machine, one_cpu))
        .collect();
    let groups = if one_cpu {
        Vec::new()
    } else {
        Group::all(results)
    };
    let mut answers = match lone_sentence(results, &sections, &groups) {
        Some(sentence) => vec![Answer::of_sentence(sentence)],
        None => {
            let answers = sections.iter().map(|section| &section.answer);
            let said = answers.filter(|answer| !answer.sentences.is_empty());
            Answer::join(said.cloned().collect())
        }
    };
    if let (Some(own), [answer]) = (data::own(results), answers.as_mut_slice())
        && let Some(first) = answer.sentences.first_mut()
    {
        *first = format!("{own}: {first}");
    }
    Verdict {
        answers,
        sections,
        latency: groups.iter().filter_map(latency::latency).collect(),
        best: if one_cpu {
            Vec::new()
        } else {
            structure::best(results)
        },
        notes: notes::on_file(results),
        unavailable: results.machine.unavailable.clone(),
    }
}

/// The whole answer where no table can be made; `None` if the sections have answers.
fn lone_sentence(results: &Results, sections: &[Section], groups: &[Group<'_>]) -> Option<String> {
    let runs = &results.runs;
    if runs.is_empty() {
        return Some("Nothing was measured: there is no run in these results.".to_owned());
    }
    if runs.iter().all(|run| !run.correct) {
        return Some("Nothing can be said: no method gave a right result.".to_owned());
    }
    if results.machine.cpus == 1 {
        let sentence = "One CPU: no two threads run at the same time here, so there is nothing to \
                        judge. Use a lock.";
        return Some(sentence.to_owned());
    }
    if sections.is_empty() {
        return groups.first().and_then(latency::headline);
    }
    let is_silent = sections
        .iter()
        .all(|section| section.answer.sentences.is_empty());
    is_silent.then(|| "Too little was measured to say what to use.".to_owned())
}

fn section(subject: &Subject<'_>, machine: &Machine, one_cpu: bool) -> Option<Section> {
    let threads = subject.main_threads(machine.cpus)?;
    let runs = subject.at(threads);
    let judge = Judge::new(&runs);
    let name = format!(
        "{}, {}",
        subject.name(),
        words::count(threads as u64, "thread", "threads")
    );
    let notes = notes::on_subject(subject, &judge, machine);
    if one_cpu {
        let nothing = Vec::new();
        return Some(Section {
            subject: name,
            answer: Answer::default(),
            findings: nothing,
            advice: Vec::new(),
            why: Vec::new(),
            notes,
        });
    }
    let vars = judge.vars();
    let levels = if subject.has_models() {
        Level::of_model(&vars, threads, &machine.caches)
    } else {
        Level::of_points(&vars)
    };
    let findings = findings::findings(&judge, &levels);
    let why = why::why(&why::Evidence {
        subject,
        threads,
        runs: &runs,
        judge: &judge,
        findings: &findings,
        machine,
    });
    let advice = advice::advice(
        &judge,
        &levels,
        &findings,
        subject.workload == fetch_add::NAME,
    );
    let answer = answer::answer(&answer::Evidence {
        subject,
        threads,
        runs: &runs,
        judge: &judge,
        advice: &advice,
        findings: &findings,
    });
    Some(Section {
        subject: name,
        answer: answer.unwrap_or_default(),
        advice,
        findings,
        why,
        notes,
    })
}
