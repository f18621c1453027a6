//! The verdict in words: where delegation loses, where it wins, what to use, and why.
//!
//! ```text
//!   samples ── judge (ratios with 95 % intervals, within one mode)
//!                ├── findings   delegation against the best rival, per level
//!                ├── advice     the fastest method for each need, per level or part of one
//!                ├── latency    p99 under load, of the loads that were borne
//!                └── why, notes explanations and reservations
//! ```
//!
//! Every sentence comes from the data of the file. "Wins" and "loses" mean that the interval of
//! the ratio does not contain 1; otherwise it is too close to call.

mod advice;
mod findings;
mod judge;
mod latency;
mod level;
mod notes;
mod terminal;
mod why;

pub use advice::{Advice, Need};
pub use findings::{Comparison, Finding, Standing};
pub use latency::Latency;
pub use level::{Kind, Level};

pub(super) use judge::{Judge, MIN_SAMPLES};

use super::data::{self, Subject};
use super::latency::Group;
use super::table::{grid::Grid, structure};
use super::{method, words};
use corelay_lab_measure::schema::{Machine, Results};
use corelay_lab_measure::workload::fetch_add;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The verdict on a results file, in words. [`Display`](std::fmt::Display) prints it for a
/// terminal of 88 columns or more. Names of methods stand in `backticks` in the sentences; the
/// terminal's text has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The outcome in a sentence or two, the losing side first.
    pub(crate) headline: String,
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
    let headline = match results.runs.as_slice() {
        [] => "Nothing was measured: there is no run in these results.".to_owned(),
        runs if runs.iter().all(|r| !r.correct) => {
            "Nothing can be said: no method gave a right result.".to_owned()
        }
        runs => {
            let under_load = groups.first().and_then(latency::headline);
            let delegated = runs.iter().any(|r| method::is_ours(&r.method));
            match (headline(&sections, one_cpu, delegated), under_load) {
                (_, Some(under_load)) if sections.is_empty() => under_load,
                (throughput, Some(under_load)) => format!("{throughput} {under_load}"),
                (throughput, None) => throughput,
            }
        }
    };
    let headline = match data::own(results) {
        Some(own) if sections.len() == 1 => format!("{own}: {headline}"),
        _ => headline,
    };
    Verdict {
        headline,
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
    Some(Section {
        subject: name,
        advice: advice::advice(
            &judge,
            &levels,
            &findings,
            subject.workload == fetch_add::NAME,
        ),
        findings,
        why,
        notes,
    })
}

fn headline(sections: &[Section], one_cpu: bool, delegated: bool) -> String {
    if one_cpu {
        return "One CPU: no two threads run at the same time here, so there is nothing to judge. Use a lock.".to_owned();
    }
    let sentences: Vec<String> = sections
        .iter()
        .filter_map(|s| {
            let waiting = clause(
                s,
                Comparison::Waiting,
                "Waiting for each answer, delegation",
            );
            let later = clause(s, Comparison::LaterAgainstWaiting, "With answers later, it");
            let text = [waiting, later]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ");
            let subject = if sections.len() > 1 {
                format!("{}: ", s.subject)
            } else {
                String::new()
            };
            (!text.is_empty()).then(|| subject + &text)
        })
        .collect();
    match (sentences.is_empty(), delegated) {
        (false, _) => sentences.join(" "),
        (true, true) => {
            "Too little was measured to judge delegation against its rivals.".to_owned()
        }
        (true, false) => {
            "Delegation is not among the methods measured here; advice on the others stands below."
                .to_owned()
        }
    }
}

/// Neighbouring points with the same standing.
struct Span {
    /// The standing; `None` if it differs by mode.
    standing: Option<Standing>,
    /// Our winning methods, if several of ours compete.
    winners: Vec<String>,
    vars: Vec<u64>,
}

impl Span {
    fn by(&self) -> String {
        match self.winners.as_slice() {
            [] => String::new(),
            winners => format!(" ({})", words::or(winners)),
        }
    }
}

/// Formats the span, for instance `64–512 (flat-adaptive)`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", words::range(&self.vars), self.by())
    }
}

/// Summarises one comparison over all points in a sentence: where it loses, wins, cannot be told.
fn clause(section: &Section, comparison: Comparison, lead: &str) -> Option<String> {
    let mut by_point: BTreeMap<u64, Vec<&Finding>> = BTreeMap::new();
    for f in section
        .findings
        .iter()
        .filter(|f| f.comparison == comparison)
    {
        for &vars in &f.level.vars {
            by_point.entry(vars).or_default().push(f);
        }
    }
    // Neighbours with the same standing become one range; `None` differs by mode. If one of
    // several of our methods wins, spans also differ by the winner.
    let mut spans: Vec<Span> = Vec::new();
    for (vars, found) in by_point {
        let first = found[0].standing();
        let standing = found.iter().all(|f| f.standing() == first).then_some(first);
        let named = standing == Some(Standing::Wins) && comparison.ours().len() > 1;
        let winners: BTreeSet<&str> = found.iter().map(|f| f.ours.as_str()).collect();
        let winners = winners.into_iter().filter(|_| named).map(words::code);
        let winners: Vec<String> = winners.collect();
        match spans.last_mut() {
            Some(span) if span.standing == standing && span.winners == winners => {
                span.vars.push(vars);
            }
            _ => spans.push(Span {
                standing,
                winners,
                vars: vec![vars],
            }),
        }
    }
    let everywhere = spans.len() == 1;
    let verbs = [
        (
            Some(Standing::Loses),
            "loses to the best lock or channel",
            "loses",
        ),
        (
            Some(Standing::Wins),
            "beats the best lock or channel",
            "wins",
        ),
        (
            Some(Standing::TooClose),
            "is too close to the best lock or channel to call",
            "is too close to call",
        ),
    ];
    let mut sentences: Vec<String> = Vec::new();
    for (standing, full, short) in verbs {
        let here = || spans.iter().filter(|s| s.standing == standing);
        let ranges: Vec<String> = here().map(Span::to_string).collect();
        if ranges.is_empty() {
            continue;
        }
        // The rival and the unit are named once.
        let unit = if here().all(|s| s.vars == [1]) {
            "variable"
        } else {
            "variables"
        };
        sentences.push(match (everywhere, sentences.is_empty()) {
            (true, _) => format!("{full} everywhere{}", spans[0].by()),
            (_, true) => format!("{full} on {} {unit}", words::and(&ranges)),
            _ => format!("{short} on {}", words::and(&ranges)),
        });
    }
    let differing: Vec<String> = spans
        .iter()
        .filter(|s| s.standing.is_none())
        .map(Span::to_string)
        .collect();
    let differing = words::and(&differing);
    match (sentences.is_empty(), differing.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!(
            "{lead} does not compare alike near and far with the best lock or channel on {differing} variables."
        )),
        (false, true) => Some(format!("{lead} {}.", words::and(&sentences))),
        (false, false) => Some(format!(
            "{lead} {}; on {differing} near and far differ.",
            words::and(&sentences)
        )),
    }
}
