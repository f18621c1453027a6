//! Cargo.lock names the crates.io index and nothing else: a clone builds anywhere.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;

const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let path = workspace.root.join("Cargo.lock");
    if !path.is_file() {
        let what = "is missing; commit the one that `cargo build` writes";
        return Ok(vec![Finding::error("Cargo.lock", what)]);
    }
    let mut findings = Vec::new();
    for (index, line) in workspace::read(&path)?.lines().enumerate() {
        let Some(source) = line.strip_prefix("source = ") else {
            continue;
        };
        if source.trim_matches('"') != INDEX {
            let what = format!("{source} is not the crates.io index; depend on a released crate");
            findings.push(Finding::error(format!("Cargo.lock:{}", index + 1), what));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sources_are_found() {
        let lock = format!(
            "[[package]]\nname = \"a\"\nsource = \"{INDEX}\"\n\n[[package]]\nname = \"b\"\nsource = \
             \"git+https://example.org/b#1\"\n"
        );
        let found = super::super::findings(check, &[("Cargo.lock", &lock)]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("Cargo.lock:7: \"git+https://example.org"),
            "{found:?}"
        );
        assert!(super::super::findings(check, &[])[0].contains("is missing"));
    }
}
