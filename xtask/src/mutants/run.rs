//! Applies mutants one after the other and demands that their tests fail.

use super::entry::{Entry, Proof};
use super::tree;
use crate::binaries::{self, Checker, Outcome, Target, TestRun};
use crate::process::seconds;
use crate::source;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A test that is still running after ten times its usual time, and at least this,
/// counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a mutant came out.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Caught,
    CaughtByHanging,
    Survived,
    /// The test passed or failed for a reason that proves nothing.
    NotProven(String),
}

/// Applies every entry that has a test; whether each was caught, and the counts.
pub(crate) fn all(workspace: &Workspace, entries: &[&Entry]) -> Result<(bool, String)> {
    let mut bench = Bench::new(workspace)?;
    let mut counts = [("caught", 0), ("SURVIVED", 0), ("NOT PROVEN", 0)];
    for entry in entries {
        let Some(proof) = &entry.proof else { continue };
        let start = Instant::now();
        let source = workspace::read(&entry.path)?;
        let fate = bench.try_one(entry, proof, &source)?;
        let (index, detail) = match fate {
            Fate::Caught => (0, String::new()),
            Fate::CaughtByHanging => (0, " (hangs)".to_owned()),
            Fate::Survived => (1, String::new()),
            Fate::NotProven(why) => (2, format!(": {why}")),
        };
        let (word, count) = &mut counts[index];
        *count += 1;
        let start_of = |range: std::ops::Range<usize>| source::line_of(&source, range.start);
        let line = entry.locate(&source).map_or(0, start_of);
        let (time, test) = (seconds(start.elapsed()), &proof.test);
        let (file, of) = (&entry.file, &proof.target.name);
        println!("{word:10} {time:>8} {file}:{line} {of}::{test}{detail}");
        if index > 0 {
            let [find, replace] = [&entry.find, &proof.replace].map(|text| one_line(text));
            println!("           {find} → {replace}");
        }
    }
    let words = counts.map(|(word, count)| format!("{count} {}", word.to_lowercase()));
    let note = words.join(", ");
    println!("mutants: {note}");
    Ok((counts[1].1 + counts[2].1 == 0, note))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A test of the copy, built and run, or why it was not built.
type Tried = Result<TestRun, String>;

/// The copy of the tree and what its unchanged tests do.
struct Bench<'a> {
    workspace: &'a Workspace,
    root: PathBuf,
    /// How long a test takes without a mutant, or why it proves nothing.
    usual: BTreeMap<(Target, String), Result<Duration, String>>,
}

impl<'a> Bench<'a> {
    fn new(workspace: &'a Workspace) -> Result<Self> {
        Ok(Self {
            workspace,
            root: tree::copy(workspace)?,
            usual: BTreeMap::new(),
        })
    }

    fn try_one(&mut self, entry: &Entry, proof: &Proof, source: &str) -> Result<Fate> {
        let key = (proof.target.clone(), proof.test.clone());
        if !self.usual.contains_key(&key) {
            let usual = usual(self.run(proof, None)?);
            self.usual.insert(key.clone(), usual);
        }
        let usual = match &self.usual[&key] {
            Ok(time) => *time,
            Err(why) => return Ok(Fate::NotProven(why.clone())),
        };
        let range = match entry.locate(source) {
            Ok(range) => range,
            Err(what) => return Ok(Fate::NotProven(format!("stale: {what}"))),
        };
        let mut mutated = source.to_owned();
        mutated.replace_range(range, &proof.replace);
        let path = entry.path.strip_prefix(&self.workspace.root)?;
        let path = self.root.join(path);
        tree::put(&path, mutated.as_bytes())?;
        let run = self.run(proof, Some((usual * 10).max(PATIENCE)));
        tree::put(&path, source.as_bytes())?;
        Ok(judge(run?, proof.hangs))
    }

    /// Builds and runs a test of the copy.
    fn run(&self, proof: &Proof, limit: Option<Duration>) -> Result<Tried> {
        let targets = std::slice::from_ref(&proof.target);
        let checker = Checker::of(&proof.target.name);
        let into = self.workspace.target.join("mutants").join(checker.name());
        let built = binaries::build(&self.root, &into, checker, targets, Stdio::piped())?;
        let binaries = match built {
            Ok(binaries) => binaries,
            Err(said) => {
                let first = said.lines().find(|line| line.starts_with("error"));
                return Ok(Err(first.unwrap_or("no error is named").to_owned()));
            }
        };
        let environment: &[_] = match checker {
            Checker::Loom => &[("LOOM_MAX_PREEMPTIONS", crate::models::preemptions())],
            Checker::Shuttle | Checker::Plain => &[],
        };
        binaries[0]
            .run(&proof.test, true, environment, limit)
            .map(Ok)
    }
}

fn usual(tried: Tried) -> Result<Duration, String> {
    match tried {
        Ok(run) if run.outcome == Outcome::Passed => Ok(run.ended.time),
        Ok(run) => {
            let closing = run.closing_line();
            Err(format!("without the mutant its test gives: {closing}"))
        }
        Err(error) => Err(format!(
            "its test does not compile even without the mutant: {error}"
        )),
    }
}

fn judge(tried: Tried, hangs: bool) -> Fate {
    let run = match tried {
        Ok(run) => run,
        Err(error) => return Fate::NotProven(format!("it does not compile: {error}")),
    };
    match run.outcome {
        Outcome::Failed => Fate::Caught,
        Outcome::TimedOut if hangs => Fate::CaughtByHanging,
        Outcome::TimedOut => {
            let how = run.ended.how();
            Fate::NotProven(format!("{how}; if that is the failure, say hangs = true"))
        }
        Outcome::Passed => Fate::Survived,
        Outcome::Ignored | Outcome::Absent => Fate::NotProven(run.closing_line()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fake;

    /// A workspace without dependencies whose one test is run for real.
    fn fates(replacements: &[&str]) -> Vec<Fate> {
        let source = "pub fn two() -> u32 { 2 }\n";
        let entry = |replacement: &&str| {
            format!(
                "[[mutant]]\nfile = \"src/lib.rs\"\nfind = \"{{ 2 }}\"\n\
                 replace = \"{replacement}\"\ntest = \"two::is_even\"\n"
            )
        };
        let map: String = replacements.iter().map(entry).collect();
        let package = "name = \"corelay-one\"\nversion = \"0.1.0\"\n";
        let (_dir, workspace) = fake(&[
            (
                "Cargo.toml",
                "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
            ),
            (
                "Cargo.lock",
                &format!("version = 4\n\n[[package]]\n{package}"),
            ),
            (
                "crates/one/Cargo.toml",
                &format!("[package]\n{package}edition = \"2024\"\n"),
            ),
            ("crates/one/src/lib.rs", source),
            ("crates/one/mutants.toml", &map),
            (
                "crates/one/tests/two.rs",
                "#[test]\nfn is_even() { assert_eq!(corelay_one::two() % 2, 0); }\n",
            ),
        ]);
        let (entries, findings) = super::super::entry::load(&workspace).unwrap();
        assert_eq!(findings, []);
        let mut bench = Bench::new(&workspace).unwrap();
        let try_one = |entry: &Entry| {
            let proof = entry.proof.as_ref().unwrap();
            bench.try_one(entry, proof, source).unwrap()
        };
        let fates = entries.iter().map(try_one).collect();
        let kept = workspace::read(&entries[0].path).unwrap();
        assert_eq!(kept, source, "the working tree was touched");
        fates
    }

    #[test]
    fn mutants_are_caught_survive_or_prove_nothing() {
        let fates = fates(&["{ 3 }", "{ 4 }", "{ x }", "{ 5 }"]);
        assert_eq!(fates[0], Fate::Caught);
        assert_eq!(fates[1], Fate::Survived);
        assert!(matches!(&fates[2], Fate::NotProven(why) if why.contains("cannot find value")));
        assert_eq!(fates[3], Fate::Caught);
    }

    #[test]
    fn hanging_counts_only_if_it_was_expected() {
        let run = |outcome, hangs| {
            let ended = crate::process::Ended {
                code: None,
                timed_out: true,
                output: String::new(),
                time: PATIENCE,
            };
            judge(Ok(TestRun { outcome, ended }), hangs)
        };
        assert_eq!(run(Outcome::TimedOut, true), Fate::CaughtByHanging);
        assert!(matches!(run(Outcome::TimedOut, false), Fate::NotProven(_)));
        assert!(matches!(run(Outcome::Absent, true), Fate::NotProven(_)));
    }
}
