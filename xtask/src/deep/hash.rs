//! The check of the exercise `corelay lab hash`, checked: each wrong answer 20 times, correct ones 200
//! times and more. Prints a line for each.

use crate::steps::Verdict;
use crate::workspace::Workspace;
use anyhow::Result;

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    let mut command =
        workspace.cargo("test --locked --release --package corelay-lab-course --lib --");
    command.args(["--ignored", "--exact", "hash::set::campaign", "--nocapture"]);
    super::tested(command)
}
