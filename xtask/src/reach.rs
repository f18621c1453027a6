//! `cargo xtask reach NAME`: the targets of one area, measured by the lab.

use crate::steps::Verdict;
use crate::workspace::Workspace;
use anyhow::Result;

/// Hands the arguments to `corelay reach` of a release build.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<Verdict> {
    let mut command = workspace.cargo("run --release --locked --package corelay-lab -- reach");
    let status = command.args(args).status()?;
    Ok(Verdict::of(status.success(), ""))
}
