//! Every ordinary test, optimised and with ten times the rounds; some with more.

use crate::process;
use crate::steps::Verdict;
use crate::workspace::{self, Workspace};
use anyhow::{Result, bail};
use std::process::Command;

/// The tests of `corelay-txn` that run with more rounds: the binaries, a test's name, the rounds.
const MORE: &[(&str, &str, &str)] = &[
    // By every clock, of TL2 and of RLU: ten million reads of each at least.
    ("--test rlu --test tl2", "snapshots_are_whole", "110"),
    (
        "--test rlu --test tl2",
        "a_section_sees_all_of_a_commit",
        "110",
    ),
    // A process is killed 500 times, 125 times by each protocol.
    ("--test disk", "kills_leave_the_bank_whole", "125"),
];

/// Stress tests multiply their rounds by it.
const VARIABLE: &str = "CORELAY_STRESS";

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    let mut readers = 0;
    for path in workspace::files_below(&workspace.root.join("crates"), "rs")? {
        readers += usize::from(workspace::read(&path)?.contains(VARIABLE));
    }
    if readers == 0 {
        bail!("no test reads {VARIABLE}: none is a stress test");
    }
    println!("stress: {readers} files read {VARIABLE}");
    // A test loads it; if targets are named, cargo builds no examples by itself.
    let example = "build --locked --profile model --package corelay-fibre --example shared";
    if !process::pass_on(workspace.cargo(example), None)?.good() {
        bail!("the example `shared` was not built");
    }
    let mut command = workspace.cargo("");
    super::test(&mut command, &super::targets(workspace)?);
    command.args(["--profile", "model"]);
    let mut verdict = with_rounds(command, "10")?;
    for (binaries, test, rounds) in MORE {
        if !verdict.is_good {
            break;
        }
        let tests = format!("test --locked --profile model --package corelay-txn {binaries} --");
        let mut command = workspace.cargo(&tests);
        command.arg(test);
        let more = with_rounds(command, rounds)?;
        let note = format!("{}; {test}: {}", verdict.note, more.note);
        verdict = Verdict::of(more.is_good, note);
    }
    Ok(verdict)
}

fn with_rounds(mut command: Command, rounds: &str) -> Result<Verdict> {
    command.env(VARIABLE, rounds);
    super::tested(command)
}
