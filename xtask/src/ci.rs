//! `cargo xtask ci`: the gate on every change.
//!
//! Every step runs, also after one has failed; the summary names each with its time and
//! the closing lines of its test programs.

use crate::process::{self, Tally, seconds};
use crate::workspace::Workspace;
use crate::{Verdict, capi, models, mutants, smoke, tidy};
use anyhow::Result;
use std::process::Command;
use std::time::{Duration, Instant};

/// The whole gate on 2 CPUs.
const BUDGET: Duration = Duration::from_secs(40 * 60);

/// A step of cargo's that is still running then hangs; a build from nothing included.
const STEP: Duration = Duration::from_secs(20 * 60);

type Step = (&'static str, fn(&Workspace) -> Result<Came>);

/// In this order: what is cheap and fails often comes first.
const STEPS: &[Step] = &[
    // The names of the files are enough: `cargo fmt --all` mends them.
    ("format", |w| {
        cargo(w, &["fmt", "--all", "--check", "--", "-l"], &[])
    }),
    ("tidy", |w| own(tidy::run(w))),
    ("mutants", |w| {
        own(mutants::run(
            w,
            &mutants::Options {
                check: true,
                ..Default::default()
            },
        ))
    }),
    ("clippy", |w| {
        let lint = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ];
        cargo(w, &lint, &[])
    }),
    ("test", |w| {
        cargo(
            w,
            &["test", "--workspace", "--locked", "--no-fail-fast"],
            &[],
        )
    }),
    ("doc", |w| {
        // Only libraries: the lab's program has the name of the face.
        let doc = ["doc", "--workspace", "--no-deps", "--lib", "--locked"];
        // What is compiled a second time is documented where it has its source.
        let doc = [&doc[..], &["--exclude", "corelay-lines-*"]].concat();
        cargo(w, &doc, &[("RUSTDOCFLAGS", "-D warnings")])
    }),
    ("loom", |w| own(models::loom(w, None))),
    ("shuttle", |w| own(models::shuttle(w, None))),
    ("smoke", |w| own(smoke::run(w))),
    ("capi", |w| own(capi::check(w))),
];

/// How a step came out.
struct Came {
    good: bool,
    tests: Tally,
}

/// Runs every step and sums up.
pub(crate) fn run(workspace: &Workspace) -> Result<Verdict> {
    let start = Instant::now();
    let mut summary = Vec::new();
    let mut good = true;
    for (name, step) in STEPS {
        println!("\n==> {name}");
        let begun = Instant::now();
        let came = step(workspace).unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Came {
                good: false,
                tests: Tally::default(),
            }
        });
        let time = begun.elapsed();
        println!("<== {name}: {} in {}", word(came.good), seconds(time));
        good &= came.good;
        summary.push((name, came, time));
    }
    println!("\n==> summary");
    for (name, came, time) in &summary {
        let tests = if came.tests.runs > 0 {
            came.tests.to_string()
        } else {
            String::new()
        };
        println!(
            "{name:10} {:6} {:>9}  {tests}",
            word(came.good),
            seconds(*time)
        );
    }
    let total = start.elapsed();
    println!("{:10} {:6} {:>9}", "all", word(good), seconds(total));
    if total > BUDGET {
        println!(
            "the gate took longer than its {} minutes",
            BUDGET.as_secs() / 60
        );
    }
    Ok(Verdict::of(good))
}

fn word(good: bool) -> &'static str {
    if good { "ok" } else { "FAILED" }
}

fn cargo(workspace: &Workspace, args: &[&str], environment: &[(&str, &str)]) -> Result<Came> {
    let mut command = process::cargo(&workspace.root);
    command
        .args(args)
        .env("CARGO_TARGET_DIR", &workspace.target);
    command.envs(environment.iter().copied());
    show(&command, environment);
    let passed = process::pass_on(command, Some(STEP))?;
    Ok(Came {
        good: passed.good,
        tests: passed.tests,
    })
}

fn show(command: &Command, environment: &[(&str, &str)]) {
    let set: String = environment
        .iter()
        .map(|(n, v)| format!("{n}=\"{v}\" "))
        .collect();
    println!("{set}{}", process::shown(command));
}

/// A step that xtask does itself.
fn own(verdict: Result<Verdict>) -> Result<Came> {
    Ok(Came {
        good: matches!(verdict?, Verdict::Good),
        tests: Tally::default(),
    })
}
