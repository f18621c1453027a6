//! The entries of `mutants.toml`.

use crate::binaries::Target;
use crate::source;
use crate::tidy::Finding;
use crate::workspace::{self, Member, Workspace};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::ops::Range;
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
    /// Crate and file: `locks/src/mcs.rs`.
    pub(crate) file: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// The line of the entry: `crates/locks/mutants.toml:12`.
    pub(crate) place: String,
    /// The text that is there now.
    pub(crate) find: String,
    /// Which occurrence of it, from 1; `None` if it must be the only one.
    nth: Option<usize>,
    /// `None` if no test can fail; the map says why.
    pub(crate) proof: Option<Proof>,
}

/// A test that shows why the ordering is what it is.
#[derive(Debug)]
pub(crate) struct Proof {
    /// The weaker text, with which the test fails.
    pub(crate) replace: String,
    pub(crate) target: Target,
    /// The test's path in its file.
    pub(crate) test: String,
    /// Whether it fails by never ending.
    pub(crate) hangs: bool,
}

impl Entry {
    /// `locks/src/mcs.rs loom_mcs::hand_over`: what a filter is matched with.
    pub(crate) fn label(&self) -> String {
        match &self.proof {
            Some(proof) => format!("{} {}::{}", self.file, proof.target.name, proof.test),
            None => self.file.clone(),
        }
    }

    /// Finds its text in `source`, or says why that cannot be done.
    pub(crate) fn locate(&self, source: &str) -> Result<Range<usize>, String> {
        let places = source.match_indices(&self.find).map(|(at, _)| at);
        let places: Vec<usize> = places.collect();
        let times = places.len();
        let at = match (self.nth, places.as_slice()) {
            (_, []) => return Err("the text of `find` is not there any more".to_owned()),
            (None, [at]) => Some(at),
            (None, _) => None,
            (Some(nth), _) => nth.checked_sub(1).and_then(|index| places.get(index)),
        };
        let at = *at.ok_or_else(|| {
            format!(
                "the text of `find` stands there {times} times; give more of it or another `nth`"
            )
        })?;
        Ok(at..at + self.find.len())
    }
}

/// Reads every crate's map: the entries, and what is wrong with others.
pub(crate) fn load(workspace: &Workspace) -> Result<(Vec<Entry>, Vec<Finding>)> {
    let members = workspace.members()?;
    let mut entries = Vec::new();
    let mut findings = Vec::new();
    for member in &members {
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
            match proof(&written, member, &members) {
                Ok(proof) => entries.push(Entry {
                    file: format!("{}/{}", member.folder, written.file),
                    path: member.dir.join(&written.file),
                    place,
                    find: written.find.into_inner(),
                    nth: written.nth,
                    proof,
                }),
                Err(what) => findings.push(Finding::error(place, what)),
            }
        }
    }
    Ok((entries, findings))
}

/// The proof of an entry, or what is wrong with it.
fn proof(written: &Written, own: &Member, members: &[Member]) -> Result<Option<Proof>, String> {
    let find = written.find.get_ref();
    if find.trim().is_empty() {
        return Err("`find` is empty; give the text of the ordering".to_owned());
    }
    let test = match (&written.test, &written.reason) {
        (Some(test), None) => test,
        (None, Some(reason)) if !reason.trim().is_empty() => return Ok(None),
        _ => return Err("give either a `test` that fails or the `reason` why none can".to_owned()),
    };
    let replace = written.replace.clone();
    let replace = replace.ok_or("`test` needs a `replace`; say what to weaken")?;
    if replace == *find {
        return Err("`replace` is the same as `find`; weaken something".to_owned());
    }
    let parts = test.split_once("::");
    let (file, test) =
        parts.ok_or("`test` is not file::test; write for instance loom_mcs::hand_over")?;
    let folder = written.test_crate.as_ref().unwrap_or(&own.folder);
    if !members.iter().any(|member| member.folder == *folder) {
        return Err(format!("there is no crate {folder}"));
    }
    Ok(Some(Proof {
        replace,
        target: Target::new(folder, file),
        test: test.to_owned(),
        hangs: written.hangs,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_map(fields: &str) -> (Vec<Entry>, Vec<Finding>) {
        let map = format!("[[mutant]]\nfile = \"src/a.rs\"\nfind = \"x\"\n{fields}\n");
        let (_dir, workspace) = workspace::fake(&[("crates/locks/mutants.toml", &map)]);
        load(&workspace).unwrap()
    }

    #[test]
    fn an_entry_is_read() {
        let (entries, findings) = load_map("replace = \"y\"\ntest = \"loom_a::b::c\"");
        assert!(findings.is_empty());
        assert_eq!(entries[0].label(), "locks/src/a.rs loom_a::b::c");
        assert_eq!(entries[0].place, "crates/locks/mutants.toml:3");
    }

    #[test]
    fn half_entries_are_found() {
        let test = "test = \"loom_a::b\"";
        for (fields, wanted) in [
            ("", "either a `test`"),
            (test, "needs a `replace`"),
            ("reason = \" \"", "either a `test`"),
            (&format!("{test}\nreplace = \"x\""), "the same"),
            ("test = \"loom_a\"\nreplace = \"y\"", "not file::test"),
            (
                &format!("{test}\nreplace = \"y\"\nreason = \"no\""),
                "either",
            ),
            (
                &format!("{test}\nreplace = \"y\"\ncrate = \"no\""),
                "no crate no",
            ),
        ] {
            let (entries, findings) = load_map(fields);
            assert!(entries.is_empty(), "{fields}");
            assert!(findings[0].to_string().contains(wanted), "{findings:?}");
        }
    }
}
