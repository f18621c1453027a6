//! A protocol without a model is not checked: crates that use atomics have loom and
//! shuttle tests.

use super::Finding;
use crate::source::Code;
use crate::workspace::{Member, Workspace};
use anyhow::Result;

/// The crate that defines the facade, and so names it otherwise.
const FACADE_CRATE: &str = "sync";

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in workspace.members()? {
        if !member.is_modelled() || !uses_atomics(&member)? {
            continue;
        }
        for prefix in ["loom_", "shuttle_"] {
            if member.tests(prefix)?.is_empty() {
                let place = workspace.shown(&member.dir.join("src"));
                let what = format!("uses atomics, but has no tests/{prefix}*.rs; add one");
                findings.push(Finding::error(place, what));
            }
        }
    }
    Ok(findings)
}

fn uses_atomics(member: &Member) -> Result<bool> {
    for path in member.sources()? {
        let mentions = Code::shipped(&path)?.mentions();
        if mentions.iter().any(|m| m.path.contains("facade::atomic")) {
            return Ok(true);
        }
    }
    Ok(member.folder == FACADE_CRATE)
}

#[test]
fn atomics_without_models_are_found() {
    let uses = "use corelay_sync::facade::{atomic::{AtomicBool, Ordering}, hint};";
    let source = ("crates/locks/src/lib.rs", uses);
    let loom = ("crates/locks/tests/loom_a.rs", "");
    let shuttle = ("crates/locks/tests/shuttle_a.rs", "");
    let finds = |files: &[_], wanted: &[_]| super::assert_finds(check, files, wanted);
    finds(&[source], &["no tests/loom_", "no tests/shuttle_"]);
    finds(&[source, loom], &["no tests/shuttle_"]);
    finds(&[source, loom, shuttle], &[]);
    finds(&[("crates/locks/src/lib.rs", "pub fn plain() {}")], &[]);
}
