//! The packages that compile a shipped source a second time have no source of their own.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use toml::Value;

/// The folder of these packages; their build script is beside them.
const FOLDER: &str = "crates/lines/shadow";

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in workspace::sorted(&workspace.root.join(FOLDER))? {
        let manifest = package.join("Cargo.toml");
        if !manifest.is_file() {
            continue;
        }
        let folder = workspace::file_name(&package);
        let table = workspace::read_toml(&manifest)?;
        let name = format!("corelay-lines-{folder}");
        let source = format!("../../../{folder}/src/lib.rs");
        let expected = [
            ("package", "name", Value::from(name)),
            ("package", "build", Value::from("../build.rs")),
            ("lib", "path", Value::from(source)),
            ("lib", "test", Value::from(false)),
            ("lib", "doctest", Value::from(false)),
            ("lib", "doc", Value::from(false)),
        ];
        for (section, key, value) in expected {
            let found = table.get(section).and_then(|part| part.get(key));
            if found != Some(&value) {
                let what = format!("`{key}` of [{section}] must be {value}");
                findings.push(Finding::error(workspace.shown(&manifest), what));
            }
        }
        for copy in workspace::files_below(&package, "rs")? {
            let what = format!("is a source of its own; the one to compile is crates/{folder}");
            findings.push(Finding::error(workspace.shown(&copy), what));
        }
    }
    Ok(findings)
}

#[test]
fn copies_and_other_sources_are_found() {
    let good = "[package]\nname = \"corelay-lines-locks\"\nbuild = \"../build.rs\"\n\n[lib]\n\
                path = \"../../../locks/src/lib.rs\"\ntest = false\ndoctest = false\ndoc = false\n";
    let finds = |manifest: &str, copy: &str, wanted: &[_]| {
        let manifest = ("crates/lines/shadow/locks/Cargo.toml", manifest);
        super::assert_finds(check, &[manifest, (copy, "")], wanted);
    };
    let script = "crates/lines/shadow/build.rs";
    finds(good, script, &[]);
    let other = good.replace("../locks/src", "../mine/src");
    finds(&other, script, &["`path` of [lib] must be"]);
    let tested = good.replace("doctest = false\n", "");
    finds(&tested, script, &["`doctest`"]);
    let copy = "crates/lines/shadow/locks/src/mcs.rs";
    finds(good, copy, &["a source of its own"]);
}
