//! `cargo xtask deep`: the long runs, before an issue is resolved.
//!
//! A part that cannot run here says why and counts as not done: nothing is passed over.

mod aarch64;
mod address;
mod canary;
mod capi;
mod debian;
mod loom;
mod mutants;
mod shuttle;
mod stress;
mod thread;

use crate::Verdict;
use crate::binaries::{self, Checker, Target};
use crate::process::{self, Tally, seconds};
use crate::workspace::Workspace;
use anyhow::Result;
use std::process::Command;
use std::time::Instant;

/// A part of the long runs.
type Part = (&'static str, fn(&Workspace) -> Result<Came>);

const PARTS: &[Part] = &[
    ("stress", stress::run),
    ("address", address::run),
    ("capi", capi::run),
    ("thread", thread::run),
    ("aarch64", aarch64::run),
    ("shuttle", shuttle::run),
    ("loom", loom::run),
    ("mutants", mutants::run),
];

/// How a part came out.
enum Came {
    Passed(String),
    Failed(String),
    /// It cannot run on this machine, and why.
    Cannot(String),
}

impl Came {
    fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Good => Self::Passed(String::new()),
            Verdict::Bad => Self::Failed(String::new()),
        }
    }
}

/// The parts that are named, all where none is; `None` where a name is unknown.
pub(crate) fn parse(args: &[&str]) -> Option<Vec<&'static str>> {
    let known = |name: &str| {
        PARTS
            .iter()
            .map(|(part, _)| *part)
            .find(|part| *part == name)
    };
    if args.is_empty() {
        return Some(PARTS.iter().map(|(part, _)| *part).collect());
    }
    args.iter().map(|name| known(name)).collect()
}

/// Runs the named parts and sums up.
pub(crate) fn run(workspace: &Workspace, parts: &[&'static str]) -> Result<Verdict> {
    let mut summary = Vec::new();
    for (name, part) in PARTS.iter().filter(|(name, _)| parts.contains(name)) {
        println!("\n==> deep {name}");
        let begun = Instant::now();
        let came = part(workspace).unwrap_or_else(|error| Came::Failed(format!("{error:#}")));
        summary.push((name, came, begun.elapsed()));
    }
    println!("\n==> summary");
    let mut good = true;
    for (name, came, time) in &summary {
        let (word, why) = match came {
            Came::Passed(note) => ("ok", note),
            Came::Failed(why) => ("FAILED", why),
            Came::Cannot(why) => ("NOT DONE", why),
        };
        good &= matches!(came, Came::Passed(_));
        println!("{name:8} {word:8} {:>9}  {why}", seconds(*time));
    }
    Ok(Verdict::of(good))
}

/// The library crates' unit tests and ordinary tests: no models, which need a checker,
/// and no `compile_fail`, which run a compiler of their own.
fn targets(workspace: &Workspace) -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for member in workspace.members()? {
        if member.folder == "lab" || !member.dir.join("src/lib.rs").is_file() {
            continue;
        }
        targets.push(Target::new(&member, "lib"));
        for test in member.tests("")? {
            if Checker::of(&test) == Checker::Plain && !test.starts_with("compile_fail") {
                targets.push(Target::new(&member, &test));
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
fn tested(command: Command) -> Result<Came> {
    println!("{}", process::shown(&command));
    let passed = process::pass_on(command, None)?;
    Ok(judge(passed.good, passed.tests))
}

fn judge(good: bool, tests: Tally) -> Came {
    if good && tests.passed > 0 {
        Came::Passed(tests.to_string())
    } else if good {
        Came::Failed("no test ran".to_owned())
    } else {
        Came::Failed(tests.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_or_all() {
        assert_eq!(parse(&[]).unwrap().len(), PARTS.len());
        assert_eq!(parse(&["loom", "thread"]), Some(vec!["loom", "thread"]));
        assert_eq!(parse(&["lom"]), None);
    }

    #[test]
    fn no_test_is_no_success() {
        let one = Tally {
            passed: 1,
            ..Tally::default()
        };
        assert!(matches!(judge(true, one), Came::Passed(_)));
        assert!(matches!(judge(true, Tally::default()), Came::Failed(_)));
        assert!(matches!(judge(false, one), Came::Failed(_)));
    }

    #[test]
    fn models_and_compilers_are_left_out() {
        let dir = crate::workspace::fake(&[
            (
                "crates/locks/Cargo.toml",
                "[package]\nname = \"corelay-locks\"\n",
            ),
            ("crates/locks/src/lib.rs", ""),
            ("crates/locks/tests/loom_a.rs", ""),
            ("crates/locks/tests/compile_fail.rs", ""),
            ("crates/locks/tests/stress.rs", ""),
            ("crates/locks/tests/suite/main.rs", ""),
            ("crates/locks/tests/common/mod.rs", ""),
        ]);
        let names: Vec<_> = targets(&Workspace::at(dir.path())).unwrap();
        let names: Vec<_> = names.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["lib", "stress", "suite"]);
    }
}
