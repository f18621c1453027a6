//! `corelay lab`: effects shown rather than measured.

mod greedy;

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
    Greedy(greedy::Args),
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    let What::Greedy(args) = args.what;
    greedy::run(args)
}
