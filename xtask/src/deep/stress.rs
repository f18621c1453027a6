//! Every ordinary test, optimised and with ten times the rounds; snapshots with more.

use crate::process;
use crate::steps::Verdict;
use crate::workspace::{self, Workspace};
use anyhow::{Result, bail};
use std::process::Command;

/// Snapshots by every clock, of TL2 and of RLU: ten million reads of each at least.
const SNAPSHOTS: &[&str] = &["snapshots_are_whole", "a_section_sees_all_of_a_commit"];
const OF_SNAPSHOTS: &str = "110";

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
    for snapshots in SNAPSHOTS {
        if !verdict.is_good {
            break;
        }
        let tests = "test --locked --profile model --package corelay-txn --test rlu --test tl2 --";
        let mut command = workspace.cargo(tests);
        command.arg(snapshots);
        let more = with_rounds(command, OF_SNAPSHOTS)?;
        let note = format!("{}; {snapshots}: {}", verdict.note, more.note);
        verdict = Verdict::of(more.is_good, note);
    }
    Ok(verdict)
}

fn with_rounds(mut command: Command, rounds: &str) -> Result<Verdict> {
    command.env(VARIABLE, rounds);
    super::tested(command)
}
