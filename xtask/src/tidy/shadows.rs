//! The packages that compile a shipped source a second time have no source of their own.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::fs;
use std::path::PathBuf;
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
        let expected = [
            ("package", "name", Value::from(name)),
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
        let links = [
            ("src", format!("../../../{folder}/src")),
            ("build.rs", "../build.rs".to_owned()),
        ];
        for (link, target) in links {
            let link = package.join(link);
            if fs::read_link(&link).ok() != Some(PathBuf::from(&target)) {
                let what = format!("must be a symbolic link to {target}");
                findings.push(Finding::error(workspace.shown(&link), what));
            }
        }
    }
    Ok(findings)
}

#[cfg(unix)]
#[test]
fn copies_and_other_sources_are_found() {
    let good = "[package]\nname = \"corelay-lines-locks\"\n\n[lib]\n\
                test = false\ndoctest = false\ndoc = false\n";
    let finds = |manifest: &str, source: &str, wanted: &[&str]| {
        let files = [("crates/lines/shadow/locks/Cargo.toml", manifest)];
        let linked = |workspace: &Workspace| {
            let package = workspace.root.join(FOLDER).join("locks");
            std::os::unix::fs::symlink(source, package.join("src"))?;
            std::os::unix::fs::symlink("../build.rs", package.join("build.rs"))?;
            check(workspace)
        };
        super::assert_finds(linked, &files, wanted);
    };
    finds(good, "../../../locks/src", &[]);
    let tested = good.replace("doctest = false\n", "");
    finds(&tested, "../../../locks/src", &["`doctest`"]);
    finds(
        good,
        "mine",
        &["locks/src: must be a symbolic link to ../../../locks/src"],
    );
    let manifest = ("crates/lines/shadow/locks/Cargo.toml", good);
    let copies = ["src/lib.rs", "build.rs"].map(|f| format!("{FOLDER}/locks/{f}"));
    let files = [manifest, (&*copies[0], ""), (&*copies[1], "")];
    super::assert_finds(check, &files, &["locks/src", "locks/build.rs"]);
}
