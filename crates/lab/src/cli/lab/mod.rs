//! `corelay lab`: effects shown rather than measured.

mod greedy;
mod order;
mod race;
mod step;

use crate::cli::Exit;
use clap::Subcommand;

/// Show an effect, in steps and pictures
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Race(race::Args),
    Greedy(greedy::Args),
    Order(order::Args),
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    match args.what {
        What::Race(args) => race::run(&args),
        What::Greedy(args) => greedy::run(args),
        What::Order(args) => order::run(args),
    }
}
