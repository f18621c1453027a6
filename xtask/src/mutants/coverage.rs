//! Entries without their text or their test, and orderings and fences without an entry.

use super::entry::{Entry, Proof};
use crate::source::{Code, line_of};
use crate::tidy::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::collections::BTreeSet;

/// The facade hands on the orderings that its callers name.
const FACADE: &str = "crates/sync/src/facade";

/// The orderings that an entry can weaken.
const STRONG: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];

/// The functions that order without naming an ordering.
const FENCES: &[&str] = &["fence", "light", "heavy"];

/// Entries whose text does not stand in its file, or whose test does not exist.
pub(super) fn stale(workspace: &Workspace, entries: &[Entry]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for entry in entries {
        let located = match entry.path.is_file() {
            true => entry.locate(&workspace::read(&entry.path)?).map(drop),
            false => Err("does not exist".to_owned()),
        };
        let text = located.map_err(|what| format!("{}: {what}", entry.file));
        let test = entry.proof.as_ref().map(|proof| missing(workspace, proof));
        for what in [text.err(), test.transpose()?.flatten()] {
            findings.extend(what.map(|what| Finding::error(entry.place.clone(), what)));
        }
    }
    Ok(findings)
}

/// Says which test is missing if its file has no function of that name.
fn missing(workspace: &Workspace, proof: &Proof) -> Result<Option<String>> {
    let (target, test) = (&proof.target, &proof.test);
    let dir = workspace.root.join("crates").join(&target.folder);
    let tests = dir.join("tests").join(&target.name);
    let files = match target.name.as_str() {
        "lib" => workspace::files_below(&dir.join("src"), "rs")?,
        _ if tests.join("main.rs").is_file() => workspace::files_below(&tests, "rs")?,
        _ => vec![tests.with_extension("rs")],
    };
    let name = test.rsplit("::").next().unwrap_or(test);
    for file in files.iter().filter(|file| file.is_file()) {
        // Looking at the text first spares most of the reading.
        let is_named = workspace::read(file)?.contains(&format!("fn {name}"));
        if is_named && Code::read(file)?.find(&["fn", name]).next().is_some() {
            return Ok(None);
        }
    }
    let (folder, file) = (&target.folder, &target.name);
    Ok(Some(format!("crate {folder} has no test {file}::{test}")))
}

/// A warning for each line with an ordering or a fence and no entry.
pub(super) fn unmapped(workspace: &Workspace, entries: &[Entry]) -> Result<Vec<Finding>> {
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
            let mut unmapped = orderings(&Code::shipped(&path)?);
            let of_file = entries.iter().filter(|entry| entry.path == path);
            for range in of_file.filter_map(|entry| entry.locate(&source).ok()) {
                let lines = line_of(&source, range.start)..=line_of(&source, range.end);
                unmapped.retain(|line| !lines.contains(line));
            }
            for line in unmapped {
                let place = format!("{}:{line}", workspace.shown(&path));
                let code = source.lines().nth(line - 1).unwrap_or_default().trim();
                let what = format!("unmapped: {code}; add an entry to mutants.toml");
                findings.push(Finding::warning(place, what));
            }
        }
    }
    Ok(findings)
}

/// The lines that name a strong ordering or call a fence.
fn orderings(code: &Code) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    for name in STRONG {
        lines.extend(code.find(&["Ordering", "::", name]).map(|(line, _)| line));
    }
    for name in FENCES {
        let found = code.find(&[name, "("]);
        let calls = found.filter(|(_, before)| *before != "fn");
        lines.extend(calls.map(|(line, _)| line));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::entry::load;
    use super::*;

    const SOURCE: &str = "\
x.load(Ordering::Acquire);
x.load(Ordering::Relaxed); // Ordering::Acquire
pub fn light() {}
barrier::light();
#[cfg(test)]
mod tests { fn f() { x.load(Ordering::SeqCst); } }
x.swap(1, Ordering::Acquire);
";

    type Check = fn(&Workspace, &[Entry]) -> Result<Vec<Finding>>;

    #[track_caller]
    fn finds(check: Check, fields: &str, wanted: &[&str]) {
        let map = format!("[[mutant]]\nfile = \"src/a.rs\"\n{fields}\n");
        let files = [
            ("crates/locks/mutants.toml", map.as_str()),
            ("crates/locks/src/a.rs", SOURCE),
            ("crates/locks/tests/loom_a.rs", "fn hand_over() {}"),
            ("crates/locks/tests/suite/main.rs", "mod part;"),
            ("crates/locks/tests/suite/part.rs", "fn in_a_part() {}"),
            ("crates/sync/src/facade/std.rs", SOURCE),
        ];
        let rule = |workspace: &Workspace| check(workspace, &load(workspace)?.0);
        crate::tidy::assert_finds(rule, &files, wanted);
    }

    #[test]
    fn strong_orderings_and_fences_need_an_entry() {
        let place = |line| format!("crates/locks/src/a.rs:{line}: warning: unmapped");
        let (first, fence, last) = (place(1), place(4), place(7));
        let none = "find = \"Relaxed\"\nreason = \"r\"";
        finds(unmapped, none, &[&first, &fence, &last]);
        let one = "find = \"x.load(Ordering::Acquire)\"\nreason = \"r\"";
        finds(unmapped, one, &[&fence, &last]);
    }

    #[test]
    fn text_that_is_gone_or_ambiguous_is_found() {
        finds(stale, "find = \"x.swap\"\nreason = \"r\"", &[]);
        finds(stale, "find = \"Acquire\"\nnth = 3\nreason = \"r\"", &[]);
        let gone = "find = \"Release\"\nreason = \"r\"";
        finds(
            stale,
            gone,
            &["mutants.toml:3: locks/src/a.rs: the text of `find` is not there"],
        );
        finds(stale, "find = \"Acquire\"\nreason = \"r\"", &["3 times"]);
        finds(
            stale,
            "find = \"Acquire\"\nnth = 0\nreason = \"r\"",
            &["3 times"],
        );
        finds(
            stale,
            "find = \"Acquire\"\nnth = 4\nreason = \"r\"",
            &["3 times"],
        );
    }

    #[test]
    fn a_test_that_is_gone_is_found() {
        let with = |test: &str, wanted: &[_]| {
            let fields = format!("find = \"x.swap\"\nreplace = \"\"\ntest = \"{test}\"");
            finds(stale, &fields, wanted);
        };
        with("loom_a::hand_over", &[]);
        with("suite::part::in_a_part", &[]);
        with("loom_b::hand_over", &["no test loom_b::hand_over"]);
        with("loom_a::hand", &["no test loom_a::hand"]);
        with("lib::tests::hand_over", &["no test lib::tests::hand_over"]);
    }
}
