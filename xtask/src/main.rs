//! corelay's own checks and long runs: `cargo xtask help`.
//!
//! | module | command |
//! |---|---|
//! | `ci` | the gate on every change, as `.ci/run` calls it |
//! | `tidy` | what a compiler does not check: floors, the facade, links, the map of sources |
//! | `models` | `loom` and `shuttle`: every model, one process each |
//! | `mutants` | each ordering and fence with the test that fails when it is weakened |
//! | `smoke` | the lab from the outside: results, page, bad flags |
//! | `capi` | the C interface: header, installation, programs |
//! | `reach` | the targets of one area, measured by the lab |
//! | `deep` | the long runs: more schedules, sanitizers, another architecture |
//!
//! Exit codes: 0 all well, 1 something was found or failed, 2 bad usage.

#![forbid(unsafe_code)]

mod binaries;
mod capi;
mod ci;
mod deep;
mod models;
mod mutants;
mod process;
mod reach;
mod smoke;
mod source;
mod tidy;
mod workspace;

use std::path::Path;
use std::process::ExitCode;
use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci                    the whole gate, every step, a summary at the end
  tidy                  floors, facade, left-overs, Cargo.lock, links, design notes, sources,
                        corelay.h
  loom [FILTER]         tests/loom_*.rs under loom; LOOM_MAX_PREEMPTIONS (default 2)
  shuttle [FILTER]      tests/shuttle_*.rs under shuttle
  mutants [FILTER]      apply each entry of crates/*/mutants.toml, demand that its test fails
          --check       only verify that every entry still matches the source
          --strict      an ordering or fence without an entry is an error
  smoke                 build the lab, run `compare --quick`, check what it leaves behind
  capi                  compile the C programs with either library, run them
  header                write crates/capi/include/corelay.h
  install-capi PREFIX   corelay.h, libcorelay and corelay.pc below PREFIX
  reach NAME [--blocks N]
                        the targets of one area
  deep [PART...]        stress address capi thread aarch64 shuttle loom mutants (default: all)

FILTER is a part of `crate::file::test` (loom, shuttle) or of `crate/source file::test`.
Builds go below $CARGO_TARGET_DIR, or target/.";

/// What a command came to.
pub(crate) enum Verdict {
    /// Nothing to complain about.
    Good,
    /// Something was found or failed; it has been printed.
    Bad,
}

impl Verdict {
    /// Good where `good` holds.
    pub(crate) fn of(good: bool) -> Self {
        if good { Self::Good } else { Self::Bad }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some((&command, rest)) = args.split_first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match dispatch(command, rest) {
        Ok(Some(Verdict::Good)) => ExitCode::SUCCESS,
        Ok(Some(Verdict::Bad)) => ExitCode::FAILURE,
        Ok(None) => {
            eprintln!("xtask: `{}` is not understood\n\n{USAGE}", args.join(" "));
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("xtask {command}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command; `None` where the arguments are not understood.
fn dispatch(command: &str, rest: &[&str]) -> anyhow::Result<Option<Verdict>> {
    let workspace = Workspace::find()?;
    let verdict = match (command, rest) {
        ("help" | "--help" | "-h", []) => {
            println!("{USAGE}");
            Verdict::Good
        }
        ("ci", []) => ci::run(&workspace)?,
        ("header", []) => {
            capi::header::write(&workspace)?;
            Verdict::Good
        }
        ("capi", []) => capi::check(&workspace)?,
        ("install-capi", [prefix]) if no_flag(rest) => {
            capi::install(&workspace, Path::new(prefix))?;
            Verdict::Good
        }
        ("tidy", []) => tidy::run(&workspace)?,
        ("loom", [] | [_]) if no_flag(rest) => models::loom(&workspace, rest.first().copied())?,
        ("shuttle", [] | [_]) if no_flag(rest) => {
            models::shuttle(&workspace, rest.first().copied())?
        }
        ("mutants", _) => match mutants::Options::parse(rest) {
            Some(options) => mutants::run(&workspace, &options)?,
            None => return Ok(None),
        },
        ("smoke", []) => smoke::run(&workspace)?,
        ("reach", [_, ..]) => reach::run(&workspace, rest)?,
        ("deep", _) => match deep::parse(rest) {
            Some(parts) => deep::run(&workspace, &parts)?,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(verdict))
}

fn no_flag(rest: &[&str]) -> bool {
    rest.iter().all(|word| !word.starts_with('-'))
}
