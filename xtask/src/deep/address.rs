//! AddressSanitizer, with leak detection, on the stable toolchain.

use super::canary;
use crate::process;
use crate::steps::{CANNOT_RUN, Verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// The leaks that tests make on purpose.
const LEAKS: &str = "xtask/src/deep/leaks.txt";

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    if !cfg!(target_os = "linux") {
        bail!("AddressSanitizer is set up for Linux only");
    }
    let cargo = |dir: &Path| sanitized(workspace, dir);
    let home = workspace.target.join("deep").join("canary-address");
    canary::must_die(cargo, &home, canary::FREED, "heap-use-after-free").context(CANNOT_RUN)?;
    if !process::is_installed("llvm-symbolizer") {
        println!(
            "address: no llvm-symbolizer: stacks have no names, leaks on purpose are reported"
        );
    }
    let mut command = cargo(&workspace.root);
    let leaks = workspace.root.join(LEAKS);
    let options = format!("suppressions={}:print_suppressions=0", leaks.display());
    command.env("LSAN_OPTIONS", options);
    let mut targets = super::targets(workspace)?;
    // What it counts depends on where frames lie, and the sanitizer moves them.
    targets.retain(|target| target.folder != "lines");
    super::test(&mut command, &targets);
    super::tested(command)
}

fn sanitized(workspace: &Workspace, dir: &Path) -> Command {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = process::cargo(dir, "");
    command
        // The runtime comes with the toolchain; the flag is not stable.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zsanitizer=address --cfg corelay_asan")
        .env("CARGO_TARGET_DIR", workspace.target.join("address"))
        // With a target named, build scripts and macros are left uninstrumented.
        .env("CARGO_BUILD_TARGET", target);
    command
}
