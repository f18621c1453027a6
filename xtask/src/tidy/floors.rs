//! The house: dependencies go to lower floors only.
//!
//! A dependency (also one of a build script) goes to a strictly lower floor. A
//! dev-dependency may also go sideways: the locks and the delegation are tested by the
//! same bodies and with the history checker, which stand on their own floor. It may not
//! go up: what needs a higher floor is a test of that floor.

use super::Finding;
use crate::workspace::{self, Member, Workspace};
use anyhow::Result;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Folder and floor. A new crate gets its floor here.
const FLOORS: &[(&str, u32)] = &[
    ("coherence", 0),
    ("topology", 0),
    ("sync", 1),
    ("history", 2),
    ("clock", 2),
    ("literature", 2),
    ("locks", 2),
    ("delegate", 2),
    ("fibre", 2),
    ("lines", 3),
    ("txn", 3),
    ("structures", 3),
    ("corelay", 4),
    ("lab", 5),
    ("capi", 5),
];

fn floor_of(folder: &str) -> Option<u32> {
    FLOORS
        .iter()
        .find(|(name, _)| *name == folder)
        .map(|(_, floor)| *floor)
}

/// The package name that a folder stands for.
fn package_of(folder: &str) -> String {
    if folder == "corelay" {
        folder.to_owned()
    } else {
        format!("corelay-{folder}")
    }
}

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let members = workspace.members()?;
    let folders: BTreeMap<&str, &str> = members
        .iter()
        .map(|member| (member.package.as_str(), member.folder.as_str()))
        .collect();
    let mut findings = Vec::new();
    for member in &members {
        let path = member.dir.join("Cargo.toml");
        let text = workspace::read(&path)?;
        let shown = workspace.shown(&path);
        let expected = package_of(&member.folder);
        if member.package != expected {
            let line = line_starting(&text, "name");
            let what = format!("package `{}`: name it `{expected}`", member.package);
            findings.push(Finding::error(format!("{shown}:{line}"), what));
        }
        let Some(own) = floor_of(&member.folder) else {
            let what = "this crate has no floor; give it one in xtask/src/tidy/floors.rs";
            findings.push(Finding::error(format!("{shown}:1"), what));
            continue;
        };
        for dependency in dependencies(&workspace::read_toml(&path)?) {
            let Some(folder) = folders.get(dependency.package.as_str()) else {
                continue;
            };
            let Some(floor) = floor_of(folder) else {
                continue;
            };
            let sideways = dependency.dev && floor == own;
            if folder != &member.folder && floor >= own && !sideways {
                let line = line_starting(&text, &dependency.key);
                let what = wrong_way(member, own, folder, floor, dependency.dev);
                findings.push(Finding::error(format!("{shown}:{line}"), what));
            }
        }
    }
    Ok(findings)
}

fn wrong_way(member: &Member, own: u32, folder: &str, floor: u32, dev: bool) -> String {
    let kind = if dev { "dev-dependency" } else { "dependency" };
    format!(
        "{kind} of {} (floor {own}) on {folder} (floor {floor}) does not go down; move the shared \
         part to a lower floor or the user to a higher one",
        member.folder
    )
}

struct Dependency {
    /// As it is written in the manifest.
    key: String,
    package: String,
    dev: bool,
}

/// Every dependency of a manifest, those of its targets included.
fn dependencies(manifest: &Table) -> Vec<Dependency> {
    let mut found = Vec::new();
    let targets = manifest.get("target").and_then(Value::as_table);
    let of_targets = targets.into_iter().flat_map(|targets| targets.values());
    for table in std::iter::once(manifest).chain(of_targets.filter_map(Value::as_table)) {
        for (section, dev) in [
            ("dependencies", false),
            ("build-dependencies", false),
            ("dev-dependencies", true),
        ] {
            let Some(section) = table.get(section).and_then(Value::as_table) else {
                continue;
            };
            for (key, value) in section {
                let renamed = value.get("package").and_then(Value::as_str);
                found.push(Dependency {
                    key: key.clone(),
                    package: renamed.unwrap_or(key).to_owned(),
                    dev,
                });
            }
        }
    }
    found
}

fn line_starting(text: &str, word: &str) -> usize {
    let found = text.lines().position(|line| {
        line.strip_prefix(word)
            .is_some_and(|rest| rest.starts_with([' ', '.', '=']))
    });
    found.map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: (&str, &str) = (
        "crates/sync/Cargo.toml",
        "[package]\nname = \"corelay-sync\"\n",
    );
    const DELEGATE: (&str, &str) = (
        "crates/delegate/Cargo.toml",
        "[package]\nname = \"corelay-delegate\"\n",
    );

    fn locks(rest: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = \"corelay-locks\"\n{rest}");
        let lab = (
            "crates/lab/Cargo.toml",
            "[package]\nname = \"corelay-lab\"\n",
        );
        super::super::findings(
            check,
            &[("crates/locks/Cargo.toml", &manifest), SYNC, DELEGATE, lab],
        )
    }

    #[test]
    fn down_is_right() {
        assert_eq!(
            locks("[dependencies]\ncorelay-sync.workspace = true\n"),
            [""; 0]
        );
    }

    #[test]
    fn sideways_and_up_are_found() {
        let found = locks("[dependencies]\ncorelay-delegate.workspace = true\n");
        assert!(found[0].starts_with("crates/locks/Cargo.toml:4: dependency of locks (floor 2)"));
        let found =
            locks("[target.'cfg(unix)'.dependencies]\nlab = { package = \"corelay-lab\" }\n");
        assert!(
            found[0].starts_with("crates/locks/Cargo.toml:4:"),
            "{found:?}"
        );
        assert_eq!(
            locks("[build-dependencies]\ncorelay-delegate.workspace = true\n").len(),
            1
        );
    }

    #[test]
    fn dev_dependencies_may_go_sideways_but_not_up() {
        assert_eq!(
            locks("[dev-dependencies]\ncorelay-delegate.workspace = true\n"),
            [""; 0]
        );
        let found = locks("[dev-dependencies]\ncorelay-lab.workspace = true\n");
        assert!(found[0].contains("dev-dependency"), "{found:?}");
    }

    #[test]
    fn names_and_floors_are_checked() {
        let wrong = ("crates/sync/Cargo.toml", "[package]\nname = \"sync\"\n");
        let found = super::super::findings(check, &[wrong]);
        assert_eq!(
            found,
            ["crates/sync/Cargo.toml:2: package `sync`: name it `corelay-sync`"]
        );
        let cellar = (
            "crates/cellar/Cargo.toml",
            "[package]\nname = \"corelay-cellar\"\n",
        );
        assert!(super::super::findings(check, &[cellar])[0].contains("no floor"));
    }
}
