//! The program `corelay-cached`.

use clap::Parser;
use corelay_cached::flags::Flags;
use corelay_cached::server::serve;
use std::process::ExitCode;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let settings = flags.settings();
    let served = flags
        .become_user()
        .and_then(|()| serve(&settings).map_err(|error| format!("{}: {error}", settings.address)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corelay-cached: {error}");
            ExitCode::FAILURE
        }
    }
}
