//! Notes that a reader must know before believing the figures.

use super::judge::{Judge, MIN_SAMPLES};
use crate::data::Subject;
use crate::method::{self, Form, Styles};
use crate::words::{self, code, count};
use corelay_lab_measure::method::{METHODS, named};
use corelay_lab_measure::schema::{Machine, Mode, Results};
use corelay_lab_measure::workload::structure::{only_for, why_only};
use std::collections::BTreeSet;

/// Well-known ways of sharing that a reader may miss where operations name no key.
const KEYED: [&str; 2] = ["sharded-mutex", "dashmap"];

/// Returns notes on the whole file.
pub(super) fn on_file(results: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    let machine = &results.machine;
    if machine.cpus == 1 {
        notes.push("One CPU: two threads never run at the same time here, so neither contention nor delegation can be judged. The figures show what each method costs a lone thread; on one CPU use a lock.".to_owned());
    }
    if let Some(quota) = machine.quota_cpus.filter(|&q| q < machine.cpus as f64) {
        notes.push(format!(
            "A quota of {quota} CPUs holds for {}: the system stopped threads now and then, and spinning costs more than it would without a quota.",
            count(machine.cpus as u64, "CPU", "CPUs")
        ));
    }
    let wrong: BTreeSet<&str> = results
        .runs
        .iter()
        .filter(|r| !r.correct)
        .map(|r| r.method.as_str())
        .collect();
    if !wrong.is_empty() {
        notes.push(format!(
            "A wrong result was found for {}: such a run has no figure.",
            words::and(&wrong.iter().map(|m| code(m)).collect::<Vec<_>>())
        ));
    }
    for method in wrong {
        let mut runs = results.runs.iter().filter(|r| r.method == method);
        let why = runs.find_map(|r| {
            r.notes
                .iter()
                .find_map(|n| n.strip_prefix("wrong result: "))
        });
        notes.extend(why.map(|why| format!("{}: {why}", code(method))));
    }
    let styles = Styles::of(results.runs.iter().map(|r| r.method.as_str()));
    if !styles.unknown().is_empty() {
        let names: Vec<String> = styles.unknown().iter().map(|m| code(m)).collect();
        notes.push(format!(
            "Drawn but not judged, because this report does not know what they promise: {}.",
            words::and(&names)
        ));
    }
    if results
        .runs
        .iter()
        .any(|r| method::form(&r.method) == Some(Form::Instruction))
    {
        notes.push("`atomic` is a single hardware instruction. It does this one operation and no other; a section with two steps needs another method.".to_owned());
    }
    notes
}

/// Returns notes on one subject.
pub(super) fn on_subject(
    subject: &Subject<'_>,
    judge: &Judge<'_>,
    machine: &Machine,
) -> Vec<String> {
    let mut notes = Vec::new();
    let modes = subject.modes();
    if modes.contains(&Mode::Near) != modes.contains(&Mode::Far) {
        let (seen, missing) = if modes.contains(&Mode::Near) {
            ("near", "far")
        } else {
            ("far", "near")
        };
        notes.push(format!(
            "{}: not seen. All samples were taken while the two CPUs were {seen}; nothing is said about {missing}.",
            capital(missing)
        ));
    }
    if modes == [Mode::Unknown] && machine.cpus > 1 {
        notes.push("Near or far is unknown: no pair of CPUs could be probed, so slow and fast phases of the machine are mixed in every figure.".to_owned());
    }
    for mode in judge.modes() {
        let (thin, all) = judge.thin(mode);
        if thin > 0 {
            let of_mode = if mode == Mode::Unknown {
                String::new()
            } else {
                format!(" {}", words::mode(mode))
            };
            notes.push(format!(
                "{thin} of {}{of_mode} have fewer than {MIN_SAMPLES} samples and were drawn but not compared.",
                count(all as u64, "point", "points")
            ));
        }
    }
    notes.extend(missing(subject));
    let crowded: Vec<String> = subject
        .threads()
        .into_iter()
        .filter(|&t| t > machine.cpus.max(1))
        .map(|t| t.to_string())
        .collect();
    if !crowded.is_empty() {
        notes.push(format!(
            "More threads than CPUs ({}): these figures show the scheduler as much as the methods.",
            words::and(&crowded)
        ));
    }
    if subject.is_own() {
        let name = code(subject.workload);
        notes.push(match subject.keys() {
            Some(_) => format!(
                "A variable is one {name}, with its own lock or trustee. Several of them are the parts (shards) of one larger structure."
            ),
            None => format!("A variable is one object of {name}."),
        });
        notes.extend(direct(subject));
        if !subject.has(Form::Instruction) {
            notes.push("`atomic` does not fit: it is a single hardware instruction on one word, and this operation is a section of code.".to_owned());
        }
    }
    let does_not_fit = |name: &&str| !only_for(name).contains(&subject.workload);
    let keyed = KEYED.into_iter().filter(does_not_fit);
    notes.extend(keyed.filter_map(|name| Some(format!("{}.", why_only(name)?))));
    if subject.workload == "fetch-add" && !subject.has_models() {
        notes.push(format!(
            "The contention and cache models assume uniform choice; they are not drawn for {}.",
            code(subject.dist)
        ));
    }
    notes
}

/// Names the structures that threads use directly.
fn direct(subject: &Subject<'_>) -> Option<String> {
    subject.keys()?;
    let methods: BTreeSet<&str> = subject.right().map(|run| run.method.as_str()).collect();
    let is_direct = |name: &&str| named(&METHODS, name).is_none();
    let direct = methods.into_iter().filter(is_direct).map(code);
    let direct: Vec<String> = direct.collect();
    let uses = if direct.len() == 1 {
        "is a structure that threads use"
    } else {
        "are structures that threads use"
    };
    (!direct.is_empty()).then(|| {
        format!(
            "{} {uses} directly, side by side where they can, and a trustee does one operation after the other. They stand among the locks here, and do this structure's operations only, not any code.",
            words::and(&direct)
        )
    })
}

/// Counts points that some methods lack, such as those of an interrupted run.
fn missing(subject: &Subject<'_>) -> Option<String> {
    let points: BTreeSet<(usize, u64)> = subject
        .right()
        .map(|r| (r.params.threads, r.params.vars))
        .collect();
    let methods: BTreeSet<&str> = subject.right().map(|r| r.method.as_str()).collect();
    let there: BTreeSet<(usize, u64, &str)> = subject
        .right()
        .filter(|r| r.samples.iter().any(|s| s.mode != Mode::Discarded))
        .map(|r| (r.params.threads, r.params.vars, r.method.as_str()))
        .collect();
    let all = points.len() * methods.len();
    let holes = all - there.len().min(all);
    (holes > 0).then(|| {
        format!("Incomplete: {holes} of {all} points have no kept sample. They were interrupted or left out, or every sample was discarded.")
    })
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}
