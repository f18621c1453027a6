//! Random commands to the cache server and to memcached, whose answers must be alike: 100,000 sequences.

use super::debian;
use crate::process;
use crate::steps::{CANNOT_RUN, Verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The version whose answers the cache server gives.
const VERSION: &str = "memcached 1.6.18";
/// The factor by which 100,000 sequences are more than those of the gate.
const FACTOR: &str = "250";

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    let memcached = memcached(workspace).context(CANNOT_RUN)?;
    let mut command =
        workspace.cargo("test --locked --package corelay-cached --test conformance --");
    command.arg("sequences::");
    command.env("CORELAY_REFERENCE", memcached);
    command.env("CORELAY_STRESS", FACTOR);
    super::tested(command)
}

/// The command of memcached: the system's, or Debian's, unpacked beside it.
fn memcached(workspace: &Workspace) -> Result<String> {
    let command = debian::command(workspace, "memcached", "memcached")?;
    let mut words = command.split(' ');
    let mut ask = Command::new(words.next().unwrap_or_default());
    ask.args(words).arg("-V");
    println!("{}", process::shown(&ask));
    let said = debian::said(ask)?;
    if said.trim() != VERSION {
        bail!("{VERSION} is wanted, and here is {}", said.trim());
    }
    Ok(command)
}
