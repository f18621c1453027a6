//! `cargo xtask reach`: the targets of all areas, or of one, measured by the lab.

use crate::steps::Verdict;
use crate::workspace::Workspace;
use anyhow::Result;

/// The folder in the repository that has the result for the last commit that was measured.
const OUT: &str = "docs/reach";

/// Hands the arguments to `corelay reach` of a release build. Without any, all areas are measured,
/// and the result is written into the repository.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<Verdict> {
    if args.first().is_some_and(|area| area == "cached") {
        // The lab looks for it beside itself.
        let mut build = workspace.cargo("build --release --locked --package corelay-cached");
        if !build.status()?.success() {
            return Ok(Verdict::of(false, "corelay-cached does not build"));
        }
    }
    let mut command = workspace.cargo("run --release --locked --package corelay-lab -- reach");
    if args.is_empty() {
        command.args(["--out", OUT]);
    }
    let status = command.args(args).status()?;
    Ok(Verdict::of(status.success(), ""))
}
