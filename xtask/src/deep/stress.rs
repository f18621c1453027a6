//! Every ordinary test, optimised and with ten times the rounds.

use super::Came;
use crate::process;
use crate::workspace::Workspace;
use anyhow::Result;

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    let mut command = process::cargo(&workspace.root);
    super::test(&mut command, &super::targets(workspace)?);
    command.args(["--profile", "model"]);
    command
        .env("CARGO_TARGET_DIR", &workspace.target)
        .env("CORELAY_STRESS", "10");
    super::tested(command)
}
