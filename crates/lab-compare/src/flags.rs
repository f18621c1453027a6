//! The flags of a comparison that is a program of its own.
//!
//! There are only four, the same as those of `corelay compare`, so a small crate that splits
//! arguments is enough.

use super::Delivery;
use corelay_lab_report::exit::EXIT_CODES;
use lexopt::{Arg, Parser};
use std::ffi::OsString;

/// A parsed command line.
#[derive(Debug)]
pub(super) enum Asked {
    Compare(Delivery),
    Help,
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// A sentence that names the argument at fault.
pub(super) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Asked, String> {
    let mut delivery = Delivery {
        quick: false,
        out: Delivery::OUT.into(),
        json: false,
        verbose: false,
    };
    let mut parser = Parser::from_args(args);
    let said = |error: lexopt::Error| error.to_string();
    while let Some(arg) = parser.next().map_err(said)? {
        match arg {
            Arg::Long("quick") => delivery.quick = true,
            Arg::Long("json") => delivery.json = true,
            Arg::Long("verbose") => delivery.verbose = true,
            Arg::Long("out") => delivery.out = parser.value().map_err(said)?.into(),
            Arg::Short('h') | Arg::Long("help") => return Ok(Asked::Help),
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok(Asked::Compare(delivery))
}

/// Returns the help text of a comparison of the workload `name`.
pub(super) fn help(name: &str) -> String {
    format!(
        "\
Compare the ways of sharing on `{name}`, and say which to use where

Options:
      --quick      Take a quarter of a minute: fewer points are measured
      --out <DIR>  Folder for index.html and results.json; created if missing
                   [default: {}]
      --json       Print the results as JSON instead of the verdict
      --verbose    Print the whole verdict, and not only what to use
  -h, --help       Print help

{EXIT_CODES}
",
        Delivery::OUT
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(args: &[&str]) -> Result<Asked, String> {
        super::read(args.iter().map(OsString::from))
    }

    #[test]
    fn flags_are_read_in_any_order() {
        let Ok(Asked::Compare(usual)) = read(&[]) else {
            panic!("no flags are fine");
        };
        assert!(!usual.quick && !usual.json && usual.out == Path::new(Delivery::OUT));
        for args in [
            ["--out", "x", "--json", "--quick"],
            ["--quick", "--out=x", "--json", "--json"],
        ] {
            let Ok(Asked::Compare(asked)) = read(&args) else {
                panic!("{args:?}");
            };
            assert!(asked.quick && asked.json && !asked.verbose && asked.out == Path::new("x"));
        }
        assert!(matches!(read(&["--quick", "-h"]), Ok(Asked::Help)));
    }

    #[test]
    fn a_wrong_argument_is_named() {
        for (args, named) in [
            (&["--quik"][..], "--quik"),
            (&["--out"], "--out"),
            (&["--quick=1"], "--quick"),
            (&["elsewhere"], "elsewhere"),
        ] {
            let said = read(args).unwrap_err();
            assert!(said.contains(named) && said.lines().count() == 1, "{said}");
        }
    }

    #[test]
    fn help_names_every_flag() {
        let help = help("a cache");
        for word in [
            "`a cache`",
            "--quick",
            "--out <DIR>",
            "--json",
            "--verbose",
            "Exit codes:",
        ] {
            assert!(help.contains(word), "{help}");
        }
    }
}
