//! `cargo xtask reach NAME`: the targets of one area, measured by the lab.

use crate::Verdict;
use crate::process;
use crate::workspace::Workspace;
use anyhow::Result;

/// Hands the arguments to `corelay reach` of a release build.
pub(crate) fn run(workspace: &Workspace, args: &[&str]) -> Result<Verdict> {
    let mut command = process::cargo(&workspace.root);
    command.args([
        "run",
        "--release",
        "--locked",
        "--package",
        "corelay-lab",
        "--",
        "reach",
    ]);
    command
        .args(args)
        .env("CARGO_TARGET_DIR", &workspace.target);
    let status = command.status()?;
    Ok(Verdict::of(status.success()))
}
