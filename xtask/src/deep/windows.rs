//! The face, compiled for Windows: it is checked, not linked and not run.

use crate::process;
use crate::steps::{CANNOT_RUN, Verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result};

const TRIPLE: &str = "x86_64-pc-windows-gnu";

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    // The compiler has Windows' standard library, or rustup gets it.
    if process::is_installed("rustup") {
        let mut add = process::program("rustup", &workspace.root);
        add.args(["target", "add", TRIPLE]);
        println!("{}", process::shown(&add));
        add.status().context(CANNOT_RUN)?;
    }
    let mut command = workspace.cargo("check --locked --package corelay --all-features");
    command.args(["--target", TRIPLE]);
    println!("{}", process::shown(&command));
    let ended = process::pass_on(command, None)?;
    Ok(Verdict::of(ended.good(), "compiled, not run"))
}
