//! Cargo.lock names the crates.io index and nothing else: a clone builds anywhere.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;

const INDEX: &str = "\"registry+https://github.com/rust-lang/crates.io-index\"";

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let path = workspace.root.join("Cargo.lock");
    if !path.is_file() {
        let what = "is missing; commit the one that `cargo build` writes";
        return Ok(vec![Finding::error("Cargo.lock", what)]);
    }
    let text = workspace::read(&path)?;
    let lines = (1..).zip(text.lines());
    let sources = lines.filter_map(|(line, text)| Some((line, text.strip_prefix("source = ")?)));
    let others = sources.filter(|(_, source)| *source != INDEX);
    let finding = |(line, source)| {
        let what = format!("{source} is not the crates.io index; depend on a released crate");
        Finding::error(format!("Cargo.lock:{line}"), what)
    };
    Ok(others.map(finding).collect())
}

#[test]
fn other_sources_are_found() {
    let lock =
        format!("[[package]]\nsource = {INDEX}\n\n[[package]]\nsource = \"git+https://e\"\n");
    let wanted = "Cargo.lock:5: \"git+https://e\" is not the crates.io index";
    super::assert_finds(check, &[("Cargo.lock", &lock)], &[wanted]);
    super::assert_finds(check, &[], &["is missing"]);
}
