//! AddressSanitizer, with leak detection, on the stable toolchain.

use super::{Came, canary};
use crate::process;
use crate::workspace::Workspace;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// The leaks that tests make on purpose.
const LEAKS: &str = "xtask/src/deep/leaks.txt";

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
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|dir| dir.join("llvm-symbolizer").is_file()) {
        println!(
            "address: no llvm-symbolizer: stacks have no names, leaks on purpose are reported"
        );
    }
    let mut command = cargo(&workspace.root);
    let leaks = workspace.root.join(LEAKS);
    command.env(
        "LSAN_OPTIONS",
        format!("suppressions={}:print_suppressions=0", leaks.display()),
    );
    let mut targets = super::targets(workspace)?;
    // What it counts depends on where frames lie, and the sanitizer moves them.
    targets.retain(|target| target.folder != "lines");
    super::test(&mut command, &targets);
    super::tested(command)
}

fn sanitized(workspace: &Workspace, dir: &Path) -> Command {
    let mut command = process::cargo(dir);
    // The runtime comes with the toolchain; the flag is not stable.
    command.env("RUSTC_BOOTSTRAP", "1");
    command.env("RUSTFLAGS", "-Zsanitizer=address --cfg corelay_asan");
    command.env("CARGO_TARGET_DIR", workspace.target.join("address"));
    // With a target named, build scripts and macros are left uninstrumented.
    command.env(
        "CARGO_BUILD_TARGET",
        format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
    );
    command
}
