//! Applies mutants, one to a copy of the tree at a time, and demands that their tests fail.

use super::entry::{Entry, Proof};
use super::tree;
use crate::binaries::{self, Checker, Outcome, Target, TestRun};
use crate::process::seconds;
use crate::source;
use crate::workspace::{self, Workspace};
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
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
///
/// Each CPU has a copy of the tree and takes the entries of one test program after the other, so that
/// its next build is a small one.
pub(crate) fn all(workspace: &Workspace, entries: &[&Entry]) -> Result<(bool, String)> {
    let mut programs: BTreeMap<&Target, Vec<(&Entry, &Proof)>> = BTreeMap::new();
    for entry in entries {
        if let Some(proof) = &entry.proof {
            programs
                .entry(&proof.target)
                .or_default()
                .push((entry, proof));
        }
    }
    let lanes = thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let lanes = lanes.min(programs.len());
    let mut programs: Vec<_> = programs.into_values().collect();
    // The longest first, so that all copies are done at about the same time.
    programs.sort_by_key(|program| Reverse(program.len()));
    let programs = Mutex::new(programs.into_iter());
    let next = || programs.lock().expect("no thread panics").next();
    let counts = Mutex::new(Counts::default());
    let work = |lane| {
        let mut bench = Bench::new(workspace, lane)?;
        while let Some(program) = next() {
            for (entry, proof) in program {
                let start = Instant::now();
                let source = workspace::read(&entry.path)?;
                let fate = bench.try_one(entry, proof, &source)?;
                let mut counts = counts.lock().expect("no thread panics");
                counts.add(entry, proof, &source, fate, start.elapsed());
            }
        }
        anyhow::Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..lanes)
            .map(|lane| scope.spawn(move || work(lane)))
            .collect();
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| ended.expect("no thread panics"))
    })?;
    let counts = counts.into_inner().expect("no thread panics");
    let note = counts.words();
    println!("mutants: {note}");
    Ok((counts.is_good(), note))
}

/// How many mutants came out in which way.
#[derive(Debug, Default)]
struct Counts {
    caught: usize,
    survived: usize,
    not_proven: usize,
}

impl Counts {
    /// Adds a mutant of `source`, and says how it came out.
    fn add(&mut self, entry: &Entry, proof: &Proof, source: &str, fate: Fate, time: Duration) {
        let (word, count, detail) = match fate {
            Fate::Caught => ("caught", &mut self.caught, String::new()),
            Fate::CaughtByHanging => ("caught", &mut self.caught, " (hangs)".to_owned()),
            Fate::Survived => ("SURVIVED", &mut self.survived, String::new()),
            Fate::NotProven(why) => ("NOT PROVEN", &mut self.not_proven, format!(": {why}")),
        };
        *count += 1;
        let range = entry.locate(source);
        let line = range.map_or(0, |range| source::line_of(source, range.start));
        let (file, of, test) = (&entry.file, &proof.target.name, &proof.test);
        let time = seconds(time);
        println!("{word:10} {time:>8} {file}:{line} {of}::{test}{detail}");
        if word != "caught" {
            let [find, replace] = [&entry.find, &proof.replace].map(|text| one_line(text));
            println!("           {find} → {replace}");
        }
    }

    fn is_good(&self) -> bool {
        self.survived + self.not_proven == 0
    }

    fn words(&self) -> String {
        let [caught, survived, not_proven] = [self.caught, self.survived, self.not_proven];
        format!("{caught} caught, {survived} survived, {not_proven} not proven")
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A test of the copy, built and run, or why it was not built.
type Tried = Result<TestRun, String>;

/// A copy of the tree and what its unchanged tests do.
struct Bench<'a> {
    workspace: &'a Workspace,
    /// The folder of the copy, and of what is built from it.
    home: PathBuf,
    root: PathBuf,
    /// How long a test takes without a mutant, or why it proves nothing.
    usual: BTreeMap<(Target, String), Result<Duration, String>>,
}

impl<'a> Bench<'a> {
    fn new(workspace: &'a Workspace, lane: usize) -> Result<Self> {
        let home = workspace.target.join("mutants").join(lane.to_string());
        Ok(Self {
            workspace,
            root: tree::copy(workspace, &home)?,
            home,
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
        let into = self.home.join(checker.name());
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
        let mut bench = Bench::new(&workspace, 0).unwrap();
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
