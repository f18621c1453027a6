//! `corelay lab`: a course of steps, effects shown rather than measured, and the handout of it all.

mod greedy;
mod order;
mod race;
mod report;
mod step;

use crate::cli::Exit;
use clap::Subcommand;
use std::path::PathBuf;
use step::{Step, Telling};

/// The course, in its order.
const STEPS: &[Step] = &[Step::new(
    "race",
    "lost updates without a lock, and what being right costs",
    2,
    race::step,
)];

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

    #[command(flatten)]
    telling: Telling,
}

#[derive(Debug, Subcommand)]
enum What {
    Race(race::Args),
    Greedy(greedy::Args),
    Order(order::Args),
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    let Args {
        what,
        report,
        telling,
    } = args;
    let Some(what) = what else {
        return match report {
            Some(folder) => report::run(STEPS, &folder, &telling),
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
        What::Greedy(args) => greedy::run(args),
        What::Order(args) => order::run(args),
    }
}
