//! A tool that finds nothing in a program with a bug is not at work.

use crate::process::Ended;
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = "\
[package]
name = \"canary\"
version = \"0.0.0\"
edition = \"2024\"

[workspace]
";

/// Two threads write a word without order.
pub(super) const RACE: &str = include_str!("canary/race.rs");

/// A freed box is read.
pub(super) const FREED: &str = include_str!("canary/freed.rs");

/// Runs the test `source` in `dir` by `cargo`, which sets the sanitizer up, and demands that
/// it fails with `message`.
pub(super) fn must_die(
    cargo: impl Fn(&Path) -> Command,
    dir: &Path,
    source: &str,
    message: &str,
) -> Result<()> {
    fs::create_dir_all(dir.join("src"))?;
    fs::write(dir.join("Cargo.toml"), MANIFEST)?;
    fs::write(dir.join("src/lib.rs"), source)?;
    let mut command = cargo(dir);
    command.args(["test", "--lib"]);
    has_died(&crate::process::capture(command, None)?, message)
}

/// Demands that a program has failed with `message`.
pub(super) fn has_died(ended: &Ended, message: &str) -> Result<()> {
    if ended.good() || !ended.output.contains(message) {
        let output = &ended.output;
        bail!("`{message}` is not reported in a program that has it:\n{output}");
    }
    println!("canary: `{message}` is reported");
    Ok(())
}
