//! A sanitizer that finds nothing in a program with a bug is not at work.

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

/// Runs the test `source` by `cargo`, which sets the sanitizer up, and demands that it
/// fails with `message`.
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
    let ended = crate::process::capture(command, None)?;
    if ended.good() || !ended.output.contains(message) {
        bail!(
            "the sanitizer did not report `{message}` in a program that has it:\n{}",
            ended.output
        );
    }
    println!("canary: `{message}` is reported");
    Ok(())
}
