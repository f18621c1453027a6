//! `corelay lab`: a course of steps, effects shown rather than measured, and the handout of it all.

mod greedy;
mod hash;
mod list;
mod order;
mod race;
mod report;
mod step;
mod timeline;
mod why;

use clap::Subcommand;
use corelay_lab_report::exit::Exit;
use std::path::PathBuf;
use step::{Size, Step, Telling};

/// The course, in its order.
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
        "where the ladder's time goes: locks, allocation, stragglers, shared lines",
        15,
        why::step,
    ),
    Step::new(
        "timeline",
        "who inserts which part when, and who waits for whom",
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

/// What stands beside it: name and what it shows.
const EXTRA: [(&str, &str); 2] = [
    (
        "greedy",
        "who gets nothing while a member of a flat team asks only itself",
    ),
    (
        "order",
        "how request lines keep or break the order of one client's requests",
    ),
];

/// Learn how sharing between cores scales, step by step
///
/// Each step asks for a guess, runs, shows the figure beside the guess, and says what to look at.
/// Without a step it names them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Run all steps and leave a page (index.html) and the results (results.json) in this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,

    /// With --report: so little that it ends at once and nothing can be learnt, to see that it works
    #[arg(long, requires = "report")]
    small: bool,

    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Subcommand)]
enum What {
    Race(race::Args),
    List(list::Args),
    Why(why::Args),
    Timeline(timeline::Args),
    Hash(hash::Args),
    Greedy(greedy::Args),
    Order(order::Args),
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    let Args {
        what,
        report,
        small,
        telling,
    } = args;
    let size = if small { Size::Small } else { Size::Usual };
    let Some(what) = what else {
        return match report {
            Some(folder) => report::run(STEPS, &folder, &telling, size),
            None => step::list(STEPS, &EXTRA, telling.json),
        };
    };
    let flags = [
        ("--report", report.is_some()),
        ("--yes", telling.yes),
        ("--json", telling.json),
    ];
    match flags.into_iter().find(|(_, is_there)| *is_there) {
        Some(("--report", _)) => {
            return Err("--report: it runs all steps, so no step is named beside it".to_owned());
        }
        Some((flag, _)) => {
            return Err(format!(
                "{flag}: before a step it says nothing; put it behind the step"
            ));
        }
        None => {}
    }
    match what {
        What::Race(args) => race::run(&args),
        What::List(args) => list::run(&args),
        What::Why(args) => why::run(&args),
        What::Timeline(args) => timeline::run(&args),
        What::Hash(args) => hash::run(args),
        What::Greedy(args) => greedy::run(args),
        What::Order(args) => order::run(args),
    }
}
