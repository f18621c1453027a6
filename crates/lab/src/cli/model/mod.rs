//! `corelay model`: figures that are worked out, not measured.

mod lines;

use crate::cli::Exit;
use clap::Subcommand;

/// Work figures out for machines that need not be there; nothing is measured
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Lines(lines::Args),
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    match args.what {
        What::Lines(args) => lines::run(args),
    }
}
