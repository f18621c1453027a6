//! The floors below the face, compiled for aarch64 and run under emulation.
//!
//! This checks code and clock. It says nothing about weak memory: the emulator runs on
//! this machine's.

use super::debian::{self, Debian};
use crate::steps::{CANNOT_RUN, Verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result};

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const VARIABLES: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU";

/// Linker, C library, standard library, emulator.
const PACKAGES: &[&str] = &[
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user-static",
];
const STANDARD_LIBRARY: &[&str] = &["libstd-rust-web-dev:arm64"];

/// The crates whose tests are run.
const CRATES: &[&str] = &[
    "topology",
    "sync",
    "history",
    "clock",
    "literature",
    "locks",
    "delegate",
    "fibre",
    "structures",
    "txn",
];

/// Tests that start their own program again: without the emulator it does not run.
const NOT_EMULATED: &[&str] = &[
    "the_shared_counter_keeps_the_same_promise",
    "promise_06_a_callbacks_panic_waits_until_the_thread_has_unwound",
    "a_source_whose_destructor_unwinds_ends_the_process",
    "hostile_code_",
    "killed::",
];

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    if std::env::consts::ARCH == "aarch64" {
        return Ok(Verdict::of(
            true,
            "this machine is one: `cargo test` has done it",
        ));
    }
    let debian = prepare(workspace).context(CANNOT_RUN)?;
    let root = debian.root.display();
    let mut targets = super::targets(workspace)?;
    targets.retain(|target| CRATES.contains(&target.folder.as_str()));

    let mut command = debian.cargo(&workspace.root);
    super::test(&mut command, &targets);
    command.args(["--target", TRIPLE]).args(debian.argument);
    command.arg("--");
    for name in NOT_EMULATED {
        println!("aarch64: {name} is left out: it starts its own program again");
        command.args(["--skip", name]);
    }
    let linker = format!("{root}/usr/bin/aarch64-linux-gnu-gcc");
    let emulator = format!("{root}/usr/bin/qemu-aarch64-static -L {root}/usr/aarch64-linux-gnu");
    // The C library's linker script names its parts from the root on.
    let flags = format!("-Clink-arg=--sysroot={root} --cfg corelay_emulated");
    command
        .env(format!("{VARIABLES}_LINKER"), linker)
        .env(format!("{VARIABLES}_RUNNER"), emulator)
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", workspace.target.join("aarch64"));
    super::tested(command)
}

fn prepare(workspace: &Workspace) -> Result<Debian> {
    let debian = Debian::compiler(workspace)?;
    debian::unpacked(workspace, PACKAGES)?;
    debian::unpacked(workspace, STANDARD_LIBRARY)?;
    Ok(debian)
}
