//! The house: dependencies go to lower floors only.
//!
//! A dependency (also one of a build script) goes to a strictly lower floor. A
//! dev-dependency may also go sideways: the locks and the delegation are tested by the
//! same bodies and with the history checker, which stand on their own floor. It may not
//! go up: what needs a higher floor is a test of that floor.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
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
    ("lab-measure", 5),
    ("lab-bench", 6),
    ("lab-report", 6),
    ("lab-compare", 7),
    ("lab-course", 7),
    ("lab-figures", 7),
    ("lab", 8),
    ("capi", 5),
    ("cached", 5),
];

fn floor_of(package: &str) -> Option<u32> {
    let is_meant = |folder: &str| workspace::package_of(folder) == package;
    let entry = FLOORS.iter().find(|(folder, _)| is_meant(folder));
    entry.map(|(_, floor)| *floor)
}

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in workspace.members()? {
        let path = member.dir.join("Cargo.toml");
        let text = workspace::read(&path)?;
        let mut found = |key: &str, what: String| {
            let line = (1..).zip(text.lines()).find_map(|(line, text)| {
                let rest = text.strip_prefix(key)?;
                rest.starts_with([' ', '.', '=']).then_some(line)
            });
            let place = format!("{}:{}", workspace.shown(&path), line.unwrap_or(1));
            findings.push(Finding::error(place, what));
        };
        let manifest = workspace::read_toml(&path)?;
        let folder = &member.folder;
        let package = workspace::package_of(folder);
        let name = manifest.get("package").and_then(|table| table.get("name"));
        if name != Some(&Value::from(package.as_str())) {
            found(
                "name",
                format!("the package must have the name `{package}`"),
            );
        }
        let Some(own) = floor_of(&package) else {
            let what = "this crate has no floor; give it one in xtask/src/tidy/floors.rs";
            found("[package]", what.to_owned());
            continue;
        };
        for (key, on, section) in dependencies(&manifest) {
            let Some(floor) = floor_of(&on) else {
                continue;
            };
            let is_sideways = section == "dev-dependencies" && floor == own;
            if on != package && floor >= own && !is_sideways {
                let what = format!(
                    "{section}: {folder} (floor {own}) on {on} (floor {floor}) does not go down; \
                     move the shared part to a lower floor or the user to a higher one"
                );
                found(&key, what);
            }
        }
    }
    Ok(findings)
}

/// Every dependency of a manifest, those of its targets included: the key, the package and the
/// section.
fn dependencies(manifest: &Table) -> Vec<(String, String, &'static str)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values);
    let tables = std::iter::once(manifest).chain(targets.filter_map(Value::as_table));
    let mut found = Vec::new();
    for table in tables {
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let entries = table.get(section).and_then(Value::as_table);
            for (key, value) in entries.into_iter().flatten() {
                let renamed = value.get("package").and_then(Value::as_str);
                found.push((key.clone(), renamed.unwrap_or(key).to_owned(), section));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn locks(dependencies: &str, wanted: &[&str]) {
        let manifest = format!("[package]\nname = \"corelay-locks\"\n{dependencies}\n");
        let files = [
            ("crates/locks/Cargo.toml", manifest.as_str()),
            ("crates/sync/src/lib.rs", ""),
            ("crates/delegate/src/lib.rs", ""),
            ("crates/lab/src/lib.rs", ""),
        ];
        super::super::assert_finds(check, &files, wanted);
    }

    #[test]
    fn dependencies_go_down() {
        locks("[dependencies]\ncorelay-sync.workspace = true", &[]);
        let wanted = "crates/locks/Cargo.toml:4: dependencies: locks (floor 2)";
        locks(
            "[dependencies]\ncorelay-delegate.workspace = true",
            &[wanted],
        );
        let wanted = "crates/locks/Cargo.toml:4: build-dependencies: locks";
        locks(
            "[build-dependencies]\ncorelay-lab.workspace = true",
            &[wanted],
        );
        let renamed = "lab = { package = \"corelay-lab\" }";
        let on_unix = format!("[target.'cfg(unix)'.dependencies]\n{renamed}");
        locks(
            &on_unix,
            &["crates/locks/Cargo.toml:4: dependencies: locks"],
        );
    }

    #[test]
    fn dev_dependencies_may_go_sideways_but_not_up() {
        locks("[dev-dependencies]\ncorelay-delegate.workspace = true", &[]);
        let wanted = "dev-dependencies: locks (floor 2) on corelay-lab (floor 8)";
        locks(
            "[dev-dependencies]\ncorelay-lab.workspace = true",
            &[wanted],
        );
    }

    #[test]
    fn each_crate_has_its_name_and_a_floor() {
        let wrong = ("crates/sync/Cargo.toml", "[package]\nname = \"sync\"\n");
        let wanted = "crates/sync/Cargo.toml:2: the package must have the name `corelay-sync`";
        super::super::assert_finds(check, &[wrong], &[wanted]);
        let cellar = ("crates/cellar/src/lib.rs", "");
        super::super::assert_finds(check, &[cellar], &["no floor"]);
    }
}
