//! Applies mutants one after the other and demands that their tests fail.

use super::entry::{Entry, Proof};
use super::{matching, tree};
use crate::binaries::{self, Checker, Outcome, Target, TestRun};
use crate::process::seconds;
use crate::source;
use crate::workspace::{self, Workspace};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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

/// A test of the copy, built and run.
enum Tried {
    NotBuilt(String),
    Run(TestRun),
}

/// Applies every entry that has a test; true where each was caught.
pub(crate) fn all(workspace: &Workspace, entries: &[&Entry]) -> Result<bool> {
    let mut bench = Bench::new(workspace)?;
    let mut counts = BTreeMap::<&str, usize>::new();
    for entry in entries {
        let Proof::Test { .. } = entry.proof else {
            continue;
        };
        let start = Instant::now();
        let came_out = bench.try_one(entry)?;
        let (word, detail) = match &came_out {
            Fate::Caught => ("caught", String::new()),
            Fate::CaughtByHanging => ("caught", " (hangs)".to_owned()),
            Fate::Survived => ("SURVIVED", String::new()),
            Fate::NotProven(why) => ("NOT PROVEN", format!(": {why}")),
        };
        *counts.entry(word).or_default() += 1;
        let line = bench.line(entry)?;
        let time = seconds(start.elapsed());
        println!(
            "{word:10} {time:>8} {}:{line} {}{detail}",
            entry.path_in_tree(),
            entry.test()
        );
        if word != "caught" {
            println!(
                "           {} → {}",
                one_line(&entry.find),
                one_line(entry.replace())
            );
        }
    }
    let count = |word: &str| counts.get(word).copied().unwrap_or(0);
    println!(
        "mutants: {} caught, {} survived, {} not proven",
        count("caught"),
        count("SURVIVED"),
        count("NOT PROVEN")
    );
    Ok(count("SURVIVED") + count("NOT PROVEN") == 0)
}

/// The copy of the tree and what its unchanged tests do.
struct Bench<'a> {
    workspace: &'a Workspace,
    root: PathBuf,
    packages: BTreeMap<String, String>,
    usual: BTreeMap<(Target, String), Result<Duration, String>>,
}

impl<'a> Bench<'a> {
    fn new(workspace: &'a Workspace) -> Result<Self> {
        let packages = workspace
            .members()?
            .into_iter()
            .map(|member| (member.folder, member.package));
        Ok(Self {
            workspace,
            root: tree::copy(workspace)?,
            packages: packages.collect(),
            usual: BTreeMap::new(),
        })
    }

    fn try_one(&mut self, entry: &Entry) -> Result<Fate> {
        let Proof::Test {
            replace,
            folder,
            file,
            test,
            hangs,
        } = &entry.proof
        else {
            return Ok(Fate::NotProven("it has no test".to_owned()));
        };
        let package = self
            .packages
            .get(folder)
            .with_context(|| format!("no crate {folder}"))?;
        let target = Target {
            folder: folder.clone(),
            package: package.clone(),
            name: file.clone(),
        };
        let usual = match self.usual(&target, test)? {
            Ok(time) => time,
            Err(why) => return Ok(Fate::NotProven(why)),
        };
        let source = workspace::read(&entry.path)?;
        let range = match matching::locate(entry, &source) {
            Ok(range) => range,
            Err(what) => return Ok(Fate::NotProven(format!("stale: {what}"))),
        };
        let mut mutated = source.clone();
        mutated.replace_range(range, replace);

        let path = self
            .root
            .join(entry.path.strip_prefix(&self.workspace.root)?);
        tree::put(&path, mutated.as_bytes())?;
        let run = self.run(&target, test, Some((usual * 10).max(PATIENCE)));
        tree::put(&path, source.as_bytes())?;
        Ok(judge(run?, *hangs))
    }

    /// How long the test takes without a mutant, or why it proves nothing.
    fn usual(&mut self, target: &Target, test: &str) -> Result<Result<Duration, String>> {
        let key = (target.clone(), test.to_owned());
        if let Some(known) = self.usual.get(&key) {
            return Ok(known.clone());
        }
        let usual = match self.run(target, test, None)? {
            Tried::NotBuilt(error) => Err(format!(
                "its test does not compile even without the mutant: {error}"
            )),
            Tried::Run(run) if run.outcome == Outcome::Passed => Ok(run.ended.time),
            Tried::Run(run) => Err(format!(
                "without the mutant its test gives: {}",
                run.closing_line()
            )),
        };
        self.usual.insert(key, usual.clone());
        Ok(usual)
    }

    /// Builds and runs a test of the copy.
    fn run(&self, target: &Target, test: &str, limit: Option<Duration>) -> Result<Tried> {
        let checker = Checker::of(&target.name);
        let into = self.workspace.target.join("mutants").join(checker.name());
        let targets = std::slice::from_ref(target);
        let built = binaries::build_command(&self.root, &into, checker, targets)
            .output()
            .context("cannot start cargo")?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr);
            let first = said.lines().find(|line| line.starts_with("error"));
            return Ok(Tried::NotBuilt(
                first.unwrap_or("no error is named").to_owned(),
            ));
        }
        let binaries = binaries::find(&String::from_utf8_lossy(&built.stdout), targets)?;
        let environment: &[_] = match checker {
            Checker::Loom => &[("LOOM_MAX_PREEMPTIONS", crate::models::preemptions())],
            Checker::Shuttle | Checker::Plain => &[],
        };
        Ok(Tried::Run(binaries[0].run(
            test,
            true,
            environment,
            limit,
        )?))
    }

    fn line(&self, entry: &Entry) -> Result<usize> {
        let source = workspace::read(&entry.path)?;
        Ok(matching::locate(entry, &source)
            .map_or(0, |range| source::line_of(&source, range.start)))
    }
}

fn judge(tried: Tried, hangs: bool) -> Fate {
    let run = match tried {
        Tried::NotBuilt(error) => {
            return Fate::NotProven(format!("it does not compile: {error}"));
        }
        Tried::Run(run) => run,
    };
    match run.outcome {
        Outcome::Failed => Fate::Caught,
        Outcome::TimedOut if hangs => Fate::CaughtByHanging,
        Outcome::TimedOut => {
            let how = run.ended.how();
            Fate::NotProven(format!(
                "{how}; where that is the failure, say hangs = true"
            ))
        }
        Outcome::Passed => Fate::Survived,
        Outcome::Ignored | Outcome::Absent => Fate::NotProven(run.closing_line()),
    }
}

impl Entry {
    fn path_in_tree(&self) -> String {
        Path::new(&self.folder)
            .join(&self.file)
            .display()
            .to_string()
    }

    fn test(&self) -> String {
        match &self.proof {
            Proof::Test { file, test, .. } => format!("{file}::{test}"),
            Proof::Reason => String::new(),
        }
    }

    fn replace(&self) -> &str {
        match &self.proof {
            Proof::Test { replace, .. } => replace,
            Proof::Reason => "",
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fake;

    /// A workspace without dependencies whose one test is run for real.
    fn outcomes(replacements: &[&str]) -> Vec<Fate> {
        let source = "pub fn two() -> u32 { 2 }\n";
        let mut map = String::new();
        for replacement in replacements {
            map += &format!(
                "[[mutant]]\nfile = \"src/lib.rs\"\nfind = \"{{ 2 }}\"\nreplace = \"{replacement}\"\ntest = \"two::is_even\"\n"
            );
        }
        let dir = fake(&[
            (
                "Cargo.toml",
                "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
            ),
            (
                "crates/one/Cargo.toml",
                "[package]\nname = \"corelay-one\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            ),
            ("crates/one/src/lib.rs", source),
            ("crates/one/mutants.toml", &map),
            (
                "crates/one/tests/two.rs",
                "#[test]\nfn is_even() { assert_eq!(corelay_one::two() % 2, 0); }\n",
            ),
            (
                "Cargo.lock",
                "version = 4\n\n[[package]]\nname = \"corelay-one\"\nversion = \"0.1.0\"\n",
            ),
        ]);
        let workspace = Workspace::at(dir.path());
        let (entries, findings) = super::super::entry::load(&workspace).unwrap();
        assert!(findings.is_empty());
        let mut bench = Bench::new(&workspace).unwrap();
        let came_out = entries
            .iter()
            .map(|entry| bench.try_one(entry).unwrap())
            .collect();
        let kept = std::fs::read_to_string(dir.path().join("crates/one/src/lib.rs")).unwrap();
        assert_eq!(kept, source, "the working tree was touched");
        came_out
    }

    #[test]
    fn mutants_are_caught_survive_or_prove_nothing() {
        let came_out = outcomes(&["{ 3 }", "{ 4 }", "{ x }", "{ 5 }"]);
        assert_eq!(came_out[0], Fate::Caught);
        assert_eq!(came_out[1], Fate::Survived);
        assert!(matches!(&came_out[2], Fate::NotProven(why) if why.contains("cannot find value")));
        assert_eq!(came_out[3], Fate::Caught);
    }

    #[test]
    fn hanging_counts_only_where_it_was_expected() {
        let run = |outcome| {
            let ended = crate::process::Ended {
                code: None,
                timed_out: true,
                output: String::new(),
                time: PATIENCE,
            };
            Tried::Run(TestRun { outcome, ended })
        };
        assert_eq!(judge(run(Outcome::TimedOut), true), Fate::CaughtByHanging);
        assert!(matches!(
            judge(run(Outcome::TimedOut), false),
            Fate::NotProven(_)
        ));
        assert!(matches!(
            judge(run(Outcome::Absent), true),
            Fate::NotProven(_)
        ));
    }
}
