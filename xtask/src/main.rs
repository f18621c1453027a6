//! corelay's own checks and long runs: `cargo xtask help`.
//!
//! | module | command |
//! |---|---|
//! | `ci` | the gate on every change, as `.ci/run` calls it |
//! | `tidy` | what a compiler does not check: floors, layers, the facade, links, the map of sources |
//! | `models` | `loom` and `shuttle`: every model, one process each |
//! | `mutants` | each ordering and fence with the test that fails when it is weakened |
//! | `capi` | the C interface: header, installation, programs |
//! | `package` | what a registry would get, and a user's lock file |
//! | `clients` | the cache server with the clients that people use |
//! | `reach` | the targets of one area, measured by the lab |
//! | `deep` | the long runs: more schedules, the shipped lab, sanitizers, another architecture |
//!
//! Below them: `steps` runs steps and sums up, `binaries` builds and runs test programs,
//! `process` children, `source` reads Rust, `workspace` knows where things are.

#![forbid(unsafe_code)]

mod binaries;
mod capi;
mod ci;
mod clients;
mod deep;
mod models;
mod mutants;
mod package;
mod process;
mod reach;
mod source;
mod steps;
mod tidy;
mod workspace;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use std::process::ExitCode;
use steps::Verdict;
use workspace::Workspace;

/// corelay's own checks and long runs
///
/// Builds go below $CARGO_TARGET_DIR, or target/.
/// Exit codes: 0 all well, 1 something was found or failed, 2 bad usage.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", verbatim_doc_comment)]
enum Command {
    /// Run the whole gate, every step, with a summary at the end
    Ci,
    /// Check what a compiler does not
    ///
    /// Floors, layers, the facade, models, left-overs, file sizes, Cargo.lock, links, design
    /// notes, sources, the map of mutants, corelay.h.
    Tidy,
    /// Run tests/loom_*.rs under loom, with at most $LOOM_MAX_PREEMPTIONS (2) preemptions
    Loom {
        /// Only models whose `crate::file::test` contains this
        filter: Option<String>,
    },
    /// Run tests/shuttle_*.rs under shuttle
    Shuttle {
        /// Only models whose `crate::file::test` contains this
        filter: Option<String>,
    },
    /// Apply each entry of crates/*/mutants.toml and demand that its test fails
    Mutants(mutants::Options),
    /// Compile the C programs with either library and run them
    Capi,
    /// Write crates/capi/include/corelay.h
    Header,
    /// Put corelay.h, libcorelay and corelay.pc below a folder
    InstallCapi {
        /// The folder: /usr/local
        prefix: PathBuf,
    },
    /// Pack and build every package, and look through the lock file of a program that uses corelay
    Package,
    /// Try the cache server with the clients that people use, and with twemproxy
    Clients(clients::Options),
    /// Measure the targets of all areas, or of one
    Reach {
        /// An area's name and flags for `corelay reach`: `flat --blocks 9`; all areas if there is none
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Do the long runs
    Deep {
        /// The parts to run, all if none is named
        #[arg(value_parser = PossibleValuesParser::new(deep::names()))]
        parts: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(verdict) if verdict.is_good => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<Verdict> {
    let workspace = &Workspace::find()?;
    match command {
        Command::Ci => Ok(ci::run(workspace)),
        Command::Tidy => tidy::run(workspace),
        Command::Loom { filter } => models::loom(workspace, filter.as_deref()),
        Command::Shuttle { filter } => models::shuttle(workspace, filter.as_deref()),
        Command::Mutants(options) => mutants::run(workspace, &options),
        Command::Capi => capi::check(workspace),
        Command::Header => capi::header::write(workspace),
        Command::InstallCapi { prefix } => {
            capi::install(workspace, &prefix)?;
            Ok(Verdict::of(true, ""))
        }
        Command::Package => package::run(workspace),
        Command::Clients(options) => clients::run(workspace, &options).inspect(|verdict| {
            println!("clients: {}", verdict.note);
        }),
        Command::Reach { args } => reach::run(workspace, &args),
        Command::Deep { parts } => Ok(deep::run(workspace, &parts)),
    }
}

#[test]
fn arguments_are_understood_or_refused() {
    let parse = |line: &str| Command::try_parse_from(line.split(' '));
    for good in [
        "xtask loom mcs",
        "xtask mutants --check mcs --strict",
        "xtask deep loom thread",
        "xtask reach",
        "xtask reach flat --blocks 9",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for (bad, named) in [
        ("xtask lom", "lom"),
        ("xtask loom a b", "'b'"),
        ("xtask deep lom", "[possible values: stress"),
        ("xtask mutants --chek", "--check"),
    ] {
        let error = parse(bad).err().expect(bad).to_string();
        assert!(error.contains(named), "{error}");
    }
}
