//! Design notes are numbered, each number once: `docs/design/0001-channel.md`.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::collections::BTreeMap;

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let dir = workspace.root.join("docs/design");
    let mut findings = Vec::new();
    let mut numbers = BTreeMap::new();
    if !dir.is_dir() {
        return Ok(findings);
    }
    for path in workspace::sorted(&dir)? {
        let name = workspace::file_name(&path);
        let shown = workspace.shown(&path);
        match number(&name) {
            None => {
                let what = "is not numbered; name it NNNN-subject.md";
                findings.push(Finding::error(shown, what));
            }
            Some(number) => {
                if let Some(first) = numbers.insert(number.to_owned(), name.clone()) {
                    let what = format!("has the number of {first}; take the next free one");
                    findings.push(Finding::error(shown, what));
                }
            }
        }
    }
    Ok(findings)
}

fn number(name: &str) -> Option<&str> {
    let (number, subject) = name.strip_suffix(".md")?.split_once('-')?;
    let good = number.len() == 4 && number.bytes().all(|b| b.is_ascii_digit());
    (good && !subject.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_numbered_once() {
        let found = super::super::findings(
            check,
            &[
                ("docs/design/0001-channel.md", ""),
                ("docs/design/0001-other.md", ""),
                ("docs/design/0002-clock.md", ""),
                ("docs/design/notes.md", ""),
            ],
        );
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("docs/design/0001-other.md: has the number of 0001-channel"));
        assert!(found[1].starts_with("docs/design/notes.md: is not numbered"));
    }
}
