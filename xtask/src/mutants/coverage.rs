//! Orderings and fences that no entry speaks of.

use super::entry::Entry;
use super::matching;
use crate::source::{self, Code};
use crate::tidy::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::collections::BTreeSet;

/// It hands on the orderings that its callers name.
const FACADE: &str = "crates/sync/src/facade";

/// What an entry can weaken.
const STRONG: &[&str] = &[
    "Ordering::Acquire",
    "Ordering::Release",
    "Ordering::AcqRel",
    "Ordering::SeqCst",
];

/// What orders without naming an ordering.
const FENCES: &[&str] = &["fence", "light", "heavy"];

/// A warning for each line with an ordering or a fence and no entry.
pub(crate) fn unmapped(workspace: &Workspace, entries: &[Entry]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in workspace.members()? {
        if !member.is_modelled() {
            continue;
        }
        for path in member.sources()? {
            if path.starts_with(workspace.root.join(FACADE)) {
                continue;
            }
            let source = workspace::read(&path)?;
            let mut mapped = BTreeSet::new();
            for entry in entries.iter().filter(|entry| entry.path == path) {
                if let Ok(range) = matching::locate(entry, &source) {
                    mapped.extend(
                        source::line_of(&source, range.start)..=source::line_of(&source, range.end),
                    );
                }
            }
            let shown = workspace.shown(&path);
            for (line, code) in Code::without_tests(&source).lines() {
                if is_ordering(code) && !mapped.contains(&line) {
                    let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
                    let what = format!("unmapped: {code}; add an entry to mutants.toml");
                    findings.push(Finding::warning(format!("{shown}:{line}"), what));
                }
            }
        }
    }
    Ok(findings)
}

fn is_ordering(code: &str) -> bool {
    STRONG
        .iter()
        .any(|name| source::find_word(code, name).is_some())
        || FENCES.iter().any(|name| is_called(code, name))
}

/// `name(` as a call, not as its definition.
fn is_called(code: &str, name: &str) -> bool {
    source::find_word(code, name).is_some_and(|at| {
        code[at + name.len()..].starts_with('(') && !code[..at].trim_end().ends_with("fn")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fake;

    fn lines(source: &str, map: &str) -> Vec<String> {
        let dir = fake(&[
            (
                "crates/locks/Cargo.toml",
                "[package]\nname = \"corelay-locks\"\n",
            ),
            ("crates/locks/src/a.rs", source),
            ("crates/locks/mutants.toml", map),
        ]);
        let workspace = Workspace::at(dir.path());
        let (entries, _) = super::super::entry::load(&workspace).unwrap();
        let found = unmapped(&workspace, &entries).unwrap();
        found
            .iter()
            .map(|finding| finding.place().to_owned())
            .collect()
    }

    const SOURCE: &str = "\
x.load(Ordering::Acquire);
x.load(Ordering::Relaxed); // Ordering::Acquire
pub fn light() {}
barrier::light();
#[cfg(test)]
mod tests { fn f() { x.load(Ordering::SeqCst); } }
";

    #[test]
    fn only_strong_orderings_outside_comments_and_tests_count() {
        assert_eq!(
            lines(SOURCE, ""),
            ["crates/locks/src/a.rs:1", "crates/locks/src/a.rs:4"]
        );
    }

    #[test]
    fn the_facade_only_hands_on() {
        let dir = fake(&[
            (
                "crates/sync/Cargo.toml",
                "[package]\nname = \"corelay-sync\"\n",
            ),
            ("crates/sync/src/facade/std.rs", SOURCE),
        ]);
        assert_eq!(unmapped(&Workspace::at(dir.path()), &[]).unwrap(), []);
    }

    #[test]
    fn an_entry_maps_its_lines() {
        let map = "[[mutant]]\nfile = \"src/a.rs\"\nfind = \"x.load(Ordering::Acquire)\"\nnth = 1\nreason = \"r\"\n";
        assert_eq!(lines(SOURCE, map), ["crates/locks/src/a.rs:4"]);
    }
}
