//! AddressSanitizer, with leak detection, on the stable toolchain.

use super::{Came, canary};
use crate::process;
use crate::workspace::Workspace;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    if !cfg!(target_os = "linux") {
        return Ok(Came::Cannot(
            "AddressSanitizer is set up for Linux only".to_owned(),
        ));
    }
    let cargo = |dir: &Path| sanitized(workspace, dir);
    let home = workspace.target.join("deep").join("canary-address");
    if let Err(error) = canary::must_die(cargo, &home, canary::FREED, "heap-use-after-free") {
        return Ok(Came::Cannot(format!("{error:#}")));
    }
    let mut command = cargo(&workspace.root);
    super::test(&mut command, &super::targets(workspace)?);
    super::tested(command)
}

fn sanitized(workspace: &Workspace, dir: &Path) -> Command {
    let mut command = process::cargo(dir);
    // The runtime comes with the toolchain; the flag is not stable.
    command.env("RUSTC_BOOTSTRAP", "1");
    command.env("RUSTFLAGS", "-Zsanitizer=address");
    command.env("CARGO_TARGET_DIR", workspace.target.join("address"));
    // With a target named, build scripts and macros are left uninstrumented.
    command.env(
        "CARGO_BUILD_TARGET",
        format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
    );
    command
}
