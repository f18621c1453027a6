//! A protocol without a model is not checked: crates that use atomics have loom and
//! shuttle tests.

use super::Finding;
use crate::source::Code;
use crate::workspace::{self, Workspace};
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
                let what =
                    format!("this crate uses atomics, but has no tests/{prefix}*.rs; add one");
                findings.push(Finding::error(place, what));
            }
        }
    }
    Ok(findings)
}

fn uses_atomics(member: &workspace::Member) -> Result<bool> {
    if member.folder == FACADE_CRATE {
        return Ok(true);
    }
    for path in member.sources()? {
        let code = Code::without_tests(&workspace::read(&path)?);
        if code
            .imports()
            .iter()
            .any(|(_, path)| path.contains("facade::atomic"))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(source: &str, tests: &[&str]) -> usize {
        let mut files = vec![
            (
                "crates/locks/Cargo.toml",
                "[package]\nname = \"corelay-locks\"\n",
            ),
            ("crates/locks/src/lib.rs", source),
        ];
        files.extend(tests.iter().map(|path| (*path, "")));
        super::super::findings(check, &files).len()
    }

    const USES: &str = "use corelay_sync::facade::{atomic::{AtomicBool, Ordering}, hint};";

    #[test]
    fn atomics_without_models_are_found() {
        assert_eq!(locks(USES, &[]), 2);
        assert_eq!(locks(USES, &["crates/locks/tests/loom_a.rs"]), 1);
        let both = [
            "crates/locks/tests/loom_a.rs",
            "crates/locks/tests/shuttle_a.rs",
        ];
        assert_eq!(locks(USES, &both), 0);
        assert_eq!(locks("pub fn plain() {}", &[]), 0);
    }
}
