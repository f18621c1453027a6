//! `cargo xtask ci`: the gate on every change.
//!
//! The C programs, more of shuttle's schedules and the lab as it is shipped are parts of the long runs:
//! what they find is seldom new with a change, and they take as long as all of this.

use crate::process::{self, Tally};
use crate::steps::{self, Step, Verdict};
use crate::workspace::Workspace;
use crate::{clients, models, mutants, package, tidy};
use anyhow::Result;
use std::time::{Duration, Instant};

/// The whole gate on 2 CPUs.
const BUDGET: Duration = Duration::from_secs(40 * 60);

/// A step of cargo's that is still running then hangs; a build from nothing included.
const STEP: Duration = Duration::from_secs(20 * 60);

/// The steps in their order: what is cheap and fails often comes first.
const STEPS: &[(&str, Step)] = &[
    // The names of the files are enough: `cargo fmt --all` mends them.
    ("format", |w| cargo(w, "fmt --all --check -- -l", "")),
    ("tidy", tidy::run),
    ("mutants", |w| mutants::run(w, &mutants::Options::CHECK)),
    ("clippy", |w| {
        let lint = "clippy --workspace --all-targets --locked -- -D warnings";
        cargo(w, lint, "")
    }),
    ("test", |w| {
        cargo(w, "test --workspace --locked --no-fail-fast", "")
    }),
    ("clients", |w| clients::run(w, &clients::Options::default())),
    // The workspace is built without them above, as users build it.
    ("features, clippy", |w| {
        let lint = "clippy -p corelay -p corelay-clock -p corelay-delegate --all-targets \
                    --all-features --locked -- -D warnings";
        cargo(w, lint, "")
    }),
    ("features, test", |w| {
        let test = "test -p corelay -p corelay-clock -p corelay-delegate --all-features --locked \
                    --no-fail-fast --lib --example events --test metrics --test serde \
                    --test subscriber";
        cargo(w, test, "")
    }),
    // The guide's page on watching.
    ("features, doc", |w| {
        cargo(
            w,
            "test -p corelay --all-features --locked --doc guide::watching",
            "",
        )
    }),
    // Only libraries: the lab's program has the name of the face. And what is compiled a
    // second time is documented where it has its source.
    ("doc", |w| {
        let doc = "doc --workspace --no-deps --lib --locked --exclude corelay-lines-*";
        cargo(w, doc, "-D warnings")
    }),
    ("package", package::run),
    ("loom", |w| models::loom(w, None)),
    ("shuttle", |w| models::shuttle(w, None)),
];

/// Runs every step and sums up.
pub(crate) fn run(workspace: &Workspace) -> Verdict {
    let start = Instant::now();
    let verdict = steps::run(workspace, STEPS);
    if start.elapsed() > BUDGET {
        let minutes = BUDGET.as_secs() / 60;
        println!("the gate took longer than its {minutes} minutes");
    }
    verdict
}

fn cargo(workspace: &Workspace, args: &str, rustdoc: &str) -> Result<Verdict> {
    let mut command = workspace.cargo(args);
    if !rustdoc.is_empty() {
        command.env("RUSTDOCFLAGS", rustdoc);
        print!("RUSTDOCFLAGS=\"{rustdoc}\" ");
    }
    println!("{}", process::shown(&command));
    let ended = process::pass_on(command, Some(STEP))?;
    let tests = Tally::of(&ended.output);
    let mut notes = Vec::new();
    if tests.runs > 0 {
        notes.push(tests.to_string());
    }
    if !ended.good() {
        notes.push(ended.how());
    }
    // A filter may have become stale.
    let is_test = args.starts_with("test ");
    if is_test && tests.passed == 0 {
        notes.push("no test ran".to_owned());
    }
    let note = notes.join("; ") + &process::failures(&ended.output);
    Ok(Verdict::of(
        ended.good() && !(is_test && tests.passed == 0),
        note,
    ))
}
