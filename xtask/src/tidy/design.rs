//! Design notes are numbered, each number once: `docs/design/0001-channel.md`.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::collections::BTreeMap;

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut numbers = BTreeMap::new();
    for path in workspace::sorted(&workspace.root.join("docs/design"))? {
        let name = workspace::file_name(&path);
        let what = match number(&name) {
            None => "is not numbered; name it NNNN-subject.md".to_owned(),
            Some(number) => match numbers.insert(number.to_owned(), name.clone()) {
                None => continue,
                Some(first) => format!("has the number of {first}; take the next free one"),
            },
        };
        findings.push(Finding::error(workspace.shown(&path), what));
    }
    Ok(findings)
}

fn number(name: &str) -> Option<&str> {
    let (number, subject) = name.strip_suffix(".md")?.split_once('-')?;
    let is_number = number.len() == 4 && number.bytes().all(|b| b.is_ascii_digit());
    (is_number && !subject.is_empty()).then_some(number)
}

#[test]
fn notes_are_numbered_once() {
    let notes = ["0001-channel.md", "0001-other.md", "0002-c.md", "notes.md"];
    let paths = notes.map(|note| format!("docs/design/{note}"));
    let files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
    let wanted = [
        "docs/design/0001-other.md: has the number of 0001-channel",
        "docs/design/notes.md: is not numbered",
    ];
    super::assert_finds(check, &files, &wanted);
}
