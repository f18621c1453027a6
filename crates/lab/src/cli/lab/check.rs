//! `corelay lab check`: checks that structures shared by methods are linearizable.

use crate::cli::list::{named, number};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::check::{
    Checked, Checker, DIRECT, Plan, Recorded, SERVERS, STRUCTURES, Structure, is_pair, methods,
};
use corelay_lab_measure::host::{self, Host};
use corelay_lab_measure::method::{self, Method};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::plot::{grouped, percent};
use corelay_lab_report::table::columns::columns;
use corelay_lab_report::words::count;
use serde::Serialize;
use std::time::Duration;

/// The largest number that `--threads` takes. A larger one is a typing error.
const MAX_THREADS: u64 = 64;

/// The largest number that `--operations` takes.
const MAX_OPERATIONS: u64 = 10_000;

/// The largest number that `--histories` takes: hours for all pairs.
const MAX_HISTORIES: u64 = 1_000_000;

/// The rough time of a history, recorded and checked.
const HISTORY: Duration = Duration::from_micros(200);

/// Check that each structure shared by each method is linearizable
///
/// Threads make random operations on one object and record when each call begins, when it ends and
/// what it answers. A checker then looks for an order of the calls, each at one moment between its
/// two ends, in which a sequential structure would have answered the same. A history without such
/// an order is printed, cut down to the few calls that matter; the exit code is then 1. Plain
/// structures are shared by each method; concurrent ones are used directly.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = structure_list,
          help = structure_help())]
    structure: Structures,

    #[arg(long, value_name = "LIST", default_value = "all", value_parser = method_list,
          help = method_help())]
    method: Methods,

    /// All threads, trustees and actors included
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 4,
          value_parser = number(1..=MAX_THREADS))]
    threads: u64,

    /// Operations of each client in a history; the last client then reads what is left
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 12,
          value_parser = number(1..=MAX_OPERATIONS))]
    operations: u64,

    /// Histories of each structure by each method
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 100,
          value_parser = number(1..=MAX_HISTORIES))]
    histories: u64,

    /// Seed of the operations; how the threads meet is up to the machine
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(0..=u64::MAX))]
    seed: u64,

    /// Print the counts and counterexamples as JSON instead of the table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug)]
struct Structures(Vec<&'static Structure>);

#[derive(Clone, Debug)]
struct Methods(Vec<Method<Recorded>>);

fn all_methods() -> Vec<Method<Recorded>> {
    methods().iter().map(|entry| entry.method).collect()
}

fn structure_help() -> String {
    let names = |is_concurrent| {
        let some = STRUCTURES.iter();
        let some = some.filter(|structure| structure.is_concurrent() == is_concurrent);
        some.map(Structure::name).collect::<Vec<_>>().join(", ")
    };
    format!(
        "Structures to check: the plain ones {}; the concurrent ones {}; or `all`",
        names(false),
        names(true)
    )
}

fn method_help() -> String {
    let names: Vec<_> = all_methods().iter().map(Method::name).collect();
    format!("Methods that share them: {}; or `all`", names.join(", "))
}

fn structure_list(text: &str) -> Result<Structures, String> {
    let all: Vec<&Structure> = STRUCTURES.iter().collect();
    let read = |name: &str| {
        let found = all.iter().find(|structure| structure.name() == name);
        let found = found.copied();
        found.ok_or_else(|| format!("there is no structure `{name}`"))
    };
    named(text, &all, |structure| structure.name().to_owned(), read).map(Structures)
}

fn method_list(text: &str) -> Result<Methods, String> {
    let read = |name: &str| {
        let found = method::named(&methods(), name);
        found.unwrap_or_else(|| Err(format!("there is no method `{name}` to be checked")))
    };
    let name_of = |method: &Method<Recorded>| method.name().to_owned();
    named(text, &all_methods(), name_of, read).map(Methods)
}

/// The output of `--json`.
#[derive(Serialize)]
struct Output<'a> {
    command: String,
    #[serde(flatten)]
    plan: Plan,
    is_interrupted: bool,
    pairs: &'a [Checked],
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let pairs = args.pairs()?;
    let host = Host::look(COMMIT);
    let plan = Plan {
        threads: args.threads as usize,
        operations: args.operations as usize,
        histories: args.histories,
        seed: args.seed,
    };
    let checked = check(&pairs, plan, &host)?;
    let is_interrupted = host.is_interrupted();
    output::say(&match args.json {
        true => {
            let output = Output {
                command: host::command_line(),
                plan,
                is_interrupted,
                pairs: &checked,
            };
            serde_json::to_string_pretty(&output).map_err(|error| error.to_string())? + "\n"
        }
        false => text(&checked, is_interrupted),
    })?;
    Ok(exit(&checked, is_interrupted))
}

fn exit(checked: &[Checked], is_interrupted: bool) -> Exit {
    match (checked.iter().all(Checked::is_right), is_interrupted) {
        (false, _) => Exit::Wrong,
        (true, true) => Exit::Interrupted,
        (true, false) => Exit::Fine,
    }
}

type Pair = (&'static Structure, Method<Recorded>);

/// Checks all pairs, until Ctrl-C.
fn check(pairs: &[Pair], plan: Plan, host: &Host) -> Result<Vec<Checked>, String> {
    let checker = Checker::new(plan)?;
    let histories = pairs.len() as u64 * plan.histories;
    let expected = HISTORY.mul_f64(histories as f64);
    let bar = output::progress(histories, expected);
    let mut checked = Vec::new();
    for (structure, method) in pairs {
        if host.is_interrupted() {
            break;
        }
        bar.set_message(structure.name());
        let tick = || bar.inc(1);
        checked.push(checker.check(structure, *method, host.interrupted(), tick)?);
    }
    bar.finish_and_clear();
    Ok(checked)
}

impl Args {
    /// The pairs to check: each structure by each of its methods.
    fn pairs(&self) -> Result<Vec<Pair>, String> {
        let (structures, methods) = (&self.structure.0, &self.method.0);
        // With `all` on one side, the other one chooses.
        let is_all = structures.len() == STRUCTURES.len() || methods.len() >= all_methods().len();
        if !is_all {
            self.check_pairing()?;
        }
        let pair = |structure: &&'static Structure| {
            let some = methods.iter().filter(|method| is_pair(structure, method));
            some.map(|&method| (*structure, method)).collect::<Vec<_>>()
        };
        let pairs: Vec<Pair> = structures.iter().flat_map(pair).collect();
        for (_, method) in &pairs {
            let (threads, least) = (self.threads as usize, method.least_threads(SERVERS));
            if threads < least {
                return Err(format!(
                    "--threads {threads} leaves no client for {} beside its server; give at least \
                     {least}",
                    method.name()
                ));
            }
        }
        Ok(pairs)
    }

    /// Checks that no structure is without a method, and no method without a structure.
    fn check_pairing(&self) -> Result<(), String> {
        let (structures, methods) = (&self.structure.0, &self.method.0);
        for structure in structures {
            if !methods.iter().any(|method| is_pair(structure, method)) {
                let name = structure.name();
                return Err(match structure.is_concurrent() {
                    true => format!(
                        "--structure {name} is concurrent by itself; its only method is `direct`, \
                         which --method does not name"
                    ),
                    false => format!(
                        "--structure {name} needs a method that shares it, and --method names only \
                         `direct`"
                    ),
                });
            }
        }
        for method in methods {
            if !structures
                .iter()
                .any(|structure| is_pair(structure, method))
            {
                let name = method.name();
                let kind = match structures[0].is_concurrent() {
                    true => "plain",
                    false => "concurrent",
                };
                return Err(format!(
                    "--method {name} is for {kind} structures, and --structure names none"
                ));
            }
        }
        Ok(())
    }
}

fn text(checked: &[Checked], is_interrupted: bool) -> String {
    let (mut structures, mut methods): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for pair in checked {
        for (names, name) in [
            (&mut structures, pair.structure),
            (&mut methods, pair.method),
        ] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let of = |structure: &str, method: &str| {
        let is_meant = |pair: &&Checked| (pair.structure, pair.method) == (structure, method);
        checked.iter().find(is_meant)
    };
    let mut text = String::new();
    // Concurrent structures have one method, which has no others: their table stands upright.
    let is_alone = |structure: &&str| of(structure, DIRECT).is_some();
    let (alone, shared): (Vec<&str>, Vec<&str>) = structures.into_iter().partition(is_alone);
    if !shared.is_empty() {
        let head = ["method"].into_iter().chain(shared.iter().copied());
        let rows = methods.iter().filter(|method| **method != DIRECT);
        let row = |method: &&str| {
            let cells = shared.iter().map(|structure| cell(of(structure, method)));
            let cells = std::iter::once((*method).to_owned()).chain(cells);
            cells.collect::<Vec<_>>()
        };
        let table = columns(head.collect::<Vec<_>>(), rows.map(row), 1);
        text += &format!("{table}\n\n");
    }
    if !alone.is_empty() {
        let row = |structure: &&str| [(*structure).to_owned(), cell(of(structure, DIRECT))];
        let table = columns(["structure", DIRECT], alone.iter().map(row), 1);
        text += &format!("{table}\n\n");
    }
    text + &summary(checked, is_interrupted)
}

fn cell(pair: Option<&Checked>) -> String {
    match pair {
        None => "–".to_owned(),
        Some(pair) if pair.failure.is_some() => "FAILED".to_owned(),
        Some(pair) if pair.wrong > 0 => format!("{} WRONG", grouped(pair.wrong)),
        Some(pair) if pair.undecided > 0 => format!("{} open", grouped(pair.undecided)),
        Some(pair) if pair.histories == 0 => "–".to_owned(),
        Some(_) => "ok".to_owned(),
    }
}

/// The sentences below the tables, and the shortest counterexample.
fn summary(checked: &[Checked], is_interrupted: bool) -> String {
    let sum = |of: fn(&Checked) -> u64| checked.iter().map(of).sum::<u64>();
    let undecided = sum(|pair| pair.undecided);
    let mut text = String::new();
    if is_interrupted {
        text += "Interrupted: not all histories were recorded.\n";
    }
    for pair in checked {
        if let Some(why) = &pair.failure {
            text += &format!("WRONG: {}: {why}.\n", name(pair));
        }
    }
    if undecided > 0 {
        text += &format!(
            "The checker gave up on {}, right or wrong; give fewer --threads or --operations.\n",
            count(undecided, "history", "histories")
        );
    }
    if checked.iter().all(Checked::is_right) {
        let histories = sum(|pair| pair.histories) - undecided;
        text += &format!(
            "Linearizable: {} of {} of structure and method{}.\n",
            count(histories, "history", "histories"),
            count(checked.len() as u64, "pair", "pairs"),
            overlap(sum(|pair| pair.calls), sum(|pair| pair.overlapping))
        );
    }
    text + &counterexample(checked).unwrap_or_default()
}

/// Says how much the calls can show: calls that never meet are right by any method.
fn overlap(calls: u64, overlapping: u64) -> String {
    let all = count(calls, "call", "calls");
    match (calls, overlapping) {
        (0, _) => String::new(),
        (_, 0) => format!("; none of {all} overlapped another one, so this says little"),
        _ => {
            let share = percent(overlapping as f64 / calls as f64);
            format!("; {share} of {all} overlapped another one")
        }
    }
}

/// Counts the wrong histories, and draws the shortest counterexample.
fn counterexample(checked: &[Checked]) -> Option<String> {
    let found = checked.iter().filter(|pair| pair.wrong > 0);
    let examples = found.filter_map(|pair| Some((pair, pair.counterexample.as_ref()?)));
    let (shortest, example) = examples.min_by_key(|(_, example)| *example)?;
    let wrong = checked.iter().map(|pair| pair.wrong).sum();
    Some(format!(
        "WRONG: no order explains {}. The shortest, of {}:\n\n{}",
        count(wrong, "history", "histories"),
        name(shortest),
        example.picture
    ))
}

fn name(pair: &Checked) -> String {
    format!("`{}` by `{}`", pair.structure, pair.method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::check::Counterexample;

    fn pair(structure: &'static str, method: &'static str, counterexample: usize) -> Checked {
        let is_wrong = counterexample > 0;
        Checked {
            structure,
            method,
            histories: 1000,
            calls: 20_000,
            overlapping: 5_000,
            wrong: if is_wrong { 3 } else { 0 },
            counterexample: is_wrong.then(|| Counterexample {
                states: 1,
                calls: counterexample,
                picture: format!("picture of {counterexample} calls\n"),
            }),
            ..Checked::default()
        }
    }

    #[test]
    fn the_shortest_counterexample_is_printed_and_the_exit_code_is_wrong() {
        let right = pair("list", "mutex", 0);
        let wrong = [
            right.clone(),
            pair("queue", "mutex", 7),
            pair("queue", "mcs", 4),
        ];
        let said = text(&wrong, false);
        for words in [
            "3 WRONG",
            "no order explains 6 histories",
            "The shortest, of `queue` by `mcs`:\n\npicture of 4 calls\n",
        ] {
            assert!(said.contains(words), "`{words}` is missing in: {said}");
        }
        assert!(
            !said.contains("of 7 calls") && !said.contains("Linearizable"),
            "{said}"
        );
        assert_eq!(exit(&wrong, true), Exit::Wrong);
        let all_right = [right];
        let said = text(&all_right, false);
        assert!(said.contains("25\u{a0}% of 20,000 calls"), "{said}");
        assert!(
            said.contains("Linearizable: 1,000 histories of 1 pair"),
            "{said}"
        );
        assert_eq!(exit(&all_right, false), Exit::Fine);
        assert_eq!(exit(&all_right, true), Exit::Interrupted);
        let alone = Checked {
            overlapping: 0,
            ..pair("list", "mutex", 0)
        };
        assert!(text(&[alone], false).contains("says little"));
    }

    #[test]
    fn a_pair_that_failed_or_is_undecided_is_not_called_right() {
        let failed = [Checked {
            failure: Some("a client panicked: no".to_owned()),
            ..pair("list", "mutex", 0)
        }];
        let said = text(&failed, false);
        assert!(
            said.contains("FAILED") && said.contains("panicked: no."),
            "{said}"
        );
        assert!(!said.contains("Linearizable"), "{said}");
        assert_eq!(exit(&failed, false), Exit::Wrong);
        let undecided = Checked {
            undecided: 2,
            ..pair("lazy-list", "direct", 0)
        };
        let said = text(&[undecided], true);
        for words in [
            "2 open",
            "gave up on 2 histories",
            "998 histories",
            "Interrupted",
        ] {
            assert!(said.contains(words), "`{words}` is missing in: {said}");
        }
    }
}
