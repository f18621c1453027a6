//! Does every entry still match the source?

use super::entry::{Entry, Proof};
use crate::source;
use crate::tidy::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::ops::Range;
use std::path::Path;

/// Where an entry's text stands in `source`, or why that cannot be told.
pub(crate) fn locate(entry: &Entry, source: &str) -> Result<Range<usize>, String> {
    let places: Vec<usize> = source
        .match_indices(&entry.find)
        .map(|(at, _)| at)
        .collect();
    let at = match (entry.nth, places.as_slice()) {
        (_, []) => Err("the text of `find` is not there any more".to_owned()),
        (None, [at]) => Ok(*at),
        (None, many) => Err(format!(
            "the text of `find` stands there {} times; give more of it or `nth`",
            many.len()
        )),
        (Some(nth), many) => nth
            .checked_sub(1)
            .and_then(|i| many.get(i))
            .copied()
            .ok_or_else(|| {
                format!(
                    "nth = {nth}, but the text of `find` stands there {} times",
                    many.len()
                )
            }),
    }?;
    Ok(at..at + entry.find.len())
}

/// What does not match: the file, the text in it, or the test.
pub(crate) fn check(workspace: &Workspace, entries: &[Entry]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for entry in entries {
        let mut found = |what: String| findings.push(Finding::error(entry.place.clone(), what));
        if entry.path.is_file() {
            let source = workspace::read(&entry.path)?;
            if let Err(what) = locate(entry, &source) {
                found(format!("{}/{}: {what}", entry.folder, entry.file));
            }
        } else {
            found(format!("{}/{} does not exist", entry.folder, entry.file));
        }
        if let Proof::Test {
            folder, file, test, ..
        } = &entry.proof
            && let Some(what) = missing_test(workspace, folder, file, test)?
        {
            found(what);
        }
    }
    Ok(findings)
}

/// Says what is missing where the named test does not stand in its file.
fn missing_test(
    workspace: &Workspace,
    folder: &str,
    file: &str,
    test: &str,
) -> Result<Option<String>> {
    let dir = workspace.root.join("crates").join(folder);
    let name = test.rsplit("::").next().unwrap_or(test);
    let function = format!("fn {name}");
    let rust = |path: &Path| path.extension().is_some_and(|e| e == "rs");
    let tests = dir.join("tests");
    let files = if file == "lib" {
        let src = dir.join("src");
        if src.is_dir() {
            workspace::files_below(&src, &rust)?
        } else {
            Vec::new()
        }
    } else if tests.join(file).join("main.rs").is_file() {
        workspace::files_below(&tests.join(file), &rust)?
    } else {
        let path = tests.join(format!("{file}.rs"));
        if !path.is_file() {
            return Ok(Some(format!(
                "the test file {} does not exist",
                workspace.shown(&path)
            )));
        }
        vec![path]
    };
    for path in files {
        if source::find_word(&workspace::read(&path)?, &function).is_some() {
            return Ok(None);
        }
    }
    Ok(Some(format!("crate {folder} has no test {file}::{test}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fake;

    const SOURCE: &str = "a.load(Acquire);\nb.load(Acquire);\n";

    fn complaints(fields: &str) -> Vec<String> {
        let map = format!("[[mutant]]\nfile = \"src/lib.rs\"\n{fields}\n");
        let dir = fake(&[
            (
                "crates/locks/Cargo.toml",
                "[package]\nname = \"corelay-locks\"\n",
            ),
            ("crates/locks/mutants.toml", &map),
            ("crates/locks/src/lib.rs", SOURCE),
            ("crates/locks/tests/loom_a.rs", "fn hand_over() {}"),
            ("crates/locks/tests/suite/main.rs", "mod part;"),
            ("crates/locks/tests/suite/part.rs", "fn in_a_part() {}"),
        ]);
        let workspace = Workspace::at(dir.path());
        let found = super::super::stale(&workspace).unwrap();
        found.iter().map(Finding::to_string).collect()
    }

    fn with_test(test: &str) -> Vec<String> {
        complaints(&format!(
            "find = \"a.load(Acquire)\"\nreplace = \"\"\ntest = \"{test}\""
        ))
    }

    #[test]
    fn a_matching_entry_is_silent() {
        assert_eq!(with_test("loom_a::hand_over"), Vec::<String>::new());
        assert_eq!(with_test("suite::part::in_a_part"), Vec::<String>::new());
        assert!(complaints("find = \"Acquire\"\nnth = 2\nreason = \"r\"").is_empty());
    }

    #[test]
    fn text_that_is_gone_or_ambiguous_is_found() {
        assert!(complaints("find = \"Release\"\nreason = \"r\"")[0].contains("not there any more"));
        assert!(complaints("find = \"Acquire\"\nreason = \"r\"")[0].contains("2 times"));
        for nth in [0, 3] {
            let found = complaints(&format!("find = \"Acquire\"\nnth = {nth}\nreason = \"r\""));
            assert!(found[0].contains("2 times"), "{found:?}");
        }
    }

    #[test]
    fn a_test_that_is_gone_is_found() {
        assert!(with_test("loom_b::hand_over")[0].contains("loom_b.rs does not exist"));
        assert!(with_test("loom_a::hand")[0].contains("no test loom_a::hand"));
        assert!(with_test("lib::tests::hand_over")[0].contains("no test lib::tests::hand_over"));
    }
}
