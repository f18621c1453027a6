//! ThreadSanitizer, with an instrumented standard library.
//!
//! Fences become read-modify-writes (`--cfg corelay_tsan`), because ThreadSanitizer does
//! not understand fences; the asymmetric barrier is therefore not what is tested here.

use super::canary;
use super::debian::{self, Debian};
use crate::steps::{CANNOT_RUN, Verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    let debian = prepare(workspace).context(CANNOT_RUN)?;
    let cargo = |dir: &Path| sanitized(&debian, workspace, dir);
    let home = workspace.target.join("deep").join("canary-thread");
    canary::must_die(cargo, &home, canary::RACE, "data race").context(CANNOT_RUN)?;
    let mut command = cargo(&workspace.root);
    super::test(&mut command, &super::targets(workspace)?);
    command.args(debian.argument);
    super::tested(command)
}

fn prepare(workspace: &Workspace) -> Result<Debian> {
    let debian = Debian::compiler(workspace)?;
    let runtime = format!("libclang-rt-{}-dev", debian.llvm);
    // Besides, the program that turns addresses into lines.
    let symbolizer = format!("llvm-{}", debian.llvm);
    debian::unpacked(workspace, &["rust-web-src", &runtime, &symbolizer])?;
    // Debian's compiler comes without the runtime; it is LLVM's own, under another name.
    let llvm = &debian.llvm;
    let arch = std::env::consts::ARCH;
    let from = format!("usr/lib/llvm-{llvm}/lib/clang/{llvm}/lib/linux/libclang_rt.tsan-{arch}.a");
    let to = format!("usr/lib/rustlib/{arch}-unknown-linux-gnu/lib/librustc-stable_rt.tsan.a");
    fs::copy(debian.root.join(&from), debian.root.join(to))
        .with_context(|| format!("{runtime} has no {from}"))?;
    Ok(debian)
}

fn sanitized(debian: &Debian, workspace: &Workspace, dir: &Path) -> Command {
    let target = debian::multiarch().replace("-linux", "-unknown-linux");
    // Fibres leave functions on other stacks than they have entered them: so it does not count
    // what is entered and left. Its reports then name the innermost function only.
    let flags = "-Zsanitizer=thread --cfg corelay_tsan \
                 -Cllvm-args=-tsan-instrument-func-entry-exit=0";
    let symbolizer = format!("usr/lib/llvm-{}/bin/llvm-symbolizer", debian.llvm);
    let symbolizer = debian.root.join(symbolizer);
    let symbolizer = symbolizer.display();
    let options = format!("halt_on_error=1 external_symbolizer_path={symbolizer}");
    let mut command = debian.cargo(dir);
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_UNSTABLE_BUILD_STD", "std,test")
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", workspace.target.join("thread"))
        .env("CARGO_BUILD_TARGET", target)
        // What prints a backtrace takes more of a stack, in larger frames, than a fibre has.
        .env("RUST_BACKTRACE", "0")
        .env("TSAN_OPTIONS", options);
    command
}
