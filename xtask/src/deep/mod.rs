//! `cargo xtask deep`: the long runs, before an issue is resolved.
//!
//! A part that cannot run here says why and counts as not done: nothing is passed over.

mod aarch64;
mod address;
mod canary;
mod capi;
pub(crate) mod debian;
mod hash;
mod nodes;
mod sequences;
mod stress;
mod thread;
mod windows;

use crate::binaries::{self, Checker, Target};
use crate::process::{self, Tally};
use crate::steps::{self, Step, Verdict};
use crate::workspace::Workspace;
use crate::{models, mutants};
use anyhow::Result;
use std::process::Command;

/// The parts of the long runs.
const PARTS: &[(&str, Step)] = &[
    ("stress", stress::run),
    ("address", address::run),
    ("smoke", smoke),
    ("hash", hash::run),
    ("sequences", sequences::run),
    ("capi", capi::run),
    ("thread", thread::run),
    ("aarch64", aarch64::run),
    ("windows", windows::run),
    ("nodes", nodes::run),
    ("shuttle", models::deep_shuttle),
    ("loom", models::deep_loom),
    ("mutants", |w| mutants::run(w, &mutants::Options::default())),
];

/// The names of the parts, for the command line.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|(name, _)| *name)
}

/// Runs the named parts, all if none is, and sums up.
pub(crate) fn run(workspace: &Workspace, names: &[String]) -> Verdict {
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    let chosen = PARTS.iter().filter(|(name, _)| is_chosen(name));
    steps::run(workspace, chosen)
}

/// The lab from the outside, with the rung that needs `make`, and a comparison of one's own: every
/// test, also those that take long.
fn smoke(workspace: &Workspace) -> Result<Verdict> {
    let with_ignored = |args: &str| {
        let mut command = workspace.cargo("test --locked --no-fail-fast");
        command.args(args.split(' '));
        command.args(["--", "--include-ignored"]);
        tested(command)
    };
    let lab =
        with_ignored("--release --package corelay-lab --features jemalloc --bins --test suite")?;
    let own = with_ignored("--profile model --package corelay-lab-compare")?;
    let note = format!("{}; own: {}", lab.note, own.note);
    Ok(Verdict::of(lab.is_good && own.is_good, note))
}

/// The library crates' unit tests and ordinary tests: no models, which need a checker,
/// and no `compile_fail`, which run a compiler of their own.
fn targets(workspace: &Workspace) -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for member in workspace.members()? {
        if member.folder.starts_with("lab") || !member.dir.join("src/lib.rs").is_file() {
            continue;
        }
        targets.push(Target::new(&member.folder, "lib"));
        for test in member.tests("")? {
            if Checker::of(&test) == Checker::Plain && !test.starts_with("compile_fail") {
                targets.push(Target::new(&member.folder, &test));
            }
        }
    }
    Ok(targets)
}

/// Adds `test` and what to test to a cargo command.
fn test(command: &mut Command, targets: &[Target]) {
    command.args(["test", "--locked", "--no-fail-fast"]);
    binaries::select(command, targets);
}

/// Runs tests; nothing passed is a failure too.
fn tested(command: Command) -> Result<Verdict> {
    println!("{}", process::shown(&command));
    let ended = process::pass_on(command, None)?;
    let mut verdict = judge(ended.good(), Tally::of(&ended.output));
    verdict.note += &process::failures(&ended.output);
    Ok(verdict)
}

fn judge(is_good: bool, tests: Tally) -> Verdict {
    match tests.passed {
        0 if is_good => Verdict::of(false, "no test ran"),
        _ => Verdict::of(is_good, tests),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_test_is_no_success() {
        let one = Tally {
            passed: 1,
            ..Tally::default()
        };
        assert!(judge(true, one).is_good);
        assert!(!judge(true, Tally::default()).is_good);
        assert!(!judge(false, one).is_good);
    }

    #[test]
    fn models_and_compilers_are_left_out() {
        let (_dir, workspace) = crate::workspace::fake(&[
            ("crates/locks/src/lib.rs", ""),
            ("crates/locks/tests/loom_a.rs", ""),
            ("crates/locks/tests/compile_fail.rs", ""),
            ("crates/locks/tests/stress.rs", ""),
            ("crates/locks/tests/suite/main.rs", ""),
            ("crates/locks/tests/common/mod.rs", ""),
        ]);
        let targets = targets(&workspace).unwrap();
        let names: Vec<_> = targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["lib", "stress", "suite"]);
    }
}
