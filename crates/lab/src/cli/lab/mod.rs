//! `corelay lab`: the course in scalability and its handout, two effects that are shown rather than
//! measured, and a check of all structures.

mod check;
mod greedy;
mod hash;
mod list;
mod order;
mod profile;
mod race;
mod report;
mod step;
mod timeline;
mod why;

use clap::Subcommand;
use corelay_lab_report::exit::Exit;
use std::path::PathBuf;
use step::{Size, Step, StepFlags};

/// The steps of the course, in order.
const STEPS: &[Step] = &[
    Step::new(
        "race",
        "lost updates without a lock, and what being right costs",
        2,
        race::step,
    ),
    Step::new(
        "list",
        "insertion into lists: a ladder from one big lock to threads that do not disturb each other",
        20,
        list::step,
    ),
    Step::new(
        "why",
        "how the ladder's threads spend their time: locks, allocation, stragglers, shared lines",
        15,
        why::step,
    ),
    Step::new(
        "timeline",
        "which thread inserts which part when, and waits for which other",
        1,
        timeline::step,
    ),
    Step::new(
        "hash",
        "an exercise: a hash table that scales, checked and marked",
        30,
        hash::step,
    ),
];

/// The commands beside the course: the name of each, and what it shows.
const EXTRA: [(&str, &str); 4] = [
    (
        "profile",
        "which functions of a rung of the ladder take the time, by perf",
    ),
    (
        "check",
        "whether each structure, shared by each method, is linearizable",
    ),
    (
        "greedy",
        "which members of a flat team starve while one asks only itself",
    ),
    (
        "order",
        "how request lines keep or break the order of one client's requests",
    ),
];

/// Learn how sharing between cores scales, step by step
///
/// Each step asks for a guess, runs, shows the figure beside the guess, and says what to look at.
/// Without a step, the command lists the steps.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Run all steps, and write a page (index.html) and the results (results.json) into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,

    /// With --report: only show that all steps run, with too little work to learn from
    #[arg(long, requires = "report")]
    small: bool,

    #[command(flatten)]
    flags: StepFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    Race(race::Args),
    List(list::Args),
    Why(why::Args),
    Timeline(timeline::Args),
    Hash(hash::Args),
    Profile(profile::Args),
    Check(check::Args),
    Greedy(greedy::Args),
    Order(order::Args),
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    let Args {
        command,
        report,
        small,
        flags,
    } = args;
    let size = if small { Size::Small } else { Size::Usual };
    let Some(command) = command else {
        return match report {
            Some(folder) => report::run(STEPS, &folder, &flags, size),
            None => step::list(STEPS, &EXTRA, flags.json),
        };
    };
    let before_the_step = [
        ("--report", report.is_some()),
        ("--yes", flags.yes),
        ("--json", flags.json),
    ];
    match before_the_step.into_iter().find(|(_, is_given)| *is_given) {
        Some(("--report", _)) => {
            return Err("--report runs all steps; name no step beside it".to_owned());
        }
        Some((flag, _)) => {
            return Err(format!(
                "{flag} has no effect before the name of a step; put it after the step"
            ));
        }
        None => {}
    }
    match command {
        Command::Race(args) => race::run(&args),
        Command::List(args) => list::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Timeline(args) => timeline::run(&args),
        Command::Hash(args) => hash::run(args),
        Command::Profile(args) => profile::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Greedy(args) => greedy::run(args),
        Command::Order(args) => order::run(args),
    }
}
