//! The packages that compile a shipped source a second time have no source of their own.

use super::{Finding, leftovers};
use crate::workspace::{self, Workspace};
use anyhow::Result;
use toml::Value;

/// Where they are; their build script is beside them.
const FOLDER: &str = "crates/lines/shadow";

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let dir = workspace.root.join(FOLDER);
    let mut findings = Vec::new();
    if !dir.is_dir() {
        return Ok(findings);
    }
    for package in workspace::sorted(&dir)? {
        let manifest = package.join("Cargo.toml");
        if !manifest.is_file() {
            continue;
        }
        let folder = workspace::file_name(&package);
        let shown = workspace.shown(&manifest);
        let table = workspace::read_toml(&manifest)?;
        let says = |section: &str, key: &str| table.get(section).and_then(|part| part.get(key));
        let source = format!("../../../{folder}/src/lib.rs");
        let expected = [
            (
                "package",
                "name",
                Value::from(format!("corelay-lines-{folder}")),
            ),
            ("package", "build", Value::from("../build.rs")),
            ("lib", "path", Value::from(source)),
            ("lib", "test", Value::from(false)),
            ("lib", "doctest", Value::from(false)),
            ("lib", "doc", Value::from(false)),
        ];
        for (section, key, value) in expected {
            if says(section, key) != Some(&value) {
                let what = format!("`{key}` of [{section}] must be {value}");
                findings.push(Finding::error(shown.clone(), what));
            }
        }
        for copy in workspace::files_below(&package, &leftovers::is_rust)? {
            let what = format!("is a source of its own; the one to compile is crates/{folder}");
            findings.push(Finding::error(workspace.shown(&copy), what));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"corelay-lines-locks\"\nbuild = \"../build.rs\"\n\n[lib]\n\
                        path = \"../../../locks/src/lib.rs\"\ntest = false\ndoctest = false\n\
                        doc = false\n";

    fn found(manifest: &str, more: &[(&str, &str)]) -> Vec<String> {
        let own = [
            ("crates/lines/shadow/locks/Cargo.toml", manifest),
            ("crates/lines/shadow/build.rs", "fn main() {}\n"),
        ];
        super::super::findings(check, &[&own, more].concat())
    }

    #[test]
    fn copies_and_other_sources_are_found() {
        assert_eq!(found(GOOD, &[]), [""; 0]);
        let other = found(&GOOD.replace("../locks/src", "../mine/src"), &[]);
        assert_eq!(other.len(), 1);
        assert!(other[0].contains("`path` of [lib] must be"), "{other:?}");
        let tested = found(&GOOD.replace("doctest = false\n", ""), &[]);
        assert!(tested[0].contains("`doctest`"), "{tested:?}");
        let copy = [("crates/lines/shadow/locks/src/mcs.rs", "")];
        let copied = found(GOOD, &copy);
        assert!(copied[0].contains("a source of its own"), "{copied:?}");
    }
}
