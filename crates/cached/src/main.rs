//! The program `corelay-cached`.

use clap::Parser;
use corelay_cached::flags::Flags;
use corelay_cached::server::serve;
use std::process::ExitCode;

fn main() -> ExitCode {
    let settings = Flags::parse().settings();
    match serve(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corelay-cached: {}: {error}", settings.address);
            ExitCode::FAILURE
        }
    }
}
