//! The entries of `mutants.toml`.

use crate::source;
use crate::tidy::Finding;
use crate::workspace::{self, Workspace};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Map {
    #[serde(default)]
    mutant: Vec<Written>,
}

/// An entry as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    file: String,
    find: toml::Spanned<String>,
    nth: Option<usize>,
    replace: Option<String>,
    test: Option<String>,
    #[serde(rename = "crate")]
    test_crate: Option<String>,
    #[serde(default)]
    hangs: bool,
    reason: Option<String>,
}

/// An entry whose fields make sense together.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The crate of the file: `locks`.
    pub(crate) folder: String,
    /// The file, relative to the crate.
    pub(crate) file: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// Where the entry is written: `crates/locks/mutants.toml:12`.
    pub(crate) place: String,
    /// The text that is there now.
    pub(crate) find: String,
    /// Which occurrence of it, from 1; `None` where it must be the only one.
    pub(crate) nth: Option<usize>,
    /// What it stands or falls by.
    pub(crate) proof: Proof,
}

/// Why the ordering is what it is.
#[derive(Debug)]
pub(crate) enum Proof {
    /// With `replace` in its place this test fails.
    Test {
        replace: String,
        /// The crate of the test: its folder.
        folder: String,
        /// The file in `tests/`, or `lib`.
        file: String,
        /// The test's path in that file.
        test: String,
        /// It fails by never ending.
        hangs: bool,
    },
    /// No test can fail; the map says why.
    Reason,
}

impl Entry {
    /// `locks/src/mcs.rs loom_mcs::hand_over`: what a filter is matched with.
    pub(crate) fn label(&self) -> String {
        let file = format!("{}/{}", self.folder, self.file);
        match &self.proof {
            Proof::Test {
                file: target, test, ..
            } => format!("{file} {target}::{test}"),
            Proof::Reason => file,
        }
    }
}

/// Reads every crate's map: the entries, and what is wrong with others.
pub(crate) fn load(workspace: &Workspace) -> Result<(Vec<Entry>, Vec<Finding>)> {
    let mut entries = Vec::new();
    let mut findings = Vec::new();
    for member in workspace.members()? {
        let path = member.dir.join("mutants.toml");
        if !path.is_file() {
            continue;
        }
        let text = workspace::read(&path)?;
        let shown = workspace.shown(&path);
        let map: Map = toml::from_str(&text).with_context(|| format!("{shown} is not a map"))?;
        for written in map.mutant {
            let line = source::line_of(&text, written.find.span().start);
            let place = format!("{shown}:{line}");
            let at = place.clone();
            match understand(written, &member.folder) {
                Ok((file, find, nth, proof)) => entries.push(Entry {
                    folder: member.folder.clone(),
                    path: member.dir.join(&file),
                    file,
                    place,
                    find,
                    nth,
                    proof,
                }),
                Err(what) => findings.push(Finding::error(at, what)),
            }
        }
    }
    Ok((entries, findings))
}

type Understood = (String, String, Option<usize>, Proof);

fn understand(written: Written, own: &str) -> Result<Understood, String> {
    let find = written.find.into_inner();
    if find.trim().is_empty() {
        return Err("`find` is empty; give the text of the ordering".to_owned());
    }
    let proof = match (written.test, written.reason) {
        (Some(test), None) => {
            let replace = written
                .replace
                .ok_or("`test` needs a `replace`; say what to weaken")?;
            if replace == find {
                return Err("`replace` is the same as `find`; weaken something".to_owned());
            }
            let (file, test) = test
                .split_once("::")
                .ok_or("`test` is not file::test; write for instance loom_mcs::hand_over")?;
            Proof::Test {
                replace,
                folder: written.test_crate.unwrap_or_else(|| own.to_owned()),
                file: file.to_owned(),
                test: test.to_owned(),
                hangs: written.hangs,
            }
        }
        (None, Some(reason)) if !reason.trim().is_empty() => Proof::Reason,
        _ => return Err("give either a `test` that fails or the `reason` why none can".to_owned()),
    };
    Ok((written.file, find, written.nth, proof))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fake;

    fn load_map(map: &str) -> (Vec<Entry>, Vec<Finding>) {
        let manifest = "[package]\nname = \"corelay-locks\"\n";
        let dir = fake(&[
            ("crates/locks/Cargo.toml", manifest),
            ("crates/locks/mutants.toml", map),
        ]);
        load(&Workspace::at(dir.path())).unwrap()
    }

    fn complaint(fields: &str) -> String {
        let map = format!("[[mutant]]\nfile = \"src/a.rs\"\nfind = \"x\"\n{fields}\n");
        let (entries, findings) = load_map(&map);
        assert!(entries.is_empty(), "{fields}");
        findings[0].to_string()
    }

    #[test]
    fn an_entry_is_read() {
        let (entries, findings) = load_map(
            "[[mutant]]\nfile = \"src/a.rs\"\nfind = \"x\"\nreplace = \"y\"\ntest = \"loom_a::b::c\"\n",
        );
        assert!(findings.is_empty());
        assert_eq!(entries[0].label(), "locks/src/a.rs loom_a::b::c");
        assert_eq!(entries[0].place, "crates/locks/mutants.toml:3");
    }

    #[test]
    fn half_entries_are_found() {
        assert!(complaint("").contains("either a `test`"));
        assert!(complaint("test = \"loom_a::b\"").contains("needs a `replace`"));
        assert!(complaint("reason = \" \"").contains("either a `test`"));
        assert!(complaint("test = \"loom_a::b\"\nreplace = \"x\"").contains("the same"));
        assert!(complaint("test = \"loom_a\"\nreplace = \"y\"").contains("not file::test"));
        let both = "test = \"loom_a::b\"\nreplace = \"y\"\nreason = \"none\"";
        assert!(complaint(both).contains("either a `test`"));
    }
}
